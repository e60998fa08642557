//! What signers make of requests, and when those are old.

use machinery::ClusterName;
use rcgen::{CertificateParams, DnType, IsCa, KeyPair, SanType};
use serde_json::json;

use super::*;
use crate::auth::targets::SyncTarget;

/// A request as PEM, after `with` has changed what is asked for.
pub(crate) fn pem(name: &str, group: &str, with: impl Fn(&mut CertificateParams)) -> String {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    if !name.is_empty() {
        params.distinguished_name.push(DnType::CommonName, name);
    }
    if !group.is_empty() {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    with(&mut params);
    params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
}

/// The object of a request.
pub(crate) fn request(pem: &str, signer: &str) -> Value {
    json!({
        "metadata": {"name": "r", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "request": STANDARD.encode(pem),
            "signerName": signer,
            "usages": ["client auth"],
        },
    })
}

fn cluster(name: &str) -> ClusterName {
    ClusterName::parse(name).unwrap()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn uri(text: &str) -> impl Fn(&mut CertificateParams) {
    move |params| params.subject_alt_names = vec![SanType::URI(text.try_into().unwrap())]
}

fn plain(_: &mut CertificateParams) {}

#[test]
fn requests_are_read() {
    let found = Request::parse(pem("ann", "dev", uri("a:b")).as_bytes()).unwrap();
    assert_eq!((&*found.names, &*found.groups), (&["ann".to_owned()][..], &["dev".to_owned()][..]));
    assert_eq!(found.uris, ["a:b"]);
    assert!(!found.other_names && !found.other_subject && !found.authority && !found.weak);
    let found = pem("ann", "", |params| {
        params.distinguished_name.push(DnType::CountryName, "XX");
        params.subject_alt_names = vec![SanType::DnsName("a.io".try_into().unwrap())];
    });
    let found = Request::parse(found.as_bytes()).unwrap();
    assert!(found.other_names && found.other_subject && found.uris.is_empty());
}

#[test]
fn what_is_no_request() {
    let check = |pem: &str, expect: &str| {
        assert_eq!(Request::parse(pem.as_bytes()).unwrap_err(), expect);
    };
    let good = pem("ann", "", plain);
    check("", "PEM block type must be CERTIFICATE REQUEST");
    check("hello", "PEM block type must be CERTIFICATE REQUEST");
    let renamed = good.replace("CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST");
    check(&renamed, "PEM block type must be CERTIFICATE REQUEST");
    let begin = "-----BEGIN CERTIFICATE REQUEST-----\n";
    let end = "-----END CERTIFICATE REQUEST-----\n";
    let malformed = "asn1: structure error: malformed certificate request";
    check(&format!("{begin}AAAA\n{end}"), malformed);
    // Another's key under the same signature.
    let der = |pem: &str| x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap().1.contents;
    let mut changed = der(&good);
    let at = changed.windows(3).position(|part| part == b"ann").unwrap();
    changed[at] = b'b';
    let changed = format!("{begin}{}\n{end}", STANDARD.encode(changed));
    check(&changed, "x509: ECDSA verification failure");
    let mut longer = der(&good);
    longer.push(0);
    let longer = format!("{begin}{}\n{end}", STANDARD.encode(longer));
    check(&longer, "asn1: syntax error: trailing data");
    check(&"x".repeat(70 << 10), "must be at most 65536 bytes");
}

proptest::proptest! {
    /// Whatever the bytes are, they are read or refused.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
        let text = format!(
            "-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n",
            STANDARD.encode(&bytes)
        );
        proptest::prop_assert!(Request::parse(text.as_bytes()).is_err());
        proptest::prop_assert!(Request::parse(&bytes).is_err());
    }
}

#[test]
fn people() {
    let now = time("2026-01-01T00:00:00.7Z");
    let judged = |pem: &str, cluster_name: &str, with: &dyn Fn(&mut Value)| {
        let mut request = request(pem, CLIENT_SIGNER);
        with(&mut request);
        judge_client(&request, &cluster(cluster_name), now)
    };
    let leaf = judged(&pem("ann", "dev", plain), "root", &|_| {}).unwrap();
    assert_eq!((&*leaf.name, leaf.group.as_deref(), &leaf.uri), ("ann", Some("dev"), &None));
    assert_eq!(leaf.not_before, time("2025-12-31T23:55:00Z"));
    assert_eq!(leaf.not_after, time("2027-01-01T00:00:00Z"));
    assert!(!leaf.encipherment);
    let short = judged(&pem("ann", "", plain), "root", &|request| {
        request["spec"]["expirationSeconds"] = json!(3600);
        request["spec"]["usages"] = json!(["key encipherment", "client auth"]);
    });
    let short = short.unwrap();
    assert_eq!(short.not_after, time("2026-01-01T01:00:00Z"));
    assert!(short.encipherment);
    let refused = |pem: &str, why: &str| {
        let found = judged(pem, "root", &|_| {}).unwrap_err();
        assert!(found.contains(why), "{found}: {why}");
    };
    for name in ["", "system:admin", "system:serviceaccount:a:b", "system:kcp:operator"] {
        refused(&pem(name, "dev", plain), "common name");
    }
    for group in ["system:masters", "system:syncers", "system:kcp:operators", "system:x"] {
        refused(&pem("ann", group, plain), "no organization may begin with system:");
    }
    refused(&pem("ann", "", uri("kcp://clusters/a/synctargets/b")), "alternative names");
    refused(
        &pem("ann", "", |params| params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained)),
        "authorities",
    );
    refused(
        &pem("ann", "", |params| params.distinguished_name.push(DnType::CountryName, "XX")),
        "common name and an organization only",
    );
    let elsewhere = judged(&pem("ann", "dev", plain), "a", &|_| {}).unwrap_err();
    assert!(elsewhere.contains("root alone"), "{elsewhere}");
    let usages = |usages: Value| {
        let changed = |request: &mut Value| request["spec"]["usages"] = usages.clone();
        judged(&pem("ann", "", plain), "root", &changed).unwrap_err()
    };
    let invalid = "invalid usage for client certificate: server auth";
    assert_eq!(usages(json!(["client auth", "server auth"])), invalid);
    let missing = "missing required usage for client certificate: client auth";
    assert_eq!(usages(json!(["digital signature"])), missing);
}

