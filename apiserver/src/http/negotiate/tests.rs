//! Tables of headers.

use http::HeaderValue;

use super::*;

const ALL: Offers = Offers { tables: true, metadata: true, discovery: true, protobuf: true };

fn headers(name: http::HeaderName, value: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if !value.is_empty() {
        headers.insert(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn check(value: &str, expect: (Encoding, Shape)) {
    let accepted = accept(&headers(ACCEPT, value), ALL).unwrap();
    assert_eq!((accepted.encoding, accepted.shape), expect, "{value}");
}

#[test]
fn clients_get_the_first_form_that_can_be_given() {
    use Encoding::{Json, Protobuf, Yaml};
    let table = Shape::Table(MetaVersion::V1);
    let metadata = Shape::Metadata(MetaVersion::V1);
    for plain in
        ["", "*/*", "application/*", "application/json", "Application/JSON ; charset=utf-8"]
    {
        check(plain, (Json, Shape::Object));
    }
    check("text/html, application/json;q=0.9", (Json, Shape::Object));
    check("application/yaml", (Yaml, Shape::Object));
    check("application/yaml, */*", (Yaml, Shape::Object));
    check("application/json;q=0.2,application/yaml;q=0.8", (Yaml, Shape::Object));
    // kubectl
    check(
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;\
         g=meta.k8s.io,application/json",
        (Json, table),
    );
    check("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", (Json, Shape::Object));
    check(
        "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
        (Json, Shape::Table(MetaVersion::V1Beta1)),
    );
    // Typed clients and metadata clients of client-go
    check("application/vnd.kubernetes.protobuf,application/json", (Json, Shape::Object));
    check("application/vnd.kubernetes.protobuf", (Protobuf, Shape::Object));
    check(
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
         application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
        (Protobuf, metadata),
    );
    check(
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
        (Json, Shape::Discovery),
    );
    check(
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
         application/json",
        (Json, Shape::Object),
    );
    check("application/json;q=0,application/yaml", (Yaml, Shape::Object));
}

#[test]
fn nothing_acceptable_is_an_error_that_lists_the_types() {
    for value in [
        "text/plain",
        "application/cbor",
        "application/json;q=2",
        "application/json;as=Table;v=v3;g=meta.k8s.io",
        "application/json;as=Other;v=v1;g=meta.k8s.io",
    ] {
        let error = accept(&headers(ACCEPT, value), ALL).unwrap_err();
        assert_eq!(error.reason(), Reason::NotAcceptable, "{value}");
        assert_eq!(
            error.message(),
            "only the following media types are accepted: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf"
        );
    }
    let table = headers(ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io");
    assert!(accept(&table, Offers { tables: false, ..ALL }).is_err());
}

#[test]
fn bodies() {
    let check = |value: &str, expect: Option<Media>| {
        assert_eq!(content_type(&headers(CONTENT_TYPE, value)).ok(), expect, "{value}");
    };
    check("", Some(Media::Json));
    check("application/json; charset=utf-8", Some(Media::Json));
    check("application/yaml", Some(Media::Yaml));
    check("application/vnd.kubernetes.protobuf", Some(Media::Protobuf));
    check("application/x-www-form-urlencoded", None);
    check("application/cbor", None);
}

#[test]
fn patches() {
    let check = |value: &str, strategic: bool, expect: Result<PatchType, &str>| {
        let answer = patch_type(&headers(CONTENT_TYPE, value), strategic);
        let answer =
            answer.map_err(|error| error.message().rsplit(": ").next().unwrap().to_owned());
        assert_eq!(answer.as_ref().map_err(String::as_str), expect.as_ref().map_err(|e| *e));
    };
    let all = "application/json-patch+json, application/merge-patch+json, \
               application/strategic-merge-patch+json, application/apply-patch+yaml";
    check("application/json-patch+json", false, Ok(PatchType::Json));
    check("application/merge-patch+json; charset=utf-8", false, Ok(PatchType::Merge));
    check("application/strategic-merge-patch+json", true, Ok(PatchType::Strategic));
    check("application/apply-patch+yaml", true, Ok(PatchType::Apply));
    check("application/json", true, Err(all));
    let custom = "application/json-patch+json, application/merge-patch+json, \
                  application/apply-patch+yaml";
    check("application/strategic-merge-patch+json", false, Err(custom));
    check("", false, Err(custom));
}

#[test]
fn gzip() {
    for (value, expect) in [
        ("gzip", true),
        ("deflate, gzip;q=0.5", true),
        ("gzip;q=0", false),
        ("", false),
        ("br", false),
        ("identity", false),
    ] {
        assert_eq!(accepts_gzip(&headers(ACCEPT_ENCODING, value)), expect, "{value}");
    }
}
