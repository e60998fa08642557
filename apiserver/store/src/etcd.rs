//! A store in an etcd cluster, which any number of servers may share.
//!
//! # Flow
//! A commit is one transaction of etcd; its revisions are etcd's own. Whoever else writes to the same
//! etcd uses up revisions, too: the line has gaps, and progress bridges them. Reads of the present go
//! to the cache above, which learns by [`Store::revision`] how far it has to come; that question is
//! asked of etcd once for all who ask at the same time, and makes the watch ask for progress if it is
//! not there yet.
//!
//! # Guarantees
//! Those of [`Store`]. What a commit did is unknown only when its answer was lost.
//!
//! # Assumptions
//! - etcd 3.4.31, 3.5.13 or newer: older ones may tell of progress before a change that it covers.
//! - Nobody else writes under the prefix, and a restored etcd is given other resourceVersions (by an
//!   export and an import), because its revisions go back.

mod assemble;
mod client;
mod compaction;
mod dial;
mod error;
mod grpc;
mod identity;
mod import;
mod layout;
mod plan;
mod position;
mod proto;
mod read;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use runtime::Tasks;
use tracing::{debug, info_span};

use self::client::Client;
pub use self::dial::TlsFiles;
use self::error::Error;
use self::identity::Found;
pub use self::import::import;
use self::layout::Layout;
use self::plan::{Outcome, Plan, Seen};
use self::position::Position;
use self::proto::{KeyValue, ResponseHeader};
use crate::{
    CommitError, Figures, Identity, Key, Page, Range, ReadError, Record, Revision, Store, Txn,
    WatchMessage, commit,
};

/// How often a commit is planned anew because a key's form was other than assumed. A plan made of
/// what was seen is refused only if somebody wrote in between.
const PLANS: usize = 16;

/// How long background work has to end when the store is closed.
const DRAIN: Duration = Duration::from_secs(2);

/// Where etcd is, and how it is used.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// Its endpoints, `http://` or `https://`, tried in this order.
    pub endpoints: Vec<String>,
    /// Files for TLS.
    pub tls: TlsFiles,
    /// What all keys begin with, as `/kcp`.
    pub prefix: String,
    /// How often history is compacted to one interval ago; never by us if not given.
    pub compaction_interval: Option<Duration>,
}

/// A store in etcd.
#[derive(Debug)]
pub struct EtcdStore {
    inner: Arc<Inner>,
    identity: Identity,
    born: Revision,
}

/// What watches and background work share with the store.
#[derive(Debug)]
struct Inner {
    client: Arc<Client>,
    layout: Layout,
    position: Arc<Position>,
    tasks: Tasks,
}

