//! Tables of paths, and laws that hold for every path.

use http::Method;
use proptest::prelude::*;

use super::*;

/// `cluster verb group/version namespace resource name subresource` of a path; `-` for empty.
fn summary(method: &Method, path: &str, query: (bool, &str)) -> String {
    let decoded = match decode_path(path) {
        Ok(decoded) => decoded,
        Err(error) => return format!("{:?}", error.reason()),
    };
    let info = match RequestInfo::parse(method, &decoded, query.0, query.1) {
        Ok(info) => info,
        Err(error) => return format!("{error:?}"),
    };
    let cluster = match &info.cluster {
        ClusterScope::One(name) => name.to_string(),
        ClusterScope::All => "*".into(),
    };
    let verb = info.verb.as_str();
    let Some(path) = info.resource else { return format!("{cluster} {verb} {}", info.path) };
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let mut text = format!("{cluster} {verb} {}/{}", or_dash(path.group), path.version);
    for part in [path.namespace, path.resource, path.name, path.subresource] {
        text.push(' ');
        text.push_str(&or_dash(part));
    }
    if !path.pinned.is_empty() {
        text.push_str(&format!(" pinned={}", path.pinned));
    }
    if path.overlong {
        text.push_str(" overlong");
    }
    text
}

fn check(path: &str, expect: &str) {
    assert_eq!(summary(&Method::GET, path, (false, "")), expect, "{path}");
}

#[test]
fn paths_of_resources() {
    check("/api/v1/configmaps", "root list -/v1 - configmaps - -");
    check("/api/v1/configmaps/", "root list -/v1 - configmaps - -");
    check("/api/v1/namespaces", "root list -/v1 - namespaces - -");
    check("/api/v1/namespaces/a", "root get -/v1 a namespaces a -");
    check("/api/v1/namespaces/a/status", "root get -/v1 a namespaces a status");
    check("/api/v1/namespaces/a/finalize", "root get -/v1 a namespaces a finalize");
    check("/api/v1/namespaces/a/pods", "root list -/v1 a pods - -");
    check("/api/v1/namespaces/a/pods/b", "root get -/v1 a pods b -");
    check("/api/v1/namespaces/a/pods/b/log", "root get -/v1 a pods b log");
    check("/api/v1/namespaces/a/pods/b/proxy/c", "root get -/v1 a pods b proxy overlong");
    check("/apis/apps/v1/namespaces/a/deployments/b", "root get apps/v1 a deployments b -");
    check("/apis/g.io/v1/things/b/status", "root get g.io/v1 - things b status");
    check("/api/v1/watch/namespaces/a/pods", "root watch -/v1 a pods - -");
    check("/api/v1/watch/namespaces/a/pods/b", "root watch -/v1 a pods b - pinned=b");
    check("/api/v1/watch", "root list -/v1 - watch - -");
}

#[test]
fn paths_of_logical_clusters() {
    check("/clusters/a/api/v1/configmaps", "a list -/v1 - configmaps - -");
    check("/clusters/system:crds/apis/g/v/r", "system:crds list g/v - r - -");
    check("/clusters/*/api/v1/configmaps", "* list -/v1 - configmaps - -");
    check("/clusters/%2A/api/v1/configmaps", "* list -/v1 - configmaps - -");
    check("/%63lusters/a/api", "a get /api");
    check("/clusters/a", "a get /");
    check("/clusters/a/", "a get /");
    check("/clusters/a/clustersx", "a get /clustersx");
    check("/clustersx", "root get /clustersx");
    check("/clusters/a/apis/g.io/v1/clusters/b", "a get g.io/v1 - clusters b -");
    for path in ["/clusters", "/clusters/", "/clusters//api", "/clusters/a/clusters/b/api"] {
        check(path, "NotFound");
    }
    check("/clusters/a/clusters", "NotFound");
    check("/clusters/a%2Fclusters/b", "NotFound");
    check("/clusters/A/api", "Cluster(\"A\")");
    check("/clusters/../api", "Cluster(\"..\")");
}

