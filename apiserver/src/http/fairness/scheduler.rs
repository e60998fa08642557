//! Who gets a seat next: a pure core, without I/O, clock or locks.
//!
//! Logical clusters share the seats, and the users of one share its turns, both by start-time fair
//! queueing (Goyal, Vin, Chen: "Start-time Fair Queueing", 1996): each request has a tag, the
//! weight of what its flow was given before, and the lowest tag is next.
//!
//! # Guarantees
//! - The weight of the seats taken never exceeds the limit.
//! - A logical cluster that holds seats gets another only while it holds at most a part of what is
//!   then still free, so work that takes long (a slow webhook) never takes the seats of all.
//! - Nothing waits that may have a seat. One that is too wide for what is free waits until it
//!   fits, and nobody who comes later is taken before it.
//! - While two flows have something waiting and are seated in turn, what they are given differs by
//!   the widest request of each at most.
//! - Memory is held for flows that wait or hold seats, and for no others; what waits is bounded for
//!   each user, each logical cluster, and over all.

use std::collections::{BTreeMap, HashMap, VecDeque};

use ahash::RandomState;
use machinery::room::GiveRoomBack as _;

/// A logical cluster that holds seats holds at most so much less than what is free. One busy
/// logical cluster has a fifth of all seats, two have a sixth each.
const SHARE: u32 = 4;

/// How much there is to give.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Seats.
    pub(super) seats: u32,
    /// Requests that may wait, of one user in one logical cluster.
    pub(super) user: usize,
    /// Of one logical cluster.
    pub(super) cluster: usize,
    /// Of all; a logical cluster in which nothing waits may add one nevertheless.
    pub(super) all: usize,
}

/// Whose request it is. Digests, so that a flow costs the same whatever names it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flow {
    /// The logical cluster.
    pub(crate) cluster: u64,
    /// The user.
    pub(crate) user: u64,
}

/// A request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(u64);

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    /// It has its seats.
    Seated,
    /// It waits.
    Waits(Ticket),
    /// Too many wait before it.
    Full,
}

/// Start tag, and the order among equal ones.
type Turn = (u64, u64);

/// Seats, those who hold them, and those who wait. `T` is told when its turn comes.
#[derive(Debug)]
pub(super) struct Scheduler<T> {
    limits: Limits,
    used: u32,
    waiting: usize,
    clock: u64,
    order: u64,
    lanes: HashMap<u64, Lane<T>, RandomState>,
    turns: BTreeMap<Turn, u64>,
}

/// A logical cluster.
#[derive(Debug)]
struct Lane<T> {
    held: u32,
    waiting: usize,
    clock: u64,
    finish: u64,
    turn: Option<Turn>,
    users: HashMap<u64, User<T>, RandomState>,
    turns: BTreeMap<Turn, u64>,
}

#[derive(Debug)]
struct User<T> {
    held: u32,
    finish: u64,
    turn: Option<Turn>,
    queue: VecDeque<Waiting<T>>,
}

#[derive(Debug)]
struct Waiting<T> {
    ticket: Ticket,
    weight: u32,
    told: T,
}

// === impl Scheduler ===

