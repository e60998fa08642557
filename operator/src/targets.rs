//! The controller of SyncTargets: agents are installed, looked after and taken away, and statuses say
//! the truth about them.
//!
//! # Flow
//! One watch over all logical clusters brings SyncTargets into [`index::Targets`], another the Leases of
//! agents into [`heartbeat::Heartbeats`]. Two queues follow: what goes to physical clusters
//! (`installing`), which is slow and fails, and what writes statuses (`telling`), which is quick and
//! never waits for a physical cluster.
//!
//! # Guarantees
//! - There is nothing for a logical cluster without SyncTargets, and no task for a SyncTarget: workers
//!   share the queues.
//! - A SyncTarget goes only after its objects were released, by its agent or, when that can't be
//!   reached any more, by us, and what is left behind is said.

mod conditions;
pub(crate) mod drain;
mod former;
pub(crate) mod heartbeat;
pub(crate) mod index;
mod install;
mod installing;
mod physical;
mod removing;
mod rights;
mod seen;
mod telling;
mod token;
mod uninstall;
mod watches;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use runtime::Tasks;
use tracing::info_span;

use self::conditions::Verdict;
use self::heartbeat::Heartbeats;
use self::index::{Target, TargetKey, Targets};
use crate::api::Api;
use crate::args::Options;
use crate::assign::index::Objects;
use crate::events::{Events, Regarding};
use crate::metrics::Metrics;
use crate::push::Pushes;
use crate::queue::{Done, Queue};

/// Physical clusters that are gone to at a time; most of the time is spent waiting for them.
const INSTALLERS: usize = 32;

/// How many of these one logical cluster may have.
const INSTALLER_SHARE: usize = 8;

/// How long one turn may take. An installation is some thirty calls, an uninstallation a hundred.
const LONGEST_TURN: Duration = Duration::from_secs(300);

/// The longest pause before a cluster that can't be used is tried again, if to find that out was quick.
const PROBED: Duration = Duration::from_secs(30);

/// The longest pause before any cluster is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// How many times as long as it took to find out that a cluster can't be used it is left alone: those
/// that don't answer take this part of a worker each.
const REST: u32 = 8;

/// Statuses that are written at a time.
const TELLERS: usize = 8;

/// The controller, as its tasks share it.
pub(crate) struct Controller {
    hub: Api,
    options: Arc<Options>,
    targets: Arc<Targets>,
    /// The objects that have marks, as the other controller's watches show them.
    objects: Arc<Mutex<Objects>>,
    beats: Heartbeats,
    events: Events,
    metrics: Arc<Metrics>,
    pushes: Pushes,
    known: Mutex<HashMap<TargetKey, Known>>,
    installing: Queue<TargetKey>,
    telling: Queue<TargetKey>,
    /// When this process began: what it has not seen since then it can't judge.
    began: tokio::time::Instant,
}

/// What is known of a target besides its object.
#[derive(Clone, Debug, Default)]
struct Known {
    /// What of the target decides about its installation.
    seen: Option<Decisive>,
    /// What became of the installation.
    installed: Option<Verdict>,
    memory: install::Memory,
    /// The resourceVersion of the Secret with its kubeconfig, as it was seen last.
    secret: Option<String>,
    /// What its deletion waits for.
    draining: Option<String>,
    /// The last search for objects that it holds, while it is being deleted.
    searched: Option<removing::Searched>,
}

/// What of a target decides about its installation.
#[derive(Clone, Debug, PartialEq)]
struct Decisive {
    spec: crds::SyncTargetSpec,
    types: Vec<(String, String)>,
    deleted: Option<Timestamp>,
    cluster: Option<String>,
    abandoned: bool,
    held: bool,
}

/// The longest pause after an attempt that has taken so long and failed.
fn longest_pause(taken: Duration) -> Duration {
    taken.saturating_mul(REST).clamp(PROBED, LONGEST_PAUSE)
}

// === impl Controller ===

impl Controller {
    pub(crate) fn new(
        hub: Api,
        options: Arc<Options>,
        targets: Arc<Targets>,
        objects: Arc<Mutex<Objects>>,
        events: Events,
        metrics: Arc<Metrics>,
        pushes: Pushes,
    ) -> Self {
        Self {
            hub,
            options,
            targets,
            objects,
            beats: Heartbeats::default(),
            events,
            known: Mutex::default(),
            installing: Queue::new(INSTALLER_SHARE, metrics.waiting("install")),
            telling: Queue::new(TELLERS, metrics.waiting("status")),
            metrics,
            pushes,
            began: tokio::time::Instant::now(),
        }
    }

