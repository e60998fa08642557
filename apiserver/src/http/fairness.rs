//! What one logical cluster can take from others: seats of requests being worked on, memory of
//! bodies, and watches. All of it is shared fairly, and what is too much is answered 429.
//!
//! A request takes its seats when all of its body is there, and gives them back when its answer is
//! made: a client that sends or reads slowly holds memory of its own share, and no seat. A watch
//! holds seats while it begins, and then a place. Members of `system:masters` never wait.

mod cost;
mod gate;
mod scheduler;
mod shares;
mod state;

use std::sync::Arc;
use std::time::Duration;

use ahash::RandomState;
use runtime::cores;

use crate::auth::{MASTERS, UserInfo};
use crate::metrics::FlowMetrics;
use crate::registry::{ClusterScope, Error, Reason};
use gate::Gate;
use scheduler::{Flow, Limits};

pub(crate) use cost::{COUNTED, body_memory, list_seats, write_seats};
pub(crate) use gate::Seat;
pub(crate) use shares::{Share, Shares};

/// Memory of request bodies and of what they are read into, in bytes. A logical cluster has a half
/// of it at most, which is what the worst body takes: 3 MiB of `{},` are 240 MB when they are read.
const BODY_MEMORY: usize = 512 << 20;

/// Requests that wait. A user's are those of a busy client; all together cost a few megabytes,
/// beside their bodies, which have a bound of their own.
const WAITING: Limits = Limits { seats: 0, user: 256, cluster: 512, all: 16_384 };

/// Seats for each core: what is in memory is read without waiting, so requests beyond a few for each
/// core only wait for it, and what others ask for waits behind them. A logical cluster has a fifth.
const SEATS_OF_A_CORE: u32 = 50;

/// The fewest seats by default: twenty for one logical cluster, whose writes share a sync of the disk.
const FEWEST: u32 = 100;

/// The longest wait for a seat: a quarter of a request's time, as upstream.
const PATIENCE: Duration = Duration::from_secs(15);

/// How much the server does at a time. By default that goes by the cores of the machine, up to what
/// kube-apiserver has: 400 and 200, from eight cores and from four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InflightLimits {
    /// Seats of requests that read; 0 for no limit. A request takes one, a large list up to ten.
    pub reads: u32,
    /// Seats of requests that write; 0 for no limit.
    pub writes: u32,
    /// Open watches of one logical cluster.
    pub watches: usize,
}

/// What requests must have before they are worked on.
#[derive(Debug)]
pub(crate) struct Fairness {
    reads: Arc<Gate>,
    writes: Arc<Gate>,
    bodies: Arc<Shares>,
    watches: Arc<Shares>,
    metrics: FlowMetrics,
    digests: RandomState,
}

/// A caller at a logical cluster, as fairness sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    flow: Flow,
    exempt: bool,
}

/// Which seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seats {
    /// Of requests that read.
    Read,
    /// Of those that write.
    Write,
}

// === impl InflightLimits ===

impl Default for InflightLimits {
    fn default() -> Self {
        let seats = u32::try_from(cores()).unwrap_or(u32::MAX).saturating_mul(SEATS_OF_A_CORE);
        Self { reads: seats.clamp(FEWEST, 400), writes: seats.clamp(FEWEST, 200), watches: 5000 }
    }
}

// === impl Fairness ===

impl Fairness {
    /// Everything free.
    pub(crate) fn new(limits: InflightLimits, metrics: &FlowMetrics) -> Self {
        let gate = |seats: u32, level: &'static str| {
            let seats = if seats == 0 { u32::MAX } else { seats };
            Gate::new(Limits { seats, ..WAITING }, PATIENCE, metrics.level(level))
        };
        Self {
            reads: gate(limits.reads, "reads"),
            writes: gate(limits.writes, "writes"),
            bodies: Shares::new(BODY_MEMORY, BODY_MEMORY),
            watches: Shares::new(usize::MAX, limits.watches),
            metrics: metrics.clone(),
            digests: RandomState::new(),
        }
    }

    /// How a caller's requests to a logical cluster count.
    pub(crate) fn caller(&self, user: &UserInfo, scope: &ClusterScope) -> Caller {
        let cluster = match scope {
            ClusterScope::One(cluster) => cluster.as_str(),
            ClusterScope::All => "*",
        };
        let flow = Flow {
            cluster: self.digests.hash_one(cluster),
            user: self.digests.hash_one(user.name.as_str()),
        };
        Caller { flow, exempt: user.is_in(MASTERS) }
    }

    /// Waits for seats.
    ///
    /// # Errors
    /// 429 when too many wait already, or the wait was too long.
    pub(crate) async fn seat(
        &self,
        seats: Seats,
        caller: Caller,
        weight: u32,
    ) -> Result<Seat, Error> {
        let gate = match seats {
            Seats::Read => &self.reads,
            Seats::Write => &self.writes,
        };
        if caller.exempt {
            return Ok(gate.exempt());
        }
        gate.enter(caller.flow, weight).await.map_err(|_| busy())
    }

    /// Memory for a body, none yet.
    pub(crate) fn body(&self, caller: Caller) -> Share {
        self.bodies.open(caller.flow.cluster)
    }

    /// The refusal of a body for which there is no memory.
    pub(crate) fn body_refused(&self) -> Error {
        self.metrics.rejected("writes", "body-memory");
        busy()
    }

    /// A place for a watch; those of exempt callers count, and are not limited.
    ///
    /// # Errors
    /// 429 when the logical cluster has too many.
    pub(crate) fn watch(&self, caller: Caller) -> Result<Option<Share>, Error> {
        let mut place = self.watches.open(caller.flow.cluster);
        if place.grow(1) {
            return Ok(Some(place));
        }
        if caller.exempt {
            return Ok(None);
        }
        self.metrics.rejected("reads", "too-many-watches");
        Err(busy())
    }
}

/// Upstream's text; it sends it without a `Status`, which clients make of it.
fn busy() -> Error {
    Error::generic(Reason::TooManyRequests, "Too many requests, please try again later.")
        .retry_after(1)
}
