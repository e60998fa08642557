//! Fixtures, and short words for what the cases say often.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use runtime::Tasks;
use tracing::Span;

use crate::{
    Change, CommitError, Compare, Expect, Key, KeyPrefix, Op, Range, ReadError, Record, Revision,
    Store, Txn, WatchMessage,
};

/// How long anything may take before a case fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A fresh store and what it needs to live.
#[derive(Debug)]
pub struct Fixture {
    pub store: Arc<dyn Store>,
    /// Bytes that the store adds to a value before it counts its size, at most.
    pub(crate) added: usize,
    tasks: Tasks,
    _kept: Option<Box<dyn Any + Send + Sync>>,
}

/// A watch of the cases' own resources.
pub(crate) struct Watch {
    store: Arc<dyn Store>,
    stream: BoxStream<'static, Result<WatchMessage, ReadError>>,
    /// Everything up to here has come.
    reached: Revision,
}

impl Fixture {
    /// A fixture of a fresh store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, added: 0, tasks: Tasks::new(), _kept: None }
    }

    /// Keeps something until the store is no longer used, as its directory.
    #[must_use]
    pub fn keeping(self, kept: impl Any + Send + Sync) -> Self {
        Self { _kept: Some(Box::new(kept)), ..self }
    }

    /// Adds a writer of a resource that no case reads, about once a millisecond.
    #[must_use]
    pub fn with_second_writer(self) -> Self {
        let store = self.store.clone();
        let mut pace = tokio::time::interval(Duration::from_millis(1));
        self.tasks.spawn(Span::none(), async move {
            for round in 0_u64.. {
                pace.tick().await;
                let put = put(&key("noise", &format!("n{}", round % 7)), &round.to_string());
                if store.commit(Txn { ops: vec![put], ..Txn::default() }).await.is_err() {
                    break;
                }
            }
        });
        self
    }

    /// Ends the store.
    ///
    /// # Panics
    /// When something goes on.
    pub async fn end(self) {
        self.store.close().await;
        assert_eq!(self.tasks.shutdown(PATIENCE).await, 0);
    }

    pub async fn commit(
        &self,
        compares: &[(&Key, Expect)],
        ops: Vec<Op>,
    ) -> Result<Revision, CommitError> {
        let compares =
            compares.iter().map(|(key, expect)| Compare { key: (*key).clone(), expect: *expect });
        self.store.commit(Txn { compares: compares.collect(), ops, ..Txn::default() }).await
    }

    pub async fn put(&self, key: &Key, value: &str) -> Revision {
        self.commit(&[], vec![put(key, value)]).await.unwrap()
    }

    pub async fn delete(&self, key: &Key) -> Revision {
        self.commit(&[], vec![delete(key)]).await.unwrap()
    }

    /// Names, values and revisions under a prefix.
    pub async fn list(&self, prefix: KeyPrefix, at: Option<Revision>) -> Vec<Record> {
        let page = self.store.range(Range { prefix, after: None, limit: 0 }, at).await.unwrap();
        assert!(!page.more);
        assert!(at.is_none_or(|at| at == page.revision));
        page.records
    }

    pub(crate) async fn watch(&self, after: Revision) -> Watch {
        let stream = self.store.watch(after).await.unwrap();
        Watch { store: self.store.clone(), stream, reached: after }
    }
}

impl Watch {
    /// The next message, whatever it is.
    pub(crate) async fn message(&mut self) -> Result<WatchMessage, ReadError> {
        let next = tokio::time::timeout(PATIENCE, self.stream.next()).await;
        next.expect("a message in time").expect("a watch does not end without an error")
    }

    /// All changes until those of `revision` have come, without those of the second writer.
    ///
    /// Checks that revisions rise, and that those of one commit come in one message. A watch that
    /// fell behind is begun again from the last revision seen, as every reader does.
    pub(crate) async fn until(&mut self, revision: Revision) -> Vec<Change> {
        let mut all = Vec::<Change>::new();
        while self.reached < revision {
            match self.message().await {
                Ok(WatchMessage::Progress(progress)) => {
                    assert!(progress >= self.reached, "progress goes back");
                    self.reached = progress;
                }
                Ok(WatchMessage::Changes(changes)) => {
                    assert!(changes.is_sorted_by_key(|change| change.revision));
                    let first = changes.first().expect("no message is empty").revision;
                    assert!(first > self.reached, "{first} comes twice or in two messages");
                    self.reached = changes.last().unwrap().revision;
                    all.extend(changes);
                }
                Err(ReadError::Lagged) => {
                    self.stream = self.store.watch(self.reached).await.unwrap();
                }
                Err(error) => panic!("{error}"),
            }
        }
        all.retain(|change| change.key.resource_part() != "core/noise");
        all
    }
}

pub fn key(resource: &str, name: &str) -> Key {
    Key::parse(format!("core/{resource}/root/ns/{name}")).unwrap()
}

pub fn prefix(resource: &str) -> KeyPrefix {
    KeyPrefix::resource(&machinery::GroupResource::new("", resource))
}

pub fn put(key: &Key, value: &str) -> Op {
    Op::Put { key: key.clone(), value: Bytes::copy_from_slice(value.as_bytes()) }
}

pub fn delete(key: &Key) -> Op {
    Op::Delete { key: key.clone() }
}

/// A record that was created by the commit that wrote it.
pub fn record(key: &Key, value: &str, revision: Revision) -> Record {
    updated(key, value, revision, revision)
}

/// A record that was created by an earlier commit.
pub fn updated(key: &Key, value: &str, revision: Revision, created: Revision) -> Record {
    let value = Bytes::copy_from_slice(value.as_bytes());
    Record { key: key.clone(), value, revision, created }
}

/// The record that a commit met instead of what it expected.
pub fn conflict(result: Result<Revision, CommitError>, on: &Key) -> Option<Record> {
    match result {
        Err(CommitError::Conflict { key, current }) if key == *on => current.map(|record| *record),
        other => panic!("expected a conflict on {on}, got {other:?}"),
    }
}
