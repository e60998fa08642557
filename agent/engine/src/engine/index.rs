//! Entries by key, by place and by when they are due.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::entry::{Copy, Down, Entry, Id, Key, Place, Queued, TypeId};

/// All entries. Iteration is in a fixed order, so that runs can be repeated.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: Vec<Option<Entry>>,
    free: Vec<Id>,
    keys: BTreeMap<Key, Id>,
    places: BTreeMap<Place, Id>,
    texts: BTreeSet<Arc<str>>,
    ready: BTreeSet<(u8, u64, Id)>,
    later: BTreeSet<(u64, Id)>,
    sequence: u64,
    copies: u64,
}

// === impl Index ===

impl Index {
    /// A place whose texts are kept once.
    pub(super) fn own(&mut self, place: &Place) -> Place {
        let (namespace, name) = (self.text(&place.namespace), self.text(&place.name));
        Place { kind: place.kind, namespace, name }
    }

    /// A text that is kept once.
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.texts.insert(new.clone());
        new
    }

    pub(super) fn get(&self, id: Id) -> Option<&Entry> {
        self.entries.get(id as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: Id) -> Option<&mut Entry> {
        self.entries.get_mut(id as usize)?.as_mut()
    }

    pub(super) fn by_key(&self, key: &Key) -> Option<Id> {
        self.keys.get(key).copied()
    }

    pub(super) fn by_place(&self, place: &Place) -> Option<Id> {
        self.places.get(place).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Id, &Entry)> {
        let numbered = (0..).zip(&self.entries);
        numbered.filter_map(|(id, entry)| entry.as_ref().map(|entry| (id, entry)))
    }

    /// The entries of a type.
    pub(super) fn of_type(&self, kind: TypeId) -> Vec<Id> {
        let of = self.iter().filter(|(_, entry)| entry.key.kind == kind);
        of.map(|(id, _)| id).collect()
    }

    /// How many copies there are.
    pub(super) fn copies(&self) -> u64 {
        self.copies
    }

    pub(super) fn insert(&mut self, key: &Key, place: &Place) -> Id {
        let key = Key {
            kind: key.kind,
            cluster: self.text(&key.cluster),
            namespace: self.text(&key.namespace),
            name: self.text(&key.name),
        };
        let place = self.own(place);
        let entry = Entry::new(key.clone(), place);
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.entries.push(None);
                Id::try_from(self.entries.len() - 1).unwrap_or(Id::MAX)
            }
        };
        if let Some(slot) = self.entries.get_mut(id as usize) {
            *slot = Some(entry);
        }
        self.keys.insert(key, id);
        id
    }

    pub(super) fn remove(&mut self, id: Id) {
        self.unqueue(id);
        self.leave_place(id);
        self.set_copy(id, Copy::Unknown);
        let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::take) else { return };
        self.keys.remove(&entry.key);
        self.free.push(id);
        let key = entry.key.clone();
        let place = entry.place.clone();
        drop(entry);
        for text in [key.cluster, key.namespace, key.name, place.namespace, place.name] {
            // The set, and this one; both may be of the same entry.
            if Arc::strong_count(&text) <= 2 {
                self.texts.remove(&text);
            }
        }
    }

    /// Gives an entry its place, unless another one has it.
    pub(super) fn take_place(&mut self, id: Id) -> bool {
        let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::as_mut) else {
            return false;
        };
        if !entry.placed {
            let holder = *self.places.entry(entry.place.clone()).or_insert(id);
            entry.placed = holder == id;
        }
        entry.placed
    }

    pub(super) fn leave_place(&mut self, id: Id) {
        if let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::as_mut)
            && std::mem::take(&mut entry.placed)
        {
            self.places.remove(&entry.place);
        }
    }

    /// Whether any entry has a place in a downstream namespace.
    pub(super) fn uses(&self, namespace: &Arc<str>) -> bool {
        let first = Place { namespace: namespace.clone(), kind: 0, name: "".into() };
        self.places.range(first..).next().is_some_and(|(place, _)| place.namespace == *namespace)
    }

    /// Changes what is known of a copy, and returns what was.
    pub(super) fn set_copy(&mut self, id: Id, copy: Copy) -> Option<Box<Down>> {
        let entry = self.entries.get_mut(id as usize)?.as_mut()?;
        let is = u64::from(matches!(copy, Copy::Ours(_)));
        let before = std::mem::replace(&mut entry.copy, copy);
        let was = u64::from(matches!(before, Copy::Ours(_)));
        self.copies = self.copies + is - was;
        match before {
            Copy::Ours(down) => Some(down),
            _ => None,
        }
    }

    /// Puts an entry into the queue, now. Smaller priorities come first.
    pub(super) fn touch(&mut self, id: Id, priority: u8) {
        let queued = self.get(id).map(|entry| entry.queued);
        match queued {
            None | Some(Queued::Ready(..)) => return,
            Some(Queued::No | Queued::Later(_)) => self.unqueue(id),
        }
        self.sequence += 1;
        let sequence = self.sequence;
        if let Some(entry) = self.get_mut(id) {
            entry.queued = Queued::Ready(priority, sequence);
            self.ready.insert((priority, sequence, id));
        }
    }

    /// Puts an entry that isn't in the queue into it, for later.
    pub(super) fn wake(&mut self, id: Id, at: u64) {
        match self.get(id).map(|entry| entry.queued) {
            Some(Queued::No) => {}
            Some(Queued::Later(due)) if due > at => self.unqueue(id),
            _ => return,
        }
        if let Some(entry) = self.get_mut(id) {
            entry.queued = Queued::Later(at);
            self.later.insert((at, id));
        }
    }

    /// Moves entries whose time has come; `priority` says how urgent each is.
    pub(super) fn advance(&mut self, now: u64, priority: impl Fn(&Entry) -> u8) {
        while let Some((at, id)) = self.later.first().copied().filter(|(at, _)| *at <= now) {
            self.later.remove(&(at, id));
            if let Some(entry) = self.get_mut(id) {
                entry.queued = Queued::No;
                let priority = priority(entry);
                self.touch(id, priority);
            }
        }
    }

    /// The most urgent entry, taken out of the queue.
    pub(super) fn pop(&mut self) -> Option<Id> {
        let (_, _, id) = self.ready.pop_first()?;
        if let Some(entry) = self.get_mut(id) {
            entry.queued = Queued::No;
        }
        Some(id)
    }

    /// Whether an entry waits for its turn now.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// When the next entry is due that isn't yet.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.later.first().map(|(at, _)| *at)
    }

    fn unqueue(&mut self, id: Id) {
        let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::as_mut) else {
            return;
        };
        match std::mem::replace(&mut entry.queued, Queued::No) {
            Queued::No => {}
            Queued::Ready(priority, sequence) => drop(self.ready.remove(&(priority, sequence, id))),
            Queued::Later(at) => drop(self.later.remove(&(at, id))),
        }
    }
}
