//! The watch cache: every object in memory, fed by the store's watch alone.
//!
//! # Flow
//! [`Cache::start`] reads the store at one revision, then follows its watch from there. A write
//! goes to the store and returns a revision; a read that must see it waits with
//! [`Cache::wait_for`] until the cache has come so far.
//!
//! # Guarantees
//! - All answers of one call are of one revision.
//! - A [`Subscription`] gets every event of its scope after its start, once, in order.
//! - The feeder never waits for a watcher.
//!
//! # Assumptions
//! - Values are objects in the form of [`crate::object`].

mod event;
mod overlay;
mod state;
mod watchers;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::StreamExt;
use parking_lot::RwLock;
use tokio::sync::{mpsc, watch};
use tracing::{debug, error, info_span, warn};

pub use event::{Event, FrameKey};
pub use overlay::{NoOverlay, Overlay, Slice};
pub use state::Slot;
pub use watchers::{Filter, Scope};

pub use crate::object::{Object, Origin};
use crate::{Change, Key, KeyPrefix, Range, ReadError, Record, Revision, Store, WatchMessage};
use state::State;
use watchers::Watchers;

/// Records that one read of the store takes while the cache loads.
const LOAD_PAGE: usize = 2000;

/// How long the feeder waits when the store's watch ends a second time without having brought
/// anything: unnoticed by who waits for a write, and next to no work for a store that is down.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// How long it waits at most, after doubling: soon enough after a store is back.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Every object in memory, at the revision that the store's watch has reached.
#[derive(Debug)]
pub struct Cache {
    store: Arc<dyn Store>,
    overlay: Arc<dyn Overlay>,
    inner: RwLock<Inner>,
    applied: watch::Sender<Revision>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    watchers: Watchers,
}

/// Objects at one revision.
#[derive(Debug)]
pub struct Listed {
    /// The objects in key order.
    pub objects: Vec<Arc<Object>>,
    /// The revision that they are of.
    pub revision: Revision,
    /// The number of objects after the limit.
    pub remaining: usize,
}

/// A running watch of the cache.
#[derive(Debug)]
pub struct Subscription {
    backlog: VecDeque<Arc<Event>>,
    events: mpsc::Receiver<Arc<Event>>,
    cache: Arc<Cache>,
}

// === impl Cache ===