/// The SyncTarget `east` with the UID `u1`.
fn target(revoked: Option<&str>) -> impl Fn(&str) -> Option<SyncTarget> {
    let value = json!({
        "metadata": {"name": "east", "uid": "u1"},
        "status": {"credentialsNotBefore": revoked},
    });
    let key = crate::auth::targets::key(&cluster("a"), "east");
    let bytes = store::object::encode(&value);
    let origin = store::cache::Origin::Stored;
    let object = store::cache::Object::new(key, &bytes, store::Revision(1), 0, origin).unwrap();
    let target = SyncTarget::read(&object);
    move |uid| target.clone().filter(|target| *target.uid == *uid)
}

#[test]
fn agents() {
    const OWN: &str = "kcp://clusters/a/synctargets/east";
    let now = time("2026-01-01T00:00:10Z");
    let judged = |pem: &str, revoked: Option<&str>, seconds: Option<i64>| {
        let mut request = request(pem, contract::AGENT_SIGNER);
        if let Some(seconds) = seconds {
            request["spec"]["expirationSeconds"] = json!(seconds);
        }
        judge_agent(&request, &cluster("a"), now, target(revoked))
    };
    let good = pem("system:syncer:u1", "system:syncers", plain);
    let leaf = judged(&good, None, None).unwrap();
    assert_eq!((&*leaf.name, leaf.uri.as_deref()), ("system:syncer:u1", Some(OWN)));
    assert_eq!(leaf.group.as_deref(), Some("system:syncers"));
    assert_eq!(leaf.not_before, time("2025-12-31T23:55:10Z"));
    assert_eq!(leaf.not_after, time("2026-01-02T00:00:10Z"));
    let named = pem("system:syncer:u1", "system:syncers", uri(OWN));
    assert_eq!(judged(&named, None, None).unwrap().uri.as_deref(), Some(OWN));
    let long = judged(&good, None, Some(31_536_000)).unwrap();
    assert_eq!(long.not_after, time("2026-01-08T00:00:10Z"));
    let short = judged(&good, None, Some(600)).unwrap();
    assert_eq!(short.not_after, time("2026-01-01T00:10:10Z"));
    // Asked after a revocation, it begins with that; before, it is void.
    let after = judged(&good, Some("2025-12-31T23:59:59.5Z"), None).unwrap();
    assert_eq!(after.not_before, time("2026-01-01T00:00:00Z"));
    for revoked in ["2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z", "2030-01-01T00:00:00Z"] {
        let why = judged(&good, Some(revoked), None).unwrap_err();
        assert!(why.contains("revoked"), "{revoked}: {why}");
    }
    let refused = |pem: &str, why: &str| {
        let found = judged(pem, None, None).unwrap_err();
        assert!(found.contains(why), "{found}: {why}");
    };
    refused(&pem("system:syncer:u2", "system:syncers", plain), "no SyncTarget");
    refused(&pem("system:syncer:", "system:syncers", plain), "the subject must be");
    refused(&pem("ann", "system:syncers", plain), "the subject must be");
    refused(&pem("system:syncer:u1", "system:masters", plain), "the subject must be");
    refused(&pem("system:syncer:u1", "", plain), "one organization");
    let other = "kcp://clusters/a/synctargets/west";
    refused(&pem("system:syncer:u1", "system:syncers", uri(other)), "alternative name");
    let host = |params: &mut CertificateParams| {
        params.subject_alt_names = vec![SanType::DnsName("localhost".try_into().unwrap())];
    };
    refused(&pem("system:syncer:u1", "system:syncers", host), "alternative name");
    let authority = |params: &mut CertificateParams| {
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    };
    refused(&pem("system:syncer:u1", "system:syncers", authority), "authorities");
}

