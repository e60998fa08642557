//! The cache's state: a pure function of the changes that it was given.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use machinery::room::GiveRoomBack as _;

use super::event::Event;
use super::overlay::{Overlay, Slice, Slots, is_tombstone, under};
use crate::object::{Object, Origin};
use crate::{Expect, Key, KeyPrefix, Revision};

/// Bytes of superseded objects that are kept for watches and pages at a recent revision. With the
/// 2 MiB of the embedded backend's own buffer this stays far under 32 MB.
const RECENT_BYTES: usize = 4 << 20;

/// Encoded frames are kept for so many events; a watcher further behind encodes for itself.
const FRAMES: usize = 256;

/// What stands at a key.
#[derive(Clone, Debug)]
pub enum Slot {
    /// Nothing.
    Absent,
    /// A record that hides the virtual object of the key.
    Tombstone(Revision),
    /// A record that is no object: nothing may overwrite it.
    Unreadable,
    /// An object, stored or virtual.
    Object(Arc<Object>),
}

/// Every object at one revision, and how it came about recently.
#[derive(Debug)]
pub(super) struct State {
    slots: Slots,
    /// Stored objects by resource, for metrics.
    counts: BTreeMap<Box<str>, usize>,
    /// Stored objects by logical cluster, of those that have any.
    populations: HashMap<Box<str>, usize>,
    revision: Revision,
    recent: VecDeque<Arc<Event>>,
    recent_bytes: usize,
    /// The recent events reach back to just after this revision.
    recent_after: Revision,
    overlay: Arc<dyn Overlay>,
}

/// The first objects of a range, and the number of the others.
struct Page {
    objects: Vec<Arc<Object>>,
    limit: usize,
    remaining: usize,
}

// === impl Slot ===

impl Slot {
    /// Where a record is.
    fn of(record: &Arc<Object>) -> Self {
        match record.origin {
            Origin::Unreadable => Self::Unreadable,
            _ if is_tombstone(record) => Self::Tombstone(record.revision),
            _ => Self::Object(record.clone()),
        }
    }

    /// The object, if one is visible.
    pub fn object(self) -> Option<Arc<Object>> {
        match self {
            Self::Object(object) => Some(object),
            Self::Absent | Self::Tombstone(_) | Self::Unreadable => None,
        }
    }

    /// What a commit that writes the key must require for the slot to be still as it is here.
    /// `None` when the key must not be written.
    pub fn expect(&self) -> Option<Expect> {
        match self {
            Self::Absent => Some(Expect::Absent),
            Self::Tombstone(revision) => Some(Expect::At(*revision)),
            Self::Object(object) => Some(object.expect()),
            Self::Unreadable => None,
        }
    }
}

// === impl Page ===

impl Page {
    fn new(limit: usize) -> Self {
        let limit = if limit == 0 { usize::MAX } else { limit };
        Self { objects: Vec::new(), limit, remaining: 0 }
    }

    fn push(&mut self, object: &Arc<Object>) {
        if self.objects.len() < self.limit {
            self.objects.push(object.clone());
        } else {
            self.remaining += 1;
        }
    }
}

// === impl State ===

