//! What is to be done next: a queue of keys, fair over logical clusters.
//!
//! # Guarantees
//! - A key is worked on by one worker at a time, and is in the queue at most once, however often it
//!   is added; one that is added while it is worked on comes again afterwards.
//! - A key that failed comes again after a delay that grows with its failures, with jitter; earlier if
//!   its reason may be gone, but never at once, whatever happens to it.
//! - Logical clusters take turns, and none has more than its share of the workers: one with a
//!   thousand broken targets delays nobody.

mod core;

use std::time::Duration;

use parking_lot::Mutex;
use prometheus::IntGauge;
use tokio::sync::Notify;
use tokio::time::Instant;

use self::core::Core;

/// What a key belongs to, as far as fairness goes.
pub(crate) trait Lane {
    /// The logical cluster.
    fn lane(&self) -> &str;
}

/// How work on a key ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// There is nothing more to do until it is added again.
    Settled,
    /// It is to be looked at again after so long, or earlier if it is added.
    After(Duration),
    /// As before, in about so long: what is looked at regularly doesn't come all at once.
    About(Duration),
    /// It failed, and is tried again.
    Failed,
    /// It failed, and is tried again in so long at most.
    FailedFor(Duration),
}

/// A queue that several workers share.
pub(crate) struct Queue<K> {
    core: Mutex<Core<K>>,
    changed: Notify,
    /// How many keys wait.
    waiting: IntGauge,
}

// === impl Queue ===

impl<K: Lane + Clone + Ord> Queue<K> {
    /// A queue of which no logical cluster has more than `share` workers, and whose length a gauge
    /// shows.
    pub(crate) fn new(share: usize, waiting: IntGauge) -> Self {
        Self { core: Mutex::new(Core::new(share)), changed: Notify::new(), waiting }
    }

    /// Adds a key, to be worked on as soon as it is its turn.
    pub(crate) fn add(&self, key: K) {
        self.change(|core| core.add(key, Instant::now()));
        self.changed.notify_one();
    }

    /// Adds a key whose reason to fail may be gone: it doesn't keep the pace of its failures, but comes a
    /// few seconds after the last one at the earliest.
    pub(crate) fn hurry(&self, key: K) {
        self.change(|core| core.hurry(key, Instant::now()));
        self.changed.notify_one();
    }

    /// What is known of a key is news: if it is worked on at this moment, it comes again afterwards.
    pub(crate) fn revisit(&self, key: &K) {
        self.change(|core| core.revisit(key));
    }

    /// The next key. Whoever has it calls [`Self::done`].
    pub(crate) async fn next(&self) -> K {
        loop {
            let changed = self.changed.notified();
            let (key, due) = self.change(|core| core.take(Instant::now()));
            if let Some(key) = key {
                // There may be more for another worker.
                self.changed.notify_one();
                return key;
            }
            match due {
                Some(due) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(due) => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// Work on a key has ended.
    pub(crate) fn done(&self, key: &K, done: Done) {
        self.change(|core| core.done(key, done, Instant::now()));
        self.changed.notify_one();
    }

    fn change<T>(&self, change: impl FnOnce(&mut Core<K>) -> T) -> T {
        let mut core = self.core.lock();
        let changed = change(&mut core);
        self.waiting.set(i64::try_from(core.waiting()).unwrap_or(i64::MAX));
        changed
    }
}