impl Cache {
    /// Loads the store and follows it until `tasks` are cancelled.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn start(
        store: Arc<dyn Store>,
        overlay: Arc<dyn Overlay>,
        tasks: &runtime::Tasks,
    ) -> Result<Arc<Self>, ReadError> {
        let state = load(store.as_ref(), overlay.clone()).await?;
        let (applied, _) = watch::channel(state.revision());
        let inner = RwLock::new(Inner { state, watchers: Watchers::default() });
        let cache = Arc::new(Self { store, overlay, inner, applied });
        let (feeder, cancelled) = (cache.clone(), tasks.cancellation().clone());
        tasks.spawn(info_span!("cache"), async move {
            tokio::select! {
                () = cancelled.cancelled() => {}
                () = feeder.feed() => {}
            }
            feeder.inner.write().watchers.end_all();
        });
        Ok(cache)
    }

    /// The revision that the cache has reached.
    pub fn revision(&self) -> Revision {
        *self.applied.borrow()
    }

    /// The number of records held, tombstones included.
    pub fn len(&self) -> usize {
        self.inner.read().state.len()
    }

    /// The number of stored objects of each resource, by its part of the key (`core/configmaps`).
    pub fn counts(&self) -> Vec<(Box<str>, usize)> {
        self.inner.read().state.counts()
    }

    /// Whether the cache holds no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until the cache has reached `revision`, at most `patience`.
    ///
    /// # Errors
    /// The revision reached when patience ran out.
    pub async fn wait_for(&self, revision: Revision, patience: Duration) -> Result<(), Revision> {
        if self.revision() >= revision {
            return Ok(());
        }
        let mut applied = self.applied.subscribe();
        let reached = applied.wait_for(|applied| *applied >= revision);
        match tokio::time::timeout(patience, reached).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(self.revision()),
        }
    }

    /// What stands at `key`.
    pub fn slot(&self, key: &Key) -> Slot {
        self.inner.read().state.slot(key)
    }

    /// Keys under `prefix` that hold a record of any form, in order: what must go before the
    /// prefix is empty in the store, too.
    pub fn records(&self, prefix: &KeyPrefix) -> Vec<(Key, Revision)> {
        self.inner.read().state.records(prefix)
    }

    /// Keys with tombstones, in order, and the revision at which they stand.
    pub fn tombstones(&self) -> (Revision, Vec<Key>) {
        let inner = self.inner.read();
        (inner.state.revision(), inner.state.tombstones())
    }

    /// The virtual object of `key`, whether or not a record hides it.
    pub fn virtual_object(&self, key: &Key) -> Option<Arc<Object>> {
        self.inner.read().state.virtual_object(key)
    }

    /// What stands at each of several keys, at one revision.
    pub fn slots<const N: usize>(&self, keys: [&Key; N]) -> [Slot; N] {
        let inner = self.inner.read();
        keys.map(|key| inner.state.slot(key))
    }

    /// The object at `key`.
    pub fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.slot(key).object()
    }

    /// The objects under `prefix` after `after`, at most `limit` (0 for all), as they are now.
    pub fn list(&self, prefix: &KeyPrefix, after: Option<&Key>, limit: usize) -> Listed {
        let inner = self.inner.read();
        let (objects, remaining) = inner.state.range(prefix, after, limit);
        Listed { objects, revision: inner.state.revision(), remaining }
    }

    /// As [`Cache::list`], as it was at `at`, from memory or else from the store's history.
    ///
    /// # Errors
    /// As [`Store::range`].
    pub async fn list_at(
        &self,
        prefix: &KeyPrefix,
        after: Option<&Key>,
        limit: usize,
        at: Revision,
    ) -> Result<Listed, ReadError> {
        let oldest = self.store.oldest().await?;
        if at < oldest {
            return Err(ReadError::Compacted { oldest });
        }
        {
            let inner = self.inner.read();
            if at > inner.state.revision() {
                return Err(ReadError::Future { current: inner.state.revision() });
            }
            if let Some((objects, remaining)) = inner.state.range_at(prefix, after, limit, at) {
                return Ok(Listed { objects, revision: at, remaining });
            }
        }
        self.list_from_history(prefix, after, limit, at).await
    }

    /// The objects under `prefix` now, and every event of `scopes` after them.
    pub fn list_and_watch(
        self: &Arc<Self>,
        prefix: &KeyPrefix,
        scopes: &[Scope],
        filter: Option<&Filter>,
    ) -> (Listed, Subscription) {
        let mut inner = self.inner.write();
        let (objects, remaining) = inner.state.range(prefix, None, 0);
        let listed = Listed { objects, revision: inner.state.revision(), remaining };
        let events = inner.watchers.add(scopes, filter);
        (listed, Subscription { backlog: VecDeque::new(), events, cache: self.clone() })
    }

    /// Every event of `scopes` after `after`, from memory or else from the store's history.
    ///
    /// # Errors
    /// As [`Store::watch`].
    pub async fn watch(
        self: &Arc<Self>,
        scopes: &[Scope],
        filter: Option<&Filter>,
        after: Revision,
    ) -> Result<Subscription, ReadError> {
        let oldest = self.store.oldest().await?;
        if after < oldest {
            return Err(ReadError::Compacted { oldest });
        }
        let (reached, events) = {
            let mut inner = self.inner.write();
            let reached = inner.state.revision();
            if after > reached {
                return Err(ReadError::Future { current: reached });
            }
            let wanted = |event: &Event| {
                scopes.iter().any(|scope| scope.contains(&event.key))
                    && filter.is_none_or(|wants| wants(event))
            };
            let recent = inner
                .state
                .events_after(after)
                .map(|events| events.filter(|event| wanted(event)).cloned().collect());
            let events = inner.watchers.add(scopes, filter);
            match recent {
                Some(backlog) => return Ok(Subscription { backlog, events, cache: self.clone() }),
                None => (reached, events),
            }
        };
        let backlog = self.history(scopes, filter, after, reached).await?;
        Ok(Subscription { backlog, events, cache: self.clone() })
    }

    /// Follows the store's watch, for ever.
    ///
    /// A watch that ended is resumed at once, as falling behind is ordinary in a burst of writes;
    /// only ends that repeat without any progress between them are answered with pauses.
    async fn feed(&self) {
        let mut pause = Duration::ZERO;
        loop {
            let after = self.revision();
            match self.follow(after).await {
                Ok(()) => warn!(%after, "the store's watch ended without an error"),
                Err(error @ ReadError::Lagged) => debug!(%after, %error, "resuming"),
                Err(ReadError::Compacted { oldest }) => {
                    error!(%after, %oldest, "the cache fell behind the store's history, reloading");
                    self.reload().await;
                }
                Err(error) => warn!(%after, %error, "the store cannot be watched"),
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
                let mut inner = self.inner.write();
                inner.state.advance(revision);
                inner.watchers.sweep();
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
                let mut inner = self.inner.write();
                let Inner { state, watchers } = &mut *inner;
                for (key, slot, revision) in changes {
                    for event in state.apply(key, slot, revision) {
                        watchers.dispatch(&event);
                    }
                }
                last
            }
        };
        // Events are in the watchers' queues before the revision is seen to be reached.
        self.applied.send_if_modified(|applied| {
            let later = revision > *applied;
            *applied = (*applied).max(revision);
            later
        });
    }

    async fn reload(&self) {
        match load(self.store.as_ref(), self.overlay.clone()).await {
            Ok(state) => {
                let revision = state.revision();
                let mut inner = self.inner.write();
                inner.watchers.end_all();
                inner.state = state;
                drop(inner);
                self.applied.send_replace(revision);
            }
            Err(error) => error!(%error, "the store cannot be read"),
        }
    }

    async fn list_from_history(
        &self,
        prefix: &KeyPrefix,
        after: Option<&Key>,
        limit: usize,
        at: Revision,
    ) -> Result<Listed, ReadError> {
        debug!(%at, ?prefix, "list from history");
        // Tombstones and virtual objects change the count, so the page is cut afterwards.
        let range = Range { prefix: prefix.clone(), after: after.cloned(), limit: 0 };
        let page = self.store.range(range, Some(at)).await?;
        let base = self.store.identity().rv_base;
        let mut slots = overlay::Slots::new();
        for record in page.records {
            let slot = slot(&record, base);
            slots.insert(record.key, slot);
        }
        let (virtuals, _) = self.inner.read().state.range(prefix, after, 0);
        let virtuals = virtuals
            .into_iter()
            .filter(|object| object.origin == Origin::Virtual && object.revision <= at);
        for object in virtuals {
            slots.entry(object.key.clone()).or_insert(object);
        }
        let mut objects = slots.into_values().collect::<Vec<_>>();
        objects.retain(|object| !overlay::is_tombstone(object));
        let kept = if limit == 0 { objects.len() } else { limit.min(objects.len()) };
        let remaining = objects.len() - kept;
        objects.truncate(kept);
        Ok(Listed { objects, revision: at, remaining })
    }

    async fn history(
        &self,
        scopes: &[Scope],
        filter: Option<&Filter>,
        after: Revision,
        until: Revision,
    ) -> Result<VecDeque<Arc<Event>>, ReadError> {
        debug!(%after, %until, ?scopes, "watch from history");
        let base = self.store.identity().rv_base;
        let mut events = VecDeque::new();
        let mut messages = self.store.watch(after).await?;
        let visible = |object: Arc<Object>| (!overlay::is_tombstone(&object)).then_some(object);
        while let Some(message) = messages.next().await {
            let changes = match message? {
                WatchMessage::Progress(revision) if revision >= until => break,
                WatchMessage::Progress(_) => continue,
                WatchMessage::Changes(changes) => changes,
            };
            for change in &changes {
                let wanted = scopes.iter().any(|scope| scope.contains(&change.key));
                if change.revision > until || !wanted {
                    continue;
                }
                let current = slot_of(change, base).and_then(visible);
                let previous =
                    change.previous.as_ref().and_then(|record| visible(slot(record, base)));
                if previous.is_none() && current.is_none() {
                    continue;
                }
                let event = Event::new(change.key.clone(), change.revision, previous, current);
                if filter.is_none_or(|wants| wants(&event)) {
                    events.push_back(Arc::new(event));
                }
            }
            if changes.last().is_some_and(|change| change.revision >= until) {
                break;
            }
        }
        Ok(events)
    }
}