impl State {
    pub(super) fn new(slots: Slots, revision: Revision, overlay: Arc<dyn Overlay>) -> Self {
        let recent = VecDeque::new();
        let mut counts = BTreeMap::<Box<str>, usize>::new();
        let mut populations = HashMap::<Box<str>, usize>::new();
        for (key, _) in slots.iter().filter(|(_, object)| !is_tombstone(object)) {
            *counts.entry(key.resource_part().into()).or_default() += 1;
            *populations.entry(key.parts().0.into()).or_default() += 1;
        }
        Self {
            slots,
            counts,
            populations,
            revision,
            recent,
            recent_bytes: 0,
            recent_after: revision,
            overlay,
        }
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn count_up_to(&self, prefix: &KeyPrefix, most: usize) -> usize {
        under(&self.slots, prefix, None).take(most).count()
    }

    /// What stands at `key` now.
    pub(super) fn slot(&self, key: &Key) -> Slot {
        match self.slots.get(key) {
            Some(object) => Slot::of(object),
            None => self.overlay.object(Slice(&self.slots), key).map_or(Slot::Absent, Slot::Object),
        }
    }

    /// The visible objects under `prefix` and after `after`, in key order, at most `limit` (0
    /// means all), and the number of those that follow.
    pub(super) fn range(
        &self,
        prefix: &KeyPrefix,
        after: Option<&Key>,
        limit: usize,
    ) -> (Vec<Arc<Object>>, usize) {
        let mut out = Page::new(limit);
        let mut stored = under(&self.slots, prefix, after).peekable();
        let virtuals = self.overlay.range(Slice(&self.slots), prefix);
        let mut virtuals = virtuals
            .into_iter()
            .filter(|object| after.is_none_or(|after| object.key > *after))
            .peekable();
        while let Some((key, object)) = stored.peek() {
            match virtuals.peek() {
                Some(hidden) if hidden.key == **key => {
                    virtuals.next();
                }
                Some(earlier) if earlier.key < **key => {
                    virtuals.next().iter().for_each(|object| out.push(object));
                }
                _ => {
                    if !is_tombstone(object) {
                        out.push(object);
                    }
                    stored.next();
                }
            }
        }
        virtuals.for_each(|object| out.push(&object));
        (out.objects, out.remaining)
    }

    /// The number of visible objects under `prefix`.
    pub(super) fn count_under(&self, prefix: &KeyPrefix) -> usize {
        let stored = under(&self.slots, prefix, None).filter(|(_, object)| !is_tombstone(object));
        let virtuals = self.overlay.range(Slice(&self.slots), prefix);
        let shown = virtuals.iter().filter(|object| !self.slots.contains_key(&object.key));
        stored.count() + shown.count()
    }

    pub(super) fn virtual_object(&self, key: &Key) -> Option<Arc<Object>> {
        self.overlay.object(Slice(&self.slots), key)
    }

    pub(super) fn records(&self, prefix: &KeyPrefix) -> Vec<(Key, Revision)> {
        let slots = under(&self.slots, prefix, None);
        slots.map(|(key, object)| (key.clone(), object.revision)).collect()
    }

    /// What is stored under `prefix`, in order.
    pub(super) fn stored(&self, prefix: &KeyPrefix) -> Vec<(Key, Slot)> {
        let slots = under(&self.slots, prefix, None);
        slots.map(|(key, object)| (key.clone(), Slot::of(object))).collect()
    }

    /// The next stored objects under `prefix`, without counting those that follow.
    pub(super) fn scan(
        &self,
        prefix: &KeyPrefix,
        after: Option<&Key>,
        limit: usize,
    ) -> Vec<Arc<Object>> {
        let stored =
            |object: &&Arc<Object>| object.origin == Origin::Stored && !is_tombstone(object);
        let slots = under(&self.slots, prefix, after);
        slots.map(|(_, object)| object).filter(stored).take(limit).cloned().collect()
    }

    pub(super) fn tombstones(&self) -> Vec<Key> {
        let hidden = |object: &Object| is_tombstone(object) && object.origin == Origin::Stored;
        let slots = self.slots.iter().filter(|(_, object)| hidden(object));
        slots.map(|(key, _)| key.clone()).collect()
    }

    /// As [`State::range`], but as it was at `at`. `None` when recent events do not reach so far.
    pub(super) fn range_at(
        &self,
        prefix: &KeyPrefix,
        after: Option<&Key>,
        limit: usize,
        at: Revision,
    ) -> Option<(Vec<Arc<Object>>, usize)> {
        if at == self.revision {
            return Some(self.range(prefix, after, limit));
        }
        let mut undone = BTreeMap::<&Key, Option<&Arc<Object>>>::new();
        for event in self.events_after(at)?.filter(|event| prefix.contains(&event.key)) {
            undone.entry(&event.key).or_insert(event.previous.as_ref());
        }
        if undone.is_empty() {
            return Some(self.range(prefix, after, limit));
        }
        // Whatever was undone may remove objects from the page, so all that follow are read.
        let (now, _) = self.range(prefix, after, 0);
        let mut merged = now
            .into_iter()
            .filter(|object| !undone.contains_key(&object.key))
            .map(|object| (object.key.clone(), object))
            .collect::<BTreeMap<_, _>>();
        for (key, object) in undone {
            if let Some(object) = object
                && after.is_none_or(|after| key > after)
            {
                merged.insert(key.clone(), object.clone());
            }
        }
        let mut out = Page::new(limit);
        merged.values().for_each(|object| out.push(object));
        Some((out.objects, out.remaining))
    }

    /// Recent events after `after`, in order. `None` when they do not reach back so far.
    pub(super) fn events_after(
        &self,
        after: Revision,
    ) -> Option<impl Iterator<Item = &Arc<Event>> + use<'_>> {
        if after < self.recent_after {
            return None;
        }
        let start = self.recent.partition_point(|event| event.revision <= after);
        Some(self.recent.range(start..))
    }

