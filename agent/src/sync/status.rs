//! What an agent says in the status of its SyncTarget: its own conditions and counts.
//!
//! Pure. Everything is written by server-side apply, so that the conditions of others stay.

use engine::{Summary, UpstreamChange};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::follow::Reach;
use crate::identity::Standing;

/// The oldest Kubernetes that is synced to: from there on server-side apply is complete.
const OLDEST: (u32, u32) = (1, 22);

/// What there is to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// `None` where others vouch for the agent.
    pub(super) standing: Option<Standing>,
    pub(super) reach: Reach,
    pub(super) summary: Summary,
    pub(super) agent_version: String,
}

/// One condition.
struct Condition {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

/// What is to be applied to the status. `present` is the SyncTarget as it is: a condition that says
/// what it said keeps its time.
pub(super) fn body(facts: &Facts, present: &Value, now: Timestamp) -> Value {
    let conditions = conditions(facts).into_iter().map(|condition| {
        let before = before(present, condition.kind);
        let same = before.and_then(|b| b.get("status")?.as_str()) == Some(condition.status);
        let since = before.and_then(|b| b.get("lastTransitionTime")?.as_str()).filter(|_| same);
        let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        json!({
            "type": condition.kind,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": since.map_or(now, str::to_owned),
        })
    });
    let mut status = json!({
        "conditions": conditions.collect::<Vec<_>>(),
        "agentVersion": facts.agent_version,
    });
    if let Some(version) = &facts.reach.version {
        status["kubernetesVersion"] = version.clone().into();
    }
    // Before all is known, the counts of the agent before stay: nothing has changed yet.
    let summary = &facts.summary;
    let counts = [
        ("syncedObjects", summary.synced),
        ("failedObjects", summary.failed),
        ("orphans", summary.orphans),
    ];
    for (name, count) in counts {
        let kept = present.pointer("/status").and_then(|status| status.get(name));
        match kept {
            Some(kept) if !summary.complete => status[name] = kept.clone(),
            _ => status[name] = count.into(),
        }
    }
    status
}

/// The whole object to apply, given the name and the status.
pub(super) fn object(name: &str, status: &Value) -> Value {
    json!({
        "apiVersion": format!("{}/v1alpha1", contract::WORKLOAD_GROUP),
        "kind": "SyncTarget",
        "metadata": {"name": name},
        "status": status,
    })
}

fn before<'v>(target: &'v Value, kind: &str) -> Option<&'v Value> {
    let conditions = target.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition.get("type").is_some_and(|it| it == kind))
}

fn conditions(facts: &Facts) -> Vec<Condition> {
    let mut conditions = Vec::with_capacity(5);
    if let Some(standing) = &facts.standing {
        conditions.push(authorized(standing));
    }
    conditions.extend([
        reachable(&facts.reach),
        unsupported(&facts.reach),
        upstream_changed(facts.summary.upstream_changed),
        paused(&facts.summary),
    ]);
    conditions.extend(upsynced(&facts.summary));
    conditions
}

fn authorized(standing: &Standing) -> Condition {
    let (status, reason, message) = match standing {
        Standing::Certified { not_after } => {
            // To the second, and only when it is renewed: it does not change in between.
            let end = not_after.strftime("%Y-%m-%dT%H:%M:%SZ");
            ("True", "Certified", format!("The agent's certificate is valid until {end}."))
        }
        Standing::Without { reason, message } => ("False", *reason, message.clone()),
        Standing::Unknown => ("Unknown", "Starting", String::new()),
    };
    Condition { kind: "Authorized", status, reason, message }
}

fn reachable(reach: &Reach) -> Condition {
    let (status, reason, message) = match reach.answers {
        Some(true) => ("True", "Answers", "The physical cluster's API answers.".to_owned()),
        Some(false) => ("False", "NoAnswer", reach.why.clone()),
        None => ("Unknown", "Starting", String::new()),
    };
    Condition { kind: "ClusterReachable", status, reason, message }
}

fn unsupported(reach: &Reach) -> Condition {
    let (status, reason, message) = match reach.numbers {
        Some(numbers) if numbers < OLDEST => {
            let (major, minor) = numbers;
            let (oldest_major, oldest_minor) = OLDEST;
            let message = format!(
                "The physical cluster is Kubernetes {major}.{minor}; \
                 {oldest_major}.{oldest_minor} or newer is needed."
            );
            ("True", "TooOld", message)
        }
        Some(_) => ("False", "Supported", String::new()),
        None => ("Unknown", "VersionUnknown", String::new()),
    };
    Condition { kind: "Unsupported", status, reason, message }
}

fn upstream_changed(change: Option<UpstreamChange>) -> Condition {
    let accept = |number: u64| {
        let annotation = contract::APPROVE_UPSTREAM;
        format!(
            "nothing is deleted. Annotate the SyncTarget with {annotation}={number} to accept it as \
             it is."
        )
    };
    let (status, reason, message) = match change {
        None => ("False", "AsKnown", String::new()),
        Some(UpstreamChange::Identity) => (
            "True",
            "OtherIdentity",
            "The hub, the logical cluster or the SyncTarget is another one than before: nothing is \
             synced."
                .to_owned(),
        ),
        Some(UpstreamChange::Older(number)) => (
            "True",
            "GoneBack",
            format!(
                "The hub has gone back in time, behind resource version {number}: {}",
                accept(number)
            ),
        ),
        Some(UpstreamChange::Restored(number)) => (
            "True",
            "Restored",
            format!("The hub was restored since objects were copied from it: {}", accept(number)),
        ),
    };
    Condition { kind: "UpstreamChanged", status, reason, message }
}

