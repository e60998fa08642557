//! Objects that are born in the physical cluster, and their mirrors at the hub.
//!
//! The other way round of everything else: what is downstream is the source, what is upstream is
//! made of it. A SyncTarget says of which types ([`Upsync`](crate::Upsync)).
//!
//! # Flow
//! 1. A watch shows an object that is to go up and carries no mark of a copy. What has its name at the
//!    hub is read; where there is nothing it is applied, with our label and a [`Locator`] that says
//!    which object, of which cluster, it was made of.
//! 2. The mirror is applied again when its source changes, or when others change what is ours in it.
//!    The source's status goes up, too.
//! 3. A source that is no longer shown is looked for, live; the mirror goes when it is gone.
//!
//! # Guarantees
//! - A mirror is deleted only when a live list of the physical cluster, not older than what the
//!   mirror was made of, doesn't have its source, by UID, or has it as being deleted; and when after
//!   that list the cluster, read live, was the one that the source was in. Watches, empty lists and
//!   errors are never evidence: the mirror stays, and it is told why. Deletes name the UID, wait for
//!   the hub to be trusted, and have a brake.
//! - Nothing at the hub is touched that isn't marked as ours, with a source that is known.
//! - What went up never comes down: copies don't go up, mirrors don't go down.

mod decide;
mod judge;
mod see;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agenda::Agenda;
use super::entry::{Hold, Key, Place, TypeId};
use super::{Engine, Stream};
use crate::brake::Brake;
use crate::digest::Digest;
use crate::{SyncedType, Upsync};

/// All mirrors and what is to become one.
#[derive(Debug, Default)]
pub(super) struct Mirrors {
    all: BTreeMap<Place, Mirror>,
    /// The places that objects of the hub are mirrors of.
    places: BTreeMap<Key, Place>,
    agenda: Agenda<Place>,
    /// How far the watches are: of sources, of mirrors.
    streams: BTreeMap<TypeId, [Stream; 2]>,
    /// The physical cluster, as read live: the UID of its namespace `kube-system`.
    cluster: Option<Arc<str>>,
    /// Whether that is being asked.
    identifying: bool,
    brake: Brake,
    next: u32,
}

/// A source, its mirror, or both.
#[derive(Debug)]
struct Mirror {
    /// What the brake calls it.
    id: u32,
    /// Where it is at the hub; `None` as long as nobody knows.
    key: Option<Key>,
    source: Option<Source>,
    there: There,
    /// The lists that source and mirror were in last.
    seen: [u32; 2],
    in_flight: bool,
    hold: Hold,
    problem: Option<(&'static str, String)>,
    /// When a live list has shown that the source of the mirror is gone.
    gone: Option<u64>,
    /// When, after that, the physical cluster was known to be the source's.
    proven: Option<u64>,
    /// The digests of the source's status that was sent, and of the mirror's after that.
    settled: Option<(Digest, Digest)>,
}

/// An object that is to go up.
#[derive(Debug)]
struct Source {
    uid: Box<str>,
    revision: u64,
    generation: i64,
    /// Of what is to be at the hub.
    digest: Digest,
    body: Box<[u8]>,
    status: Option<Box<[u8]>>,
    deleting: bool,
}

/// What is at the hub.
#[derive(Debug)]
enum There {
    Unknown,
    Absent,
    /// Somebody else's.
    Foreign,
    Ours(Box<Risen>),
}

/// A mirror, as it is at the hub.
#[derive(Debug)]
struct Risen {
    uid: Box<str>,
    revision: u64,
    generation: i64,
    deleting: bool,
    locator: Locator,
    /// Of what is ours in it.
    view: Digest,
    /// The view that is known to be what was applied.
    good: Option<Digest>,
    status: Option<Box<[u8]>>,
    /// The whole mirror, while it waits to be compared.
    live: Option<Box<[u8]>>,
}

/// What a mirror is made of: the annotation `workloads.kcp.io/downstream`, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Locator {
    /// The physical cluster: the UID of its namespace `kube-system`.
    cluster: String,
    #[serde(default)]
    namespace: String,
    name: String,
    uid: String,
    /// The generation of the source that was applied.
    #[serde(default)]
    generation: i64,
    /// The source's resource version when it was applied: a cluster that shows less has gone back.
    #[serde(default)]
    resource_version: String,
    /// The digest of what was applied.
    #[serde(default)]
    digest: String,
}

// === impl Locator ===

impl Locator {
    fn of(object: &Value) -> Option<Self> {
        let text = super::observe::mark(object, "annotations", contract::DOWNSTREAM)?;
        serde_json::from_str(text).ok()
    }

    fn revision(&self) -> u64 {
        self.resource_version.parse().unwrap_or(0)
    }
}

// === impl Mirrors ===

impl Mirrors {
    pub(super) fn agenda(&self) -> &Agenda<Place> {
        &self.agenda
    }

    /// How many mirrors there are, and how many have a problem; the first problem.
    pub(super) fn counts(&self) -> (u64, u64, Option<String>) {
        let ours = self.all.values().filter(|mirror| matches!(mirror.there, There::Ours(_)));
        let mut failed = self.all.iter().filter_map(|(place, mirror)| {
            let (reason, message) = mirror.problem.as_ref()?;
            Some(format!("{}/{}: {reason}: {message}", place.namespace, place.name))
        });
        let first = failed.next();
        let count = failed.count() as u64 + u64::from(first.is_some());
        (ours.count() as u64, count, first)
    }

    pub(super) fn brake(&mut self) -> &mut Brake {
        &mut self.brake
    }

    pub(super) fn paused(&self) -> Option<crate::Paused> {
        self.brake.paused()
    }

    pub(super) fn is_undecided(&self) -> bool {
        self.brake.is_undecided()
    }

    /// Has everything looked at.
    pub(super) fn touch_all(&mut self) {
        self.all.keys().cloned().for_each(|place| self.agenda.touch(place));
    }

    fn touch(&mut self, place: &Place) {
        self.agenda.touch(place.clone());
    }
}

// === impl Engine ===

impl Engine {
    /// The types whose objects go up from the physical cluster, with the selector of the watch that
    /// shows them there.
    pub fn upsynced(&self) -> impl Iterator<Item = (&SyncedType, &'static str)> {
        let kinds = self.kinds.iter().filter_map(|kind| kind.synced.as_ref());
        kinds.filter_map(|synced| {
            let upsync = self.target.upsync.iter().find(|one| one.is_of(synced))?;
            Some((synced, upsync.selector()))
        })
    }

    fn upsync_of(&self, kind: TypeId) -> Option<&Upsync> {
        let synced = self.synced(kind)?;
        self.target.upsync.iter().find(|one| one.is_of(synced))
    }
}
