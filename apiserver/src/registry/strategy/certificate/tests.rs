//! Rules of requests, with upstream's texts.

use super::*;
use crate::certificates::tests::{pem, request};

fn good() -> Value {
    request(&pem("ann", "dev", |_| {}), "example.com/signer")
}

/// The problems of a new request, after `with` has changed it.
#[track_caller]
fn check(with: impl Fn(&mut Value), expect: &[&str]) {
    let mut object = good();
    with(&mut object);
    let found: Vec<String> =
        Requests.validate_create(&object).iter().map(ToString::to_string).collect();
    assert_eq!(found, expect);
}

#[test]
fn new_requests() {
    check(|_| {}, &[]);
    let set = |field: &'static str, value: Value| {
        move |object: &mut Value| object["spec"][field] = value.clone()
    };
    let bad =
        "spec.request: Invalid value: \"aGVsbG8=\": PEM block type must be CERTIFICATE REQUEST";
    check(set("request", json!("aGVsbG8=")), &[bad]);
    check(set("usages", json!([])), &["spec.usages: Required value"]);
    let twice = json!(["client auth", "client auth"]);
    check(set("usages", twice), &["spec.usages[1]: Duplicate value: \"client auth\""]);
    check(set("expirationSeconds", json!(600)), &[]);
    let short = "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than \
                 600 seconds (10 minutes)";
    check(set("expirationSeconds", json!(599)), &[short]);
    let mut unknown = Requests.validate_create(&{
        let mut object = good();
        object["spec"]["usages"] = json!(["flying"]);
        object
    });
    let unknown = unknown.remove(0).to_string();
    assert!(unknown.starts_with("spec.usages[0]: Unsupported value: \"flying\""), "{unknown}");
}

#[test]
fn names_of_signers() {
    let check = |name: &str, expect: &[&str]| {
        let path = FieldPath::root("n");
        let found: Vec<String> = signer(&path, name).iter().map(ToString::to_string).collect();
        assert_eq!(found, expect, "{name}");
    };
    check("example.com/a", &[]);
    check("kcp.io/syncer", &[]);
    check("example.com/a.b-c", &[]);
    check("", &["n: Required value"]);
    let form = |name: &str| {
        format!(
            "n: Invalid value: \"{name}\": must be a fully qualified domain and path of the form \
             'example.com/signer-name'"
        )
    };
    check("example.com", &[&form("example.com")]);
    check("example.com/a/b", &[&form("example.com/a/b")]);
    let lone = "n: Invalid value: \"example\": should be a domain with at least two segments \
                separated by dots";
    check("example/a", &[lone]);
    let legacy = "n: Invalid value: \"kubernetes.io/legacy-unknown\": the legacy signerName is not \
                  allowed via this API version";
    check("kubernetes.io/legacy-unknown", &[legacy]);
    let wrong = signer(&FieldPath::root("n"), "example.com/A")[0].to_string();
    assert!(wrong.starts_with("n: Invalid value: \"A\": validating label \"A\": "), "{wrong}");
}

/// A request with conditions and a certificate.
fn with_status(kinds: &[&str], certificate: &str) -> Value {
    let mut object = good();
    let conditions: Vec<Value> =
        kinds.iter().map(|kind| json!({"type": kind, "status": "True"})).collect();
    object["status"] = json!({"conditions": conditions, "certificate": certificate});
    object
}

#[test]
fn decisions_are_made_once_and_in_their_place() {
    let check = |part: &str, old: &[&str], new: &[&str], expect: &[&str]| {
        let (old, new) = (with_status(old, ""), with_status(new, ""));
        let found: Vec<String> =
            Requests.validate_part(part, &new, &old).iter().map(ToString::to_string).collect();
        assert_eq!(found, expect, "{part}: {old} {new}");
    };
    check("approval", &[], &["Approved"], &[]);
    check("approval", &[], &["Denied"], &[]);
    check("approval", &["Approved"], &["Approved", "Other"], &[]);
    let exclusive = "status.conditions: Invalid value: \"Denied\": Approved and Denied conditions \
                     are mutually exclusive";
    check("approval", &["Approved"], &["Approved", "Denied"], &[exclusive]);
    let removed = "status.conditions: Forbidden: updates may not remove a condition of type \
                   \"Approved\"";
    check("approval", &["Approved"], &[], &[removed]);
    check("status", &["Approved"], &["Approved", "Failed"], &[]);
    let added =
        "status.conditions: Forbidden: updates may not add a condition of type \"Approved\"";
    check("status", &[], &["Approved"], &[added]);
    check("", &[], &["Approved"], &[added]);
    let again = "status.conditions[1].type: Duplicate value: \"Other\"";
    check("status", &[], &["Other", "Other"], &[again]);
}

