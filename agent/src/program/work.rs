//! What runs while this process leads.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tracing::{info, warn};

use super::pages::State;
use super::setup::Setup;
use super::{VERSION, given};
use crate::identity::{Identity, Standing};
use crate::metrics::Metrics;
use crate::sync::{self, Progress, Shape};
use crate::target::{Read, TargetRef};
use crate::{heartbeat, types};

/// How often the SyncTarget is looked for when its UID is not given.
const AGAIN: Duration = Duration::from_secs(2);

/// How often the types of the physical cluster are looked at.
const TYPES: Duration = Duration::from_secs(60);

/// Works until it is dropped.
pub(super) async fn run(setup: &Setup, metrics: &Metrics, state: &State) {
    state.waits_for("it waits for the SyncTarget");
    let target = target(setup).await;
    let (told, mut standing) = watch::channel(Standing::Unknown);
    let identity = async {
        let Some((bootstrap, keep)) = &setup.identity else {
            return std::future::pending().await;
        };
        let identity = Identity {
            target: target.clone(),
            hub: setup.upstream.link.clone(),
            bootstrap: bootstrap.clone(),
            keep: keep.clone(),
        };
        identity.run(&told).await;
    };
    let measured = measure(standing.clone(), metrics);
    let working = async {
        if setup.identity.is_some() {
            state.waits_for("it waits for a certificate");
            let certified = |standing: &Standing| matches!(standing, Standing::Certified { .. });
            // The sender lives as long as this.
            drop(standing.wait_for(certified).await);
        }
        let (types_sender, types) = watch::channel(Arc::from([]));
        let (progress_sender, progress) = watch::channel(Progress::default());
        let (seen, _) = watch::channel(None);
        let settings = sync::Settings {
            target: target.clone(),
            upstream: setup.upstream.clone(),
            downstream: setup.downstream.clone(),
            types,
            standing: setup.identity.is_some().then(|| standing.clone()),
            reserved_namespaces: setup.reserved_namespaces.clone(),
            parallel: setup.parallel,
            version: VERSION,
            metrics: metrics.clone(),
            plain: setup.plain,
            handover: setup.candidate.as_ref().map(|candidate| candidate.handover.clone()),
        };
        tokio::join!(
            sync::run(settings, progress_sender, seen),
            of_types(setup, &target, types_sender),
            beat(setup, &target, standing.clone(), metrics),
            follow(progress, state),
        );
    };
    tokio::join!(identity, measured, working);
}

/// The SyncTarget; by hand its UID is looked up.
async fn target(setup: &Setup) -> TargetRef {
    let Setup { cluster, name, .. } = setup;
    if let Some(uid) = &setup.uid {
        return TargetRef::new(cluster, name, uid);
    }
    let unknown = TargetRef::new(cluster, name, "");
    loop {
        match unknown.read_any(&setup.upstream.link).await {
            Ok(Read::Found(object)) => {
                let uid = object.pointer("/metadata/uid").and_then(|uid| uid.as_str());
                if let Some(uid) = uid {
                    info!(%cluster, %name, %uid, "the SyncTarget");
                    return TargetRef::new(cluster, name, uid);
                }
            }
            Ok(other) => warn!(%cluster, %name, ?other, "the SyncTarget is not there"),
            Err(error) => warn!(%error, "the hub does not answer"),
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Finds the types that are synced.
async fn of_types(
    setup: &Setup,
    target: &TargetRef,
    types: watch::Sender<Arc<[engine::SyncedType]>>,
) {
    if setup.resources.is_empty() && setup.upstream.shape == Shape::Hub {
        let settings = types::Settings {
            target: target.clone(),
            hub: setup.upstream.link.clone(),
            cluster: setup.downstream.clone(),
            every: TYPES,
            types,
        };
        return types::run(settings).await;
    }
    given::run(&setup.upstream, &target.cluster, &setup.downstream, &setup.resources, &types).await;
}

/// Renews the Lease at the hub while there is a certificate, or somebody else's credentials.
async fn beat(
    setup: &Setup,
    target: &TargetRef,
    mut standing: watch::Receiver<Standing>,
    metrics: &Metrics,
) {
    if setup.upstream.shape == Shape::Plain {
        return std::future::pending().await;
    }
    let holder = setup.candidate.as_ref().map_or("kcp-agent", |candidate| &candidate.identity);
    let hub = &setup.upstream.link;
    let may = |standing: &Standing| !matches!(standing, Standing::Without { .. });
    loop {
        if standing.wait_for(may).await.is_err() {
            return;
        }
        tokio::select! {
            () = heartbeat::run(hub, target, holder, &metrics.heartbeats) => {}
            _ = standing.wait_for(|standing| !may(standing)) => {}
        }
    }
}

async fn follow(mut progress: watch::Receiver<Progress>, state: &State) {
    loop {
        state.progress(&progress.borrow_and_update());
        if progress.changed().await.is_err() {
            return;
        }
    }
}

async fn measure(mut standing: watch::Receiver<Standing>, metrics: &Metrics) {
    loop {
        let end = match &*standing.borrow_and_update() {
            // Whole seconds: a float has them all.
            #[expect(clippy::cast_precision_loss, reason = "seconds of some thousand years")]
            Standing::Certified { not_after } => not_after.as_second() as f64,
            Standing::Unknown | Standing::Without { .. } => 0.0,
        };
        metrics.certificate_end.set(end);
        if standing.changed().await.is_err() {
            return;
        }
    }
}
