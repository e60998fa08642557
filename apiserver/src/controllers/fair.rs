//! Work for many logical clusters, each in its turn.
//!
//! # Guarantees
//! - A key is worked on by one at a time; news that come meanwhile make it be looked at again.
//! - A logical cluster with much to do delays another by one turn of a share at most.
//! - A key that rests takes nobody's place, and news of it wait until it has rested.
//! - Memory is held only for keys that wait, run or rest.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use machinery::room::GiveRoomBack as _;
use prometheus::IntGauge;
use store::Key;
use tokio::time::Instant;

/// First wait after a failed try; each next one is twice as long.
const SHORTEST: Duration = Duration::from_millis(20);

/// Something that belongs to a logical cluster.
pub(super) trait InCluster {
    /// That logical cluster's name.
    fn cluster(&self) -> &str;
}

/// How much is done at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// For all logical clusters.
    pub(super) most: usize,
    /// For each of them.
    pub(super) share: usize,
    /// The longest wait between tries.
    pub(super) longest: Duration,
}

/// Keys that wait for their logical cluster's turn, for a time, or for their worker's end.
#[derive(Debug)]
pub(super) struct Fair<K> {
    limits: Limits,
    items: HashMap<K, Item>,
    lanes: HashMap<Box<str>, Lane<K>>,
    /// Logical clusters that have keys and room, in the order of their turns.
    turns: VecDeque<Box<str>>,
    later: BTreeSet<(Instant, K)>,
    running: usize,
    /// Told how many keys there are.
    depth: IntGauge,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    state: State,
    delay: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Later(Instant),
    Running { again: bool },
    Resting { due: Instant, again: bool },
}

#[derive(Debug)]
struct Lane<K> {
    ready: VecDeque<K>,
    running: usize,
    has_turn: bool,
}

impl InCluster for Key {
    fn cluster(&self) -> &str {
        self.parts().0
    }
}

// === impl Fair ===

impl<K: Clone + Ord + Hash + InCluster> Fair<K> {
    /// One that tells `depth` how many keys wait, run or rest.
    pub(super) fn new(limits: Limits, depth: IntGauge) -> Self {
        Self {
            limits,
            items: HashMap::new(),
            lanes: HashMap::new(),
            turns: VecDeque::new(),
            later: BTreeSet::new(),
            running: 0,
            depth,
        }
    }

    fn count(&self) {
        self.depth.set(i64::try_from(self.items.len()).unwrap_or(i64::MAX));
    }

    /// Looks at `key` as soon as its logical cluster's turn comes.
    pub(super) fn add(&mut self, key: K) {
        match self.items.get_mut(&key) {
            None => {
                self.items.insert(key.clone(), Item { state: State::Ready, delay: SHORTEST });
                self.ready(key);
                self.count();
            }
            Some(item) => match item.state {
                State::Ready => {}
                State::Running { .. } => item.state = State::Running { again: true },
                State::Resting { due, .. } => item.state = State::Resting { due, again: true },
                State::Later(due) => {
                    item.state = State::Ready;
                    self.later.remove(&(due, key.clone()));
                    self.ready(key);
                }
            },
        }
    }

    /// The next key to work on, if there is room.
    pub(super) fn take(&mut self, now: Instant) -> Option<K> {
        while let Some((due, _)) = self.later.first()
            && *due <= now
            && let Some((_, key)) = self.later.pop_first()
        {
            let Some(item) = self.items.get_mut(&key) else { continue };
            if let State::Resting { again: false, .. } = item.state {
                self.forget(&key);
            } else {
                item.state = State::Ready;
                self.ready(key);
            }
        }
        if self.running >= self.limits.most {
            return None;
        }
        let cluster = self.turns.pop_front()?;
        self.turns.give_room_back();
        let lane = self.lanes.get_mut(&cluster)?;
        lane.has_turn = false;
        let key = lane.ready.pop_front()?;
        lane.running += 1;
        self.running += 1;
        if let Some(item) = self.items.get_mut(&key) {
            item.state = State::Running { again: false };
        }
        self.turn(cluster);
        Some(key)
    }

