//! Targets of mode `Push`: their agents run in this process.
//!
//! Each is an agent like those in physical clusters: it comes to the hub with a bootstrap token and gets
//! a certificate of its own, so the hub lets it see and write what is its target's, and nothing more,
//! whatever the operator may do. What it has seen of the hub is kept in the physical cluster, as that of
//! any other: a hub that was restored is known by it, to the operator's next process, too. Invariants: at most one runs for a target; what it makes of a physical
//! cluster is reached through the same checked addresses; dropping it ends every request.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use agent::identity::{Identity, Keep, Standing};
use agent::leader::Handover;
use agent::leader::kept::Kept;
use agent::metrics::Metrics;
use agent::sync::{self, PARALLEL, Progress, Shape, Upstream};
use agent::target::TargetRef;
use agent::{heartbeat, types};
use client::{Credentials, Link, Settings, SettingsError};
use parking_lot::Mutex;
use runtime::Tasks;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio_util::sync::DropGuard;
use tracing::info_span;

use crate::targets::index::TargetKey;

/// How often the types of a physical cluster are looked at.
const TYPES: Duration = Duration::from_secs(60);

/// What the Lease says who holds it.
const HOLDER: &str = contract::OPERATOR_MANAGER;

/// The agents that run in this process.
pub(crate) struct Pushes {
    /// The hub, as nobody.
    hub: Settings,
    metrics: Metrics,
    tasks: Tasks,
    running: Mutex<HashMap<TargetKey, Running>>,
}

struct Running {
    /// Of the kubeconfig that it goes by.
    digest: [u8; 32],
    /// Introduces itself.
    bootstrap: Link,
    _stop: DropGuard,
}

// === impl Pushes ===

impl Pushes {
    /// None yet. They run among `tasks`.
    pub(crate) fn new(hub: &Settings, metrics: Metrics, tasks: Tasks) -> Self {
        let hub = Settings { credentials: Credentials::None, ..hub.clone() };
        Self { hub, metrics, tasks, running: Mutex::default() }
    }

    /// Runs the agent of a target, with a token if it may need one. A changed kubeconfig starts it anew.
    ///
    /// # Errors
    /// When there is no link to the hub.
    pub(crate) fn ensure(
        &self,
        key: &TargetKey,
        kubeconfig: &[u8],
        downstream: &Link,
        token: Option<String>,
    ) -> Result<(), SettingsError> {
        let digest = Sha256::digest(kubeconfig).into();
        let credentials = token.map_or(Credentials::None, Credentials::Token);
        let mut running = self.running.lock();
        if let Some(present) = running.get(key).filter(|present| present.digest == digest) {
            if !matches!(credentials, Credentials::None) {
                present.bootstrap.replace_credentials(&credentials)?;
            }
            return Ok(());
        }
        let bootstrap = Link::new(Settings { credentials, ..self.hub.clone() })?;
        let agent = Agent {
            target: TargetRef::new(&key.cluster, &key.name, &key.uid),
            hub: Link::new(self.hub.clone())?,
            bootstrap: bootstrap.clone(),
            downstream: downstream.clone(),
            metrics: self.metrics.clone(),
        };
        let stop = self.tasks.cancellation().child_token();
        let stopped = stop.clone();
        let span = info_span!("push", target = %key);
        drop(self.tasks.spawn(span, async move {
            // It is large, and lives long.
            stopped.run_until_cancelled(Box::pin(agent.run())).await;
        }));
        // The one before ends with its guard.
        running.insert(key.clone(), Running { digest, bootstrap, _stop: stop.drop_guard() });
        Ok(())
    }

    /// Whether the agent of a target runs.
    pub(crate) fn runs(&self, key: &TargetKey) -> bool {
        self.running.lock().contains_key(key)
    }

    /// Whether the agent of a target runs and goes by this kubeconfig.
    pub(crate) fn runs_by(&self, key: &TargetKey, kubeconfig: &[u8]) -> bool {
        let digest: [u8; 32] = Sha256::digest(kubeconfig).into();
        self.running.lock().get(key).is_some_and(|present| present.digest == digest)
    }

    /// Ends the agent of a target, if one runs.
    pub(crate) fn stop(&self, key: &TargetKey) {
        self.running.lock().remove(key);
    }
}

impl std::fmt::Debug for Pushes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pushes").finish_non_exhaustive()
    }
}

/// One agent.
struct Agent {
    target: TargetRef,
    hub: Link,
    bootstrap: Link,
    downstream: Link,
    metrics: Metrics,
}

// === impl Agent ===

impl Agent {
    /// Works until it is dropped.
    async fn run(self) {
        let (told, standing) = watch::channel(Standing::Unknown);
        let identity = Identity {
            target: self.target.clone(),
            hub: self.hub.clone(),
            bootstrap: Some(self.bootstrap.clone()),
            keep: Arc::new(Keep::memory()),
        };
        let certified = |standing: &Standing| matches!(standing, Standing::Certified { .. });
        let mut waiting = standing.clone();
        let working = async {
            // Its sender lives as long as this.
            drop(waiting.wait_for(certified).await);
            let (types_sender, types) = watch::channel(Arc::from([]));
            let (progress, _) = watch::channel(Progress::default());
            let (seen, _) = watch::channel(None);
            let handover = Handover::default();
            let kept = Kept {
                link: self.downstream.clone(),
                uid: self.target.uid.to_string(),
                handover: handover.clone(),
            };
            kept.load().await;
            let settings = sync::Settings {
                target: self.target.clone(),
                upstream: Upstream { link: self.hub.clone(), shape: Shape::Hub },
                downstream: self.downstream.clone(),
                types,
                standing: Some(standing.clone()),
                reserved_namespaces: BTreeSet::new(),
                parallel: PARALLEL,
                version: env!("CARGO_PKG_VERSION"),
                metrics: self.metrics.clone(),
                plain: None,
                handover: Some(handover),
            };
            let importing = types::Settings {
                target: self.target.clone(),
                hub: self.hub.clone(),
                cluster: self.downstream.clone(),
                every: TYPES,
                types: types_sender,
            };
            tokio::join!(
                sync::run(settings, progress, seen),
                types::run(importing),
                kept.keep(),
                heartbeat::run(&self.hub, &self.target, HOLDER, &self.metrics.heartbeats),
            );
        };
        tokio::join!(identity.run(&told), working);
    }
}
