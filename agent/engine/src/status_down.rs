//! Statuses that hub and physical cluster share: which fields go down, and which come up. Pure.
//!
//! Each field has one owner: what a rule names is the hub's, everything else the cluster's. Nothing is
//! ever sent the way that it came.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::GroupResource;
use crate::status::{difference, without_nulls};

/// Status that controllers write at the hub goes down to the copies of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusDown {
    /// The type.
    pub resource: GroupResource,
    /// The fields that are the hub's, none of them within another; without any the whole status is.
    fields: Vec<Path>,
}

/// The names of members that lead to a field.
type Path = Vec<Box<str>>;

// === impl StatusDown ===

impl StatusDown {
    /// Of the whole status, or of its fields with these names, as `address` or `network.address`.
    pub fn new<'f>(resource: GroupResource, fields: impl IntoIterator<Item = &'f str>) -> Self {
        let split = |field: &str| -> Path { field.split('.').map(Into::into).collect() };
        let mut paths: Vec<Path> = fields.into_iter().map(split).collect();
        // What is within another one comes right after it.
        paths.sort();
        paths.dedup_by(|inner, outer| inner.starts_with(outer));
        Self { resource, fields: paths }
    }

    /// Reads them from a SyncTarget's `spec.statusDown`. What may never go down is left out, whatever
    /// it says.
    pub fn of(sync_target: &Value) -> Arc<[Self]> {
        let listed = sync_target.pointer("/spec/statusDown").and_then(Value::as_array);
        let read = |item: &Value| {
            let (group, plural) = contract::parse_type_name(item.get("resource")?.as_str()?);
            let fields = item.get("fields").and_then(Value::as_array).into_iter().flatten();
            let resource = GroupResource::new(group, plural);
            let rule = Self::new(resource, fields.filter_map(Value::as_str));
            contract::status_may_go_down(group, plural).then_some(rule)
        };
        listed.into_iter().flatten().filter_map(read).collect()
    }

    /// What of a status is the hub's. Nulls say nothing, but to apply one is a change.
    pub(crate) fn part(&self, status: &Value) -> Value {
        if self.fields.is_empty() {
            return without_nulls(status);
        }
        let mut part = Value::Object(Map::new());
        for path in &self.fields {
            if let Some(value) = get(status, path).filter(|value| !value.is_null()) {
                set(&mut part, path, &without_nulls(value));
            }
        }
        part
    }

    /// The status of a copy, with the hub's part as the hub has it.
    pub(crate) fn joined(&self, copy: Value, hub: &Value) -> Value {
        if self.fields.is_empty() {
            return hub.clone();
        }
        let mut joined = copy;
        for path in &self.fields {
            match get(hub, path) {
                Some(value) => set(&mut joined, path, value),
                None => remove(&mut joined, path, Some(hub)),
            }
        }
        joined
    }

    /// The merge patch that makes [`Self::joined`] of what the hub has; it names nothing of the hub's.
    pub(crate) fn patch(&self, hub: &Value, joined: &Value) -> Option<Value> {
        let mut patch = difference(hub, joined).filter(|_| !self.fields.is_empty())?;
        for path in &self.fields {
            // Nulls of the hub's are no difference.
            remove(&mut patch, path, None);
        }
        patch.as_object().is_some_and(|members| !members.is_empty()).then_some(patch)
    }
}

fn get<'v>(value: &'v Value, path: &[Box<str>]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(&**name))
}

fn set(into: &mut Value, path: &[Box<str>], value: &Value) {
    let Some((first, rest)) = path.split_first() else {
        *into = value.clone();
        return;
    };
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    if let Value::Object(members) = into {
        set(members.entry(&**first).or_insert(Value::Null), rest, value);
    }
}

