//! Keys that wait to be looked at, each with its own back-off.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use prometheus::IntGauge;
use store::cache::{Event, Subscription};
use tokio::time::Instant;

/// First wait after a failed try, doubled up to [`LONGEST`].
const SHORTEST: Duration = Duration::from_millis(20);

/// Longest wait between tries.
const LONGEST: Duration = Duration::from_secs(5);

/// A set of keys with the time of their next try.
#[derive(Debug)]
pub(super) struct Queue<K> {
    waiting: BTreeMap<K, Waiting>,
    /// Told how many there are.
    depth: IntGauge,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    due: Instant,
    delay: Duration,
}

// === impl Queue ===

impl<K: Ord + Clone> Queue<K> {
    /// One that tells `depth` how many keys there are.
    pub(super) fn new(depth: IntGauge) -> Self {
        Self { waiting: BTreeMap::new(), depth }
    }

    fn count(&self) {
        self.depth.set(i64::try_from(self.waiting.len()).unwrap_or(i64::MAX));
    }

    /// Looks at `key` as soon as possible.
    pub(super) fn add(&mut self, key: K, now: Instant) {
        let fresh = Waiting { due: now, delay: SHORTEST };
        let waiting = self.waiting.entry(key).or_insert(fresh);
        waiting.due = waiting.due.min(now);
        self.count();
    }

    /// Looks at `key` again after a wait that grows from try to try.
    pub(super) fn retry(&mut self, key: K, now: Instant, delay: Duration) {
        let next = (delay * 2).min(LONGEST);
        self.waiting.insert(key, Waiting { due: now + delay, delay: next });
        self.count();
    }

    /// A key that is due, and the wait if it is to be tried again.
    pub(super) fn take(&mut self, now: Instant) -> Option<(K, Duration)> {
        let (key, waiting) = self.waiting.iter().find(|(_, waiting)| waiting.due <= now)?;
        let (key, delay) = (key.clone(), waiting.delay);
        self.waiting.remove(&key);
        self.count();
        Some((key, delay))
    }

    /// When the next key is due.
    fn next_due(&self) -> Option<Instant> {
        self.waiting.values().map(|waiting| waiting.due).min()
    }

    /// Waits for an event, or until a key is due (`None`). The end of the events is an event, too.
    pub(super) async fn next(&self, events: &mut Subscription) -> Option<Option<Arc<Event>>> {
        self.or_due(events.next()).await
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tries_are_spread_out_and_news_come_at_once() {
        let mut queue = Queue::new(IntGauge::new("depth", "Keys.").unwrap());
        let start = Instant::now();
        queue.add("a", start);
        let (key, delay) = queue.take(start).unwrap();
        assert_eq!((key, delay), ("a", SHORTEST));
        assert!(queue.take(start).is_none());
        queue.retry("a", start, delay);
        assert!(queue.take(start).is_none());
        assert_eq!(queue.next_due(), Some(start + SHORTEST));
        assert_eq!(queue.take(start + SHORTEST), Some(("a", SHORTEST * 2)));
        queue.retry("a", start, LONGEST);
        queue.add("a", start);
        assert_eq!(queue.take(start).map(|(key, _)| key), Some("a"));
    }
}
