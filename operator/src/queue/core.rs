//! The queue without its waiting: a pure state, with times as parameters.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::BuildHasher;
use std::time::Duration;

use tokio::time::Instant;

use super::{Done, Lane};

/// The delay after the first failure; it doubles with each.
const FIRST: Duration = Duration::from_secs(1);

/// The longest delay: what was mended is noticed within it.
const LONGEST: Duration = Duration::from_secs(120);

/// The shortest time between a failure and the next attempt, where the reason may be gone.
const EAGER: Duration = Duration::from_secs(5);

pub(super) struct Core<K> {
    share: usize,
    /// By logical cluster, in the order in which they came.
    ready: BTreeMap<String, VecDeque<K>>,
    /// The logical clusters of `ready`, in the order of their turns.
    turns: VecDeque<String>,
    /// Everything in `ready`.
    queued: BTreeSet<K>,
    /// When a key comes by itself.
    due: BTreeMap<K, Instant>,
    by_time: BTreeSet<(Instant, K)>,
    /// What is worked on, and whether it was added meanwhile.
    working: BTreeMap<K, bool>,
    by_lane: BTreeMap<String, usize>,
    failures: BTreeMap<K, Failures>,
    /// Jitter differs between processes.
    seed: RandomState,
    drawn: u64,
}

/// Failures in a row.
#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    /// The last one.
    at: Instant,
}

// === impl Core ===

impl<K: Lane + Clone + Ord> Core<K> {
    pub(super) fn new(share: usize) -> Self {
        Self {
            share: share.max(1),
            ready: BTreeMap::new(),
            turns: VecDeque::new(),
            queued: BTreeSet::new(),
            due: BTreeMap::new(),
            by_time: BTreeSet::new(),
            working: BTreeMap::new(),
            by_lane: BTreeMap::new(),
            failures: BTreeMap::new(),
            seed: RandomState::new(),
            drawn: 0,
        }
    }

    pub(super) fn add(&mut self, key: K, now: Instant) {
        if let Some(again) = self.working.get_mut(&key) {
            *again = true;
        } else if self.failures.get(&key).is_some_and(|failures| failures.count > 1)
            && self.due.get(&key).is_some_and(|due| *due > now)
        {
            // Whatever happened to it, it keeps the pace of its failures.
        } else {
            self.enqueue(key);
        }
    }

    /// Adds a key whose reason to fail may be gone.
    pub(super) fn hurry(&mut self, key: K, now: Instant) {
        let failed = self.failures.get_mut(&key).map(|failures| {
            failures.count = 0;
            failures.at
        });
        let earliest = failed.map(|at| at + EAGER).filter(|earliest| *earliest > now);
        match earliest {
            Some(earliest) if !self.working.contains_key(&key) => {
                let due = self.due.get(&key).copied();
                if !self.queued.contains(&key) && due.is_none_or(|due| due > earliest) {
                    self.come_at(key, earliest);
                }
            }
            _ => self.add(key, now),
        }
    }

    fn come_at(&mut self, key: K, due: Instant) {
        if let Some(before) = self.due.insert(key.clone(), due) {
            self.by_time.remove(&(before, key.clone()));
        }
        self.by_time.insert((due, key));
    }

    /// If a key is worked on, it comes again.
    pub(super) fn revisit(&mut self, key: &K) {
        if let Some(again) = self.working.get_mut(key) {
            *again = true;
        }
    }

    fn enqueue(&mut self, key: K) {
        if let Some(due) = self.due.remove(&key) {
            self.by_time.remove(&(due, key.clone()));
        }
        if !self.queued.insert(key.clone()) {
            return;
        }
        let lane = key.lane().to_owned();
        let keys = self.ready.entry(lane.clone()).or_default();
        if keys.is_empty() {
            self.turns.push_back(lane);
        }
        keys.push_back(key);
    }