// === impl Subscription ===

impl Subscription {
    /// The next event; `None` when the watch was ended because it fell behind, or at shutdown.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        match self.backlog.pop_front() {
            Some(event) => Some(event),
            None => self.events.recv().await,
        }
    }

    /// As [`Subscription::next`], for streams.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arc<Event>>> {
        match self.backlog.pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None => self.events.poll_recv(cx),
        }
    }

    /// The next event if it waits already.
    pub fn try_next(&mut self) -> Option<Arc<Event>> {
        self.backlog.pop_front().or_else(|| self.events.try_recv().ok())
    }

    /// The revision up to which everything has been taken from this subscription, or `None` when
    /// events still wait. A bookmark may carry it.
    pub fn progress(&mut self) -> Option<Revision> {
        // Read first: what is applied has been queued, so an empty queue then means caught up.
        let applied = self.cache.revision();
        (self.backlog.is_empty() && self.events.is_empty() && !self.events.is_closed())
            .then_some(applied)
    }
}

async fn load(store: &dyn Store, overlay: Arc<dyn Overlay>) -> Result<State, ReadError> {
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

fn slot_of(change: &Change, base: u64) -> Option<Arc<Object>> {
    change.record().map(|record| slot(&record, base))
}

/// A record as the cache holds it. The log names one that cannot be read.
fn slot(record: &Record, base: u64) -> Arc<Object> {
    let Record { key, value, revision, created } = record;
    let hidden = |origin| Object {
        key: key.clone(),
        header: machinery::meta::Header::default(),
        json: bytes::Bytes::new(),
        revision: *revision,
        created: *created,
        origin,
        memo: crate::object::Memo::new(),
    };
    if value.is_empty() {
        return Arc::new(hidden(Origin::Stored));
    }
    let object = Object::new(key.clone(), value, *revision, base, Origin::Stored);
    Arc::new(object.map(|object| object.created_at(*created)).unwrap_or_else(|error| {
        error!(%key, %revision, %error, "unreadable record");
        hidden(Origin::Unreadable)
    }))
}

#[cfg(test)]
mod tests;
