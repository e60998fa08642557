//! What watches show, turned into entries.

mod lists;
mod read;

use contract::CLUSTER_ANNOTATION;
use serde_json::Value;

use super::entry::{Copy, Hold, Id, Key, Place, Remake, Removal, TypeId, Up, Work};
use super::{Engine, millis};
use crate::definitions;
use crate::drift::drift;
use crate::fields::{self, REPLICAS};
use crate::lists::{Held, apart};
use crate::locator::Locator;
use crate::{Now, names};

const UPSTREAM: usize = 0;
const DOWNSTREAM: usize = 1;

/// A text of an object's metadata; empty if it is none.
pub(super) fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    let value = object.get("metadata").and_then(|metadata| metadata.get(field));
    value.and_then(Value::as_str).unwrap_or_default()
}

/// A label or annotation.
pub(super) fn mark<'v>(object: &'v Value, place: &str, key: &str) -> Option<&'v str> {
    object.get("metadata")?.get(place)?.get(key)?.as_str()
}

/// An object's resource version; what is no number is older than everything.
pub(super) fn revision(object: &Value) -> u64 {
    text(object, "resourceVersion").parse().unwrap_or(0)
}

pub(super) fn number(object: &Value, field: &str) -> i64 {
    object.get("metadata").and_then(|meta| meta.get(field)).and_then(Value::as_i64).unwrap_or(0)
}

pub(super) fn bytes(value: &Value) -> Box<[u8]> {
    value.to_string().into_bytes().into_boxed_slice()
}

impl Engine {
    /// The key of an upstream object.
    pub(super) fn key_of(&self, kind: TypeId, object: &Value) -> Option<Key> {
        let name = text(object, "name");
        if name.is_empty() {
            return None;
        }
        let cluster = if self.target.wildcard {
            mark(object, "annotations", CLUSTER_ANNOTATION)?
        } else {
            &*self.target.cluster
        };
        Some(Key {
            kind,
            cluster: cluster.into(),
            namespace: text(object, "namespace").into(),
            name: name.into(),
        })
    }

    /// The place of a downstream object.
    pub(super) fn place_of(kind: TypeId, object: &Value) -> Option<Place> {
        let (namespace, name) = (text(object, "namespace"), text(object, "name"));
        (!name.is_empty()).then(|| Place { kind, namespace: namespace.into(), name: name.into() })
    }

    /// Takes in an upstream object. `whole` says that it comes from a list.
    pub(super) fn see_object(&mut self, key: &Key, object: &Value, listed: bool, now: Now) {
        let Some(up) = self.read_object(key.kind, &key.cluster, object) else { return };
        let id = match self.index.by_key(key) {
            Some(id) => id,
            None => {
                let place = self.place_for(key, up.alias.as_deref());
                self.index.insert(key, &place)
            }
        };
        let list = self.list_of(id, UPSTREAM);
        let Some(entry) = self.index.get_mut(id) else { return };
        entry.seen[UPSTREAM] = list;
        let known = entry.up.as_ref().map_or(0, |known| known.revision);
        let is_released = entry.released.is_some_and(|(revision, _)| up.revision <= revision);
        if up.revision < known || is_released {
            // Older than what is known: from a slow cache, or of a hub that has gone back.
            entry.verify |= listed;
            self.touch(id);
            return;
        }
        self.set_object(id, up, now);
    }

