//! What is known of one object.

use std::sync::Arc;

use jiff::Timestamp;

use negotiation::Difference;

use crate::digest::Digest;
use crate::drift::Drift;
use crate::fields::OfStatus;
use crate::lists::{Held, Wanted};

/// Names an entry.
pub(super) type Id = u32;

/// Names a type.
pub(super) type TypeId = u16;

/// An upstream object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) kind: TypeId,
    pub(super) cluster: Arc<str>,
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
}

/// Where a copy is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) namespace: Arc<str>,
    pub(super) kind: TypeId,
    pub(super) name: Arc<str>,
}

/// Everything about one upstream object and its copy.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Key,
    pub(super) place: Place,
    /// Whether the place is this entry's in the index of places.
    pub(super) placed: bool,
    /// The object as the hub shows it.
    pub(super) up: Option<Box<Up>>,
    pub(super) copy: Copy,
    /// The copy that was last seen to go, and the revision of that.
    pub(super) lost: Option<(Box<str>, u64)>,
    /// The revision at which our marks were taken off; what is older is no news.
    pub(super) released: Option<(u64, u64)>,
    /// The lists that the object and the copy were in last.
    pub(super) seen: [u32; 2],
    pub(super) in_flight: bool,
    /// What is under way is an apply: its answer says what the copy is to be like.
    pub(super) applying: bool,
    /// The last apply merged lists.
    pub(super) merging: bool,
    /// Where it stands in the queue.
    pub(super) queued: Queued,
    /// Pauses after failures, by [`Work`].
    pub(super) holds: [Hold; 4],
    /// The object has to be read live: a list has shown less than was known before.
    pub(super) verify: bool,
    pub(super) removal: Option<Box<Removal>>,
    pub(super) remake: Remake,
    /// Of a definition: whether what is to be there may be applied to what is there.
    pub(super) checked: Option<Box<Checked>>,
    /// Fields of the copy that others have changed, as they were seen last.
    pub(super) drift: Vec<Drift>,
    pub(super) problem: Option<Box<Problem>>,
    /// The digest of the ObjectSync's status as it was written last.
    pub(super) recorded: Option<Digest>,
    pub(super) report: Report,
    /// The digests of what was to be in the copy's status, and of what of ours was there after that:
    /// while both are the same there is nothing to do, even if the cluster writes it differently.
    pub(super) status_down: Option<(Digest, Option<Digest>)>,
    /// Repairs in this minute, and when it began.
    pub(super) repairs: (u32, u64),
    /// An event to tell.
    pub(super) note: Option<Box<Note>>,
    /// The digest of the event that was told last.
    pub(super) told: Option<Digest>,
}

/// Where an entry stands in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queued {
    No,
    Ready(u8, u64),
    Later(u64),
}

/// An upstream object, as far as it matters.
#[derive(Debug)]
pub(super) struct Up {
    pub(super) uid: Box<str>,
    pub(super) revision: u64,
    pub(super) generation: i64,
    pub(super) state: State,
    /// Its deletion timestamp.
    pub(super) deleted: Option<Box<str>>,
    /// Where our finalizer is among the finalizers.
    pub(super) finalizer: Option<u32>,
    /// Whether it has finalizers at all.
    pub(super) finalizers: bool,
    /// How many other targets are to hold it, too.
    pub(super) others: u32,
    pub(super) flags: Flags,
    /// The name that it is to have downstream.
    pub(super) alias: Option<Box<str>>,
    /// Of all that is to be there.
    pub(super) digest: Digest,
    /// What is to be there, if it is small enough to be kept.
    pub(super) body: Option<Box<[u8]>>,
    /// What is to be merged into lists; it is not in the body.
    pub(super) lists: Option<Wanted>,
    pub(super) status: Option<Box<[u8]>>,
    pub(super) replicas: Option<i64>,
    /// The kind and name of what it scales.
    pub(super) scales: Option<(Box<str>, Box<str>)>,
}

/// What an upstream object says about how it is to be treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    /// It is never synced.
    pub(super) skip: bool,
    /// Its status says that it has ended.
    pub(super) ended: bool,
    /// The number of replicas is left to the target.
    pub(super) yields: bool,
    /// The copy stays when the object goes.
    pub(super) orphan: bool,
    /// A copy with other immutable fields is made again.
    pub(super) recreate: bool,
}

/// The state label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Sync,
    Remove,
    /// There is none.
    None,
    /// There is one that nobody understands.
    Unknown,
}

/// What is downstream.
#[derive(Debug)]
pub(super) enum Copy {
    /// Nobody has looked.
    Unknown,
    /// Nothing, as was read live.
    Absent,
    /// Our copy.
    Ours(Box<Down>),
    /// An object that is not ours.
    Foreign(Box<Foreign>),
}

