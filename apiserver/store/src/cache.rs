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
//! - The feeder never waits for a watcher, nor do readers and writers wait until thousands are told.
//!
//! # Assumptions
//! - Values are objects in the form of [`crate::object`].

mod event;
mod feed;
mod figures;
mod history;
mod observer;
mod overlay;
mod state;
mod subscription;
mod watchers;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};
use tracing::info_span;

pub use event::{Event, FrameKey};
pub use figures::Figures;
pub use observer::Observer;
pub use overlay::{NoOverlay, Overlay, Slice};
pub use state::Slot;
pub use subscription::Subscription;
pub use watchers::{Audience, Filter, Scope};

pub use crate::object::{Object, Origin};
use crate::{Key, KeyPrefix, ReadError, Revision, Store};
use state::State;
use watchers::Watchers;

/// Every object in memory, at the revision that the store's watch has reached.
#[derive(Debug)]
pub struct Cache {
    store: Arc<dyn Store>,
    overlay: Arc<dyn Overlay>,
    inner: RwLock<Inner>,
    /// Taken after `inner`, by who needs both.
    watchers: Mutex<Watchers>,
    /// Some have to be told of what was put aside.
    behind: Notify,
    applied: watch::Sender<Revision>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    observers: Vec<Arc<dyn Observer>>,
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
        let state = feed::load(store.as_ref(), overlay.clone()).await?;
        let (applied, _) = watch::channel(state.revision());
        let inner = RwLock::new(Inner { state, observers: Vec::new() });
        let (watchers, behind) = (Mutex::default(), Notify::new());
        let cache = Arc::new(Self { store, overlay, inner, watchers, behind, applied });
        let (teller, cancelled) = (cache.clone(), tasks.cancellation().clone());
        tasks.spawn(info_span!("watchers"), async move {
            cancelled.run_until_cancelled(teller.tell_crowds()).await;
        });
        let (feeder, cancelled) = (cache.clone(), tasks.cancellation().clone());
        tasks.spawn(info_span!("cache"), async move {
            tokio::select! {
                () = cancelled.cancelled() => {}
                () = feeder.feed() => {}
                () = feeder.forget_what_is_old() => {}
            }
            feeder.watchers.lock().end_all();
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

    /// The number of objects under `prefix`, virtual ones included.
    pub fn count(&self, prefix: &KeyPrefix) -> usize {
        self.inner.read().state.count_under(prefix)
    }

    /// The number of stored objects of a logical cluster.
    pub fn count_in(&self, cluster: &machinery::ClusterName) -> usize {
        self.inner.read().state.population(cluster.as_str())
    }

    /// The number of records under `prefix`, tombstones included; counted up to `most`.
    pub fn count_up_to(&self, prefix: &KeyPrefix, most: usize) -> usize {
        self.inner.read().state.count_up_to(prefix, most)
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

    /// Tells `observer` of every change from now on.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.inner.write().observers.push(observer);
    }

    /// What is stored under each of several prefixes, in order and at one revision: tombstones
    /// included, virtual objects left out.
    pub fn stored<const N: usize>(&self, prefixes: [&KeyPrefix; N]) -> [Vec<(Key, Slot)>; N] {
        let inner = self.inner.read();
        prefixes.map(|prefix| inner.state.stored(prefix))
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

    /// The objects under each of some prefixes, all as they are at one revision.
    pub fn list_each<const N: usize>(&self, prefixes: &[KeyPrefix; N]) -> [Vec<Arc<Object>>; N] {
        let inner = self.inner.read();
        prefixes.each_ref().map(|prefix| inner.state.range(prefix, None, 0).0)
    }

    /// The next stored objects under `prefix` after `after`, in key order, at most `limit`. Each
    /// call is of another revision.
    pub fn scan(&self, prefix: &KeyPrefix, after: Option<&Key>, limit: usize) -> Vec<Arc<Object>> {
        self.inner.read().state.scan(prefix, after, limit)
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
        audience: Audience,
    ) -> (Listed, Subscription) {
        let inner = self.inner.read();
        let (objects, remaining) = inner.state.range(prefix, None, 0);
        let revision = inner.state.revision();
        let subscription = self.subscribe(scopes, filter, audience, revision);
        (Listed { objects, revision, remaining }, subscription)
    }

    /// A watcher of what comes after a revision, which the caller keeps from going on meanwhile.
    fn subscribe(
        self: &Arc<Self>,
        scopes: &[Scope],
        filter: Option<&Filter>,
        audience: Audience,
        after: Revision,
    ) -> Subscription {
        let (events, scopes) = self.watchers.lock().add(scopes, filter, audience, after);
        Subscription { backlog: VecDeque::new(), events, scopes, cache: self.clone() }
    }

    /// Every event of `scopes` after `after`, from memory or else from the store's history.
    ///
    /// # Errors
    /// As [`Store::watch`].
    pub async fn watch(
        self: &Arc<Self>,
        scopes: &[Scope],
        filter: Option<&Filter>,
        audience: Audience,
        after: Revision,
    ) -> Result<Subscription, ReadError> {
        let oldest = self.store.oldest().await?;
        if after < oldest {
            return Err(ReadError::Compacted { oldest });
        }
        let (reached, mut subscription) = {
            let inner = self.inner.read();
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
            let subscription = self.subscribe(scopes, filter, audience, reached);
            match recent {
                Some(backlog) => return Ok(Subscription { backlog, ..subscription }),
                None => (reached, subscription),
            }
        };
        subscription.backlog = self.history(scopes, filter, after, reached).await?;
        Ok(subscription)
    }
}

#[cfg(test)]
mod tests;