    /// Takes in what is known to be the newest of an object.
    pub(super) fn set_object(&mut self, id: Id, up: Up, now: Now) {
        self.hub.see(up.revision);
        let Some(entry) = self.index.get_mut(id) else { return };
        entry.released = None;
        entry.verify = false;
        let before = entry.up.take();
        let changed = before.as_ref().is_none_or(|before| before.digest != up.digest);
        if changed {
            *entry.hold(Work::Down) = Hold::default();
            entry.remake = Remake::No;
        }
        *entry.hold(Work::Up) = Hold::default();
        *entry.hold(Work::Status) = Hold::default();
        entry.report.dirty |= before.as_ref().is_none_or(|before| before.status != up.status)
            || before.as_ref().is_some_and(|before| before.replicas != up.replicas)
            || before.as_ref().is_some_and(|before| before.others != up.others);
        let same = before.as_ref().is_some_and(|before| before.uid == up.uid);
        if !same {
            entry.report = super::entry::Report { dirty: true, ..Default::default() };
            entry.recorded = None;
        }
        let going = up.is_going();
        let was_scaling = before.as_ref().and_then(|before| before.scales.clone());
        let mut up = up;
        // What was read again stays, even if it is large, until it has been used.
        if !changed && up.body.is_none() {
            up.body = before.and_then(|before| before.body);
        }
        let scales = up.scales.clone().filter(|_| up.is_wanted());
        let older = entry.ours().is_some_and(|down| self.hub.is_older(&up, down));
        entry.verify = older && !self.hub.is_back();
        entry.up = Some(Box::new(up));
        if entry.copy_of_this().is_some() {
            // It is no orphan any more, whatever was said of it.
            self.given_up.remove(&id);
        }
        let removal = entry.removal.is_some();
        if going && !removal {
            self.begin_removal(id, now);
        } else if !going && removal {
            self.end_removal(id, false);
        }
        self.set_scaled(id, was_scaling, scales);
        self.compare(id);
        self.touch(id);
    }

    /// The hub no longer shows an object. That is no evidence for anything: its copy stays.
    pub(super) fn lose_object(&mut self, id: Id) {
        let Some(entry) = self.index.get_mut(id) else { return };
        entry.released = None;
        entry.verify = false;
        let before = entry.up.take();
        entry.problem = None;
        if entry.removal.is_some() {
            self.end_removal(id, false);
        }
        self.set_scaled(id, before.and_then(|before| before.scales), None);
        self.touch(id);
    }

    /// Takes in an object of the physical cluster that is a copy. Whether it was. `applied` says that
    /// it is the answer to an apply of ours: what is ours in it is as it is to be.
    pub(super) fn see_copy(&mut self, kind: TypeId, object: &Value, applied: bool) -> bool {
        let Some(place) = Self::place_of(kind, object) else { return false };
        let rule = self.kind(kind).map(|kind| kind.rule.clone()).unwrap_or_default();
        let whole = object;
        let rest = (!rule.merge.is_empty()).then(|| apart(&rule.merge, whole));
        let object = rest.as_ref().unwrap_or(whole);
        let locator = Locator::of(object).filter(|locator| self.is_ours(locator, &place));
        let id = match (self.index.by_place(&place), &locator) {
            (Some(id), _) => id,
            (None, Some(locator)) => match self.adopt_place(kind, &place, locator) {
                Some(id) => id,
                None => return false,
            },
            (None, None) => return false,
        };
        let list = self.list_of(id, DOWNSTREAM);
        let (without, defines) = (self.yielded(id), self.defines(id));
        let goes_down = self.status_rule(kind).is_some();
        let Some(entry) = self.index.get_mut(id) else { return false };
        let (uid, revision) = (text(object, "uid"), revision(object));
        entry.seen[DOWNSTREAM] = list;
        let known = entry.ours().filter(|down| *down.uid == *uid);
        let is_of = |locator: &&Locator| {
            locator.cluster == *entry.key.cluster
                && locator.namespace == *entry.key.namespace
                && locator.name == *entry.key.name
        };
        let locator = locator.as_ref().filter(is_of);
        if known.is_none() && locator.is_none() {
            return false;
        }
        let lost = entry.lost.as_ref().filter(|(lost, _)| **lost == *uid);
        if lost.is_some_and(|(_, at)| revision < *at) {
            return true;
        }
        if known.is_some_and(|known| revision < known.revision) {
            let merged = entry.merging.then(|| {
                let held = Held::of(&rule.merge, whole, locator, None);
                Held::digest(held.as_ref())
            });
            if applied && let Some(down) = entry.ours_mut() {
                // The watch was faster; what it has shown is compared with this.
                down.good = Some(fields::view(object, without));
                down.merged = merged.or(down.merged);
                down.live = None;
            }
            let streams = self.kind(kind).map(|kind| kind.streams[DOWNSTREAM]);
            if !applied && streams.is_some_and(|stream| stream.listing) {
                // From a slow cache, or the cluster has gone back: a live read tells.
                self.forget_copy(id);
                self.touch(id);
            }
            return true;
        }
        let mut down = Self::read_copy(object, locator, known, without, goes_down);
        down.established = defines && definitions::is_established(object);
        let before = known.and_then(|known| known.lists.as_ref());
        down.lists = Held::of(&rule.merge, whole, locator, before);
        if applied {
            down.good = Some(down.view);
            down.merged = entry.merging.then(|| Held::digest(down.lists.as_ref())).or(down.merged);
        } else if down.good.is_none() && !entry.applying {
            down.live = Some(bytes(object));
        }
        let drifts = !applied && down.good.is_some_and(|good| good != down.view);
        let changed = known.is_none_or(|known| {
            known.status != down.status
                || known.generation != down.generation
                || known.applied_generation != down.applied_generation
                || known.replicas != down.replicas
        });
        entry.report.dirty |= changed;
        entry.lost = None;
        if let Some(locator) = locator {
            self.hub.see_copy(locator.revision());
        }
        let older = entry.up.as_ref().is_some_and(|up| self.hub.is_older(up, &down));
        entry.verify |= older && !self.hub.is_back();
        let known = self.index.set_copy(id, Copy::Ours(Box::new(down)));
        self.see_definition(id, known.as_deref());
        self.compare(id);
        self.see_drift(id, object, drifts);
        self.touch(id);
        true
    }