/// A copy, as far as it matters.
#[derive(Debug)]
pub(super) struct Down {
    pub(super) uid: Box<str>,
    pub(super) revision: u64,
    pub(super) generation: i64,
    /// The UID of what it is a copy of.
    pub(super) of: Box<str>,
    /// The upstream generation, revision and digest that were applied.
    pub(super) applied_generation: i64,
    pub(super) applied_revision: u64,
    pub(super) digest: Option<Digest>,
    /// Of what is ours in it.
    pub(super) view: Digest,
    /// The view that is known to be what was applied.
    pub(super) good: Option<Digest>,
    pub(super) deleting: bool,
    /// Of a definition: whether its type is served.
    pub(super) established: bool,
    /// While it is being deleted: its finalizers.
    pub(super) finalizers: Vec<Box<str>>,
    pub(super) status: Option<Box<[u8]>>,
    /// What of its status we have applied, where status goes down.
    pub(super) status_ours: Option<Box<OfStatus>>,
    /// Its replicas, if somebody else has set them.
    pub(super) replicas: Option<i64>,
    /// What is in lists that are merged. Nothing else here knows them.
    pub(super) lists: Option<Held>,
    /// Of what was in them after our last apply: it stays so, even if it isn't what was applied.
    pub(super) merged: Option<Digest>,
    /// The whole copy, while it waits to be compared with what is to be there.
    pub(super) live: Option<Box<[u8]>>,
}

/// An object that is in the place of a copy and not ours.
#[derive(Debug)]
pub(super) struct Foreign {
    pub(super) uid: Box<str>,
    pub(super) adopt: Adopt,
    /// The whole object, while it waits to be compared.
    pub(super) live: Option<Box<[u8]>>,
}

/// Whether and how an object becomes ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Adopt {
    /// It stays as it is.
    No,
    /// If that changes nothing in it.
    IfSame,
    /// By an apply, with force or without.
    Take { force: bool },
}

/// Kinds of work that pause by themselves after failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// The copy.
    Down,
    /// The upstream object.
    Up,
    /// The ObjectSync.
    Record,
    /// The part of the copy's status that is the hub's.
    Status,
}

/// A pause after failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) failures: u32,
    /// Until when, in milliseconds.
    pub(super) until: u64,
}

/// A copy is to go.
#[derive(Debug, Default)]
pub(super) struct Removal {
    /// Since when, in milliseconds.
    pub(super) since: u64,
    /// When the live object was read that says so.
    pub(super) evidence: Option<u64>,
    /// When the delete was sent.
    pub(super) sent: Option<u64>,
    /// Whether what is downstream was read live since then.
    pub(super) looked: bool,
    pub(super) polls: u32,
}

/// Whether a copy is deleted and made again because its immutable fields have to change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Remake {
    #[default]
    No,
    /// If the live object says so.
    Wanted,
    /// It did, at this time.
    Proven(u64),
}

/// What a definition that is there was found to be, live.
#[derive(Debug)]
pub(super) struct Checked {
    /// What was to be applied.
    pub(super) digest: Digest,
    /// What is there: an apply must find it so.
    pub(super) uid: Box<str>,
    pub(super) resource_version: Box<str>,
    /// What would be hurt.
    pub(super) hurts: Vec<Difference>,
}

/// What is wrong with an object.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) of: Work,
    pub(super) reason: &'static str,
    pub(super) message: String,
    pub(super) since: Timestamp,
}

/// What is known of reports going up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Report {
    /// Something about statuses has changed.
    pub(super) dirty: bool,
    /// When the last one was sent.
    pub(super) at: u64,
    /// The digests of the copy's status that was sent, and of the object's after that: while both
    /// are the same there is nothing to do, even if the hub has dropped fields.
    pub(super) settled: Option<(Digest, Digest)>,
}

/// An event to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) warning: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

// === impl Entry ===

impl Entry {
    pub(super) fn new(key: Key, place: Place) -> Self {
        Self {
            key,
            place,
            placed: false,
            up: None,
            copy: Copy::Unknown,
            lost: None,
            released: None,
            seen: [0; 2],
            in_flight: false,
            applying: false,
            merging: false,
            queued: Queued::No,
            holds: [Hold::default(); 4],
            verify: false,
            removal: None,
            remake: Remake::No,
            checked: None,
            drift: Vec::new(),
            problem: None,
            recorded: None,
            report: Report::default(),
            status_down: None,
            repairs: (0, 0),
            note: None,
            told: None,
        }
    }

    pub(super) fn ours(&self) -> Option<&Down> {
        match &self.copy {
            Copy::Ours(down) => Some(down),
            _ => None,
        }
    }

    /// The copy, if it is one of the object as it is: not of one that had its name before.
    pub(super) fn copy_of_this(&self) -> Option<&Down> {
        let uid = &self.up.as_ref()?.uid;
        self.ours().filter(|down| down.of == *uid)
    }

    pub(super) fn ours_mut(&mut self) -> Option<&mut Down> {
        match &mut self.copy {
            Copy::Ours(down) => Some(down),
            _ => None,
        }
    }

    pub(super) fn hold(&mut self, work: Work) -> &mut Hold {
        &mut self.holds[work as usize]
    }

    pub(super) fn held_until(&self, work: Work) -> u64 {
        self.holds[work as usize].until
    }

    /// Whether its copy is to go.
    pub(super) fn is_going(&self) -> bool {
        self.up.as_ref().is_some_and(|up| up.is_going())
    }

    /// Whether there is a copy whose object the hub doesn't show.
    pub(super) fn is_orphan(&self) -> bool {
        let of = self.ours().map(|down| &down.of);
        of.is_some_and(|of| self.up.as_ref().is_none_or(|up| up.uid != *of))
    }
}

// === impl Up ===

impl Up {
    pub(super) fn is_going(&self) -> bool {
        self.deleted.is_some() || self.state == State::Remove
    }

    /// Whether there is to be a copy.
    pub(super) fn is_wanted(&self) -> bool {
        !self.is_going() && self.state == State::Sync && !self.flags.skip
    }
}
