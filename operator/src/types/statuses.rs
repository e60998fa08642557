//! The statuses of negotiated types and of imports, from what was decided. Pure.

use crds::{APIResourceImportStatus, ConditionStatus, NegotiatedAPIResourceStatus};

use super::NOT_SERVED_YET;
use super::decide::is_compatible;
use super::entries::Import;
use super::situation::{Outcome, Situation};
use super::status::{condition, first_of, report, truth};

/// What is told of a version of a type.
pub(super) fn negotiated_status(
    before: &NegotiatedAPIResourceStatus,
    situation: &Situation,
    version: &str,
    outcome: &Outcome,
    schema: Option<String>,
) -> NegotiatedAPIResourceStatus {
    let mut conditions = Vec::new();
    let mut tell = |kind: &str, is: bool, reason: &str, message: String| {
        conditions.push(condition(&before.conditions, kind, truth(is), reason, &message));
    };
    let some = outcome.decision.ty.is_some();
    let reason = if some { "Agreed" } else { "NoType" };
    tell("Negotiated", some, reason, String::new());
    let enforced = situation.is_enforced();
    let reason = match (situation.own, enforced) {
        (true, _) => "BuiltIn",
        (false, true) => "HandMade",
        (false, false) => "Negotiated",
    };
    tell("Enforced", enforced, reason, String::new());
    let there = situation.published.as_ref().is_some_and(|p| p.versions.contains_key(version));
    if !enforced {
        let (reason, message) = match &outcome.refused {
            Some(message) => ("Refused", message.clone()),
            None if there => ("Written", String::new()),
            None if outcome.left => ("OtherFields", OTHER_FIELDS.to_owned()),
            None => ("NotWanted", String::new()),
        };
        tell("Submitted", there && outcome.refused.is_none(), reason, message);
    }
    let served = situation.is_served(version);
    let why = situation.published.as_ref().map(|p| p.why.clone()).unwrap_or_default();
    let reason = if served { "Served" } else { "NotServed" };
    tell("Published", served, reason, if served { String::new() } else { why });
    let held = outcome.hurt_count > 0 || outcome.left;
    let (reason, message) = match outcome.hurt_count {
        0 if outcome.left => ("OtherFields", OTHER_FIELDS.to_owned()),
        0 => ("Nothing", String::new()),
        n => ("ObjectsWouldBeHurt", format!("{n} stored objects would be hurt")),
    };
    tell("HeldBack", held, reason, message);
    let (compatible, incompatible) = outcome.decision.sides();
    NegotiatedAPIResourceStatus {
        conditions,
        schema,
        compatible,
        incompatible,
        differences: report(&outcome.decision.differences),
        hurt: outcome.hurt.clone(),
    }
}

/// Why a version isn't served beside others.
const OTHER_FIELDS: &str = "its fields differ from those of the stored version, and only a cluster \
                            can convert between them";

/// What is told of what a target has.
pub(super) fn import_status(
    situation: &Situation,
    target: &str,
    import: &Import,
    outcome: Option<&Outcome>,
) -> APIResourceImportStatus {
    let before = &import.status.conditions;
    let verdict = outcome.and_then(|outcome| outcome.decision.verdicts.get(target));
    let differences = verdict.map(|list| report(list)).unwrap_or_default();
    let vanished = import.spec.vanished_since.is_some();
    let compatible = match verdict {
        Some(list) if is_compatible(list) => {
            condition(before, "Compatible", ConditionStatus::True, "Compatible", "")
        }
        Some(_) => {
            let message = first_of(&differences).unwrap_or_default();
            condition(before, "Compatible", ConditionStatus::False, "IncompatibleSchema", &message)
        }
        None => {
            let reason = if vanished { "Vanished" } else { "NoDescription" };
            condition(before, "Compatible", ConditionStatus::Unknown, reason, "")
        }
    };
    let served = situation.is_served(&import.spec.version);
    let (reason, message) = match why_not_served(situation, &import.spec.version, outcome) {
        _ if served => ("Served", String::new()),
        Some(known) => known,
        None => (NOT_SERVED_YET, String::new()),
    };
    let available = condition(before, "Available", truth(served), reason, &message);
    APIResourceImportStatus {
        conditions: vec![compatible, available],
        differences,
        judged: verdict.map(|_| import.spec.schema.clone()),
    }
}

/// Why a version is not served, if nothing is under way that would change it.
fn why_not_served(
    situation: &Situation,
    version: &str,
    outcome: Option<&Outcome>,
) -> Option<(&'static str, String)> {
    if let Some(message) = outcome.and_then(|outcome| outcome.refused.clone()) {
        return Some(("Refused", message));
    }
    if outcome.is_some_and(|outcome| outcome.left) {
        return Some(("OtherFields", OTHER_FIELDS.to_owned()));
    }
    if let Some(published) = situation.published.as_ref().filter(|published| published.stuck) {
        return Some(("NamesNotAccepted", published.why.clone()));
    }
    let wanted = situation.of(version).is_none_or(|negotiated| negotiated.spec.publish);
    (!wanted).then(|| ("NotWanted", "its NegotiatedAPIResource is not to be published".to_owned()))
}
