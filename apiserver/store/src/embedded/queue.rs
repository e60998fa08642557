//! What waits for the writer, and whose turn it is.
//!
//! # Guarantees
//! - Logical clusters take turns: who wants little never waits behind all that another wants.
//! - While several want something, none has more than a share of a group, so a group takes little
//!   longer than the fsync that it ends in.
//! - While somebody waits for commits, housekeeping has a few places in a group, and then rests for
//!   some groups' time: it delays a commit by a small group at most, and is never starved.
//! - Of one logical cluster and urgency the first to come is the first to go.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use ahash::RandomState;
use machinery::room::GiveRoomBack as _;
use parking_lot::{Condvar, Mutex};
use tokio::time::Instant;

use super::writer::Request;
use crate::{Txn, Urgency, commit};

/// The most commits of a group: at some 30 µs each they take less time than the fsync that they
/// share, so larger groups would only add latency.
const GROUP_COMMITS: usize = 256;

/// The bytes at which a group takes no further commit: what a disk of 200 MB/s writes, objects and
/// log together, in some 50 ms. One commit past it still fits, as each is bounded itself.
const GROUP_BYTES: usize = 4 << 20;

/// One logical cluster's part of a group while others want something too: half a millisecond's work,
/// less than the fsync. With groups of a millisecond and a half it still makes 10,000 commits a second.
const SHARE_COMMITS: usize = 16;

/// The same for bytes. One commit past it still fits.
const SHARE_BYTES: usize = 256 << 10;

/// Commits of housekeeping in a group while somebody else commits: a quarter of a millisecond.
const LATER_BUSY: usize = 8;

/// Those in a group while nobody does: the first who comes then waits for one such group.
const LATER_IDLE: usize = 64;

/// How long somebody counts as committing after the last time.
const ACTIVE: Duration = Duration::from_secs(1);

/// While somebody commits, housekeeping rests for so many times as long as its group took.
const REST: u32 = 3;

/// Requests for the writer, from any thread.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    news: Condvar,
}

/// Why the writer was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// A group can begin.
    Ready,
    /// Nothing came in time.
    Late,
    /// Nothing waits, and nothing will come any more.
    Closed,
}

/// What one group has taken.
#[derive(Debug, Default)]
pub(crate) struct Group {
    commits: usize,
    bytes: usize,
    later: usize,
    given: HashMap<u64, Given, RandomState>,
}

/// What a logical cluster has in a group.
#[derive(Clone, Copy, Debug, Default)]
struct Given {
    commits: usize,
    bytes: usize,
}

/// The pure core: no threads, and time comes in.
#[derive(Debug, Default)]
struct Waiting {
    now: Lanes,
    later: Lanes,
    compacts: VecDeque<Request>,
    closed: bool,
    digests: RandomState,
    /// The logical cluster that wanted something last.
    last: Option<u64>,
    /// Until then several count as wanting something.
    contested: Option<Instant>,
    /// Until then somebody counts as committing.
    busy: Option<Instant>,
    /// Housekeeping rests until then, while somebody commits.
    rest: Option<Instant>,
}

/// Commits by logical cluster, of which those that have some take turns.
#[derive(Debug, Default)]
struct Lanes {
    lanes: HashMap<u64, VecDeque<Request>, RandomState>,
    turns: VecDeque<u64>,
}

// === impl Queue ===

impl Queue {
    /// Adds a request; `false` if the queue is closed.
    pub(crate) fn push(&self, request: Request) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return false;
        }
        waiting.push(request, Instant::now());
        self.news.notify_one();
        true
    }

    /// Takes no more requests; those that wait are still served.
    pub(crate) fn close(&self) {
        self.waiting.lock().closed = true;
        self.news.notify_one();
    }

    /// Waits until a group can begin, at most `patience`.
    pub(crate) fn wait(&self, patience: Duration) -> Woken {
        let end = Instant::now() + patience;
        let mut waiting = self.waiting.lock();
        loop {
            let now = Instant::now();
            let ready = waiting.ready(now);
            if ready.is_some_and(|ready| ready <= now) {
                return Woken::Ready;
            }
            if ready.is_none() && waiting.closed {
                return Woken::Closed;
            }
            let until = ready.map_or(end, |ready| ready.min(end));
            let Some(left) = until.checked_duration_since(now).filter(|left| !left.is_zero())
            else {
                return Woken::Late;
            };
            self.news.wait_for(&mut waiting, left);
        }
    }

    /// The next request for a group. Waits until `deadline` for one that somebody waits for, if
    /// there is a deadline.
    pub(crate) fn next(&self, group: &mut Group, deadline: Option<Instant>) -> Option<Request> {
        let mut waiting = self.waiting.lock();
        loop {
            let now = Instant::now();
            // Whoever waits goes before housekeeping, also if they are just about to come.
            let next = waiting.urgent(group, now);
            if next.is_some() {
                return next;
            }
            let left = deadline.and_then(|deadline| deadline.checked_duration_since(now));
            match left.filter(|left| !left.is_zero()) {
                Some(left) if waiting.now.is_empty() && !waiting.closed => {
                    self.news.wait_for(&mut waiting, left);
                }
                _ => return waiting.housekeeping(group, now),
            }
        }
    }

    /// Notes that a group has been served, and how long that took.
    pub(crate) fn served(&self, group: &Group, took: Duration) {
        if group.later > 0 {
            self.waiting.lock().rest = Some(Instant::now() + took * REST);
        }
    }
}