    /// Notes the end of work on a key; one that is to be tried again waits longer each time.
    pub(super) fn done(&mut self, key: K, retry: bool, now: Instant) {
        let cluster = self.ended(&key);
        let again = match self.items.get_mut(&key) {
            Some(item) if item.state == (State::Running { again: true }) => {
                item.state = State::Ready;
                if !retry {
                    item.delay = SHORTEST;
                }
                true
            }
            Some(item) if retry => {
                let due = now + item.delay;
                item.state = State::Later(due);
                item.delay = (item.delay * 2).min(self.limits.longest);
                self.later.insert((due, key.clone()));
                false
            }
            _ => {
                self.forget(&key);
                false
            }
        };
        if again {
            self.ready(key);
        }
        self.turn(cluster);
    }

    /// Notes the end of work on a key that is not to be worked on before a time; then it is, if there
    /// are news by then.
    pub(super) fn rest(&mut self, key: K, until: Instant) {
        let cluster = self.ended(&key);
        if let Some(item) = self.items.get_mut(&key) {
            let again = item.state == State::Running { again: true };
            *item = Item { state: State::Resting { due: until, again }, delay: SHORTEST };
            self.later.insert((until, key));
        }
        self.turn(cluster);
    }

    fn forget(&mut self, key: &K) {
        self.items.remove(key);
        self.items.give_room_back();
        self.count();
    }

    /// Takes a key out of those that run. Returns its logical cluster.
    fn ended(&mut self, key: &K) -> Box<str> {
        self.running = self.running.saturating_sub(1);
        let cluster: Box<str> = key.cluster().into();
        if let Some(lane) = self.lanes.get_mut(&cluster) {
            lane.running = lane.running.saturating_sub(1);
        }
        cluster
    }

    /// When the next key is due that waits for a time.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.later.first().map(|(due, _)| *due)
    }

    /// Waits for something, or until a key is due (`None`).
    pub(super) async fn or_due<T>(&self, something: impl Future<Output = T>) -> Option<T> {
        let Some(due) = self.next_due() else {
            return Some(something.await);
        };
        tokio::select! {
            done = something => Some(done),
            () = tokio::time::sleep_until(due) => None,
        }
    }

    fn ready(&mut self, key: K) {
        let cluster: Box<str> = key.cluster().into();
        let lane = self.lanes.entry(cluster.clone()).or_default();
        lane.ready.push_back(key);
        self.turn(cluster);
    }

    /// Gives a logical cluster its turn if it has keys and room, and forgets it if it has nothing.
    fn turn(&mut self, cluster: Box<str>) {
        let Some(lane) = self.lanes.get_mut(&cluster) else { return };
        if lane.ready.is_empty() {
            if lane.running == 0 {
                self.lanes.remove(&cluster);
                self.lanes.give_room_back();
            }
        } else if lane.running < self.limits.share && !lane.has_turn {
            lane.has_turn = true;
            self.turns.push_back(cluster);
        }
    }
}

// === impl Lane ===

