//! Lists that are merged as sets with what the physical cluster has in them.
//!
//! To server-side apply such a list is one value: who applies it takes all of it. So what we apply is
//! what is there, without what was ours before, and with what is the hub's.
//!
//! # Guarantees
//! - What others have put into such a list stays in it, whatever comes and goes at the hub.
//! - What an agent has put into it is in the copy's locator, so that it goes when the hub no longer
//!   has it. What was there before is not ours, even if the hub has it, too.
//! - Where all is there already, nothing is applied, and the list is left to who has it.
//!
//! # Assumptions
//! - An apply names the version of the copy that the list was made of.
//! - Items are compared whole: a server that changes one on its way in has put in one of its own.

use std::collections::BTreeMap;

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::{Map, Value, json};

use crate::digest::{Digest, Hasher};
use crate::fields;
use crate::locator::Locator;

/// The most items that an object's lists may have together: each takes 19 bytes of the locator.
pub(crate) const MOST: usize = 512;

/// How much of an item's digest is in the locator, in hexadecimal digits.
const MARK: usize = 16;

/// Where a list stands: a JSON pointer, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pointer: String,
    names: Vec<String>,
}

/// What an upstream object has in its lists, in the order of its type's [`Way`]s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted(Box<[Json]>);

/// What a copy has in its lists, in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held(Box<[Part]>);

/// A list as JSON, which takes less memory.
type Json = Box<[u8]>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Part {
    items: Json,
    /// The marks of items that are ours.
    ours: Box<[Box<str>]>,
    /// Whether our applies own the list.
    owned: bool,
}

/// What an apply says of lists.
#[derive(Debug, PartialEq)]
pub(crate) struct Merged {
    /// Lists that have to be in it.
    values: Vec<Option<Vec<Value>>>,
    /// What of them is ours then, by their pointers.
    pub(crate) added: BTreeMap<String, Vec<String>>,
}

// === impl Way ===

impl Way {
    fn parse(text: &str) -> Option<Self> {
        let names: Vec<_> = { text.strip_prefix('/')?.split('/') }
            .map(|part| part.replace("~1", "/").replace("~0", "~"))
            .collect();
        let is_plain = names.iter().all(|name| !name.is_empty() && name != "*");
        is_plain.then(|| Self { pointer: text.to_owned(), names })
    }

    /// As a JSON pointer.
    pub(crate) fn pointer(&self) -> &str {
        &self.pointer
    }

    fn items<'v>(&self, object: &'v Value) -> &'v [Value] {
        let list = object.pointer(&self.pointer).and_then(Value::as_array);
        list.map(Vec::as_slice).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Way {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("{text:?} leads to no list")))
    }
}

// === impl Wanted ===

impl Wanted {
    /// Takes the lists out of what is to be there. `None` if it has nothing in them.
    pub(crate) fn take(ways: &[Way], desired: &mut Value) -> Option<Self> {
        let mut found = false;
        let lists = ways.iter().map(|way| {
            let mut items: Vec<Value> = Vec::new();
            for item in way.items(desired) {
                if !items.contains(item) {
                    items.push(item.clone());
                }
            }
            found |= !items.is_empty();
            remove(desired, &way.names, false);
            json(&items)
        });
        let lists = lists.collect();
        found.then_some(Self(lists))
    }

    /// Adds them to a digest.
    pub(crate) fn hash(&self, hasher: &mut Hasher) {
        self.0.iter().for_each(|list| hasher.text(&String::from_utf8_lossy(list)));
    }

    /// How many items there are.
    pub(crate) fn count(&self) -> usize {
        (0..self.0.len()).map(|at| self.list(at).len()).sum()
    }

    fn list(&self, at: usize) -> Vec<Value> {
        self.0.get(at).map(|list| items(list)).unwrap_or_default()
    }
}

// === impl Held ===

impl Held {
    /// What an object has in its lists; `locator` is its own, if it is a copy. `known` is what was
    /// known of the same copy: it counts if the locator has been taken off. `None` if there is
    /// nothing to remember.
    pub(crate) fn of(
        ways: &[Way],
        object: &Value,
        locator: Option<&Locator>,
        known: Option<&Self>,
    ) -> Option<Self> {
        let ours = fields::ours(object);
        let parts = ways.iter().enumerate().map(|(at, way)| {
            let items = way.items(object);
            let names: Vec<_> = way.names.iter().map(String::as_str).collect();
            let owned = ours.is_some_and(|ours| fields::owns(ours, &names));
            let known = || known.and_then(|known| Some(known.0.get(at)?.ours.clone()));
            let ours = match locator.map(|locator| locator.added.as_ref()) {
                None => known().unwrap_or_default(),
                Some(Some(added)) => {
                    let marks = added.get(&way.pointer).map(Vec::as_slice).unwrap_or_default();
                    marks.iter().map(|mark| mark.as_str().into()).collect()
                }
                // An agent has applied it that knew nothing of merging.
                Some(None) if owned => items.iter().map(mark).collect(),
                Some(None) => Box::default(),
            };
            Part {
                items: if items.is_empty() { Json::default() } else { json(items) },
                ours,
                owned,
            }
        });
        let parts: Box<[Part]> = parts.collect();
        parts.iter().any(|part| *part != Part::default()).then_some(Self(parts))
    }

    /// Of what is there.
    pub(crate) fn digest(held: Option<&Self>) -> Digest {
        let mut hasher = Hasher::new();
        for part in held.iter().flat_map(|held| &held.0) {
            hasher.text(&String::from_utf8_lossy(&part.items));
        }
        hasher.end()
    }
}

