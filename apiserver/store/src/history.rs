//! Recent commits in memory, and the watches that follow them.
//!
//! Writers append to one ring; each watch keeps only a position in it and takes what is new when it
//! is polled. So a commit costs the writer the same with no watch and with a thousand, no watch can
//! delay it, and the memory of all watches together is the ring's. A watch whose position has left
//! the ring has fallen behind.
//!
//! Invariant: the ring holds every commit from its first to its last revision, each exactly once.

use std::collections::VecDeque;
use std::sync::Arc;

use machinery::room::GiveRoomBack as _;
use parking_lot::RwLock;
use tokio::sync::watch;

use crate::{Change, Revision};

/// The most changes that one watch message holds: enough to spread the cost of a wake-up, few
/// enough that a reader that is behind stays responsive.
pub(crate) const MESSAGE_CHANGES: usize = 512;

/// The most bytes of keys and values that one watch message is filled to: with 1 KB values a
/// message reaches its number of changes first. A single larger commit still is one message.
pub(crate) const MESSAGE_BYTES: usize = 1 << 20;

/// What a change costs in memory besides its bytes: the change and its shares of allocations.
const CHANGE_OVERHEAD: usize = 256;

/// The ring of recent commits.
#[derive(Debug)]
pub(crate) struct History {
    ring: RwLock<Ring>,
    head: watch::Sender<Head>,
}

/// Where the line of commits stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The last commit in the ring.
    pub(crate) revision: Revision,
    /// Whether no further commit will come.
    pub(crate) closed: bool,
}

/// What the ring holds after a position.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Recent {
    /// Nothing yet.
    Nothing,
    /// Whole commits, the first being the next after the position.
    Changes(Vec<Change>),
    /// The commit after the position is no longer here.
    Gone,
}

#[derive(Debug)]
struct Ring {
    commits: VecDeque<Commit>,
    /// The last revision that is not in the ring because it came before it.
    before: Revision,
    bytes: usize,
    max_bytes: usize,
}

#[derive(Debug)]
struct Commit {
    changes: Arc<[Change]>,
    bytes: usize,
}

// === impl History ===

impl History {
    /// How many commits are in the ring, and their bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let ring = self.ring.read();
        (ring.commits.len(), ring.bytes)
    }

    /// An empty ring for the commits after `revision`, of at most about `max_bytes`.
    pub(crate) fn new(revision: Revision, max_bytes: usize) -> Self {
        let ring = Ring { commits: VecDeque::new(), before: revision, bytes: 0, max_bytes };
        let (head, _) = watch::channel(Head { revision, closed: false });
        Self { ring: RwLock::new(ring), head }
    }

    /// Appends commits, each the next revision after the one before, and wakes the watches.
    pub(crate) fn append(&self, commits: impl IntoIterator<Item = Vec<Change>>) {
        let revision = {
            let mut ring = self.ring.write();
            for changes in commits {
                ring.push(changes);
            }
            ring.last()
        };
        self.head.send_if_modified(|head| {
            let moved = head.revision != revision;
            head.revision = revision;
            moved
        });
    }

    /// The last commit.
    pub(crate) fn last(&self) -> Revision {
        self.ring.read().last()
    }

    /// Follows the last commit.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Head> {
        self.head.subscribe()
    }

    /// Tells all watches that nothing more will come.
    pub(crate) fn close(&self) {
        self.head.send_modify(|head| head.closed = true);
    }

    /// The changes after `position`, as many as fit one message.
    pub(crate) fn after(&self, position: Revision) -> Recent {
        let ring = self.ring.read();
        if position < ring.before {
            return Recent::Gone;
        }
        if position >= ring.last() {
            return Recent::Nothing;
        }
        let mut changes = Vec::new();
        let mut bytes = 0;
        for commit in ring.commits.range(ring.index(position)..) {
            let full = changes.len() + commit.changes.len() > MESSAGE_CHANGES
                || bytes + commit.bytes > MESSAGE_BYTES;
            if full && !changes.is_empty() {
                break;
            }
            bytes += commit.bytes;
            changes.extend_from_slice(&commit.changes);
        }
        Recent::Changes(changes)
    }

    /// Calls `visit` with the changes after `position` and up to `until`, oldest first, as far as
    /// the ring has them: all those after the revision that it returns.
    pub(crate) fn visit(
        &self,
        position: Revision,
        until: Revision,
        visit: impl FnMut(&Change),
    ) -> Revision {
        // The commits are shared out first: visiting must not hold the lock that writers need.
        let (commits, start) = {
            let ring = self.ring.read();
            let start = position.max(ring.before);
            if ring.last() < until || start >= until {
                return until.max(position);
            }
            let commits = ring.commits.range(ring.index(start)..ring.index(until));
            (commits.map(|commit| commit.changes.clone()).collect::<Vec<_>>(), start)
        };
        commits.iter().flat_map(|changes| changes.iter()).for_each(visit);
        start
    }

    /// Forgets the commits up to `revision`.
    pub(crate) fn forget(&self, revision: Revision) {
        // They are dropped without the lock.
        let mut old = Vec::new();
        let mut ring = self.ring.write();
        while ring.before < revision
            && let Some(commit) = ring.pop()
        {
            old.push(commit);
        }
        ring.commits.give_room_back();
    }
}

// === impl Ring ===

impl Ring {
    fn last(&self) -> Revision {
        Revision(self.before.0 + self.commits.len() as u64)
    }

    /// The place of the commit after `position`, which is not before the ring.
    fn index(&self, position: Revision) -> usize {
        usize::try_from(position.0 - self.before.0).unwrap_or(usize::MAX)
    }

    fn push(&mut self, changes: Vec<Change>) {
        debug_assert!(changes.iter().all(|change| change.revision == self.last().next()));
        let bytes = changes.iter().map(change_bytes).sum::<usize>();
        self.bytes += bytes;
        self.commits.push_back(Commit { changes: changes.into(), bytes });
        while self.bytes > self.max_bytes && self.commits.len() > 1 {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<Commit> {
        let commit = self.commits.pop_front()?;
        self.bytes -= commit.bytes;
        self.before = self.before.next();
        Some(commit)
    }
}

/// What a change holds of memory, at most: the previous value is shared with the commit that wrote
/// it only while that is in the ring as well.
pub(crate) fn change_bytes(change: &Change) -> usize {
    let previous = change.previous.as_ref().map_or(0, |record| record.value.len());
    let value = change.value.as_ref().map_or(0, |value| value.len());
    change.key.as_bytes().len() + value + previous + CHANGE_OVERHEAD
}