#[test]
fn old_requests() {
    let check = |status: Value, now: &str, expect: bool| {
        let created = "2026-01-01T00:00:00Z";
        let request = json!({"metadata": {"creationTimestamp": created}, "status": status});
        assert_eq!(is_old(&request, time(now)), expect, "{request} {now}");
    };
    let of = |kind: &str, certificate: &str| {
        let condition =
            json!({"type": kind, "status": "True", "lastUpdateTime": "2026-01-01T02:00:00Z"});
        json!({"conditions": [condition], "certificate": certificate})
    };
    check(json!({}), "2026-01-02T00:00:00Z", false);
    check(json!({}), "2026-01-02T00:00:01Z", true);
    for kind in [DENIED, FAILED] {
        check(of(kind, ""), "2026-01-01T03:00:00Z", false);
        check(of(kind, ""), "2026-01-01T03:00:01Z", true);
    }
    check(of(APPROVED, ""), "2026-01-02T02:00:00Z", false);
    check(of(APPROVED, ""), "2026-01-02T02:00:01Z", true);
    check(of(APPROVED, "bm9uZQ=="), "2026-01-01T03:00:00Z", false);
    check(of(APPROVED, "bm9uZQ=="), "2026-01-01T03:00:01Z", true);
    check(of("Other", ""), "2027-01-01T00:00:00Z", false);
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.not_before = rcgen::date_time_ymd(2025, 1, 1);
    params.not_after = rcgen::date_time_ymd(2026, 1, 1);
    let ended = params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
    check(of(APPROVED, &STANDARD.encode(ended)), "2026-01-01T02:00:01Z", true);
}