impl<T> Scheduler<T> {
    /// All seats free.
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            used: 0,
            waiting: 0,
            clock: 0,
            order: 0,
            lanes: HashMap::default(),
            turns: BTreeMap::new(),
        }
    }

    /// The weight that a request counts with: at least one seat, and no more than there are.
    pub(super) fn fit(&self, weight: u32) -> u32 {
        weight.clamp(1, self.limits.seats.max(1))
    }

    /// Seats taken.
    pub(super) fn used(&self) -> u32 {
        self.used
    }

    /// Requests that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Seats that there are.
    pub(super) fn seats(&self) -> u32 {
        self.limits.seats
    }

    /// What each logical cluster has, of those that have something: its digest, the seats it holds
    /// and its requests that wait.
    pub(super) fn standings(&self) -> impl Iterator<Item = (u64, u32, usize)> {
        self.lanes.iter().map(|(cluster, lane)| (*cluster, lane.held, lane.waiting))
    }

    /// A request of `flow` comes; after [`Entered::Waits`] its turn may be next already.
    pub(super) fn enter(&mut self, flow: Flow, weight: u32, told: impl FnOnce() -> T) -> Entered {
        let weight = self.fit(weight);
        let held = self.lanes.get(&flow.cluster).map_or(0, |lane| lane.held);
        if self.waiting == 0 && may_take(self.limits.seats, self.used, held, weight) {
            let lane = self.lanes.entry(flow.cluster).or_default();
            let start = self.clock.max(lane.finish);
            let user = lane.users.entry(flow.user).or_default();
            let inner = lane.clock.max(user.finish);
            lane.clock = inner;
            user.finish = inner.saturating_add(weight.into());
            user.held += weight;
            lane.finish = start.saturating_add(weight.into());
            lane.held += weight;
            self.clock = start;
            self.used += weight;
            return Entered::Seated;
        }
        if self.is_full(flow) {
            return Entered::Full;
        }
        self.order += 1;
        let order = self.order;
        let ticket = Ticket(order);
        let lane = self.lanes.entry(flow.cluster).or_default();
        let user = lane.users.entry(flow.user).or_default();
        user.queue.push_back(Waiting { ticket, weight, told: told() });
        if user.turn.is_none() {
            let turn = (lane.clock.max(user.finish), order);
            user.turn = Some(turn);
            lane.turns.insert(turn, flow.user);
        }
        lane.waiting += 1;
        self.waiting += 1;
        if lane.turn.is_none() {
            let turn = (self.clock.max(lane.finish), order);
            lane.turn = Some(turn);
            self.turns.insert(turn, flow.cluster);
        }
        Entered::Waits(ticket)
    }

    /// Seats the next request whose turn it is, if there is room for it.
    pub(super) fn next(&mut self) -> Option<(Flow, u32, T)> {
        let cluster = self.next_cluster()?;
        let lane = self.lanes.get_mut(&cluster)?;
        let (turn, name) = lane.turns.pop_first()?;
        let user = lane.users.get_mut(&name)?;
        let Waiting { weight, told, .. } = user.queue.pop_front()?;
        self.order += 1;
        lane.clock = lane.clock.max(turn.0);
        user.finish = turn.0.saturating_add(weight.into());
        user.held += weight;
        user.turn = (!user.queue.is_empty()).then_some((user.finish, self.order));
        if let Some(next) = user.turn {
            lane.turns.insert(next, name);
        }
        let turn = lane.turn.take()?;
        self.turns.remove(&turn);
        self.clock = self.clock.max(turn.0);
        lane.finish = turn.0.saturating_add(weight.into());
        lane.held += weight;
        lane.waiting -= 1;
        self.used += weight;
        self.waiting -= 1;
        if lane.waiting > 0 {
            let next = (lane.finish, self.order);
            lane.turn = Some(next);
            self.turns.insert(next, cluster);
        }
        Some((Flow { cluster, user: name }, weight, told))
    }

    /// A request gives its seats back.
    pub(super) fn leave(&mut self, flow: Flow, weight: u32) {
        self.used = self.used.saturating_sub(weight);
        if let Some(lane) = self.lanes.get_mut(&flow.cluster) {
            lane.held = lane.held.saturating_sub(weight);
            if let Some(user) = lane.users.get_mut(&flow.user) {
                user.held = user.held.saturating_sub(weight);
            }
        }
        self.forget(flow);
    }

    /// Takes back a request that waits; `false` when it waits no more.
    pub(super) fn cancel(&mut self, flow: Flow, ticket: Ticket) -> bool {
        let Some(lane) = self.lanes.get_mut(&flow.cluster) else { return false };
        let Some(user) = lane.users.get_mut(&flow.user) else { return false };
        let Some(place) = user.queue.iter().position(|waiting| waiting.ticket == ticket) else {
            return false;
        };
        user.queue.remove(place);
        lane.waiting -= 1;
        self.waiting -= 1;
        if user.queue.is_empty()
            && let Some(turn) = user.turn.take()
        {
            lane.turns.remove(&turn);
        }
        if lane.waiting == 0
            && let Some(turn) = lane.turn.take()
        {
            self.turns.remove(&turn);
        }
        self.forget(flow);
        true
    }

    /// The logical cluster with the lowest tag among those that may have seats.
    fn next_cluster(&self) -> Option<u64> {
        let free = self.limits.seats.saturating_sub(self.used);
        if free == 0 {
            return None;
        }
        for cluster in self.turns.values() {
            let Some(lane) = self.lanes.get(cluster) else { continue };
            let Some(weight) = lane.head() else { continue };
            if may_take(self.limits.seats, self.used, lane.held, weight) {
                return Some(*cluster);
            }
            // Others would keep taking what this one waits for.
            if lane.held == 0 {
                return None;
            }
        }
        None
    }

    fn is_full(&self, flow: Flow) -> bool {
        let lane = self.lanes.get(&flow.cluster);
        let user = lane.and_then(|lane| lane.users.get(&flow.user));
        let in_lane = lane.map_or(0, |lane| lane.waiting);
        user.map_or(0, |user| user.queue.len()) >= self.limits.user
            || in_lane >= self.limits.cluster
            || (self.waiting >= self.limits.all && in_lane > 0)
    }

    fn forget(&mut self, flow: Flow) {
        let Some(lane) = self.lanes.get_mut(&flow.cluster) else { return };
        let idle = |user: &User<T>| user.held == 0 && user.queue.is_empty();
        if lane.users.get(&flow.user).is_some_and(idle) {
            lane.users.remove(&flow.user);
            lane.users.give_room_back();
        }
        if lane.held == 0 && lane.waiting == 0 {
            self.lanes.remove(&flow.cluster);
            self.lanes.give_room_back();
        }
    }
}

/// Whether a logical cluster that holds `held` seats may have `weight` more.
fn may_take(seats: u32, used: u32, held: u32, weight: u32) -> bool {
    let Some(left) = seats.saturating_sub(used).checked_sub(weight) else { return false };
    held == 0 || held.saturating_add(weight) <= left / SHARE
}

// === impl Lane ===

impl<T> Lane<T> {
    /// The weight of the request that is next.
    fn head(&self) -> Option<u32> {
        let (_, user) = self.turns.first_key_value()?;
        Some(self.users.get(user)?.queue.front()?.weight)
    }
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self {
            held: 0,
            waiting: 0,
            clock: 0,
            finish: 0,
            turn: None,
            users: HashMap::default(),
            turns: BTreeMap::new(),
        }
    }
}

// === impl User ===

impl<T> Default for User<T> {
    fn default() -> Self {
        Self { held: 0, finish: 0, turn: None, queue: VecDeque::new() }
    }
}

#[cfg(test)]
mod tests;
