//! What the status of something that is being emptied says: pure.

use std::collections::BTreeMap;

use machinery::GroupResource;
use machinery::meta::{get_str, set};
use serde_json::{Value, json};

/// Failures that a condition tells of; more are only counted, so that a status stays small.
const MAX_TOLD: usize = 20;

/// What one round of emptying has left, and what went wrong.
#[derive(Debug, Default)]
pub(super) struct Remaining {
    /// Objects by resource.
    pub(super) objects: BTreeMap<GroupResource, usize>,
    /// Objects by finalizer.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// Group versions whose objects can't be found, with the reason.
    pub(super) undiscovered: BTreeMap<String, String>,
    /// Objects or resources that could not be deleted.
    pub(super) failures: Vec<String>,
}

/// A condition, without its time.
struct Condition {
    kind: &'static str,
    holds: bool,
    reason: &'static str,
    message: String,
}

// === impl Remaining ===

impl Remaining {
    /// Whether nothing is left, and that is certain.
    pub(super) fn is_nothing(&self) -> bool {
        self.objects.is_empty() && self.undiscovered.is_empty() && self.failures.is_empty()
    }

    /// The status of a namespace, with the conditions of upstream and their texts.
    pub(super) fn of_namespace(&self, status: Option<&Value>, now: &str) -> Value {
        let mut failures = self.failures.clone();
        failures.sort();
        let told = failures.iter().take(MAX_TOLD).cloned().collect::<Vec<_>>().join(", ");
        let undiscovered = self.undiscovered.iter();
        let undiscovered =
            undiscovered.map(|(version, why)| format!("{version}: {why}")).collect::<Vec<_>>();
        let conditions = [
            condition(
                "NamespaceDeletionDiscoveryFailure",
                (!undiscovered.is_empty()).then(|| {
                    let text = format!(
                        "Discovery failed for some groups, {} failing: unable to retrieve the \
                         complete list of server APIs: {}",
                        undiscovered.len(),
                        undiscovered.join(", ")
                    );
                    ("DiscoveryFailed", text)
                }),
                ("ResourcesDiscovered", "All resources successfully discovered"),
            ),
            condition(
                "NamespaceDeletionGroupVersionParsingFailure",
                None,
                ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
            ),
            condition(
                "NamespaceDeletionContentFailure",
                (!failures.is_empty()).then(|| {
                    let count = failures.len();
                    let text =
                        format!("Failed to delete all resource types, {count} remaining: {told}");
                    ("ContentDeletionFailed", text)
                }),
                (
                    "ContentDeleted",
                    "All content successfully deleted, may be waiting on finalization",
                ),
            ),
            condition(
                "NamespaceContentRemaining",
                self.told_objects(|name| format!("{}.{}", name.resource, name.group))
                    .map(|text| ("SomeResourcesRemain", text)),
                ("ContentRemoved", "All content successfully removed"),
            ),
            condition(
                "NamespaceFinalizersRemaining",
                self.told_finalizers().map(|text| ("SomeFinalizersRemain", text)),
                ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
            ),
        ];
        updated(status, conditions, now)
    }

    /// The status of a logical cluster, with the one condition that names what blocks its end.
    pub(super) fn of_cluster(&self, status: Option<&Value>, now: &str) -> Value {
        let texts = [self.told_objects(GroupResource::to_string), self.told_finalizers()];
        let mut texts = texts.into_iter().flatten().collect::<Vec<_>>();
        texts.extend(self.failures.iter().take(MAX_TOLD).cloned());
        let undiscovered = self.undiscovered.iter().take(MAX_TOLD);
        texts.extend(undiscovered.map(|(version, why)| format!("{version}: {why}")));
        let reason = if !self.failures.is_empty() || !self.undiscovered.is_empty() {
            "ContentDeletionFailed"
        } else if !self.finalizers.is_empty() {
            "SomeFinalizersRemain"
        } else {
            "SomeResourcesRemain"
        };
        let (kind, message) = ("ContentDeleted", texts.join(". "));
        updated(status, [Condition { kind, holds: false, reason, message }], now)
    }

    /// Upstream writes the dot before the group also where that is empty.
    fn told_objects(&self, named: fn(&GroupResource) -> String) -> Option<String> {
        let parts = self
            .objects
            .iter()
            .map(|(name, count)| format!("{} has {count} resource instances", named(name)));
        let mut parts = parts.collect::<Vec<_>>();
        parts.sort();
        (!parts.is_empty()).then(|| format!("Some resources are remaining: {}", parts.join(", ")))
    }

    fn told_finalizers(&self) -> Option<String> {
        let parts = self
            .finalizers
            .iter()
            .map(|(name, count)| format!("{name} in {count} resource instances"));
        let parts = parts.collect::<Vec<_>>().join(", ");
        (!parts.is_empty())
            .then(|| format!("Some content in the namespace has finalizers remaining: {parts}"))
    }
}

