//! Assignment: what people want of their objects becomes what agents see.
//!
//! # Flow
//! For each type that any SyncTarget syncs, one watch of metadata over all logical clusters; for each
//! other type of the hub one of the objects that have an intent, so that people are told ([`served`]);
//! one more of the namespaces that have an intent. An object that is concerned goes into the queue; a worker reads it
//! live, asks [`plan::plan`], and makes the change in one patch.
//!
//! # Guarantees
//! - What is decided rests on what was read live: the object, its namespace before a copy is asked back,
//!   and the SyncTarget before anything is released as if it were gone.
//! - Memory grows with objects that have marks, and with nothing else: not with logical clusters, nor
//!   with objects that nobody assigns.

mod deletions;
pub(crate) mod index;
mod plan;
mod served;
mod standing;
mod watches;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use runtime::Tasks;
use tokio::sync::watch;
use tracing::info_span;

use self::index::{Item, Objects, Type};
use self::plan::GroupResource;
use self::standing::{LogicalClusters, Outline};
use crate::api::Api;
use crate::events::Events;
use crate::metrics::Metrics;
use crate::queue::Queue;
use crate::targets::index::{TargetKey, Targets};

/// Objects that are worked on at a time.
const WORKERS: usize = 16;

/// How many of these one logical cluster may have.
const SHARE: usize = 8;

/// The controller, as its tasks share it.
pub(crate) struct Assigner {
    hub: Api,
    targets: Arc<Targets>,
    clusters: LogicalClusters,
    events: Events,
    metrics: Arc<Metrics>,
    objects: Arc<Mutex<Objects>>,
    /// The intents of namespaces, by logical cluster and name.
    namespaces: Mutex<BTreeMap<(String, String), String>>,
    /// The kinds of types, as far as they were needed.
    kinds: Mutex<BTreeMap<GroupResource, String>>,
    /// The types that SyncTargets sync.
    types: Mutex<BTreeSet<Type>>,
    /// The types that the hub serves, whoever syncs them, with their latest versions.
    served: watch::Sender<BTreeMap<GroupResource, String>>,
    /// What of each SyncTarget decided about objects when it was last looked at.
    outlines: Mutex<BTreeMap<TargetKey, Outline>>,
    /// What the agents of SyncTargets are told of deletions: of those that are told some.
    told: Mutex<BTreeMap<TargetKey, String>>,
    queue: Queue<Item>,
}

// === impl Assigner ===

impl Assigner {
    pub(crate) fn new(
        hub: Api,
        targets: Arc<Targets>,
        objects: Arc<Mutex<Objects>>,
        events: Events,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            hub,
            targets,
            clusters: LogicalClusters::default(),
            events,
            objects,
            namespaces: Mutex::default(),
            kinds: Mutex::default(),
            types: Mutex::default(),
            served: watch::Sender::default(),
            outlines: Mutex::default(),
            told: Mutex::default(),
            queue: Queue::new(SHARE, metrics.waiting("assign")),
            metrics,
        }
    }

    /// Starts its tasks. `client` leads to all logical clusters.
    pub(crate) fn start(self: &Arc<Self>, client: &kube::Client, tasks: &Tasks) {
        let cancelled = tasks.cancellation();
        let run = |name: &'static str, work: futures::future::BoxFuture<'static, ()>| {
            let cancelled = cancelled.clone();
            drop(tasks.spawn(info_span!("assign", task = name), async move {
                cancelled.run_until_cancelled(work).await;
            }));
        };
        let follow = self.clone().follow_targets(client.clone(), tasks.clone());
        run("targets", Box::pin(follow));
        run("namespaces", Box::pin(self.clone().follow_namespaces(client.clone())));
        run("types", Box::pin(self.clone().follow_served(client.clone())));
        run("clusters", Box::pin(self.clone().follow_clusters(client.clone())));
        for _ in 0..WORKERS {
            run("work", Box::pin(self.clone().work()));
        }
    }

    async fn work(self: Arc<Self>) {
        loop {
            let item = self.queue.next().await;
            let done = match &item {
                Item::Object(key) => self.assign(key).await,
                Item::Namespace(key) => self.sweep(key).await,
                Item::Deletions(target) => self.tell_deletions(target).await,
            };
            self.queue.done(&item, done);
        }
    }
}