    /// Looks which fields of a copy others have changed, if any.
    fn see_drift(&mut self, id: Id, object: &Value, drifts: bool) {
        let Some(entry) = self.index.get(id).filter(|entry| drifts || !entry.drift.is_empty())
        else {
            return;
        };
        let tells =
            { self.kind(entry.key.kind) }.is_some_and(|kind| &*kind.resource.resource != "secrets");
        let body = entry.up.as_ref().and_then(|up| up.body.as_ref()).filter(|_| drifts);
        let desired = body.and_then(|body| serde_json::from_slice::<Value>(body).ok());
        let mut found = desired.map(|desired| drift(&desired, object, tells)).unwrap_or_default();
        if self.yielded(id).is_some() {
            found.retain(|field| field.path != "/spec/replicas");
        }
        if let Some(entry) = self.index.get_mut(id) {
            entry.drift = found;
        }
    }

    /// The entry of a copy that nobody has the place of, or a new one. None if the entry has
    /// another copy.
    fn adopt_place(&mut self, kind: TypeId, place: &Place, locator: &Locator) -> Option<Id> {
        let key = Key {
            kind,
            cluster: locator.cluster.as_str().into(),
            namespace: locator.namespace.as_str().into(),
            name: locator.name.as_str().into(),
        };
        let id = match self.index.by_key(&key) {
            Some(id) if self.index.get(id).is_some_and(|entry| entry.ours().is_some()) => {
                return None;
            }
            Some(id) => {
                // Where a copy is, it stays, even if a new one would be elsewhere.
                self.index.leave_place(id);
                let place = self.index.own(place);
                self.index.get_mut(id)?.place = place;
                id
            }
            None => self.index.insert(&key, place),
        };
        self.index.take_place(id);
        Some(id)
    }

    /// A watch has shown that a copy is gone, or has lost our label.
    pub(super) fn lose_copy(&mut self, id: Id, uid: &str, revision: u64) {
        let Some(entry) = self.index.get_mut(id) else { return };
        let is_it = entry.ours().is_some_and(|down| *down.uid == *uid && down.revision <= revision);
        if is_it {
            entry.lost = Some((uid.into(), revision));
            self.forget_copy(id);
            self.touch(id);
        }
    }

    /// Nothing is known of a copy any more: it has to be looked for.
    pub(super) fn forget_copy(&mut self, id: Id) {
        if let Some(down) = self.index.set_copy(id, Copy::Unknown) {
            self.leave_space(id);
            drop(down);
        }
        if let Some(entry) = self.index.get_mut(id)
            && let Some(removal) = &mut entry.removal
        {
            removal.looked = false;
            removal.polls = 0;
        }
    }