#[test]
fn certificates_are_written_once_and_by_status() {
    let own = rcgen::generate_simple_self_signed(Vec::new()).unwrap().cert.pem();
    let given = STANDARD.encode(&own);
    let check = |part: &str, old: &str, new: &str, expect: &[&str]| {
        let (old, new) = (with_status(&[], old), with_status(&[], new));
        let found: Vec<String> =
            Requests.validate_part(part, &new, &old).iter().map(ToString::to_string).collect();
        assert_eq!(found, expect, "{part}");
    };
    check("status", "", &given, &[]);
    check("status", &given, &given, &[]);
    let other = STANDARD.encode(format!("{own}{own}"));
    let twice =
        "status.certificate: Forbidden: updates may not modify existing certificate content";
    check("status", &given, &other, &[twice]);
    let place = "status.certificate: Forbidden: updates may not set certificate content";
    check("approval", "", &given, &[place]);
    let none = "status.certificate: Invalid value: \"<certificate data>\": must contain at least \
                one CERTIFICATE PEM block";
    check("status", "", "aGVsbG8=", &[none]);
    let key = STANDARD.encode("-----BEGIN KEY-----\nAAAA\n-----END KEY-----\n");
    let wrong = "status.certificate: Invalid value: \"<certificate data>\": only CERTIFICATE PEM \
                 blocks are allowed, found \"KEY\"";
    check("status", "", &key, &[wrong]);
}

#[test]
fn times_and_decisions_are_kept() {
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let ctx = Context::new(std::sync::Arc::default(), now, "t".into());
    let mut old = with_status(&["Approved"], "");
    old["status"]["conditions"][0]["reason"] = json!("Good");
    old["status"]["conditions"][0]["lastTransitionTime"] = json!("2025-01-01T00:00:00Z");
    let mut new = with_status(&["Approved", "Failed"], "");
    new["status"]["conditions"][0]["reason"] = json!("Forged");
    Requests.prepare_part("status", &mut new, &old, &ctx);
    let conditions = &new["status"]["conditions"];
    assert_eq!(conditions[0]["reason"], "Good");
    assert_eq!(conditions[0]["lastTransitionTime"], "2025-01-01T00:00:00Z");
    assert_eq!(conditions[1]["lastTransitionTime"], "2026-01-01T00:00:00Z");
    assert_eq!(conditions[1]["lastUpdateTime"], "2026-01-01T00:00:00Z");
}

/// Lists as long as a body lets them be are judged in about as many steps.
#[test]
fn long_lists_cost_what_they_are_long() {
    const MANY: usize = 200_000;
    let mut object = good();
    object["spec"]["usages"] = vec!["client auth"; MANY].into();
    assert_eq!(Requests.validate_create(&object).len(), MOST_PROBLEMS);
    let of = |index: usize| json!({"type": format!("T{index}"), "status": "True"});
    let list: Vec<Value> = (0..MANY).map(of).collect();
    assert_eq!(conditions(&list, Some(&list)), []);
    let mut old = list.clone();
    old.iter_mut().for_each(|condition| condition["lastTransitionTime"] = json!("then"));
    let known = times(&old);
    let mut last = of(MANY - 1);
    date(&mut last, &known, "now");
    assert_eq!(
        (&last["lastUpdateTime"], &last["lastTransitionTime"]),
        (&json!("now"), &json!("then"))
    );
    let mut none = of(MANY);
    date(&mut none, &known, "now");
    assert_eq!(none["lastTransitionTime"], "now");
}
