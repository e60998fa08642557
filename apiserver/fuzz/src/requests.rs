//! Heads of requests.

use std::time::Duration;

use apiserver::reading::{self, Reading};
use apiserver::registry::ClusterScope;
use http::request::Parts;
use http::{HeaderValue, Request};
use machinery::ClusterName;

fn head(method: &str, uri: &str, headers: &[(&'static str, &[u8])]) -> Option<Parts> {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, HeaderValue::from_bytes(value).ok()?);
    }
    Some(request.body(()).ok()?.into_parts().0)
}

fn shown(reading: &Reading) -> String {
    let Reading { path, verb, resource, options, media_type, gzip, limit, .. } = reading;
    format!("{path} {verb} {resource:?} {options:?} {media_type} {gzip} {limit:?}")
}

/// Lines: method, path and query, and the headers that are negotiated by.
pub fn request(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let text = |line| std::str::from_utf8(line).unwrap_or_default();
    let (method, uri) = (text(line()), text(line()));
    let headers = [
        ("accept", line()),
        ("content-type", line()),
        ("accept-encoding", line()),
        ("accept", line()),
    ];
    let Some(parts) = head(method, uri, &headers) else { return };
    let Ok(reading) = reading::read(&parts) else { return };
    assert!(reading.limit <= Duration::from_secs(60));
    assert!(!reading.path.contains(|c: char| c.is_ascii_control()));
    if let Some(path) = &reading.resource {
        let parts = [
            &path.group,
            &path.version,
            &path.namespace,
            &path.resource,
            &path.name,
            &path.subresource,
        ];
        assert!(parts.iter().all(|part| !part.contains('/')), "{path:?}");
        assert!(!path.version.is_empty() && !path.resource.is_empty(), "{path:?}");
    }
    // The same in another logical cluster, where the path names none and hides nothing.
    let root = ClusterScope::One(ClusterName::root());
    let plain = uri.starts_with('/') && !uri.starts_with("/clusters") && !uri.contains('%');
    if plain && reading.cluster == root {
        let moved = head(method, &format!("/clusters/one{uri}"), &headers);
        let again = moved.map(|parts| reading::read(&parts));
        let again = again.expect("a longer path is one").expect("it was read before");
        assert_eq!(shown(&again), shown(&reading));
        assert!(matches!(again.cluster, ClusterScope::One(name) if name.as_str() == "one"));
    }
}