    /// Compares a copy with what is to be there, once, when this process sees both first.
    pub(super) fn compare(&mut self, id: Id) {
        let without = self.yielded(id);
        let Some(entry) = self.index.get_mut(id) else { return };
        let wanted = entry.up.as_ref().map(|up| (up.digest, up.body.is_some()));
        let Some((digest, has_body)) = wanted else { return };
        let body = entry.up.as_ref().and_then(|up| up.body.clone());
        let Some(down) = entry.ours_mut() else { return };
        let Some(live) = down.live.take() else { return };
        if down.digest != Some(digest) || !has_body {
            return;
        }
        let desired = body.and_then(|body| serde_json::from_slice::<Value>(&body).ok());
        let live = serde_json::from_slice::<Value>(&live).ok();
        let (Some(mut desired), Some(live)) = (desired, live) else { return };
        super::requests::add_label(&mut desired, &self.target.identity.target);
        let Some(down) = self.index.get_mut(id).and_then(super::Entry::ours_mut) else { return };
        if fields::matches(&desired, &live, without) {
            down.good = Some(down.view);
        }
    }

    /// Whether a copy that says this is one of ours, and not moved by others.
    pub(super) fn is_ours(&self, locator: &Locator, place: &Place) -> bool {
        let stands = format!("{}/{}", place.namespace, place.name);
        *locator.hub == *self.target.identity.hub && locator.copy == stands
    }

    /// Where the copy of an object is to be.
    pub(super) fn place_for(&self, key: &Key, alias: Option<&str>) -> Place {
        let namespace = names::namespace(&self.target, &key.cluster, &key.namespace);
        Place {
            namespace: namespace.into(),
            kind: key.kind,
            name: alias.map_or_else(|| key.name.clone(), Into::into),
        }
    }

    /// The field that isn't ours even if we have applied it: replicas that the target may set.
    pub(super) fn yielded(&self, id: Id) -> Option<&'static [&'static str]> {
        let entry = self.index.get(id)?;
        let kind = self.kind(entry.key.kind)?;
        if !kind.rule.replicas {
            return None;
        }
        let yields = entry.up.as_ref().is_some_and(|up| up.flags.yields);
        let scaled = || {
            let kind = kind.synced.as_ref().map(|synced| synced.kind.as_ref()).unwrap_or_default();
            let key = &entry.key;
            let of = (key.cluster.clone(), key.namespace.clone(), kind.into(), (*key.name).into());
            self.scaled.contains_key(&of)
        };
        (yields || scaled()).then_some(&REPLICAS[..])
    }

    fn set_scaled(
        &mut self,
        id: Id,
        before: Option<(Box<str>, Box<str>)>,
        after: Option<(Box<str>, Box<str>)>,
    ) {
        if before == after {
            return;
        }
        let Some(key) = self.index.get(id).map(|entry| entry.key.clone()) else { return };
        for (change, scaled) in [(-1, before), (1, after)] {
            let Some((kind, name)) = scaled else { continue };
            let of = (key.cluster.clone(), key.namespace.clone(), kind, name);
            let count = self.scaled.entry(of.clone()).or_default();
            *count = count.saturating_add_signed(change);
            if *count == 0 {
                self.scaled.remove(&of);
            }
        }
    }

    pub(super) fn begin_removal(&mut self, id: Id, now: Now) {
        let Some(entry) = self.index.get_mut(id) else { return };
        let removal = Removal { since: millis(now.clock), ..Removal::default() };
        entry.removal = Some(Box::new(removal));
        *entry.hold(Work::Down) = Hold::default();
        let space = (entry.key.cluster.clone(), entry.key.namespace.clone());
        let class = self.class(id);
        self.removing.entry(space).or_default().classes.entry(class).or_default().insert(id);
    }

    /// A removal is done, or no longer wanted.
    pub(super) fn end_removal(&mut self, id: Id, done: bool) {
        self.brake.forget(id, done);
        let class = self.class(id);
        let Some(entry) = self.index.get_mut(id) else { return };
        entry.removal = None;
        if entry.problem.as_ref().is_some_and(|problem| problem.of == Work::Down) {
            entry.problem = None;
        }
        let space = (entry.key.cluster.clone(), entry.key.namespace.clone());
        self.leave_class(&space, class, id);
    }
}
