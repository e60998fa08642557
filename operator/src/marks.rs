//! The marks on an object that say where it runs, and patches that change them. Pure.
//!
//! A state label says that a target is to hold the object (`Sync`) or to remove its copy (`Remove`);
//! a finalizer says that the target may hold a copy. Invariants: label and finalizer of a target are
//! set in one patch; a patch names the UID and the resourceVersion that it was made for, so that it is
//! refused where anything has changed; marks of others and all other metadata stay as they are.

use std::collections::{BTreeMap, BTreeSet};

use contract::{
    INTENT_LABEL, STATE_REMOVE, STATE_SYNC, finalizer, state_label, target_of_finalizer,
    target_of_state_label,
};
use serde_json::{Map, Value, json};

/// What a target is to do with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Hold it.
    Sync,
    /// Remove its copy.
    Remove,
    /// Something that nobody of us writes.
    Other,
}

/// The marks of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Where people want it; `Some("")` for nowhere, whatever its namespace says.
    pub(crate) intent: Option<String>,
    /// By the target's global name.
    pub(crate) states: BTreeMap<String, State>,
    /// The targets' global names.
    pub(crate) finalizers: BTreeSet<String>,
    /// Whether it is being deleted.
    pub(crate) deleting: bool,
}

/// A change of the marks of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is to hold the object: label and finalizer.
    Assign,
    /// It is to remove its copy: the label; the finalizer stays until the copy is gone.
    Unassign,
    /// Nobody is there any more who could: neither label nor finalizer.
    Release,
}

// === impl Marks ===

impl Marks {
    /// The marks in an object's metadata.
    pub(crate) fn of(metadata: &Value) -> Self {
        let labels = metadata["labels"].as_object().into_iter().flatten();
        let mut marks =
            Self { deleting: !metadata["deletionTimestamp"].is_null(), ..Self::default() };
        for (key, value) in labels {
            let value = value.as_str().unwrap_or_default();
            if key == INTENT_LABEL {
                marks.intent = Some(value.to_owned());
            } else if let Some(target) = target_of_state_label(key) {
                let state = match value {
                    STATE_SYNC => State::Sync,
                    STATE_REMOVE => State::Remove,
                    _ => State::Other,
                };
                marks.states.insert(target.to_owned(), state);
            }
        }
        let finalizers = metadata["finalizers"].as_array().into_iter().flatten();
        let targets = finalizers.filter_map(|name| target_of_finalizer(name.as_str()?));
        marks.finalizers = targets.map(str::to_owned).collect();
        marks
    }

    /// Whether there are none, so that nothing has to be known of the object.
    pub(crate) fn is_empty(&self) -> bool {
        self.intent.is_none() && self.states.is_empty() && self.finalizers.is_empty()
    }

    /// The targets that have marks, by their global names.
    pub(crate) fn targets(&self) -> BTreeSet<&str> {
        self.states.keys().chain(&self.finalizers).map(String::as_str).collect()
    }
}

/// The merge patch that makes changes of the marks in `metadata`; `None` if they change nothing.
pub(crate) fn patch(metadata: &Value, changes: &BTreeMap<String, Change>) -> Option<Value> {
    let marks = Marks::of(metadata);
    let mut labels = Map::new();
    let mut finalizers: Vec<&str> =
        metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let before = finalizers.len();
    let mut added = Vec::new();
    for (target, change) in changes {
        let held = marks.finalizers.contains(target);
        let state = marks.states.get(target);
        match change {
            Change::Assign => {
                if state != Some(&State::Sync) {
                    labels.insert(state_label(target), STATE_SYNC.into());
                }
                // One that is being deleted takes no new finalizers.
                if !held && !marks.deleting {
                    added.push(finalizer(target));
                }
            }
            Change::Unassign => {
                if state != Some(&State::Remove) {
                    labels.insert(state_label(target), STATE_REMOVE.into());
                }
            }
            Change::Release => {
                if state.is_some() {
                    labels.insert(state_label(target), Value::Null);
                }
                finalizers.retain(|name| target_of_finalizer(name) != Some(target));
            }
        }
    }
    let finalizers_change = finalizers.len() != before || !added.is_empty();
    if labels.is_empty() && !finalizers_change {
        return None;
    }
    let mut patch = json!({"metadata": {
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }});
    if !labels.is_empty() {
        patch["metadata"]["labels"] = Value::Object(labels);
    }
    if finalizers_change {
        let all: Vec<&str> =
            finalizers.into_iter().chain(added.iter().map(String::as_str)).collect();
        patch["metadata"]["finalizers"] = json!(all);
    }
    Some(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EAST: &str = "infra.east";

    fn changed(metadata: &Value, change: Change) -> Option<Value> {
        patch(metadata, &BTreeMap::from([(EAST.to_owned(), change)]))
    }

    fn metadata(state: Option<&str>, finalizers: &[&str]) -> Value {
        let mut labels = json!({"app": "web"});
        if let Some(state) = state {
            labels["sync.workloads.kcp.io/infra.east"] = state.into();
        }
        json!({"uid": "u", "resourceVersion": "7", "labels": labels, "finalizers": finalizers})
    }

    #[test]
    fn changes() {
        let ours = "workloads.kcp.io/infra.east";
        let label = |value: Value| json!({"sync.workloads.kcp.io/infra.east": value});
        let base = |more: Value| {
            let mut patch = json!({"uid": "u", "resourceVersion": "7"});
            patch.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            Some(json!({"metadata": patch}))
        };
        let check = |state: Option<&str>, finalizers: &[&str], change, expect: Option<Value>| {
            assert_eq!(changed(&metadata(state, finalizers), change), expect);
        };
        check(
            None,
            &["a/b"],
            Change::Assign,
            base(json!({"labels": label("Sync".into()), "finalizers": ["a/b", ours]})),
        );
        check(Some("Sync"), &[ours], Change::Assign, None);
        check(
            Some("Remove"),
            &[ours],
            Change::Assign,
            base(json!({"labels": label("Sync".into())})),
        );
        check(Some("Sync"), &[], Change::Assign, base(json!({"finalizers": [ours]})));
        check(
            Some("Sync"),
            &[ours],
            Change::Unassign,
            base(json!({"labels": label("Remove".into())})),
        );
        check(Some("Remove"), &[ours], Change::Unassign, None);
        check(
            Some("Remove"),
            &[ours, "a/b"],
            Change::Release,
            base(json!({"labels": label(Value::Null), "finalizers": ["a/b"]})),
        );
        check(None, &["a/b"], Change::Release, None);
    }

    #[test]
    fn one_that_is_being_deleted_gets_no_finalizer() {
        let mut metadata = metadata(None, &["a/b"]);
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        let patch = changed(&metadata, Change::Assign).unwrap();
        assert_eq!(patch["metadata"].get("finalizers"), None);
        assert!(Marks::of(&metadata).deleting);
    }

    #[test]
    fn marks_are_read() {
        let mut metadata = metadata(Some("odd"), &["workloads.kcp.io/b.west", "x/y"]);
        metadata["labels"][INTENT_LABEL] = "".into();
        let marks = Marks::of(&metadata);
        assert_eq!(marks.intent.as_deref(), Some(""));
        assert_eq!(marks.states.get(EAST), Some(&State::Other));
        assert_eq!(marks.targets(), BTreeSet::from(["b.west", EAST]));
        assert!(Marks::of(&json!({"labels": {"a": "b"}})).is_empty());
    }
}