/// Removes a field, and what that leaves empty and `hub` doesn't have.
fn remove(from: &mut Value, path: &[Box<str>], hub: Option<&Value>) {
    let (Some((first, rest)), Value::Object(members)) = (path.split_first(), from) else { return };
    if rest.is_empty() {
        members.remove(&**first);
        return;
    }
    let hub = hub.and_then(|hub| hub.get(&**first));
    let Some(next) = members.get_mut(&**first) else { return };
    let had = next.as_object().is_some_and(|members| !members.is_empty());
    remove(next, rest, hub);
    if had && hub.is_none() && next.as_object().is_some_and(Map::is_empty) {
        members.remove(&**first);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn rule(fields: &[&str]) -> StatusDown {
        StatusDown::new(GroupResource::new("x.io", "things"), fields.iter().copied())
    }

    /// (fields, what the hub has, what the copy has, what goes down, what the hub is to have)
    #[test]
    fn who_owns_what() {
        for (fields, hub, copy, part, joined) in [
            // The whole.
            (&[][..], json!({"a": 1}), json!({"b": 2}), json!({"a": 1}), json!({"a": 1})),
            (&[], json!({}), json!({"b": 2}), json!({}), json!({})),
            // Single fields.
            (
                &["a"],
                json!({"a": 1, "b": 1}),
                json!({"a": 9, "b": 2}),
                json!({"a": 1}),
                json!({"a": 1, "b": 2}),
            ),
            (&["a"], json!({"b": 1}), json!({"a": 9, "b": 2}), json!({}), json!({"b": 2})),
            (&["a"], json!({"a": [1, 2]}), json!({}), json!({"a": [1, 2]}), json!({"a": [1, 2]})),
            (&["a"], json!({"a": null}), json!({"a": 1}), json!({}), json!({"a": null})),
            // Fields within fields: what is beside them is the cluster's.
            (
                &["a.b"],
                json!({"a": {"b": 1, "c": 1}}),
                json!({"a": {"b": 9, "c": 2}}),
                json!({"a": {"b": 1}}),
                json!({"a": {"b": 1, "c": 2}}),
            ),
            (&["a.b"], json!({}), json!({"a": {"b": 9}}), json!({}), json!({})),
            (&["a.b"], json!({"a": {}}), json!({"a": {"b": 9}}), json!({}), json!({"a": {}})),
            (&["a.b"], json!({}), json!({"a": {}}), json!({}), json!({"a": {}})),
            (
                &["a.b"],
                json!({"a": {"b": 1}}),
                json!({"a": "text"}),
                json!({"a": {"b": 1}}),
                json!({"a": {"b": 1}}),
            ),
            (&["a.b"], json!({"a": "text"}), json!({"a": 1}), json!({}), json!({"a": 1})),
            // One within another is part of it.
            (
                &["a.b", "a"],
                json!({"a": {"c": 1}}),
                json!({}),
                json!({"a": {"c": 1}}),
                json!({"a": {"c": 1}}),
            ),
        ] {
            let rule = rule(fields);
            assert_eq!(rule.part(&hub), part, "{fields:?} {hub}");
            assert_eq!(rule.joined(copy.clone(), &hub), joined, "{fields:?} {hub} {copy}");
        }
    }

    #[test]
    fn what_a_sync_target_says() {
        let object = json!({"spec": {"statusDown": [
            {"resource": "things.x.io"},
            {"resource": "services", "fields": ["loadBalancer"]},
            {"resource": "customresourcedefinitions.apiextensions.k8s.io"},
            {"resource": "synctargets.workload.kcp.io"},
            {},
        ]}});
        let things = rule(&[]);
        let services = StatusDown::new(GroupResource::new("", "services"), ["loadBalancer"]);
        assert_eq!(*StatusDown::of(&object), [things, services]);
        assert!(StatusDown::of(&json!(null)).is_empty());
    }

    fn statuses() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), (0..3).prop_map(Value::from)];
        let object = leaf.prop_recursive(3, 20, 3, |inner| {
            prop::collection::btree_map("[a-c]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect()))
        });
        object.prop_map(|value| if value.is_object() { value } else { json!({"a": value}) })
    }

    fn touches(patch: &Value, path: &[Box<str>]) -> bool {
        match path.split_first() {
            None => true,
            Some((first, rest)) => match patch.get(&**first) {
                None => false,
                Some(below) => !below.is_object() || touches(below, rest),
            },
        }
    }

    proptest! {
        /// What goes down is the hub's and is left so by what comes up; and what comes up says nothing of
        /// the hub's fields.
        #[test]
        fn nothing_goes_where_it_came_from(
            hub in statuses(), copy in statuses(),
            fields in prop::collection::vec("[a-c](\\.[a-c]){0,2}", 1..4),
        ) {
            let rule = rule(&fields.iter().map(String::as_str).collect::<Vec<_>>());
            let joined = rule.joined(copy.clone(), &hub);
            prop_assert_eq!(rule.part(&joined), rule.part(&hub));
            prop_assert_eq!(rule.joined(joined.clone(), &hub), joined.clone());
            if let Some(patch) = rule.patch(&hub, &joined) {
                for path in &rule.fields {
                    let had = get(&hub, path).is_some();
                    prop_assert!(!had || !touches(&patch, path), "{} {:?}", patch, path);
                }
            }
        }
    }
}
