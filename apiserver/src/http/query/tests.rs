//! Tables of queries.

use serde_json::json;

use super::*;
use crate::registry::{DeleteOptions, Propagation, Reason};

fn query(text: &str) -> Query<'_> {
    Query::parse(Some(text)).unwrap()
}

#[test]
fn pairs_flags_and_numbers() {
    let q = query("a=1&a=2&b&c=x+y%26z&&watch=FALSE&n=-3&big=99999999999999999999&w=1x&e=");
    assert_eq!((q.get("a"), q.text("c"), q.get("none")), (Some("1"), "x y&z", None));
    assert_eq!((q.flag("b"), q.flag("watch"), q.flag("none")), (Some(true), Some(false), None));
    assert_eq!((q.number("n").unwrap(), q.number("e").unwrap()), (Some(-3), None));
    let text = |name: &str| q.number(name).unwrap_err().message().to_owned();
    assert_eq!(text("w"), "strconv.ParseInt: parsing \"1x\": invalid syntax");
    assert_eq!(
        text("big"),
        "strconv.ParseInt: parsing \"99999999999999999999\": value out of range"
    );
    for bad in ["a=%", "%zz=1", "a=%ff"] {
        assert_eq!(Query::parse(Some(bad)).unwrap_err().reason(), Reason::BadRequest, "{bad}");
    }
    assert!(Query::parse(Some(&"a=1&".repeat(1000))).is_err());
}

#[test]
fn lists() {
    let options = list_options(&query(
        "limit=5&continue=t&resourceVersion=7&resourceVersionMatch=Exact&labelSelector=a%3Db\
         &fieldSelector=metadata.name%3Dx&timeoutSeconds=3&allowWatchBookmarks=true\
         &sendInitialEvents=false",
    ))
    .unwrap();
    assert_eq!((options.limit, options.timeout_seconds), (5, Some(3)));
    assert_eq!((options.continue_token.as_str(), options.resource_version.as_str()), ("t", "7"));
    assert_eq!((options.bookmarks, options.send_initial_events), (true, Some(false)));
    assert!(!options.labels.is_empty() && !options.fields.is_empty());
    for (bad, reason) in [
        ("limit=x", Reason::BadRequest),
        ("labelSelector=a+b", Reason::BadRequest),
        ("fieldSelector=a", Reason::BadRequest),
    ] {
        assert_eq!(list_options(&query(bad)).unwrap_err().reason(), reason, "{bad}");
    }
}

#[test]
fn writes() {
    let apply = WriteVerb::Patch(PatchForm::Apply);
    let merge = WriteVerb::Patch(PatchForm::Other);
    let options = write_options(
        &query("dryRun=All&fieldManager=me&fieldValidation=Strict"),
        WriteVerb::Create,
    );
    let options = options.unwrap();
    assert!(options.dry_run && &*options.field_manager == "me");
    let check = |text: &str, verb: WriteVerb, message: &str| {
        assert_eq!(write_options(&query(text), verb).unwrap_err().message(), message, "{text}");
    };
    check(
        "dryRun=Some",
        WriteVerb::Create,
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: \
         supported values: \"All\"",
    );
    check(
        "force=true&fieldManager=a",
        merge,
        "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for \
         non-apply patch",
    );
    check(
        "",
        apply,
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for \
         apply patch",
    );
    let long = format!("fieldManager={}", "x".repeat(129));
    check(
        &long,
        WriteVerb::Update,
        "UpdateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than \
         128 bytes",
    );
    check(
        "fieldValidation=x",
        WriteVerb::Update,
        "UpdateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"x\": \
         supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
    );
    assert!(write_options(&query("fieldManager=a%0A"), WriteVerb::Update).is_err());
}

#[test]
fn deletes() {
    let text = "gracePeriodSeconds=5&propagationPolicy=Foreground&dryRun=All";
    let expect = DeleteOptions {
        dry_run: true,
        grace_period_seconds: Some(5),
        propagation: Some(Propagation::Foreground),
        ..DeleteOptions::default()
    };
    assert_eq!(delete_options(&query(text), None).unwrap(), expect);
    let body = json!({
        "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": null,
        "preconditions": {"uid": "u", "resourceVersion": "7"}, "orphanDependents": true,
    });
    let expect = DeleteOptions {
        propagation: Some(Propagation::Orphan),
        uid: Some("u".into()),
        resource_version: Some("7".into()),
        ..DeleteOptions::default()
    };
    // The query is not looked at when there is a body.
    assert_eq!(delete_options(&query("dryRun=All"), Some(&body)).unwrap(), expect);
    for (bad, reason) in [
        (json!({"propagationPolicy": "Orphan", "orphanDependents": true}), Reason::Invalid),
        (json!({"propagationPolicy": "Sideways"}), Reason::Invalid),
        (json!({"dryRun": ["Some"]}), Reason::Invalid),
        (json!({"kind": "ConfigMap"}), Reason::BadRequest),
        (json!({"gracePeriodSeconds": "5"}), Reason::BadRequest),
        (json!([]), Reason::BadRequest),
    ] {
        let error = delete_options(&query(""), Some(&bad)).unwrap_err();
        assert_eq!(error.reason(), reason, "{bad}");
    }
}