fn condition(
    kind: &'static str,
    bad: Option<(&'static str, String)>,
    good: (&'static str, &str),
) -> Condition {
    match bad {
        Some((reason, message)) => Condition { kind, holds: true, reason, message },
        None => Condition { kind, holds: false, reason: good.0, message: good.1.into() },
    }
}

/// A status with these conditions among those that it has. The time is that of the last turn from
/// true to false or back.
fn updated(
    status: Option<&Value>,
    conditions: impl IntoIterator<Item = Condition>,
    now: &str,
) -> Value {
    let mut status = status.filter(|status| status.is_object()).cloned();
    let status = status.get_or_insert_with(|| json!({}));
    let mut all = status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    for Condition { kind, holds, reason, message } in conditions {
        let state = if holds { "True" } else { "False" };
        let old = all.iter_mut().find(|old| get_str(old, &["type"]) == Some(kind));
        let since = match &old {
            Some(old) if get_str(old, &["status"]) == Some(state) => {
                get_str(old, &["lastTransitionTime"]).unwrap_or(now).to_owned()
            }
            _ => now.to_owned(),
        };
        let new = json!({
            "type": kind,
            "status": state,
            "reason": reason,
            "message": message,
            "lastTransitionTime": since,
        });
        match old {
            Some(old) => *old = new,
            None => all.push(new),
        }
    }
    set(status, &["conditions"], json!(all));
    status.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remaining() -> Remaining {
        let mut remaining = Remaining::default();
        remaining.objects.insert(GroupResource::new("", "configmaps"), 2);
        remaining.objects.insert(GroupResource::new("example.com", "widgets"), 1);
        remaining.finalizers.insert("example.com/hold".into(), 3);
        remaining
    }

    /// The conditions of a status as `type status reason: message`.
    fn told(status: &Value) -> Vec<String> {
        let field = |condition: &Value, name| get_str(condition, &[name]).unwrap().to_owned();
        let conditions = status["conditions"].as_array().unwrap().iter();
        let told = conditions.map(|c| {
            let [kind, state, reason, message] =
                ["type", "status", "reason", "message"].map(|name| field(c, name));
            format!("{kind} {state} {reason}: {message}")
        });
        told.collect()
    }

    #[test]
    fn a_namespace_says_what_remains() {
        let mut remaining = remaining();
        remaining.undiscovered.insert("gone.com/v1".into(), "not served".into());
        remaining.failures = vec!["b failed".into(), "a failed".into()];
        let status = remaining.of_namespace(Some(&json!({"phase": "Terminating"})), "now");
        assert_eq!(status["phase"], "Terminating");
        assert_eq!(
            told(&status),
            [
                "NamespaceDeletionDiscoveryFailure True DiscoveryFailed: Discovery failed for some \
                 groups, 1 failing: unable to retrieve the complete list of server APIs: \
                 gone.com/v1: not served",
                "NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy \
                 kube types successfully parsed",
                "NamespaceDeletionContentFailure True ContentDeletionFailed: Failed to delete all \
                 resource types, 2 remaining: a failed, b failed",
                "NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: \
                 configmaps. has 2 resource instances, widgets.example.com has 1 resource instances",
                "NamespaceFinalizersRemaining True SomeFinalizersRemain: Some content in the \
                 namespace has finalizers remaining: example.com/hold in 3 resource instances",
            ]
        );
    }

    #[test]
    fn times_are_those_of_turns() {
        let first = remaining().of_namespace(None, "first");
        let other = json!({"type": "Other", "status": "True"});
        let mut with_other = first.clone();
        with_other["conditions"].as_array_mut().unwrap().insert(0, other.clone());
        let then = Remaining::default().of_namespace(Some(&with_other), "then");
        let since = |status: &Value, kind: &str| {
            let conditions = status["conditions"].as_array().unwrap().clone();
            let found = conditions.into_iter().find(|c| c["type"] == kind).unwrap();
            found["lastTransitionTime"].clone()
        };
        assert_eq!(then["conditions"][0], other, "what others say stays");
        assert_eq!(since(&then, "NamespaceContentRemaining"), "then");
        assert_eq!(since(&then, "NamespaceDeletionContentFailure"), "first");
        let again = Remaining::default().of_namespace(Some(&then), "again");
        assert_eq!(again, then);
    }

    #[test]
    fn a_logical_cluster_names_its_blockers() {
        let status = remaining().of_cluster(None, "now");
        let expect = "ContentDeleted False SomeFinalizersRemain: Some resources are remaining: \
             configmaps has 2 resource instances, widgets.example.com has 1 resource instances. \
             Some content in the namespace has finalizers remaining: example.com/hold in 3 \
             resource instances";
        assert_eq!(told(&status), [expect]);
    }
}