/// Why a store in etcd cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// An endpoint is no URL of one.
    #[error("etcd endpoint {endpoint:?}: {problem}")]
    Endpoint {
        /// What was given.
        endpoint: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// No endpoint was given.
    #[error("no etcd endpoint is given")]
    NoEndpoint,
    /// No endpoint answers as it should.
    #[error("reach etcd")]
    Unavailable(#[source] crate::Cause),
    /// etcd is too old to be read consistently.
    #[error("etcd {found} is too old, needed is 3.4.31, 3.5.13 or newer")]
    Version {
        /// The version of the endpoint that answered.
        found: String,
    },
    /// The store is of another major version.
    #[error("the store in etcd has format {found}, this program reads {}", 1)]
    Format {
        /// What it says of itself.
        found: String,
    },
    /// What stands for the identity is none.
    #[error("the store's identity in etcd: {0}")]
    Identity(&'static str),
    /// There is no store.
    #[error("etcd holds no store under the prefix")]
    Absent,
    /// There are objects, but no identity.
    #[error("etcd holds something else under the prefix")]
    Foreign,
    /// An import is under way, or has broken off.
    #[error("an import into etcd has not ended; remove what is under the prefix")]
    Importing,
}

// === impl EtcdOptions ===

impl EtcdOptions {
    /// The default of what all keys begin with.
    pub const PREFIX: &'static str = "/kcp";

    /// A client of an etcd that can be used, and where the store's keys are there.
    async fn connect(&self, tasks: &Tasks) -> Result<(Arc<Client>, Layout), OpenError> {
        let parse = |endpoint: &String| {
            dial::Endpoint::parse(endpoint.trim())
                .map_err(|problem| OpenError::Endpoint { endpoint: endpoint.clone(), problem })
        };
        let endpoints = self.endpoints.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        if endpoints.is_empty() {
            return Err(OpenError::NoEndpoint);
        }
        let client = Arc::new(Client::new(endpoints, self.tls.clone(), tasks.clone()));
        let found = client.status().await.map_err(OpenError::unavailable)?.version;
        if !is_new_enough(&found) {
            return Err(OpenError::Version { found });
        }
        Ok((client, Layout::new(&self.prefix)))
    }
}

// === impl EtcdStore ===

impl EtcdStore {
    /// The store under a prefix of etcd; made if nothing is there.
    ///
    /// # Errors
    /// As [`OpenError`] says.
    pub async fn open(options: &EtcdOptions) -> Result<Arc<Self>, OpenError> {
        let tasks = Tasks::new();
        let (client, layout) = options.connect(&tasks).await?;
        let found = identity::read_or_make(&client, &layout).await?;
        Ok(Self::with(client, layout, tasks, found, options))
    }

    /// The store that is there.
    ///
    /// # Errors
    /// As [`OpenError`] says, [`OpenError::Absent`] in particular.
    pub async fn open_existing(options: &EtcdOptions) -> Result<Arc<Self>, OpenError> {
        let tasks = Tasks::new();
        let (client, layout) = options.connect(&tasks).await?;
        let found = identity::read(&client, &layout).await?;
        Ok(Self::with(client, layout, tasks, found, options))
    }

    fn with(
        client: Arc<Client>,
        layout: Layout,
        tasks: Tasks,
        found: Found,
        options: &EtcdOptions,
    ) -> Arc<Self> {
        let Found { identity, born, compacted } = found;
        let position = Position::new(client.clone(), &layout);
        if let Some(compacted) = compacted {
            position.forgotten(compacted);
        }
        let inner = Arc::new(Inner { client, layout, position, tasks });
        if let Some(every) = options.compaction_interval.filter(|every| !every.is_zero()) {
            let work = compaction::keep_compacting(inner.clone(), every);
            drop(inner.tasks.spawn(info_span!("etcd compaction"), work));
        }
        Arc::new(Self { inner, identity, born })
    }

    fn is_closed(&self) -> bool {
        self.inner.tasks.cancellation().is_cancelled()
    }

    async fn latest(&self) -> Result<Revision, ReadError> {
        let latest = self.inner.position.latest().await;
        latest.map_err(|error| ReadError::Unavailable(Box::new(error)))
    }

    /// Whether history still reaches back to `at`, as far as is known.
    fn check_kept(&self, at: Revision) -> Result<(), ReadError> {
        let oldest = self.inner.position.oldest();
        if at < oldest { Err(ReadError::Compacted { oldest }) } else { Ok(()) }
    }
}

#[async_trait]
impl Store for EtcdStore {
    async fn commit(&self, txn: Txn) -> Result<Revision, CommitError> {
        commit::check(&txn)?;
        if self.is_closed() {
            return Err(CommitError::Unavailable("store is closed".into()));
        }
        let mut seen = Seen::default();
        for _ in 0..PLANS {
            let plan = Plan::new(&self.inner.layout, &txn, &seen);
            let answer = match self.inner.client.txn(&plan.request).await {
                Err(error) if error.is_too_large() => {
                    let (size, limit) = (commit::txn_bytes(&txn), crate::MAX_COMMIT_BYTES);
                    return Err(CommitError::TooLarge { size, limit });
                }
                answer => answer?,
            };
            let revision = answered_at(answer.header)?;
            match plan.outcome(answer)? {
                Outcome::Done { changed } => {
                    if !changed {
                        // No change will come that tells the watches of this revision.
                        self.inner.position.want(revision);
                    }
                    return Ok(revision);
                }
                Outcome::Refused(found) => {
                    if let Some(conflict) = found.conflict(&txn) {
                        return Err(conflict);
                    }
                    debug!("a tombstone was in the way of a plan");
                    seen = found;
                }
            }
        }
        Err(CommitError::Unavailable("other writers were always faster".into()))
    }

    async fn get(&self, key: &Key) -> Result<Option<Record>, ReadError> {
        Ok(read::one(&self.inner, key).await?)
    }

    async fn range(&self, range: Range, at: Option<Revision>) -> Result<Page, ReadError> {
        if let Some(at) = at {
            self.check_kept(at)?;
        }
        match read::page(&self.inner, &range, at).await {
            Ok(page) => Ok(page),
            Err(error) if error.is_compacted() => {
                // Somebody else has compacted: where to is not told.
                let oldest = at.unwrap_or_default().next();
                self.inner.position.forgotten(oldest);
                Err(ReadError::Compacted { oldest })
            }
            Err(error) if error.is_future() => {
                Err(ReadError::Future { current: self.latest().await? })
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn watch(
        &self,
        after: Revision,
    ) -> Result<BoxStream<'static, Result<WatchMessage, ReadError>>, ReadError> {
        self.check_kept(after)?;
        if self.is_closed() {
            return Err(ReadError::Unavailable("store is closed".into()));
        }
        let current = self.latest().await?;
        if after > current {
            return Err(ReadError::Future { current });
        }
        // Before it was born there was nothing, whether or not etcd remembers.
        let after = after.max(self.born);
        Ok(watch::follow(self.inner.clone(), after, current).await?.boxed())
    }

    async fn revision(&self) -> Result<Revision, ReadError> {
        self.latest().await
    }

    async fn oldest(&self) -> Result<Revision, ReadError> {
        Ok(self.inner.position.oldest())
    }

    async fn compact(&self, before: Revision) -> Result<(), CommitError> {
        let unavailable = |error: ReadError| CommitError::Unavailable(Box::new(error));
        let before = before.min(self.latest().await.map_err(unavailable)?);
        if before <= self.inner.position.oldest() {
            return Ok(());
        }
        Ok(compaction::compact(&self.inner, before).await?)
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn figures(&self) -> Figures {
        Figures { backend: "etcd", numbers: vec![("oldestKnown", self.inner.position.oldest().0)] }
    }

    async fn close(&self) {
        self.inner.tasks.shutdown(DRAIN).await;
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        self.inner.tasks.cancel();
    }
}

// === impl OpenError ===

impl OpenError {
    fn unavailable(error: Error) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

fn is_new_enough(version: &str) -> bool {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    let parts = plain.split('.').map(str::parse::<u32>).collect::<Result<Vec<_>, _>>();
    match parts.as_deref() {
        Ok([3, 4, patch]) => *patch >= 31,
        Ok([3, 5, patch]) => *patch >= 13,
        Ok([major, minor, ..]) => (*major, *minor) >= (3, 6),
        _ => false,
    }
}

fn revision_of(revision: i64) -> Result<Revision, Error> {
    let revision = u64::try_from(revision).map(Revision);
    revision.map_err(|_| Error::Garbled("a revision below zero".into()))
}

/// A revision as etcd is told of it.
fn wire(revision: Revision) -> i64 {
    // No revision is ever so high: a compare with it fails, as it should.
    i64::try_from(revision.0).unwrap_or(i64::MAX)
}

/// Where etcd stood when it answered.
fn answered_at(header: Option<ResponseHeader>) -> Result<Revision, Error> {
    revision_of(header.ok_or_else(Error::headless)?.revision)
}

/// What etcd holds of an object, under its key or that of its tombstone.
fn record(key: Key, kv: KeyValue) -> Result<Record, Error> {
    let revision = revision_of(kv.mod_revision)?;
    let (value, created) = if layout::is_tombstone(&kv.key) {
        // Without a value it was created where nothing was.
        let created = match <[u8; 8]>::try_from(kv.value.as_slice()) {
            Ok(created) => Revision(u64::from_be_bytes(created)),
            Err(_) => revision,
        };
        (Bytes::new(), created)
    } else {
        (kv.value.into(), revision_of(kv.create_revision)?)
    };
    Ok(Record { key, value, revision, created })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        for good in ["3.4.31", "3.5.13", "3.5.99-rc.1", "3.6.0", "3.7.0-alpha.0", "4.0.0"] {
            assert!(is_new_enough(good), "{good}");
        }
        for bad in ["3.4.30", "3.5.12", "3.3.99", "2.9.9", "", "x", "3"] {
            assert!(!is_new_enough(bad), "{bad}");
        }
    }
}
