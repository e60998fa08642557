//! A proxy in front of the server that has authenticated the caller and says who it is, in
//! `X-Remote-` headers.
//!
//! Invariant: the headers are looked at for certificates of the operator's choice alone, and by
//! nothing else in the server; nothing passes them on.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue};
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::{CertificateDer, UnixTime};

use super::certificate::Subject;
use crate::auth::UserInfo;

const USER: &str = "x-remote-user";
const UID: &str = "x-remote-uid";
const GROUP: &str = "x-remote-group";
const EXTRA: &str = "x-remote-extra-";

/// Which certificates are those of front proxies.
#[derive(Debug)]
pub(crate) struct FrontProxy {
    /// Checks them by their authority.
    pub(crate) certificates: Arc<dyn ClientCertVerifier>,
    /// Their names; any, if empty.
    pub(crate) names: Vec<String>,
}

// === impl FrontProxy ===

impl FrontProxy {
    /// Whether a certificate is that of a front proxy.
    pub(super) fn trusts(
        &self,
        subject: &Subject,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> bool {
        let named = self.names.is_empty() || self.names.contains(&subject.name);
        named && self.certificates.verify_client_cert(leaf, others, now).is_ok()
    }
}

/// The caller that a front proxy names, if it names one.
pub(super) fn user(headers: &HeaderMap) -> Option<UserInfo> {
    let name = first(headers, USER)?;
    let groups = headers.get_all(GROUP).iter().map(text).filter(|group| !group.is_empty());
    let mut extra = BTreeMap::<String, Vec<String>>::new();
    for (header, value) in headers {
        if let Some(key) = header.as_str().strip_prefix(EXTRA) {
            extra.entry(unescape(key)).or_default().push(text(value));
        }
    }
    let uid = first(headers, UID).unwrap_or_default();
    let user = UserInfo { name, uid, groups: groups.collect(), extra, ..UserInfo::default() };
    Some(user.authenticated())
}

/// The first value of a header, unless it is empty.
fn first(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(text).filter(|value| !value.is_empty())
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// A key of an extra as it was before it became part of a header's name. One that is no good
/// encoding stays as it is, as upstream.
pub(crate) fn unescape(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        if *byte != b'%' {
            bytes.push(*byte);
            rest = after;
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let value = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let Some(value) = value else { return key.to_owned() };
        bytes.push(value);
        rest = after.get(2..).unwrap_or_default();
    }
    String::from_utf8(bytes).unwrap_or_else(|_| key.to_owned())
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn the_proxy_names_the_caller() {
        let mut headers = HeaderMap::new();
        assert_eq!(user(&headers), None);
        for (name, value) in [
            ("x-remote-group", "a"),
            ("x-remote-group", ""),
            ("x-remote-group", "b"),
            ("x-remote-uid", "7"),
            ("x-remote-extra-scopes", "one"),
            ("x-remote-extra-scopes", "two"),
            ("x-remote-extra-example.org%2fteam", "blue"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        assert_eq!(user(&headers), None, "groups without a name are nobody");
        headers.insert(USER, HeaderValue::from_static("ann"));
        let ann = user(&headers).unwrap();
        assert_eq!((&*ann.name, &*ann.uid), ("ann", "7"));
        assert_eq!(ann.groups, ["a", "b", "system:authenticated"]);
        assert_eq!(ann.extra["scopes"], ["one", "two"]);
        assert_eq!(ann.extra["example.org/team"], ["blue"]);
        headers.insert(USER, HeaderValue::from_static(""));
        assert_eq!(user(&headers), None);
    }

    #[test]
    fn keys_are_unescaped() {
        let check = |key: &str, expect: &str| assert_eq!(unescape(key), expect);
        check("plain", "plain");
        check("a%2fb", "a/b");
        check("%e2%82%ac", "€");
        for bad in ["%", "a%2", "a%zz", "%+1", "%ff"] {
            check(bad, bad);
        }
    }
}
