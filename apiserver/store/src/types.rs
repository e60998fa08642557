//! Values that go into and come out of a store.

use std::fmt;

use bytes::Bytes;

use crate::{Key, KeyPrefix};

/// A position in the store's one line of commits. Zero is before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// A key's value, the revision that wrote it, and the one that created the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The key.
    pub key: Key,
    /// The value, as written.
    pub value: Bytes,
    /// The revision of the commit that wrote this value.
    pub revision: Revision,
    /// The revision of the commit that created the key since it was last absent.
    ///
    /// The empty value stands for an absent object that hides another one, so what is written over
    /// it is created by that write.
    pub created: Revision,
}

/// What a commit requires and does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    /// All must hold, over any keys.
    pub compares: Vec<Compare>,
    /// Applied in one step; at most one for each key.
    pub ops: Vec<Op>,
    /// Whether others go first.
    pub urgency: Urgency,
}

/// How soon a commit is wanted. A backend may take all for urgent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Urgency {
    /// Somebody waits for it.
    #[default]
    Now,
    /// It is housekeeping: it takes what those who wait leave, and a little in any case.
    Later,
}

/// A condition on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compare {
    /// The key.
    pub key: Key,
    /// What must be true of it.
    pub expect: Expect,
}

/// What a [`Compare`] requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The key has no value.
    Absent,
    /// The key has a value, of any revision.
    Present,
    /// The key's value was written at exactly this revision.
    At(Revision),
}

/// One write of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Sets the value.
    Put {
        /// The key.
        key: Key,
        /// The new value.
        value: Bytes,
    },
    /// Removes the key; nothing happens when it is absent.
    Delete {
        /// The key.
        key: Key,
    },
}

/// A range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// All keys under this prefix.
    pub prefix: KeyPrefix,
    /// Only keys strictly greater than this one.
    pub after: Option<Key>,
    /// At most this many records; 0 means all.
    pub limit: usize,
}

/// A part of a range, at one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Records in key order.
    pub records: Vec<Record>,
    /// Whether the range holds further records.
    pub more: bool,
    /// The revision that was read.
    pub revision: Revision,
}

/// One key's change in a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: Key,
    /// The new value, or `None` when it was deleted.
    pub value: Option<Bytes>,
    /// What the key held before.
    pub previous: Option<Record>,
    /// The revision of the commit.
    pub revision: Revision,
}

/// What a watch delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchMessage {
    /// All changes of one commit, or of several whole commits, in order.
    Changes(Vec<Change>),
    /// Every change up to this revision has been delivered.
    Progress(Revision),
}

/// What a store knows of itself, for those who debug a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Which backend it is.
    pub backend: &'static str,
    /// Sizes and counts, by name.
    pub numbers: Vec<(&'static str, u64)>,
}

/// What a store was made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The UID of the hub that this store belongs to.
    pub hub_uid: String,
    /// The resourceVersion on the wire is a revision plus this; an import or restore raises it
    /// above anything ever served, and no two of them to the same number: it names the hub's
    /// incarnation, too.
    pub rv_base: u64,
}

// === impl Revision ===

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Revision {
    /// The next revision.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

// === impl Expect ===

impl Expect {
    /// Whether it is true of a key that holds `found`.
    pub(crate) fn holds(self, found: Option<&Record>) -> bool {
        match self {
            Self::Absent => found.is_none(),
            Self::Present => found.is_some(),
            Self::At(revision) => found.is_some_and(|record| record.revision == revision),
        }
    }
}

// === impl Change ===

impl Change {
    /// [`Record::created`] of the new value.
    pub fn created(&self) -> Revision {
        let previous = self.previous.as_ref().filter(|previous| !previous.value.is_empty());
        previous.map_or(self.revision, |previous| previous.created)
    }

    /// What the key holds now, or `None` when it was deleted.
    pub fn record(&self) -> Option<Record> {
        let (key, value) = (self.key.clone(), self.value.clone()?);
        Some(Record { key, value, revision: self.revision, created: self.created() })
    }
}

// === impl Op ===

impl Op {
    /// The key that the operation writes.
    pub fn key(&self) -> &Key {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }
}
