//! Statuses on their way up: what differs, and generations of the hub in place of the physical
//! cluster's.

use serde_json::{Map, Value};

/// The field by which a status says which generation it is about.
const OBSERVED: &str = "observedGeneration";

/// The generations of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generations {
    /// The generation of the copy itself.
    pub(crate) copy: i64,
    /// The upstream generation that was applied to it.
    pub(crate) applied: i64,
}

/// The merge patch (RFC 7386) that makes `to` of `from`; `None` if there is nothing to do.
///
/// Applied to `from` it gives `to`, without nulls: a merge patch can't set any.
pub(crate) fn difference(from: &Value, to: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (from, to) else {
        return (from != to).then(|| to.clone());
    };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| new.get(*key).is_none_or(Value::is_null)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new.iter().filter(|(_, value)| !value.is_null()) {
        let change = match (old.get(key), value) {
            // Else members that are null would be taken for removals.
            (None, value) => Some(without_nulls(value)),
            (Some(old), value) if old.is_object() == value.is_object() => difference(old, value),
            (Some(_), value) => Some(without_nulls(value)),
        };
        if let Some(change) = change {
            patch.insert(key.clone(), change);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Says of a copy's status which generation of the upstream object it is about: `observedGeneration`
/// of the status and of its conditions. `shown` is what the hub shows now.
///
/// What has observed the copy as it is has observed the generation that was applied to it.
/// What hasn't keeps what it said before, so that nobody who waits for a generation is told
/// too early, and nothing goes back when others change the copy's spec.
pub(crate) fn translate(status: &mut Value, generations: Generations, shown: &Value) {
    let own_type = |condition: &Value| condition.get("type").cloned();
    if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
        let shown = shown.get("conditions").and_then(Value::as_array);
        for condition in conditions {
            let kind = own_type(condition);
            let before = shown.into_iter().flatten().find(|shown| own_type(shown) == kind);
            translate_one(condition, generations, before);
        }
    }
    translate_one(status, generations, Some(shown));
}

fn translate_one(holder: &mut Value, generations: Generations, shown: Option<&Value>) {
    let Some(Value::Object(holder)) = Some(holder) else { return };
    let Some(observed) = holder.get(OBSERVED).and_then(Value::as_i64) else { return };
    let observed = if observed >= generations.copy {
        generations.applied
    } else {
        let before = shown.and_then(|shown| shown.get(OBSERVED)).and_then(Value::as_i64);
        match before {
            Some(before) if before <= generations.applied => before,
            _ => generations.applied.saturating_sub(1).max(0),
        }
    };
    holder.insert(OBSERVED.to_owned(), observed.into());
}

/// Without members that are null.
pub(crate) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3).prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..3)
                    .prop_map(|map| { Value::Object(map.into_iter().collect()) }),
            ]
        })
    }

    /// RFC 7386.
    fn merge(into: &mut Value, patch: &Value) {
        let Value::Object(members) = patch else {
            *into = patch.clone();
            return;
        };
        if !into.is_object() {
            *into = json!({});
        }
        for (key, value) in members {
            if value.is_null() {
                into.as_object_mut().unwrap().remove(key);
            } else {
                merge(&mut into[key], value);
            }
        }
    }

    proptest! {
        #[test]
        fn a_difference_leads_there(from in values(), to in values()) {
            let (from, to) = (json!({"status": from}), json!({"status": to}));
            let (from, to) = (without_nulls(&from), without_nulls(&to));
            let mut result = from.clone();
            match difference(&from, &to) {
                Some(patch) => merge(&mut result, &patch),
                None => prop_assert_eq!(&from, &to),
            }
            prop_assert_eq!(&result, &to);
            prop_assert_eq!(difference(&result, &to), None);
        }

        /// What was observed of the copy as it is is never more than what was applied, and what
        /// waits for the applied generation never sees it early.
        #[test]
        fn observed(
            observed in 0..9_i64, copy in 0..9_i64, applied in 0..9_i64, shown in 0..9_i64,
        ) {
            let mut status = json!({"observedGeneration": observed});
            let generations = Generations { copy, applied };
            translate(&mut status, generations, &json!({"observedGeneration": shown}));
            let told = status["observedGeneration"].as_i64().unwrap();
            prop_assert!(told <= applied);
            if observed >= copy {
                prop_assert_eq!(told, applied);
            } else if shown < applied {
                prop_assert!(told < applied);
            }
        }
    }

    #[test]
    fn conditions_have_their_own() {
        let mut status = json!({"conditions": [
            {"type": "Ready", "observedGeneration": 7}, {"type": "Other", "observedGeneration": 6},
            {"type": "None"}, 1,
        ]});
        let shown = json!({"conditions": [{"type": "Other", "observedGeneration": 2}]});
        translate(&mut status, Generations { copy: 7, applied: 3 }, &shown);
        assert_eq!(
            status,
            json!({"conditions": [
                {"type": "Ready", "observedGeneration": 3}, {"type": "Other", "observedGeneration": 2},
                {"type": "None"}, 1,
            ]})
        );
    }

    #[test]
    fn differences() {
        let cases = [
            (json!({}), json!({"a": 1}), Some(json!({"a": 1}))),
            (json!({"a": 1}), json!({}), Some(json!({"a": null}))),
            (
                json!({"a": {"b": 1, "c": 2}}),
                json!({"a": {"b": 2, "c": 2}}),
                Some(json!({"a": {"b": 2}})),
            ),
            (json!({"a": [1, 2]}), json!({"a": [1]}), Some(json!({"a": [1]}))),
            (json!({"a": 1}), json!({"a": 1, "b": null}), None),
            (json!({"a": {"b": 1}}), json!({"a": 1}), Some(json!({"a": 1}))),
        ];
        for (from, to, expect) in cases {
            assert_eq!(difference(&from, &to), expect, "{from} {to}");
        }
    }
}
