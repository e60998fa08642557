//! Conditions and reports, as the hub's objects have them: pure.

use crds::{Condition, ConditionStatus, Difference, MOST_DIFFERENCES, Said};

/// A condition that says something; since when, if it says the same as before.
pub(super) fn condition(
    before: &[Condition],
    kind: &str,
    status: ConditionStatus,
    reason: &str,
    message: &str,
) -> Condition {
    const LONGEST: usize = 4_000;
    let same = before.iter().find(|old| old.type_ == kind && old.status == status);
    let since = same.map(|old| old.last_transition_time.clone());
    let now = || jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    Condition {
        type_: kind.to_owned(),
        status,
        observed_generation: None,
        last_transition_time: since.unwrap_or_else(now),
        reason: reason.to_owned(),
        message: message.chars().take(LONGEST).collect(),
    }
}

/// Whether a condition is true.
pub(super) fn is_true(conditions: &[Condition], kind: &str) -> bool {
    find(conditions, kind).is_some_and(|found| found.status == ConditionStatus::True)
}

/// A condition.
pub(super) fn find<'c>(conditions: &'c [Condition], kind: &str) -> Option<&'c Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// A truth value.
pub(super) fn truth(is: bool) -> ConditionStatus {
    if is { ConditionStatus::True } else { ConditionStatus::False }
}

/// A list of differences as objects have it.
pub(super) fn report(differences: &[negotiation::Difference]) -> Vec<Difference> {
    let said = |said: &negotiation::Said| Said {
        value: said.value.clone(),
        targets: said.targets.clone(),
    };
    let one = |difference: &negotiation::Difference| Difference {
        path: difference.path.clone(),
        what: difference.what.clone(),
        message: difference.message.clone(),
        blocking: difference.blocking,
        said: difference.said.iter().map(said).collect(),
    };
    differences.iter().take(MOST_DIFFERENCES).map(one).collect()
}

/// The first of a list that is blocking, in words.
pub(super) fn first_of(differences: &[Difference]) -> Option<String> {
    let blocking: Vec<&Difference> = differences.iter().filter(|d| d.blocking).collect();
    let first = blocking.first()?;
    let Difference { path, what, message, .. } = first;
    let at = if path.is_empty() { String::new() } else { format!("{path}: ") };
    let more = match blocking.len() - 1 {
        0 => String::new(),
        n => format!("; and {n} more"),
    };
    Some(format!("{at}{message} ({what}){more}"))
}