    /// The next key, or when one comes by itself.
    pub(super) fn take(&mut self, now: Instant) -> (Option<K>, Option<Instant>) {
        while let Some((due, _)) = self.by_time.first()
            && *due <= now
        {
            if let Some((_, key)) = self.by_time.pop_first() {
                self.due.remove(&key);
                self.enqueue(key);
            }
        }
        for _ in 0..self.turns.len() {
            let Some(lane) = self.turns.pop_front() else { break };
            if self.by_lane.get(&lane).is_some_and(|working| *working >= self.share) {
                self.turns.push_back(lane);
                continue;
            }
            let Some(keys) = self.ready.get_mut(&lane) else { continue };
            let key = keys.pop_front();
            if keys.is_empty() {
                self.ready.remove(&lane);
            } else {
                self.turns.push_back(lane.clone());
            }
            if let Some(key) = key {
                self.queued.remove(&key);
                *self.by_lane.entry(lane).or_default() += 1;
                self.working.insert(key.clone(), false);
                return (Some(key), None);
            }
        }
        (None, self.by_time.first().map(|(due, _)| *due))
    }

    pub(super) fn done(&mut self, key: &K, done: Done, now: Instant) {
        let Some(again) = self.working.remove(key) else { return };
        if let Some(working) = self.by_lane.get_mut(key.lane()) {
            *working -= 1;
            if *working == 0 {
                self.by_lane.remove(key.lane());
            }
        }
        let delay = match done {
            Done::Settled => None,
            Done::After(delay) => Some(delay),
            Done::About(delay) => Some(self.jittered(delay)),
            Done::Failed => Some(self.pace_of(key, LONGEST, now)),
            Done::FailedFor(longest) => Some(self.pace_of(key, longest, now)),
        };
        if !matches!(done, Done::Failed | Done::FailedFor(_)) {
            self.failures.remove(key);
        }
        if let Some(delay) = delay {
            self.come_at(key.clone(), now + delay);
        }
        if again {
            self.add(key.clone(), now);
        }
    }

    /// How long a key waits after one more failure.
    fn pace_of(&mut self, key: &K, longest: Duration, now: Instant) -> Duration {
        let failures = self.failures.entry(key.clone()).or_insert(Failures { count: 0, at: now });
        *failures = Failures { count: failures.count.saturating_add(1), at: now };
        let doubled = FIRST.saturating_mul(1 << (failures.count - 1).min(10));
        self.jittered(doubled.min(longest))
    }

    /// Between 80 % and 120 % of a delay.
    fn jittered(&mut self, delay: Duration) -> Duration {
        self.drawn = self.drawn.wrapping_add(1);
        let percent = 80 + self.seed.hash_one(self.drawn) % 41;
        delay.saturating_mul(u32::try_from(percent).unwrap_or(100)) / 100
    }

