//! Types: what clusters serve becomes what the hub serves.
//!
//! # Flow
//! Watches over all logical clusters ([`watches`]) keep an index ([`index`]) of APIResourceImports,
//! NegotiatedAPIResources, and of which SyncTarget serves which logical clusters. Two kinds of work
//! follow from it: a type in a logical cluster ([`work`]: what is it there, who can take its objects,
//! its CustomResourceDefinition), decided by a pure function ([`decide`]); and a SyncTarget
//! ([`telling`]: `syncedResources` and the condition `TypesImported`).
//!
//! # Guarantees
//! - A published type never goes because of what clusters say: not when an agent stops, not when a
//!   target goes. It takes less than before only if the strategy allows it (`UpdatePublished`) and no
//!   stored object would be hurt, which is looked at ([`hurt`]).
//! - A definition that we didn't publish, and what every hub has itself, is only compared with.
//! - What is decided is a function of the objects in the hub, not of the order in which they came.
//! - Nothing exists for a logical cluster without a target, and nothing is written that is there.

mod decide;
mod definition;
mod descriptions;
mod entries;
mod hurt;
mod index;
mod situation;
mod status;
mod statuses;
mod sweep;
mod telling;
mod watches;
mod work;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use agent::types::Hub;
use client::Link;
use parking_lot::Mutex;
use runtime::Tasks;
use tracing::{debug, info_span, warn};

use crate::metrics::Metrics;
use crate::queue::{Done, Lane, Queue};
use descriptions::Descriptions;
use index::Index;

/// How many workers there are, and how many of them one logical cluster may have.
const WORKERS: usize = 4;
const SHARE: usize = 2;

/// How long a change is held back before objects are looked at again that it would hurt.
const HELD: Duration = Duration::from_secs(60);

/// The reason of an import's condition `Available` while it is waited for; every other one stays until
/// somebody does something.
const NOT_SERVED_YET: &str = "NotServed";

/// What is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Item {
    /// A type in a logical cluster.
    Type(TypeKey),
    /// A SyncTarget: its logical cluster and name.
    Target(String, String),
}

/// A resource in a logical cluster, in all its versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TypeKey {
    /// The logical cluster.
    pub(crate) cluster: String,
    /// The group; empty for core.
    pub(crate) group: String,
    /// The resource.
    pub(crate) plural: String,
}

/// Why work on an item failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkError {
    /// A call of the hub.
    #[error("{0}")]
    Hub(#[from] agent::types::HubError),
    /// What is in the hub can't be understood.
    #[error("{0}")]
    Unreadable(String),
}

/// Negotiates types.
pub(crate) struct TypesController {
    hub: Hub,
    index: Mutex<Index>,
    descriptions: Descriptions,
    queue: Queue<Item>,
    tasks: Tasks,
    /// Whether everything has been listed.
    listed: AtomicBool,
}

// === impl Item ===

impl Lane for Item {
    fn lane(&self) -> &str {
        match self {
            Self::Type(key) => &key.cluster,
            Self::Target(cluster, _) => cluster,
        }
    }
}

// === impl TypesController ===

impl TypesController {
    /// `hub` leads to what stands before `/clusters/…`.
    pub(crate) fn new(hub: Link, metrics: &Metrics, tasks: &Tasks) -> Self {
        Self {
            hub: Hub::cluster(hub, "root"),
            index: Mutex::default(),
            descriptions: Descriptions::default(),
            queue: Queue::new(SHARE, metrics.waiting("types")),
            tasks: tasks.clone(),
            listed: AtomicBool::new(false),
        }
    }

    /// Starts its tasks. `client` leads to all logical clusters.
    pub(crate) fn start(self: &Arc<Self>, client: &kube::Client) {
        let tasks = self.tasks.clone();
        let cancelled = tasks.cancellation();
        let run = |name: &'static str, work: futures::future::BoxFuture<'static, ()>| {
            let cancelled = cancelled.clone();
            drop(tasks.spawn(info_span!("types", task = name), async move {
                cancelled.run_until_cancelled(work).await;
            }));
        };
        run("watch", Box::pin(self.clone().follow(client.clone())));
        run("sweep", Box::pin(self.clone().sweep()));
        for _ in 0..WORKERS {
            run("work", Box::pin(self.clone().work()));
        }
    }

    async fn work(self: Arc<Self>) {
        loop {
            let item = self.queue.next().await;
            let worked = match &item {
                Item::Type(key) => self.negotiate(key).await,
                Item::Target(cluster, name) => self.tell(cluster, name).await.map(|()| false),
            };
            let done = match worked {
                Ok(false) => Done::Settled,
                Ok(true) => Done::After(HELD),
                Err(error) => {
                    match &error {
                        // Somebody else was faster: the next look sees what they did.
                        WorkError::Hub(error) if error.status() == Some(409) => {
                            debug!(?item, %error, "to be looked at again");
                        }
                        _ => warn!(?item, %error, "types were not negotiated"),
                    }
                    Done::Failed
                }
            };
            self.queue.done(&item, done);
        }
    }

    /// One logical cluster of the hub.
    fn cluster(&self, cluster: &str) -> Hub {
        self.hub.of(cluster)
    }

    fn add(&self, items: impl IntoIterator<Item = Item>) {
        items.into_iter().for_each(|item| self.queue.add(item));
    }
}

impl std::fmt::Debug for TypesController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TypesController").finish_non_exhaustive()
    }
}