/// Nothing, where nothing has ever gone up.
fn upsynced(summary: &Summary) -> Option<Condition> {
    let (status, reason, message) = match &summary.mirror_problem {
        Some(first) => {
            let message =
                format!("{} objects are not as they should be: {first}", summary.failed_mirrors);
            ("False", "Problems", message)
        }
        None if summary.mirrors > 0 => ("True", "AsInTheCluster", String::new()),
        None => return None,
    };
    Some(Condition { kind: "Upsynced", status, reason, message })
}

fn paused(summary: &Summary) -> Condition {
    let (status, reason, message) = match summary.paused {
        None => ("False", "NoWave", String::new()),
        Some(paused) => (
            "True",
            "TooManyDeletes",
            format!(
                "{} deletes wait for approval; {} at once need none. Annotate the SyncTarget with \
                 {}={} to let them go on.",
                paused.number,
                paused.allowed,
                contract::APPROVE_DELETIONS,
                paused.number
            ),
        ),
    };
    Condition { kind: "DeletionPaused", status, reason, message }
}

#[cfg(test)]
mod tests {
    use engine::Paused;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn facts() -> Facts {
        let reach = Reach {
            answers: Some(true),
            why: String::new(),
            version: Some("v1.36.2".into()),
            numbers: Some((1, 36)),
        };
        let summary = Summary { complete: true, synced: 3, ..Summary::default() };
        Facts { standing: None, reach, summary, agent_version: "0.1.0".into() }
    }

    fn condition<'v>(status: &'v Value, kind: &str) -> &'v Value {
        let all = status["conditions"].as_array().unwrap();
        all.iter().find(|condition| condition["type"] == kind).unwrap()
    }

    #[test]
    fn conditions_keep_their_time_while_they_say_the_same() {
        let first = body(&facts(), &Value::Null, at("2026-01-01T00:00:00Z"));
        let present = json!({"status": first});
        let second = body(&facts(), &present, at("2026-01-02T00:00:00Z"));
        assert_eq!(first, second, "nothing to write");
        let mut down = facts();
        down.reach.answers = Some(false);
        down.reach.why = "connect to x: connection refused".into();
        let third = body(&down, &present, at("2026-01-03T00:00:00Z"));
        let reachable = condition(&third, "ClusterReachable");
        assert_eq!(reachable["status"], "False");
        assert_eq!(reachable["message"], "connect to x: connection refused");
        assert_eq!(reachable["lastTransitionTime"], "2026-01-03T00:00:00Z");
        let paused = condition(&third, "DeletionPaused");
        assert_eq!(paused["lastTransitionTime"], "2026-01-01T00:00:00Z");
    }

    #[test]
    fn what_each_condition_says() {
        let mut facts = facts();
        let check = |facts: &Facts, kind: &str, expect: (&str, &str, &str)| {
            let status = body(facts, &Value::Null, at("2026-01-01T00:00:00Z"));
            let found = condition(&status, kind).clone();
            assert_eq!((&found["status"], &found["reason"]), (&expect.0.into(), &expect.1.into()));
            assert!(found["message"].as_str().unwrap().contains(expect.2), "{found}");
        };
        check(&facts, "Unsupported", ("False", "Supported", ""));
        facts.reach.numbers = Some((1, 21));
        check(&facts, "Unsupported", ("True", "TooOld", "1.22 or newer"));
        facts.summary.paused = Some(Paused { number: 31, allowed: 20 });
        let annotation = "workloads.kcp.io/approve-deletions=31";
        check(&facts, "DeletionPaused", ("True", "TooManyDeletes", annotation));
        facts.summary.upstream_changed = Some(UpstreamChange::Older(7));
        let annotation = "workloads.kcp.io/approve-upstream=7";
        check(&facts, "UpstreamChanged", ("True", "GoneBack", annotation));
        facts.summary.upstream_changed = Some(UpstreamChange::Restored(9));
        let annotation = "workloads.kcp.io/approve-upstream=9";
        check(&facts, "UpstreamChanged", ("True", "Restored", annotation));
        facts.summary.upstream_changed = Some(UpstreamChange::Identity);
        check(&facts, "UpstreamChanged", ("True", "OtherIdentity", "nothing is"));
        facts.standing = Some(Standing::Certified { not_after: at("2026-01-02T00:00:00Z") });
        check(&facts, "Authorized", ("True", "Certified", "2026-01-02T00:00:00Z"));
    }

    #[test]
    fn counts_of_before_stay_until_all_is_known() {
        let mut facts = facts();
        facts.summary = Summary::default();
        let present = json!({"status": {"syncedObjects": 9, "orphans": 1}});
        let status = body(&facts, &present, at("2026-01-01T00:00:00Z"));
        assert_eq!((&status["syncedObjects"], &status["orphans"]), (&json!(9), &json!(1)));
        facts.summary = Summary { complete: true, synced: 2, ..Summary::default() };
        let status = body(&facts, &present, at("2026-01-01T00:00:00Z"));
        assert_eq!((&status["syncedObjects"], &status["orphans"]), (&json!(2), &json!(0)));
    }
}
