//! Objects by UID, for owner references that lead nowhere.
//!
//! Such a reference makes the collector look through all objects of a type. That would cost a tenant
//! with many of them a request each, and the server a list each; so a list is kept and followed while
//! more such references come.
//!
//! # Guarantees
//! - What is found is as of the cache's present, never as of when the list was made.
//! - Memory is held for as many objects as [`MOST`] says, or for one type, and not for long.

use std::collections::HashMap;
use std::sync::Arc;

use ahash::RandomState;
use store::cache::{Audience, Cache, Object, Scope, Subscription};
use store::{Key, KeyPrefix};
use tokio::time::Instant;

/// How long a list is kept after its last use: wrong references mostly come together.
const KEEP: std::time::Duration = std::time::Duration::from_secs(10);

/// Objects in all lists together, of some 150 bytes each. The list that is used may be larger: no
/// logical cluster is to make one anew for each of its references.
const MOST: usize = 100_000;

/// How often changes that come while others are taken are taken, too, before a list is made anew.
const TRIES: usize = 3;

/// Lists of objects by UID.
#[derive(Debug, Default)]
pub(super) struct Uids {
    lists: HashMap<KeyPrefix, List, RandomState>,
}

#[derive(Debug)]
struct List {
    keys: HashMap<Box<str>, Key, RandomState>,
    events: Subscription,
    used: Instant,
}

// === impl Uids ===

impl Uids {
    /// The object of a UID under `prefix`, if there is one.
    pub(super) fn find(
        &mut self,
        cache: &Arc<Cache>,
        prefix: &KeyPrefix,
        uid: &str,
        now: Instant,
    ) -> Option<Arc<Object>> {
        self.forget(now);
        let known = self.lists.remove(prefix).and_then(List::caught_up);
        let mut list = known.unwrap_or_else(|| List::new(cache, prefix, now));
        list.used = now;
        let key = list.keys.get(uid).cloned();
        self.make_room(list.keys.len());
        self.lists.insert(prefix.clone(), list);
        cache.get(&key?).filter(|object| *object.header.uid() == *uid)
    }

    /// Drops what is no longer used.
    pub(super) fn forget(&mut self, now: Instant) {
        self.lists.retain(|_, list| list.used + KEEP > now);
    }

    /// When there is something to drop.
    pub(super) fn due(&self) -> Option<Instant> {
        self.lists.values().map(|list| list.used + KEEP).min()
    }

    fn make_room(&mut self, objects: usize) {
        let mut held: usize = self.lists.values().map(|list| list.keys.len()).sum();
        while held + objects > MOST {
            let oldest = self.lists.iter().min_by_key(|(_, list)| list.used);
            let Some(prefix) = oldest.map(|(prefix, _)| prefix.clone()) else { break };
            if let Some(list) = self.lists.remove(&prefix) {
                held -= list.keys.len();
            }
        }
    }
}

// === impl List ===

impl List {
    fn new(cache: &Arc<Cache>, prefix: &KeyPrefix, now: Instant) -> Self {
        let (listed, events) =
            cache.list_and_watch(prefix, &[Scope::Prefix(prefix.clone())], None, Audience::Server);
        let keys =
            listed.objects.iter().map(|object| (object.header.uid().into(), object.key.clone()));
        Self { keys: keys.collect(), events, used: now }
    }

    /// Takes what has changed; `None` if that can't be told any more.
    fn caught_up(mut self) -> Option<Self> {
        for _ in 0..TRIES {
            while let Some(event) = self.events.try_next() {
                if let Some(old) = &event.previous {
                    self.keys.remove(old.header.uid());
                }
                if let Some(new) = &event.current {
                    self.keys.insert(new.header.uid().into(), new.key.clone());
                }
            }
            if self.events.progress().is_some() {
                return Some(self);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