    /// Starts its tasks. `client` leads to all logical clusters.
    pub(crate) fn start(self: &Arc<Self>, client: &kube::Client, tasks: &Tasks) {
        let cancelled = tasks.cancellation();
        let run = |name: &'static str, work: futures::future::BoxFuture<'static, ()>| {
            let cancelled = cancelled.clone();
            drop(tasks.spawn(info_span!("targets", task = name), async move {
                cancelled.run_until_cancelled(work).await;
            }));
        };
        run("watch", Box::pin(self.clone().follow_targets(client.clone())));
        run("secrets", Box::pin(self.clone().follow_secrets(client.clone())));
        run("leases", Box::pin(self.clone().follow_leases(client.clone())));
        for _ in 0..INSTALLERS {
            run("install", Box::pin(self.clone().install_all()));
        }
        for _ in 0..TELLERS {
            run("tell", Box::pin(self.clone().tell_all()));
        }
    }

    async fn install_all(self: Arc<Self>) {
        loop {
            let key = self.installing.next().await;
            // Each call has its own time-out; all of them together have this one, so that no cluster
            // keeps a worker for as long as it likes.
            let begun = tokio::time::Instant::now();
            let turn = tokio::time::timeout(LONGEST_TURN, self.clone().look_after(&key)).await;
            let done = match turn.unwrap_or(Done::Failed) {
                Done::Failed => Done::FailedFor(longest_pause(begun.elapsed())),
                done => done,
            };
            self.installing.done(&key, done);
            self.telling.add(key);
        }
    }

    async fn tell_all(self: Arc<Self>) {
        loop {
            let key = self.telling.next().await;
            let done = self.tell(&key).await;
            self.telling.done(&key, done);
        }
    }

    /// Something may have changed about a target.
    fn changed(&self, key: TargetKey) {
        let target = self.targets.get(&key);
        let mut known = self.known.lock();
        let Some(target) = target else {
            known.remove(&key);
            drop(known);
            self.pushes.stop(&key);
            return;
        };
        let seen = Some(Decisive::of(&target));
        let entry = known.entry(key.clone()).or_default();
        let decisive = entry.seen != seen;
        entry.seen = seen;
        drop(known);
        if decisive {
            // Perhaps it was mended.
            self.installing.hurry(key.clone());
        }
        self.telling.add(key);
    }

    fn know(&self, key: &TargetKey, change: impl FnOnce(&mut Known)) {
        if let Some(known) = self.known.lock().get_mut(key) {
            change(known);
        }
    }

    fn known(&self, key: &TargetKey) -> Known {
        self.known.lock().get(key).cloned().unwrap_or_default()
    }

    fn cluster(&self, key: &TargetKey) -> Api {
        self.hub.cluster(&key.cluster)
    }

    fn regarding(key: &TargetKey) -> Regarding {
        Regarding {
            cluster: key.cluster.to_string(),
            api_version: format!("{}/v1alpha1", contract::WORKLOAD_GROUP),
            kind: "SyncTarget".into(),
            namespace: String::new(),
            name: key.name.to_string(),
            uid: key.uid.to_string(),
        }
    }

    /// For how long this process has been watching.
    fn watched_for(&self) -> Duration {
        self.began.elapsed()
    }
}

// === impl Decisive ===

impl Decisive {
    fn of(target: &Target) -> Self {
        let accepted = target.status.synced_resources.iter();
        let accepted = accepted.filter(|synced| synced.state == crds::SyncedState::Accepted);
        Self {
            spec: target.spec.clone(),
            types: accepted.map(|one| (one.group.clone(), one.resource.clone())).collect(),
            deleted: target.metadata.deleted,
            cluster: target.annotation(contract::CLUSTER_UID).map(str::to_owned),
            abandoned: target.annotation(contract::ABANDON) == Some("true"),
            held: target.metadata.finalizers.iter().any(|name| name == contract::TARGET_FINALIZER),
        }
    }
}