#[test]
fn other_paths() {
    for path in ["/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz"] {
        check(path, &format!("root get {path}"));
    }
    check("/api//configmaps", "root get /api//configmaps");
    check("//api/v1/configmaps", "root get //api/v1/configmaps");
    check("/api/v1/namespaces//configmaps", "root get /api/v1/namespaces//configmaps");
    for bad in ["/%", "/%4", "/%zz", "/%ff", "/%00", "/a%0Ab"] {
        check(bad, "BadRequest");
    }
    let long = "/a".repeat(1000);
    check(&long, &format!("root get {long}"));
    let deep = format!("/api/v1/namespaces/a/pods/b/proxy{}", "/c".repeat(1000));
    check(&deep, "root get -/v1 a pods b proxy overlong");
}

#[test]
fn verbs() {
    let check = |method: Method, path: &str, watch: bool, selector: &str, verb: &str| {
        let text = summary(&method, path, (watch, selector));
        assert_eq!(text.split(' ').nth(1), Some(verb), "{method} {path}: {text}");
    };
    check(Method::GET, "/api/v1/configmaps", true, "", "watch");
    check(Method::HEAD, "/api/v1/namespaces/a/configmaps/b", false, "", "get");
    check(Method::GET, "/api/v1/namespaces/a/configmaps/b", true, "", "get");
    check(Method::POST, "/api/v1/namespaces", false, "", "create");
    check(Method::PUT, "/api/v1/namespaces/a", false, "", "update");
    check(Method::PATCH, "/api/v1/namespaces/a", false, "", "patch");
    check(Method::DELETE, "/api/v1/namespaces/a", false, "", "delete");
    check(Method::DELETE, "/api/v1/namespaces", false, "", "deletecollection");
    check(Method::OPTIONS, "/api/v1/namespaces", false, "", "");
    check(Method::POST, "/api/v1/watch/configmaps", false, "", "");
    check(Method::POST, "/version", false, "", "post");
}

#[test]
fn names_pinned_by_field_selectors() {
    let check = |selector: &str, expect: &str| {
        let info = RequestInfo::parse(&Method::GET, "/api/v1/configmaps", false, selector);
        assert_eq!(info.unwrap().resource.unwrap().pinned, expect, "{selector}");
    };
    check("metadata.name=a", "a");
    check("metadata.name==a", "a");
    check("type=x,metadata.name=a", "a");
    for none in ["", "metadata.name!=a", "metadata.name=a\\,b", "metadata.name=..", "x=metadata"] {
        check(none, "");
    }
}

proptest! {
    #[test]
    fn any_path_parses_without_panic(path in "/[ -~]{0,80}", watch: bool) {
        if let Ok(decoded) = decode_path(&path) {
            for method in [Method::GET, Method::DELETE, Method::OPTIONS] {
                if let Ok(info) = RequestInfo::parse(&method, &decoded, watch, &path) {
                    prop_assert!(info.path.starts_with('/'));
                }
            }
        }
    }

    #[test]
    fn parts_come_back(
        cluster in "[a-z]{1,9}", group in "[a-z]{1,5}[.]io", ns in "[a-z]{1,9}", name in "[a-z.-]{1,9}"
    ) {
        let path = format!("/clusters/{cluster}/apis/{group}/v1/namespaces/{ns}/things/{name}");
        let info = RequestInfo::parse(&Method::GET, &path, false, "").unwrap();
        prop_assert_eq!(info.cluster, ClusterScope::One(ClusterName::parse(&cluster).unwrap()));
        let resource = info.resource.unwrap();
        if name != "status" && name != "finalize" {
            prop_assert_eq!((resource.group, resource.version), (group.as_str(), "v1"));
            prop_assert_eq!((resource.namespace, resource.name), (ns.as_str(), name.as_str()));
        }
    }

    #[test]
    fn encoding_a_path_changes_nothing(path in "/(clusters/[a-z]{1,3}/)?api/v1/[a-z/]{0,20}") {
        let encoded: String = path.bytes().map(|b| format!("%{b:02X}")).collect();
        let decoded = decode_path(&encoded).unwrap();
        let plain = RequestInfo::parse(&Method::GET, &path, false, "");
        prop_assert_eq!(RequestInfo::parse(&Method::GET, &decoded, false, ""), plain);
    }
}