impl<K> Default for Lane<K> {
    fn default() -> Self {
        Self { ready: VecDeque::new(), running: 0, has_turn: false }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Name = (u8, u8);

    impl InCluster for Name {
        fn cluster(&self) -> &str {
            ["a", "b", "c", "d"][usize::from(self.0) % 4]
        }
    }

    fn queue_of(limits: Limits) -> Fair<Name> {
        Fair::new(limits, IntGauge::new("depth", "Keys.").unwrap())
    }

    const LIMITS: Limits = Limits { most: 3, share: 2, longest: Duration::from_secs(1) };

    #[test]
    fn clusters_take_turns_and_shares_hold() {
        let now = Instant::now();
        let mut queue = queue_of(LIMITS);
        for key in [(0, 1), (0, 2), (0, 3), (1, 1)] {
            queue.add(key);
        }
        assert_eq!(queue.take(now), Some((0, 1)));
        assert_eq!(queue.take(now), Some((1, 1)));
        assert_eq!(queue.take(now), Some((0, 2)));
        assert_eq!(queue.take(now), None, "three at a time");
        queue.done((1, 1), false, now);
        assert_eq!(queue.take(now), None, "two of one logical cluster");
        queue.done((0, 1), false, now);
        assert_eq!(queue.take(now), Some((0, 3)));
    }

    #[test]
    fn tries_are_spread_out_and_news_come_at_once() {
        let now = Instant::now();
        let mut queue = queue_of(LIMITS);
        queue.add((0, 1));
        assert_eq!(queue.take(now), Some((0, 1)));
        queue.done((0, 1), true, now);
        assert_eq!((queue.take(now), queue.next_due()), (None, Some(now + SHORTEST)));
        assert_eq!(queue.take(now + SHORTEST), Some((0, 1)));
        queue.done((0, 1), true, now);
        assert_eq!(queue.next_due(), Some(now + SHORTEST * 2));
        queue.add((0, 1));
        assert_eq!((queue.take(now), queue.next_due()), (Some((0, 1)), None));
        // News about what is being worked on.
        queue.add((0, 1));
        assert_eq!(queue.take(now), None);
        queue.done((0, 1), false, now);
        assert_eq!(queue.take(now), Some((0, 1)));
        queue.done((0, 1), false, now);
        assert!(queue.items.is_empty() && queue.lanes.is_empty() && queue.turns.is_empty());
    }

    #[test]
    fn much_work_leaves_no_memory_behind() {
        let now = Instant::now();
        let mut queue = queue_of(LIMITS);
        (0..=u8::MAX).for_each(|name| (0..4).for_each(|cluster| queue.add((cluster, name))));
        let full = queue.items.capacity();
        while let Some(key) = queue.take(now) {
            queue.done(key, false, now);
        }
        assert!(queue.items.is_empty() && queue.items.capacity() < full / 8);
    }

    #[test]
    fn who_rests_takes_no_place() {
        let now = Instant::now();
        let mut queue = queue_of(Limits { most: 1, ..LIMITS });
        queue.add((0, 1));
        assert_eq!(queue.take(now), Some((0, 1)));
        queue.add((0, 2));
        assert_eq!(queue.take(now), None, "one at a time");
        let rested = now + SHORTEST * 100;
        queue.rest((0, 1), rested);
        assert_eq!(queue.take(now), Some((0, 2)));
        // What came while it was worked on, or while it rests, waits until it has rested.
        queue.add((0, 2));
        queue.rest((0, 2), rested);
        queue.add((0, 2));
        assert_eq!((queue.take(now), queue.next_due()), (None, Some(rested)));
        assert_eq!(queue.take(rested), Some((0, 2)));
        queue.done((0, 2), false, rested);
        assert_eq!(queue.take(rested), None);
        assert!(queue.items.is_empty() && queue.lanes.is_empty() && queue.later.is_empty());
    }

    proptest! {
        /// Whatever happens, limits hold, nothing is lost, and in the end nothing is kept.
        #[test]
        fn nothing_is_lost(steps in proptest::collection::vec((0_u8..4, 0_u8..4, 0_u8..3), 1..200)) {
            let now = Instant::now();
            let mut queue = queue_of(LIMITS);
            let mut running = Vec::<Name>::new();
            let mut wanted = BTreeSet::new();
            for (step, cluster, name) in steps {
                match step {
                    0 => {
                        queue.add((cluster, name));
                        wanted.insert((cluster, name));
                    }
                    1 => {
                        if let Some(key) = queue.take(now) {
                            prop_assert!(!running.contains(&key));
                            wanted.remove(&key);
                            running.push(key);
                            let share = running.iter().filter(|k| k.0 == key.0).count();
                            prop_assert!(share <= LIMITS.share && running.len() <= LIMITS.most);
                        }
                    }
                    2 => {
                        if let Some(key) = running.pop() {
                            queue.rest(key, now + LIMITS.longest);
                        }
                    }
                    _ => {
                        if let Some(key) = running.pop() {
                            if name == 0 {
                                wanted.insert(key);
                            }
                            queue.done(key, name == 0, now);
                        }
                    }
                }
            }
            let late = now + LIMITS.longest * 2;
            loop {
                while let Some(key) = running.pop() {
                    queue.done(key, false, late);
                }
                let Some(key) = queue.take(late) else { break };
                wanted.remove(&key);
                running.push(key);
            }
            prop_assert!(wanted.is_empty(), "{:?}", wanted);
            prop_assert!(queue.items.is_empty() && queue.lanes.is_empty());
            prop_assert!(queue.turns.is_empty() && queue.later.is_empty());
        }
    }
}