// === impl Group ===

impl Group {
    /// The commits that somebody waits for.
    pub(crate) fn urgent(&self) -> usize {
        self.commits - self.later
    }

    fn is_full(&self) -> bool {
        self.commits >= GROUP_COMMITS || self.bytes >= GROUP_BYTES
    }

    fn has_share(&self, lane: u64) -> bool {
        let given = self.given.get(&lane).copied().unwrap_or_default();
        given.commits >= SHARE_COMMITS || given.bytes >= SHARE_BYTES
    }

    fn give(&mut self, lane: u64, request: &Request) {
        let bytes = request_bytes(request);
        let given = self.given.entry(lane).or_default();
        given.commits += 1;
        given.bytes += bytes;
        self.commits += 1;
        self.bytes += bytes;
    }
}

// === impl Waiting ===

impl Waiting {
    fn push(&mut self, request: Request, now: Instant) {
        let Request::Commit(txn, _) = &request else {
            self.compacts.push_back(request);
            return;
        };
        let lane = self.digests.hash_one(cluster(txn));
        if txn.urgency == Urgency::Later {
            self.later.push(lane, request);
            return;
        }
        let another = self.last.replace(lane).is_some_and(|last| last != lane);
        if another && self.busy.is_some_and(|busy| busy > now) {
            self.contested = Some(now + ACTIVE);
        }
        self.busy = Some(now + ACTIVE);
        self.now.push(lane, request);
    }

    /// When a group can begin; `None` while nothing waits.
    fn ready(&self, now: Instant) -> Option<Instant> {
        if !self.now.is_empty() || !self.compacts.is_empty() {
            return Some(now);
        }
        if self.later.is_empty() {
            return None;
        }
        let busy = self.busy.filter(|busy| *busy > now);
        // It rests no longer than somebody commits.
        Some(busy.and_then(|busy| Some(self.rest?.min(busy))).unwrap_or(now).max(now))
    }

    /// A request that somebody waits for.
    fn urgent(&mut self, group: &mut Group, now: Instant) -> Option<Request> {
        if let Some(compact) = self.compacts.pop_front() {
            return Some(compact);
        }
        if group.is_full() {
            return None;
        }
        let contested = self.contested.is_some_and(|until| until > now);
        self.now.take(group, contested)
    }

    fn housekeeping(&mut self, group: &mut Group, now: Instant) -> Option<Request> {
        let busy = self.busy.is_some_and(|until| until > now);
        let rests = busy && self.rest.is_some_and(|rest| rest > now);
        let most = if busy { LATER_BUSY } else { LATER_IDLE };
        if rests || group.is_full() || group.later >= most {
            return None;
        }
        let taken = self.later.take(group, false)?;
        group.later += 1;
        Some(taken)
    }
}

// === impl Lanes ===

impl Lanes {
    fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    fn push(&mut self, lane: u64, request: Request) {
        let queue = self.lanes.entry(lane).or_default();
        if queue.is_empty() {
            self.turns.push_back(lane);
        }
        queue.push_back(request);
    }

    /// The next in turn; with `shared`, of those that have not had their share of the group.
    fn take(&mut self, group: &mut Group, shared: bool) -> Option<Request> {
        for _ in 0..self.turns.len() {
            let lane = self.turns.pop_front()?;
            if shared && group.has_share(lane) {
                self.turns.push_back(lane);
                continue;
            }
            let queue = self.lanes.get_mut(&lane)?;
            let request = queue.pop_front()?;
            if queue.is_empty() {
                self.lanes.remove(&lane);
                self.lanes.give_room_back();
            } else {
                self.turns.push_back(lane);
            }
            self.turns.give_room_back();
            group.give(lane, &request);
            return Some(request);
        }
        None
    }
}

/// The logical cluster whose commit it is: that of what is written last, as the object itself is.
fn cluster(txn: &Txn) -> &str {
    let compared = txn.compares.last().map(|compare| &compare.key);
    txn.ops.last().map(crate::Op::key).or(compared).map_or("", |key| key.parts().0)
}

fn request_bytes(request: &Request) -> usize {
    match request {
        Request::Commit(txn, _) => commit::txn_bytes(txn),
        Request::Compact(..) => 0,
    }
}

#[cfg(test)]
mod tests;