    /// How many keys wait for their turn or for their time.
    pub(super) fn waiting(&self) -> usize {
        self.queued.len() + self.due.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Key(&'static str, u8);

    impl Lane for Key {
        fn lane(&self) -> &str {
            self.0
        }
    }

    fn core(share: usize) -> (Core<Key>, Instant) {
        (Core::new(share), Instant::now())
    }

    #[test]
    fn a_key_is_there_once_and_comes_again() {
        let (mut core, now) = core(9);
        let key = Key("a", 1);
        core.add(key, now);
        core.add(key, now);
        assert_eq!(core.take(now).0, Some(key));
        assert_eq!(core.take(now).0, None);
        core.add(key, now);
        assert_eq!(core.take(now).0, None, "it is worked on");
        core.done(&key, Done::Settled, now);
        assert_eq!(core.take(now).0, Some(key));
        core.done(&key, Done::Settled, now);
        assert_eq!(core.take(now), (None, None));
        assert_eq!(core.waiting(), 0);
    }

    #[test]
    fn only_what_is_worked_on_is_revisited() {
        let (mut core, now) = core(9);
        let key = Key("a", 1);
        core.revisit(&key);
        assert_eq!(core.take(now), (None, None));
        core.add(key, now);
        assert_eq!(core.take(now).0, Some(key));
        core.revisit(&key);
        core.done(&key, Done::Settled, now);
        assert_eq!(core.take(now).0, Some(key));
        core.done(&key, Done::Settled, now);
        assert_eq!(core.take(now), (None, None));
    }

    #[test]
    fn logical_clusters_take_turns() {
        let (mut core, now) = core(1);
        for key in [Key("a", 1), Key("a", 2), Key("a", 3), Key("b", 1)] {
            core.add(key, now);
        }
        assert_eq!(core.take(now).0, Some(Key("a", 1)));
        assert_eq!(core.take(now).0, Some(Key("b", 1)));
        assert_eq!(core.take(now).0, None, "each has its share");
        core.done(&Key("a", 1), Done::Settled, now);
        assert_eq!(core.take(now).0, Some(Key("a", 2)));
    }

    #[test]
    fn failures_slow_down_and_success_forgets_them() {
        let (mut core, mut now) = core(9);
        let key = Key("a", 1);
        core.add(key, now);
        let mut delays = Vec::new();
        for _ in 0..10 {
            assert_eq!(core.take(now).0, Some(key));
            core.done(&key, Done::Failed, now);
            let (none, due) = core.take(now);
            assert_eq!(none, None);
            delays.push(due.unwrap() - now);
            now = due.unwrap();
        }
        for (delay, expect) in delays.iter().zip([1, 2, 4, 8, 16, 32, 64, 120, 120, 120]) {
            let range = expect * 800..=expect * 1200;
            assert!(range.contains(&u64::try_from(delay.as_millis()).unwrap()), "{delays:?}");
        }
        // What happens to it meanwhile does not hurry it.
        assert_eq!(core.take(now).0, Some(key));
        core.done(&key, Done::Failed, now);
        core.add(key, now);
        assert_eq!(core.take(now).0, None);
        now += LONGEST * 2;
        assert_eq!(core.take(now).0, Some(key));
        core.done(&key, Done::After(Duration::from_secs(60)), now);
        core.add(key, now);
        assert_eq!(core.take(now).0, Some(key), "one that did not fail comes at once");
        core.done(&key, Done::Failed, now);
        let due = core.take(now).1.unwrap();
        assert!(due - now < Duration::from_secs(2));
    }

    /// When its reason may be gone, a key doesn't wait as long as its failures want; but it isn't tried
    /// all the time either, however often that is said.
    #[test]
    fn what_may_be_mended_comes_soon() {
        let (mut core, mut now) = core(9);
        let key = Key("a", 1);
        core.hurry(key, now);
        for _ in 0..8 {
            assert_eq!(core.take(now).0, Some(key));
            core.done(&key, Done::Failed, now);
            now = core.take(now).1.unwrap();
        }
        assert_eq!(core.take(now).0, Some(key));
        core.done(&key, Done::Failed, now);
        let failed = now;
        for later in [1, 2, 4] {
            core.hurry(key, failed + Duration::from_secs(later));
            assert_eq!(core.take(failed + Duration::from_secs(4)), (None, Some(failed + EAGER)));
        }
        now = failed + EAGER;
        assert_eq!(core.take(now).0, Some(key));
        // Said while it is worked on: the work may have begun before.
        core.hurry(key, now);
        core.done(&key, Done::Failed, now);
        assert_eq!(core.take(now).0, Some(key));
        core.done(&key, Done::Failed, now);
        let due = core.take(now).1.unwrap();
        assert!(due - now < Duration::from_secs(3), "its failures begin anew");
        // Long after a failure it comes at once, and only once.
        now += Duration::from_secs(60);
        core.hurry(key, now);
        assert_eq!(core.take(now).0, Some(key));
        core.done(&key, Done::Settled, now);
        assert_eq!(core.take(now + LONGEST), (None, None));
    }

    #[test]
    fn failures_with_a_limit_of_their_own() {
        let (mut core, mut now) = core(9);
        let key = Key("a", 1);
        core.add(key, now);
        for _ in 0..9 {
            assert_eq!(core.take(now).0, Some(key));
            core.done(&key, Done::FailedFor(Duration::from_secs(30)), now);
            let due = core.take(now).1.unwrap();
            assert!(due - now <= Duration::from_secs(36));
            now = due;
        }
        assert_eq!(core.take(now).0, Some(key));
        core.done(&key, Done::About(Duration::from_secs(10)), now);
        let due = core.take(now).1.unwrap() - now;
        assert!((Duration::from_secs(8)..=Duration::from_secs(12)).contains(&due));
    }

    #[test]
    fn what_is_due_comes_by_itself() {
        let (mut core, now) = core(9);
        let key = Key("a", 1);
        core.add(key, now);
        core.take(now);
        core.done(&key, Done::After(Duration::from_secs(5)), now);
        assert_eq!(core.take(now), (None, Some(now + Duration::from_secs(5))));
        assert_eq!(core.take(now + Duration::from_secs(5)).0, Some(key));
    }
}
