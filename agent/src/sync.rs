//! The driver of the sync engine: everything of syncing that is I/O.
//!
//! # Flow
//! For each synced type one watch in the hub and one in the physical cluster ([`watch`]) feed the
//! engine; so do the SyncTarget itself, which is read again and again ([`follow`]), our ObjectSyncs,
//! our namespaces and Events downstream. What the engine asks for is sent ([`exec`]), at most
//! [`Settings::parallel`] requests at a time, and what is answered is told to it. Counts and
//! conditions go into the SyncTarget's status ([`status`]).
//!
//! # Guarantees
//! - One task owns the engine and makes all requests: dropping [`run`]'s future ends every request
//!   that is under way, so nothing is written after it.
//! - A watch that breaks, a list that fails and a server that is away are no news about objects. As
//!   soon as the hub is lost, the engine is told that nobody knows who is upstream.
//! - Nothing is asked for an idle object.

mod driver;
mod exec;
mod follow;
mod resources;
mod side;
mod status;
#[cfg(test)]
mod testing;
mod watch;

use std::collections::BTreeSet;
use std::sync::Arc;

use client::Link;
use engine::SyncedType;
use tokio::sync::watch as cell;

use crate::identity::Standing;
use crate::leader::Handover;
use crate::metrics::Metrics;
use crate::target::TargetRef;

pub use driver::run;
pub use resources::{Resource, discover};
pub use side::{Shape, Upstream};

/// What is synced, and how.
#[derive(Debug)]
pub struct Settings {
    /// The SyncTarget. With [`Shape::Plain`] its UID and name are what the caller says.
    pub target: TargetRef,
    /// The hub.
    pub upstream: Upstream,
    /// The physical cluster.
    pub downstream: Link,
    /// The types to sync; they may change.
    pub types: cell::Receiver<Arc<[SyncedType]>>,
    /// How the agent stands with the hub, for its condition; `None` where others vouch for it.
    pub standing: Option<cell::Receiver<Standing>>,
    /// Namespaces downstream that are never used: the agent's own.
    pub reserved_namespaces: BTreeSet<Arc<str>>,
    /// Requests under way at a time. Both API servers take some hundred; more only wait there.
    pub parallel: usize,
    /// The version that the status tells.
    pub version: &'static str,
    /// Where it is measured.
    pub metrics: Metrics,
    /// What a run without a SyncTarget object goes by.
    pub plain: Option<Plain>,
    /// Where what was seen of the hub is kept for the next process: without it, only the copies tell
    /// that a hub has gone back.
    pub handover: Option<Handover>,
}

/// What a SyncTarget would say, where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain {
    /// What becomes of objects that are there already and not ours.
    pub adoption: engine::Adoption,
    /// How downstream namespaces are called.
    pub mapping: engine::Mapping,
}

/// Requests under way at a time, unless somebody says otherwise.
pub const PARALLEL: usize = 64;

/// How a sync is going, for probes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether the first lists of all types have been seen on both sides.
    pub complete: bool,
    /// What it waits for; empty if nothing.
    pub waits_for: String,
}
