//! What the conditions say of targets in every state.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;

const LONG_AGO: &str = "2026-01-01T00:00:00Z";
const NOW: &str = "2026-01-02T00:00:00Z";

/// A target whose types are there, unless the conditions say otherwise.
fn target(spec: &Value, conditions: &[(&str, &str, &str)]) -> Target {
    let types = [("TypesImported", "True", "Imported")];
    let conditions: Vec<Value> = types
        .iter()
        .filter(|(kind, ..)| !conditions.iter().any(|(own, ..)| own == kind))
        .chain(conditions)
        .map(|(kind, status, reason)| {
            json!({
                "type": kind, "status": status, "reason": reason, "message": "as before",
                "lastTransitionTime": LONG_AGO,
            })
        })
        .collect();
    let object = json!({
        "metadata": {"name": "east", "uid": "u", "generation": 3},
        "spec": spec,
        "status": {"conditions": conditions},
    });
    Target::read("a", &object).unwrap()
}

fn alive() -> Pulse {
    Pulse::Alive(Duration::from_secs(30))
}

fn facts(installed: Option<(ConditionStatus, &'static str)>, pulse: Pulse) -> Facts {
    let installed = installed.map(|(status, reason)| Verdict::new(status, reason, "because"));
    Facts { installed, pulse, draining: None }
}

#[track_caller]
fn check(target: &Target, facts: &Facts, kind: &str, expect: (ConditionStatus, &str)) {
    let all = conditions(target, facts, NOW);
    let found = all.iter().find(|condition| condition.type_ == kind).unwrap();
    assert_eq!((found.status, found.reason.as_str()), expect, "{kind} {facts:?}: {found:?}");
    assert!(REASONS.contains(&found.reason.as_str()) || found.reason == "UseSecret", "{found:?}");
}

#[test]
fn ready_sums_up() {
    let fresh = target(&json!({}), &[]);
    for (installed, pulse, expect) in [
        (None, Pulse::Never, (False, "Pending")),
        (Some((False, "InvalidKubeconfig")), Pulse::Never, (False, "InvalidKubeconfig")),
        (Some((False, "Unreachable")), Pulse::Never, (False, "Unreachable")),
        (Some((True, "Installed")), Pulse::Never, (False, "AgentNotConnected")),
        (Some((True, "Installed")), alive(), (True, "Ready")),
        (Some((True, "Installed")), Pulse::Silent, (Unknown, "LeaseExpired")),
        (Some((False, "Unreachable")), Pulse::Silent, (Unknown, "LeaseExpired")),
        // The agent does its work without the operator.
        (Some((False, "Unreachable")), alive(), (True, "Ready")),
        (Some((False, "NoKubeconfig")), alive(), (True, "Ready")),
        (Some((False, "NoKubeconfig")), Pulse::Never, (False, "NoKubeconfig")),
        // One that lives is of another cluster.
        (Some((False, "ClusterIdentityChanged")), alive(), (False, "ClusterIdentityChanged")),
    ] {
        check(&fresh, &facts(installed, pulse), READY, expect);
    }
    let expired = conditions(&fresh, &facts(Some((False, "Unreachable")), Pulse::Silent), NOW);
    assert!(expired[2].message.contains("Unreachable: because"), "{expired:?}");
}

#[test]
fn what_agents_complain_of() {
    for (kind, bad, reason) in [
        ("Authorized", "False", "Unauthorized"),
        ("ClusterReachable", "False", "ClusterUnreachable"),
        ("Unsupported", "True", "Unsupported"),
        ("UpstreamChanged", "True", "HubChanged"),
    ] {
        let good = if bad == "True" { "False" } else { "True" };
        let installed = facts(Some((True, "Installed")), alive());
        check(&target(&json!({}), &[(kind, bad, "X")]), &installed, READY, (False, reason));
        check(&target(&json!({}), &[(kind, good, "X")]), &installed, READY, (True, "Ready"));
    }
}

/// Whoever waits for a target to be ready finds its types.
#[test]
fn ready_needs_types() {
    let installed = facts(Some((True, "Installed")), alive());
    for (status, expect) in [("False", (False, "TypesNotImported")), ("True", (True, "Ready"))] {
        let target = target(&json!({}), &[("TypesImported", status, "X")]);
        check(&target, &installed, READY, expect);
    }
    let mut bare = target(&json!({}), &[]);
    bare.status.conditions.clear();
    check(&bare, &installed, READY, (False, "TypesNotImported"));
}

#[test]
fn a_process_that_has_just_begun_keeps_what_was_said() {
    let known = [("Installed", "True", "Installed"), ("Heartbeat", "True", "LeaseRenewed")];
    let unsure = facts(None, Pulse::Unsure(Duration::from_secs(9)));
    check(&target(&json!({}), &known), &unsure, READY, (True, "Ready"));
    check(&target(&json!({}), &[]), &unsure, HEARTBEAT, (Unknown, "Pending"));
    // Words that we do not know are not repeated.
    let odd = [("Heartbeat", "True", "Nonsense")];
    check(&target(&json!({}), &odd), &unsure, HEARTBEAT, (Unknown, "Pending"));
}

#[test]
fn times_are_those_of_changes() {
    let known = [("Installed", "True", "Other"), ("Heartbeat", "False", "AgentNotConnected")];
    let all =
        conditions(&target(&json!({}), &known), &facts(Some((True, "Installed")), alive()), NOW);
    let times: Vec<&str> = all.iter().map(|one| one.last_transition_time.as_str()).collect();
    assert_eq!(times, [LONG_AGO, NOW, NOW]);
    assert!(all.iter().all(|one| one.observed_generation == Some(3)));
}

#[test]
fn an_inline_kubeconfig_is_warned_of() {
    let inline = target(&json!({"kubeconfig": "x"}), &[]);
    check(&inline, &facts(None, Pulse::Never), INLINE, (True, "UseSecret"));
    assert_eq!(conditions(&target(&json!({}), &[]), &facts(None, Pulse::Never), NOW).len(), 3);
}

#[test]
fn one_that_is_being_deleted_is_not_ready() {
    let mut deleted = target(&json!({}), &[]);
    deleted.metadata.deleted = LONG_AGO.parse().ok();
    let waits = Facts { draining: Some("3 objects".into()), ..facts(None, alive()) };
    check(&deleted, &waits, READY, (False, "Draining"));
    assert_eq!(conditions(&deleted, &waits, NOW)[2].message, "3 objects");
}

#[test]
fn messages_are_bounded() {
    let long = "\u{e4}".repeat(LONGEST_MESSAGE);
    assert!(Verdict::new(False, "Unreachable", long).message.len() <= LONGEST_MESSAGE);
}
