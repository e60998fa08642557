//! Following the store: how the cache is loaded, and how changes come in.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use parking_lot::RwLockWriteGuard;
use tracing::{debug, error, warn};

use super::state::State;
use super::{Cache, Inner, Origin, Overlay, overlay};
use crate::object::Object;
use crate::{Change, KeyPrefix, Range, ReadError, Record, Revision, Store, WatchMessage};

/// Records that one read of the store takes while the cache loads: two such reads are in memory at a
/// time, as whole values, and a CRD has some 20 KB.
const LOAD_PAGE: usize = 500;

/// How long the feeder waits when the store's watch ends a second time without having brought
/// anything: unnoticed by who waits for a write, and next to no work for a store that is down.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// How long it waits at most, after doubling: soon enough after a store is back.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long recent events stay in memory at least, the store's and the cache's, however few they are:
/// longer than a minute, after which watches are sent a bookmark, so one that resumes finds its place
/// here. What they have replaced is scattered over memory and holds much more of it than its own bytes.
const RECENT: Duration = Duration::from_secs(90);

/// How often it is looked for older ones.
const LOOK_EVERY: Duration = Duration::from_secs(15);

impl Cache {
    /// Lets recent events go when they are old, for ever.
    pub(super) async fn forget_what_is_old(&self) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        // What was reached at each tick, the last ones.
        let mut reached = VecDeque::new();
        loop {
            let now = ticks.tick().await;
            while let Some((_, revision)) = reached.pop_front_if(|(then, _)| *then + RECENT <= now)
            {
                // They are dropped without the lock.
                let old = self.inner.write().state.forget(revision);
                drop(old);
                self.store.forget_recent(revision);
            }
            reached.push_back((now, self.revision()));
        }
    }

    /// Follows the store's watch, for ever.
    ///
    /// A watch that ended is resumed at once, as falling behind is ordinary in a burst of writes;
    /// only ends that repeat without any progress between them are answered with pauses.
    pub(super) async fn feed(&self) {
        let mut pause = Duration::ZERO;
        loop {
            let after = self.revision();
            match self.follow(after).await {
                Ok(()) => warn!(%after, "the store's watch ended without an error"),
                Err(error) => self.resume(after, &error).await,
            }
            if self.revision() > after {
                pause = Duration::ZERO;
                continue;
            }
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        }
    }

    /// Tells why a watch from `after` has ended, and loads anew what the next could not make up for.
    async fn resume(&self, after: Revision, error: &ReadError) {
        let is_lost = matches!(error, ReadError::Compacted { .. } | ReadError::Corrupt(_));
        tell(after, error, is_lost);
        if is_lost {
            self.reload().await;
        }
    }

    /// Takes what one watch of the store delivers, until it ends.
    async fn follow(&self, after: Revision) -> Result<(), ReadError> {
        let mut messages = self.store.watch(after).await?;
        while let Some(message) = messages.next().await {
            self.take(message?);
        }
        Ok(())
    }

    fn take(&self, message: WatchMessage) {
        let revision = match message {
            WatchMessage::Progress(revision) => {
                self.inner.write().state.advance(revision);
                self.watchers.lock().sweep();
                revision
            }
            WatchMessage::Changes(changes) => {
                let Some(last) = changes.last().map(|change| change.revision) else {
                    return;
                };
                let base = self.store.identity().rv_base;
                // Parsing happens before the lock: readers wait for the map alone.
                let changes = changes
                    .into_iter()
                    .map(|change| {
                        let slot = slot_of(&change, base);
                        (change.key, slot, change.revision)
                    })
                    .collect::<Vec<_>>();
                let mut events = Vec::with_capacity(changes.len());
                let mut inner = self.inner.write();
                let mut taken = None;
                for (key, slot, revision) in changes {
                    // Readers have their turn between commits.
                    if taken.replace(revision).is_some_and(|taken| taken != revision) {
                        RwLockWriteGuard::bump(&mut inner);
                    }
                    let Inner { state, observers } = &mut *inner;
                    for observer in &*observers {
                        observer.changed(&key);
                    }
                    events.extend(state.apply(key, slot, revision));
                }
                drop(inner);
                // Whoever begins to watch from here on begins after them.
                let mut watchers = self.watchers.lock();
                let mut is_first = false;
                for event in &events {
                    is_first |= watchers.dispatch(event);
                }
                drop(watchers);
                if is_first {
                    self.behind.notify_one();
                }
                last
            }
        };
        // Events are in the watchers' queues, or put aside where that is seen, before the revision is
        // seen to be reached.
        self.applied.send_if_modified(|applied| {
            let later = revision > *applied;
            *applied = (*applied).max(revision);
            later
        });
    }

    /// Tells those of events whose scopes many watch, a part at a time, for ever.
    pub(super) async fn tell_crowds(&self) {
        loop {
            self.behind.notified().await;
            while self.turn() {
                // Whoever was told has its turn first, and so have other threads of this core.
                std::thread::yield_now();
                tokio::task::yield_now().await;
            }
        }
    }

    fn turn(&self) -> bool {
        self.watchers.lock().turn()
    }

    async fn reload(&self) {
        match load(self.store.as_ref(), self.overlay.clone()).await {
            Ok(state) => {
                let revision = state.revision();
                let mut inner = self.inner.write();
                self.watchers.lock().end_all();
                inner.state = state;
                for observer in &inner.observers {
                    observer.reset();
                }
                drop(inner);
                self.applied.send_replace(revision);
            }
            Err(error) => error!(%error, "the store cannot be read"),
        }
    }
}

