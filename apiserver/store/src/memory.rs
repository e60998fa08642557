//! A store in memory, for tests and for servers that keep nothing.
//!
//! It keeps its whole history until it is compacted. Its options make it behave as a remote store
//! may, so that what stands above a store is tested against more than the friendliest one.

mod watch;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::RwLock;
use uuid::Uuid;

use crate::history::History;
use crate::undo::Undo;
use crate::{
    Change, CommitError, Figures, Identity, Key, Page, Range, ReadError, Record, Revision, Store,
    Txn, WatchMessage, commit,
};

/// How a [`MemoryStore`] behaves.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How long after a commit the watches hear of it, as from a store at the end of a network.
    pub watch_delay: Duration,
    /// How many commits a watch that has once caught up may fall behind before it ends with
    /// [`ReadError::Lagged`]; `None` for any number.
    pub max_lag: Option<u64>,
    /// Added to a revision for the resourceVersion on the wire.
    pub rv_base: u64,
}

/// A store in memory.
///
/// Several servers may share one by its [`Arc`], as they would share an etcd cluster.
pub struct MemoryStore {
    state: RwLock<State>,
    history: Arc<History>,
    identity: Identity,
    options: Options,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Key, Record>,
    revision: Revision,
    oldest: Revision,
    closed: bool,
}

// === impl MemoryStore ===

impl MemoryStore {
    /// An empty store with a new identity.
    pub fn new(options: Options) -> Arc<Self> {
        let identity = Identity { hub_uid: Uuid::new_v4().to_string(), rv_base: options.rv_base };
        let history = Arc::new(History::new(Revision(0), usize::MAX));
        Arc::new(Self { state: RwLock::default(), history, identity, options })
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn commit(&self, txn: Txn) -> Result<Revision, CommitError> {
        commit::check(&txn)?;
        // History is appended under the state's lock: it has every commit that the state has.
        let mut state = self.state.write();
        if state.closed {
            return Err(CommitError::Unavailable("store is closed".into()));
        }
        let revision = state.revision.next();
        let present = |key: &Key| Ok::<_, Infallible>(state.objects.get(key).cloned());
        let Ok(changes) = commit::evaluate(txn, revision, present);
        let changes = changes?;
        if changes.is_empty() {
            return Ok(state.revision);
        }
        for change in &changes {
            match change.record() {
                Some(record) => state.objects.insert(change.key.clone(), record),
                None => state.objects.remove(&change.key),
            };
        }
        state.revision = revision;
        self.history.append([changes]);
        Ok(revision)
    }

    async fn get(&self, key: &Key) -> Result<Option<Record>, ReadError> {
        Ok(self.state.read().objects.get(key).cloned())
    }

    async fn range(&self, range: Range, at: Option<Revision>) -> Result<Page, ReadError> {
        let state = self.state.read();
        let at = at.unwrap_or(state.revision);
        state.readable(at)?;
        let limit = range.limit;
        if at == state.revision {
            let mut page = Page { revision: at, ..Page::default() };
            for record in state.records(&range) {
                if !page.push(record, limit) {
                    break;
                }
            }
            return Ok(page);
        }
        let present = state.records(&range);
        let mut undo = Undo::new(range, at);
        let visit = |change: &Change| {
            let Some(previous) = &change.previous else { return };
            if undo.wants(change.key.as_bytes(), previous.revision) {
                undo.replaced(previous.clone());
            }
        };
        self.history.visit(at, state.revision, visit);
        let Ok(page) = undo.page(present.map(Ok::<_, Infallible>));
        Ok(page)
    }

    async fn watch(
        &self,
        after: Revision,
    ) -> Result<BoxStream<'static, Result<WatchMessage, ReadError>>, ReadError> {
        self.state.read().readable(after)?;
        Ok(watch::follow(self.history.clone(), after, &self.options).boxed())
    }

    async fn revision(&self) -> Result<Revision, ReadError> {
        Ok(self.state.read().revision)
    }

    async fn oldest(&self) -> Result<Revision, ReadError> {
        Ok(self.state.read().oldest)
    }

    async fn compact(&self, before: Revision) -> Result<(), CommitError> {
        let mut state = self.state.write();
        state.oldest = state.oldest.max(before.min(state.revision));
        self.history.forget(state.oldest);
        Ok(())
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn figures(&self) -> Figures {
        let (commits, bytes) = self.history.size();
        let numbers = vec![("recentCommits", commits as u64), ("recentBytes", bytes as u64)];
        Figures { backend: "memory", numbers }
    }

    async fn close(&self) {
        self.state.write().closed = true;
        self.history.close();
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Objects hold secrets: only their number is told.
        let state = self.state.read();
        f.debug_struct("MemoryStore")
            .field("objects", &state.objects.len())
            .field("revision", &state.revision)
            .field("oldest", &state.oldest)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

// === impl State ===

impl State {
    /// Whether the state at `revision` and the changes after it are here.
    fn readable(&self, revision: Revision) -> Result<(), ReadError> {
        if revision < self.oldest {
            return Err(ReadError::Compacted { oldest: self.oldest });
        }
        if revision > self.revision {
            return Err(ReadError::Future { current: self.revision });
        }
        Ok(())
    }

    fn records<'a>(&'a self, range: &Range) -> impl Iterator<Item = Record> + 'a + use<'a> {
        let prefix = range.prefix.clone();
        // `after` may stand before or after the prefix: the later of the two starts the range.
        let after = range.after.as_ref().filter(|after| after.as_bytes() >= prefix.as_bytes());
        let start = match after {
            Some(after) => Bound::Excluded(after.as_bytes()),
            None => Bound::Included(prefix.as_bytes()),
        };
        self.objects
            .range::<[u8], _>((start, Bound::Unbounded))
            .take_while(move |(key, _)| prefix.contains(key))
            .map(|(_, record)| record.clone())
    }
}
