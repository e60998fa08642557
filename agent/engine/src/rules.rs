//! What is special about kinds: data, in `rules/table.json`, and its interpreter.
//!
//! What holds for every object (`every object` below) needs no entry: its identity, owners,
//! finalizers, managed fields, status, and our own labels and annotations never go down.
//! A type without an entry is a workload, all of whose fields go down and whose status goes up.
//!
//! Namespaces in references are mapped only where an entry lists them. Not mapped, so only right
//! under the mapping `Same`: names of hosts in texts (`web.shop.svc`), and references in custom
//! resources.

mod path;

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::{INTENT_LABEL, ORPHAN, UPSTREAM};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::lists::Way;
use crate::{GroupResource, fields};
use path::Path;

/// The order in which objects go down; deletes go the other way round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Class {
    Namespace,
    Definition,
    Identity,
    Configuration,
    Storage,
    Network,
    #[default]
    Workload,
    Policy,
    Entrance,
}

/// What is special about a type.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Rule {
    #[serde(default)]
    pub(crate) class: Class,
    /// Objects of it are never synced.
    #[serde(default)]
    pub(crate) never: bool,
    /// Objects that are never synced: those for which one of these holds.
    #[serde(default)]
    skip: Vec<Test>,
    /// Names of objects that physical clusters have by themselves: we add our fields to them, and
    /// take them back instead of deleting the object.
    #[serde(default)]
    shared: Vec<String>,
    /// Copies are never deleted: only our marks are taken off.
    #[serde(default)]
    pub(crate) stays: bool,
    /// Objects of it define types: none is changed so that objects of its type would be hurt, and
    /// those wait until it is there.
    #[serde(default)]
    pub(crate) defines: bool,
    /// What doesn't go down.
    #[serde(default)]
    drop: Vec<Drop>,
    /// Where names of namespaces stand, which are mapped.
    #[serde(default)]
    namespaces: Vec<Path>,
    /// Where selectors of namespaces stand, in which names of namespaces are mapped.
    #[serde(default)]
    namespace_selectors: Vec<Path>,
    /// Lists that are merged as sets with what the physical cluster has in them: those that are one
    /// value to server-side apply, and others write into.
    #[serde(default)]
    pub(crate) merge: Vec<Way>,
    /// Whether and how the status goes up.
    #[serde(default)]
    status: StatusRule,
    /// What of the status doesn't go up.
    #[serde(default)]
    up_drop: Vec<Path>,
    /// Objects with such a status have ended: a copy that has gone isn't made again.
    #[serde(default)]
    ends: Option<Test>,
    /// `/spec/replicas` may be left to an autoscaler.
    #[serde(default)]
    pub(crate) replicas: bool,
    /// Where the reference to what it scales stands.
    #[serde(default)]
    scales: Option<Path>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StatusRule {
    #[default]
    Whole,
    None,
}

/// Fields that don't go down.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Drop {
    path: Path,
    /// Only items or members like this, where the path ends with `*`.
    #[serde(default, rename = "where")]
    filter: Option<Test>,
    /// They do, if this holds.
    #[serde(default)]
    unless: Option<Unless>,
    /// They don't only if this holds, of the object.
    #[serde(default, rename = "if")]
    only_if: Option<Test>,
}

/// When a field that usually doesn't go down does.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Unless {
    Word(Word),
    /// A condition: of the object, if it names a field; else of the value.
    Test(Test),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    /// Somebody upstream has set it: it is in the fields of a manager. What a server allocates or
    /// defaults is in nobody's.
    Owned,
}

/// A condition on a value; all that it says must hold.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    /// Where to look; everywhere that the path leads, one place is enough. Without: the value
    /// itself. Nothing there is no match.
    #[serde(default)]
    field: Option<Path>,
    /// It is equal to this.
    #[serde(default)]
    is: Option<Value>,
    /// It is a text like one of these; `*` stands for anything.
    #[serde(default)]
    like: Vec<String>,
    /// It is an object with these members.
    #[serde(default)]
    has: Map<String, Value>,
    /// It is called like one of these.
    #[serde(default)]
    key: Vec<String>,
    /// This holds of it, too.
    #[serde(default, rename = "where")]
    filter: Option<Box<Test>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    default: Arc<Rule>,
    every: Rule,
    types: BTreeMap<String, Arc<Rule>>,
}

/// The rules of all types.
#[derive(Debug)]
pub(crate) struct Rules(Table);

// === impl Rules ===

impl Rules {
    /// Those that are built in.
    pub(crate) fn new() -> Self {
        let table = serde_json::from_str(include_str!("rules/table.json"));
        Self(table.expect("the table is a constant, and tests read it"))
    }

    /// The rule of a type.
    pub(crate) fn of(&self, resource: &GroupResource) -> Arc<Rule> {
        self.0.types.get(&resource.to_string()).unwrap_or(&self.0.default).clone()
    }

    /// What of an upstream object goes down: everything but identity, locator and marks of ours.
    /// `namespace` maps names of namespaces.
    pub(crate) fn desired(
        &self,
        rule: &Rule,
        object: &Value,
        namespace: &dyn Fn(&str) -> String,
    ) -> Value {
        let mut desired = every_object(object);
        let owners = fields::all(object);
        for drop in self.0.every.drop.iter().chain(&rule.drop) {
            drop.apply(object, &mut desired, &owners);
        }
        for path in &rule.namespaces {
            path.each(&mut desired, &mut |value| {
                if let Value::String(name) = value {
                    *name = namespace(name);
                }
            });
        }
        for path in &rule.namespace_selectors {
            path.each(&mut desired, &mut |selector| map_selector(selector, namespace));
        }
        desired
    }
}