// === impl Merged ===

impl Merged {
    /// What is to be in the lists of a copy that has this in them.
    pub(crate) fn of(ways: &[Way], wanted: Option<&Wanted>, held: Option<&Held>) -> Self {
        let mut merged = Self { values: Vec::new(), added: BTreeMap::new() };
        for (at, way) in ways.iter().enumerate() {
            let (wanted, part) = parts(wanted, held, at);
            let there = items(&part.items);
            let (list, added) = merge(&wanted, &there, &part.ours);
            // Left out, what is ours alone goes, and what isn't ours stays as it is. Where somebody has
            // written the list anew, and nothing but ours into it, that has to be said.
            let said = if part.owned { !list.is_empty() } else { list != there };
            merged.values.push(said.then_some(list));
            if !added.is_empty() {
                merged.added.insert(way.pointer.clone(), added);
            }
        }
        merged
    }

    /// What leaves the lists of a copy as they are.
    pub(crate) fn none(ways: &[Way], held: Option<&Held>) -> Self {
        let mut merged = Self { values: Vec::new(), added: BTreeMap::new() };
        for (at, way) in ways.iter().enumerate() {
            let (_, part) = parts(None, held, at);
            let there = items(&part.items);
            merged.values.push((part.owned && !there.is_empty()).then_some(there));
            if !part.ours.is_empty() {
                let ours = part.ours.iter().map(|mark| mark.to_string()).collect();
                merged.added.insert(way.pointer.clone(), ours);
            }
        }
        merged
    }

    /// Writes them into an object that is to be applied. Whether it has any.
    pub(crate) fn put(self, ways: &[Way], object: &mut Value) -> bool {
        let mut any = false;
        for (way, list) in ways.iter().zip(self.values) {
            let (Some(list), Some((last, rest))) = (list, way.names.split_last()) else { continue };
            let at = rest.iter().try_fold(&mut *object, |at, name| {
                let members = at.as_object_mut()?;
                Some(members.entry(name.clone()).or_insert_with(|| json!({})))
            });
            if let Some(Value::Object(members)) = at {
                members.insert(last.clone(), list.into());
                any = true;
            }
        }
        any
    }
}

/// The lists of a copy that are not as they are to be, as JSON pointers.
pub(crate) fn wrong<'w>(
    ways: &'w [Way],
    wanted: Option<&Wanted>,
    held: Option<&Held>,
) -> Vec<&'w str> {
    let is_wrong = |at: usize| {
        let (wanted, part) = parts(wanted, held, at);
        let there = items(&part.items);
        merge(&wanted, &there, &part.ours).0 != there
    };
    let wrong = ways.iter().enumerate().filter(|(at, _)| is_wrong(*at));
    wrong.map(|(_, way)| way.pointer()).collect()
}

/// A copy without its lists, and without our owning them: what is left is compared as that of any
/// object.
pub(crate) fn apart(ways: &[Way], object: &Value) -> Value {
    let mut rest = object.clone();
    for way in ways {
        remove(&mut rest, &way.names, false);
        let entry: Vec<_> = way.names.iter().map(|name| format!("f:{name}")).collect();
        if let Some(fields) = fields::ours_mut(&mut rest) {
            remove(fields, &entry, true);
        }
    }
    rest
}

fn parts(wanted: Option<&Wanted>, held: Option<&Held>, at: usize) -> (Vec<Value>, Part) {
    let wanted = wanted.map(|wanted| wanted.list(at)).unwrap_or_default();
    let part = held.and_then(|held| held.0.get(at)).cloned().unwrap_or_default();
    (wanted, part)
}

/// What is to be in a list in which something is, and the marks of what of it is ours then.
fn merge(wanted: &[Value], there: &[Value], ours: &[Box<str>]) -> (Vec<Value>, Vec<String>) {
    let is_ours = |item: &Value| !ours.is_empty() && ours.contains(&mark(item));
    let stays = |item: &&Value| wanted.contains(item) || !is_ours(item);
    let mut list: Vec<Value> = there.iter().filter(stays).cloned().collect();
    let mut added = Vec::new();
    for item in wanted {
        if !there.contains(item) {
            list.push(item.clone());
            added.push(mark(item).into());
        } else if is_ours(item) {
            added.push(mark(item).into());
        }
    }
    (list, added)
}

/// What stands for an item in the locator.
fn mark(item: &Value) -> Box<str> {
    let digest = Digest::of(item).to_string();
    digest.get(..MARK).unwrap_or_default().into()
}

fn json(items: &[Value]) -> Json {
    let mut text = Vec::new();
    // Values have no keys but texts, and a vector takes everything.
    let written = serde_json::to_writer(&mut text, items);
    debug_assert!(written.is_ok());
    text.into_boxed_slice()
}

fn items(json: &[u8]) -> Vec<Value> {
    if json.is_empty() { Vec::new() } else { serde_json::from_slice(json).unwrap_or_default() }
}

/// Removes what is at the end of a way; with `empty` what is empty then, too.
fn remove(value: &mut Value, names: &[String], empty: bool) {
    let (Some(members), Some((first, rest))) = (value.as_object_mut(), names.split_first()) else {
        return;
    };
    if rest.is_empty() {
        members.remove(first);
    } else if let Some(below) = members.get_mut(first) {
        remove(below, rest, empty);
        if empty && below.as_object().is_some_and(Map::is_empty) {
            members.remove(first);
        }
    }
}

#[cfg(test)]
mod tests;
