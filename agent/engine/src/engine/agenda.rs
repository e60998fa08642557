//! What is to be looked at, and when.

use std::collections::BTreeSet;

/// Keys that are to be looked at: now, or at a time in milliseconds. A key may be in it for several
/// times; whoever looks early finds nothing to do.
#[derive(Debug)]
pub(super) struct Agenda<K> {
    ready: BTreeSet<K>,
    later: BTreeSet<(u64, K)>,
}

// === impl Agenda ===

impl<K: Clone + Ord> Agenda<K> {
    /// A key is looked at as soon as it is its turn.
    pub(super) fn touch(&mut self, key: K) {
        self.ready.insert(key);
    }

    /// A key is looked at then.
    pub(super) fn at(&mut self, time: u64, key: K) {
        self.later.insert((time, key));
    }

    /// Takes in that it is `now`.
    pub(super) fn advance(&mut self, now: u64) {
        while self.later.first().is_some_and(|(time, _)| *time <= now) {
            self.ready.extend(self.later.pop_first().map(|(_, key)| key));
        }
    }

    /// The next key to be looked at now.
    pub(super) fn pop(&mut self) -> Option<K> {
        self.ready.pop_first()
    }

    /// Whether there is one.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// When the next one is due that isn't yet.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.later.first().map(|(time, _)| *time)
    }
}

impl<K> Default for Agenda<K> {
    fn default() -> Self {
        Self { ready: BTreeSet::new(), later: BTreeSet::new() }
    }
}
