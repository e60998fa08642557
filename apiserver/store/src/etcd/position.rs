//! Where the line of commits stands, and from where it can be read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::answered_at;
use super::client::Client;
use super::error::Error;
use super::layout::Layout;
use super::proto::RangeRequest;
use crate::Revision;

/// One question for etcd's revision, whose answer many wait for.
type Asking = Shared<BoxFuture<'static, Result<Revision, Arc<Error>>>>;

/// Knows the revision that etcd has come to, that which readers wait for, and the oldest one.
#[derive(Debug)]
pub(super) struct Position {
    client: Arc<Client>,
    /// A key to ask for: that it is there does not matter.
    key: bytes::Bytes,
    /// A question that has not been sent yet. Whoever comes while it waits shares its answer, which
    /// is not older than their coming.
    next: Mutex<Option<Asking>>,
    /// Held while a question is under way: one at a time serves any number of readers.
    turn: Arc<tokio::sync::Mutex<()>>,
    wanted: watch::Sender<Revision>,
    oldest: AtomicU64,
}

// === impl Position ===

impl Position {
    pub(super) fn new(client: Arc<Client>, layout: &Layout) -> Arc<Self> {
        let (wanted, _) = watch::channel(Revision(0));
        Arc::new(Self {
            client,
            key: layout.identity(),
            next: Mutex::default(),
            turn: Arc::default(),
            wanted,
            oldest: AtomicU64::new(0),
        })
    }

    /// The revision of the last commit to etcd, by whoever, at a time after the call began. Watches
    /// are asked to come so far.
    pub(super) async fn latest(self: &Arc<Self>) -> Result<Revision, Arc<Error>> {
        let asking = self.next.lock().get_or_insert_with(|| self.ask()).clone();
        let revision = asking.await?;
        self.want(revision);
        Ok(revision)
    }

    fn ask(self: &Arc<Self>) -> Asking {
        let position = self.clone();
        let asking = async move {
            let _turn = position.turn.clone().lock_owned().await;
            // From here on the answer may be too old for who comes.
            position.next.lock().take();
            let key = position.key.clone();
            let request = RangeRequest { key, keys_only: true, ..RangeRequest::default() };
            let answer = position.client.range(&request).await?;
            Ok(answered_at(answer.header)?)
        };
        asking.boxed().shared()
    }

    /// Makes watches say when they have come to `revision`, though nothing may have changed.
    pub(super) fn want(&self, revision: Revision) {
        self.wanted.send_if_modified(|wanted| {
            let later = revision > *wanted;
            *wanted = (*wanted).max(revision);
            later
        });
    }

    pub(super) fn wanted(&self) -> watch::Receiver<Revision> {
        self.wanted.subscribe()
    }

    /// The oldest revision that is known to be readable; zero if nothing was forgotten.
    pub(super) fn oldest(&self) -> Revision {
        Revision(self.oldest.load(Ordering::Acquire))
    }

    /// Notes that what came before `revision` is forgotten.
    pub(super) fn forgotten(&self, revision: Revision) {
        self.oldest.fetch_max(revision.0, Ordering::AcqRel);
    }
}