// === impl Rule ===

impl Rule {
    /// Whether an object is never synced.
    pub(crate) fn skips(&self, object: &Value) -> bool {
        self.never || self.skip.iter().any(|test| test.holds("", object))
    }

    /// Whether physical clusters have an object of this name by themselves.
    pub(crate) fn is_shared(&self, name: &str) -> bool {
        self.shared.iter().any(|shared| shared == name)
    }

    /// Whether an object with this status (under the key `status`) has ended.
    pub(crate) fn has_ended(&self, object: &Value) -> bool {
        self.ends.as_ref().is_some_and(|test| test.holds("", object))
    }

    /// What of a copy's status goes up.
    pub(crate) fn status_up(&self, object: &Value) -> Option<Value> {
        let mut status = object.get("status").filter(|status| status.is_object())?.clone();
        if self.status == StatusRule::None {
            return None;
        }
        for path in &self.up_drop {
            path.remove(&mut status, &mut |_, _| true);
        }
        Some(status)
    }

    /// The kind and name of what an object scales.
    pub(crate) fn scaled(&self, object: &Value) -> Option<(String, String)> {
        let mut found = None;
        self.scales.as_ref()?.find(object, &mut |reference| {
            let text = |key: &str| reference.get(key).and_then(Value::as_str).map(str::to_owned);
            found = text("kind").zip(text("name"));
            found.is_some()
        });
        found
    }
}

// === impl Drop ===

impl Drop {
    fn apply(&self, object: &Value, desired: &mut Value, owners: &[&Value]) {
        if self.only_if.as_ref().is_some_and(|test| !test.holds("", object)) {
            return;
        }
        let stays = |key: &str, value: &Value, owned: bool| match &self.unless {
            None => false,
            Some(Unless::Word(Word::Owned)) => owned,
            Some(Unless::Test(test)) if test.field.is_some() => test.holds("", object),
            Some(Unless::Test(test)) => test.holds(key, value),
        };
        self.path.remove_owned(desired, owners, &mut |key, value, owned| {
            self.filter.as_ref().is_none_or(|test| test.holds(key, value))
                && !stays(key, value, owned)
        });
    }
}

// === impl Test ===

impl Test {
    fn holds(&self, key: &str, value: &Value) -> bool {
        let here = |value: &Value| {
            self.is.as_ref().is_none_or(|is| is == value)
                && (self.like.is_empty()
                    || value.as_str().is_some_and(|text| is_like(&self.like, text)))
                && self.has.iter().all(|(key, member)| value.get(key) == Some(member))
                && self.filter.as_ref().is_none_or(|filter| filter.holds(key, value))
        };
        let called = self.key.is_empty() || is_like(&self.key, key);
        called
            && match &self.field {
                Some(path) => path.find(value, &mut |value| here(value)),
                None => here(value),
            }
    }
}

/// Whether a text is like one of some patterns, in which `*` stands for anything.
fn is_like(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| {
        let mut parts = pattern.split('*');
        let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
            return false;
        };
        let mut parts: Vec<_> = parts.collect();
        let Some(last) = parts.pop() else { return rest.is_empty() };
        for part in parts {
            match rest.split_once(part) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
        rest.ends_with(last)
    })
}

/// What of any object goes down.
fn every_object(object: &Value) -> Value {
    let mut desired = Map::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        if !matches!(key.as_str(), "metadata" | "status") && !value.is_null() {
            desired.insert(key.clone(), without_nulls(value));
        }
    }
    let mut metadata = Map::new();
    for key in ["labels", "annotations"] {
        let all = object.pointer("/metadata").and_then(|metadata| metadata.get(key));
        let all = all.and_then(Value::as_object).into_iter().flatten();
        let kept: Map<String, Value> = { all }
            .filter(|(key, value)| !is_mark(key) && value.is_string())
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if !kept.is_empty() {
            metadata.insert(key.to_owned(), Value::Object(kept));
        }
    }
    desired.insert("metadata".to_owned(), Value::Object(metadata));
    Value::Object(desired)
}

/// Whether a label or annotation is about placement, or between hub and agents alone.
fn is_mark(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    debug_assert!([INTENT_LABEL, ORPHAN, UPSTREAM].iter().all(|key| key.starts_with(DOMAIN)));
    domain == DOMAIN || contract::target_of_state_label(key).is_some()
}

/// The domain of our labels and annotations on objects.
const DOMAIN: &str = "workloads.kcp.io";

/// Nulls say nothing, but to apply one is a change.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// The label that every namespace has with its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

fn map_selector(selector: &mut Value, namespace: &dyn Fn(&str) -> String) {
    let map = |value: &mut Value| {
        if let Value::String(name) = value {
            *name = namespace(name);
        }
    };
    if let Some(value) = selector.get_mut("matchLabels").and_then(|all| all.get_mut(NAMESPACE_NAME))
    {
        map(value);
    }
    let expressions = selector.get_mut("matchExpressions").and_then(Value::as_array_mut);
    for expression in expressions.into_iter().flatten() {
        if expression.get("key").and_then(Value::as_str) == Some(NAMESPACE_NAME) {
            let values = expression.get_mut("values").and_then(Value::as_array_mut);
            values.into_iter().flatten().for_each(map);
        }
    }
}

#[cfg(test)]
mod tests;