/// Says why a watch has ended; `is_lost` if the next cannot make up for it.
fn tell(after: Revision, error: &ReadError, is_lost: bool) {
    let cause = error as &dyn std::error::Error;
    match error {
        ReadError::Lagged => debug!(%after, cause, "resuming"),
        _ if is_lost => error!(%after, cause, "the store's watch cannot be resumed, reloading"),
        _ => warn!(%after, cause, "the store cannot be watched"),
    }
}

pub(super) async fn load(store: &dyn Store, overlay: Arc<dyn Overlay>) -> Result<State, ReadError> {
    let base = store.identity().rv_base;
    let mut slots = overlay::Slots::new();
    let at = store.revision().await?;
    let read = |after| {
        let range = Range { prefix: KeyPrefix::everything(), after, limit: LOAD_PAGE };
        store.range(range, Some(at))
    };
    let mut page = read(None).await?;
    loop {
        let last = page.records.last().map(|record| record.key.clone());
        let records = std::mem::take(&mut page.records);
        let parse = async {
            for record in records {
                let object = slot(&record, base);
                slots.insert(record.key, object);
            }
        };
        if !page.more {
            parse.await;
            return Ok(State::new(slots, at, overlay));
        }
        // The store reads the next page in a thread of its own while this one is parsed.
        let (next, ()) = futures::future::join(read(last), parse).await;
        page = next?;
    }
}

pub(super) fn slot_of(change: &Change, base: u64) -> Option<Arc<Object>> {
    change.record().map(|record| slot(&record, base))
}

/// A record as the cache holds it. The log names one that cannot be read.
pub(super) fn slot(record: &Record, base: u64) -> Arc<Object> {
    let Record { key, value, revision, created } = record;
    let hidden = |origin| Object::unreadable(key.clone(), *revision, *created, origin);
    if value.is_empty() {
        return Arc::new(hidden(Origin::Stored));
    }
    let object = Object::new(key.clone(), value, *revision, base, Origin::Stored);
    Arc::new(object.map(|object| object.created_at(*created)).unwrap_or_else(|error| {
        error!(%key, %revision, %error, "unreadable record");
        hidden(Origin::Unreadable)
    }))
}