    /// Takes over one change: `slot` is the new record, a tombstone included, or `None` when the
    /// key was deleted. Returns the events that watchers see, in order.
    pub(super) fn apply(
        &mut self,
        key: Key,
        slot: Option<Arc<Object>>,
        revision: Revision,
    ) -> Vec<Arc<Event>> {
        let dependents = self.overlay.dependents(Slice(&self.slots), &key);
        let shown = |state: &Self, keys: &[Key]| {
            keys.iter().map(|key| state.slot(key).object()).collect::<Vec<_>>()
        };
        let before = shown(self, &dependents);
        let previous = self.slot(&key).object();
        let is_object = |slot: &Arc<Object>| !is_tombstone(slot);
        let added = slot.as_ref().is_some_and(is_object);
        let replaced = match slot {
            Some(object) => self.slots.insert(key.clone(), object),
            None => self.slots.remove(&key),
        };
        self.count(&key, replaced.as_ref().is_some_and(is_object), added);
        self.revision = self.revision.max(revision);
        let current = self.slot(&key).object();
        let after = shown(self, &dependents);
        let mut events = Vec::with_capacity(1);
        if previous.is_some() || current.is_some() {
            events.push(Arc::new(Event::new(key, revision, previous, current)));
        }
        for ((key, previous), current) in dependents.into_iter().zip(before).zip(after) {
            let virtual_only = |object: &Option<Arc<Object>>| {
                object.as_ref().is_none_or(|object| object.origin == Origin::Virtual)
            };
            // A stored object is not touched by what its virtual form depends on.
            let changed = previous.is_some() != current.is_some();
            if changed && virtual_only(&previous) && virtual_only(&current) {
                events.push(Arc::new(Event::new(key, revision, previous, current)));
            }
        }
        for event in &events {
            self.remember(event.clone());
        }
        events
    }

    /// Notes that nothing happened up to `revision`.
    pub(super) fn advance(&mut self, revision: Revision) {
        self.revision = self.revision.max(revision);
    }

    /// Stored objects by resource (`core/configmaps`).
    pub(super) fn counts(&self) -> Vec<(Box<str>, usize)> {
        self.counts.iter().map(|(resource, count)| (resource.clone(), *count)).collect()
    }

    /// Stored objects of a logical cluster.
    pub(super) fn population(&self, cluster: &str) -> usize {
        self.populations.get(cluster).copied().unwrap_or_default()
    }

    /// Stored objects of each logical cluster that has some.
    pub(super) fn populations(&self) -> Vec<(&str, usize)> {
        self.populations.iter().map(|(cluster, count)| (&**cluster, *count)).collect()
    }

    /// The number of recent events, their bytes, and the revision that they begin after.
    pub(super) fn recent(&self) -> (usize, usize, Revision) {
        (self.recent.len(), self.recent_bytes, self.recent_after)
    }

    fn count(&mut self, key: &Key, before: bool, after: bool) {
        if before == after {
            return;
        }
        let cluster = key.parts().0;
        let population = self.population(cluster);
        match if after { population + 1 } else { population.saturating_sub(1) } {
            0 => {
                self.populations.remove(cluster);
                self.populations.give_room_back();
            }
            count => match self.populations.get_mut(cluster) {
                Some(known) => *known = count,
                None => drop(self.populations.insert(cluster.into(), count)),
            },
        }
        let resource = key.resource_part();
        if let Some(count) = self.counts.get_mut(resource) {
            *count = if after { *count + 1 } else { count.saturating_sub(1) };
        } else if after {
            self.counts.insert(resource.into(), 1);
        }
    }

    /// The recent events, for tests.
    #[cfg(test)]
    pub(super) fn recent_events(&self) -> &VecDeque<Arc<Event>> {
        &self.recent
    }

    /// Gives up the recent events up to a revision: those are in the store's history alone then.
    pub(super) fn forget(&mut self, revision: Revision) -> Vec<Arc<Event>> {
        let count = self.recent.partition_point(|event| event.revision <= revision);
        let old: Vec<_> = self.recent.drain(..count).collect();
        if let Some(last) = old.last() {
            self.recent_bytes -= old.iter().map(|event| event.cost()).sum::<usize>();
            self.recent_after = last.revision;
        }
        self.recent.give_room_back();
        old
    }

    fn remember(&mut self, event: Arc<Event>) {
        self.recent_bytes += event.cost();
        self.recent.push_back(event);
        if let Some(settled) = self.recent.len().checked_sub(FRAMES)
            && let Some(event) = self.recent.get(settled)
        {
            event.forget_frames();
        }
        while self.recent_bytes > RECENT_BYTES
            && let Some(oldest) = self.recent.pop_front()
        {
            self.recent_bytes -= oldest.cost();
            self.recent_after = oldest.revision;
        }
        // A revision is forgotten whole: a resumed watch must not see a part of it.
        while self.recent.front().is_some_and(|event| event.revision == self.recent_after)
            && let Some(oldest) = self.recent.pop_front()
        {
            self.recent_bytes -= oldest.cost();
        }
    }
}
