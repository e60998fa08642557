//! What the engine says of the target as a whole, for its status and for metrics.

use std::collections::BTreeMap;

use crate::GroupResource;

/// Counts, and what holds the engine up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Objects that are to be there and whose copy is there, as it is to be.
    pub synced: u64,
    /// Objects that something is wrong with.
    pub failed: u64,
    /// Objects that have to be looked at, or wait for an answer.
    pub pending: u64,
    /// Copies whose object the hub no longer shows. They stay until people decide.
    pub orphans: u64,
    /// All copies that are there.
    pub copies: u64,
    /// Condition `DeletionPaused`.
    pub paused: Option<Paused>,
    /// Deletes are held back that pause before long, unless [`Engine::approvals`] tells that a
    /// person is deleting the whole: the SyncTarget should be read often.
    ///
    /// [`Engine::approvals`]: crate::Engine::approvals
    pub undecided: bool,
    /// Condition `UpstreamChanged`.
    pub upstream_changed: Option<UpstreamChange>,
    /// Objects of the hub that were made of objects of the physical cluster.
    pub mirrors: u64,
    /// Those, and objects that are to go up, that something is wrong with.
    pub failed_mirrors: u64,
    /// The first of these, and why, for people.
    pub mirror_problem: Option<String>,
    /// Types whose collection is missing on one side although they are to be synced.
    pub missing_types: Vec<GroupResource>,
    /// Objects with problems, by the problem's reason (a closed set).
    pub problems: BTreeMap<&'static str, u64>,
    /// Whether the first lists of all types have been seen on both sides.
    pub complete: bool,
    /// Kubernetes Events that were not made because there were too many.
    pub dropped_events: u64,
}

/// Deletes wait for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paused {
    /// How many deletes wait: the number that the annotation
    /// `workloads.kcp.io/approve-deletions` has to name.
    pub number: u64,
    /// How many would have needed no approval.
    pub allowed: u64,
}

/// The hub is not what it was; nothing is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamChange {
    /// It is another hub, logical cluster or SyncTarget. Nothing is done at all.
    Identity,
    /// It has gone back in time, as after the restore of an old backup: it has shown this resource
    /// version, and now shows older ones. The annotation `workloads.kcp.io/approve-upstream` with
    /// this number accepts it as it is.
    Older(u64),
    /// It was made of a backup since something was copied from it: its incarnation is another one.
    /// The annotation `workloads.kcp.io/approve-upstream` with this number, the incarnation, accepts
    /// it as it is.
    Restored(u64),
}
