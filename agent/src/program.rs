//! The program: whom it talks to, who leads, and what runs while it does.
//!
//! Of all agents of a SyncTarget that share a namespace one leads; everything else runs in its
//! [`term`](crate::leader::Term) and is dropped with it.

mod cut_off;
mod given;
mod join;
mod pages;
mod setup;
mod work;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use runtime::Tasks;
use tokio_util::sync::CancellationToken;
use tracing::info;

pub use join::manifest as join_manifest;

use crate::args::{Args, Command};
use crate::metrics::Metrics;
use pages::{AgentPages, State};
use setup::Setup;

/// The version that status and requests tell.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the agent calls itself to API servers.
pub const USER_AGENT: &str = concat!("kcp-agent/", env!("CARGO_PKG_VERSION"));

/// How long what is open has to end.
const DRAIN: Duration = Duration::from_secs(5);

/// Runs what the flags say until it has ended or `stop` resolves.
///
/// # Errors
/// When the flags, or the files that they name, are of no use.
pub async fn run(args: Args, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
    if let Some(Command::Join(join)) = &args.command {
        return join::run(join).await;
    }
    let setup = Setup::of(&args.sync)?;
    let metrics = Metrics::new().context("make the metrics")?;
    let state = Arc::new(State::new());
    let tasks = Tasks::new();
    if let Some(address) = args.sync.listen {
        let pages = AgentPages { state: state.clone(), metrics: metrics.clone() };
        let address = runtime::pages::serve(address, Arc::new(pages), &tasks)
            .await
            .with_context(|| format!("listen on {address}"))?;
        info!(%address, "telling about itself");
    }
    let ending = CancellationToken::new();
    let stopped = async {
        stop.await;
        info!("ending");
        ending.cancel();
    };
    tokio::join!(lead(&setup, &metrics, &state, &ending), stopped);
    tasks.shutdown(DRAIN).await;
    Ok(())
}

/// Works whenever it leads, until it is to end.
async fn lead(setup: &Setup, metrics: &Metrics, state: &State, ending: &CancellationToken) {
    let Some(candidate) = &setup.candidate else {
        metrics.leader.set(1);
        state.lead();
        ending.run_until_cancelled(Box::pin(work::run(setup, metrics, state))).await;
        return;
    };
    let mut led = false;
    loop {
        let elected = async {
            tokio::select! {
                term = candidate.lead(|| state.stand_by()) => term,
                // Who has never led knows nothing, and has no certificate.
                () = cut_off::run(setup, metrics), if led => std::future::pending().await,
            }
        };
        let Some(mut term) = ending.run_until_cancelled(elected).await else { return };
        led = true;
        metrics.leader.set(1);
        state.lead();
        // Whichever comes first, the work is dropped here, with every request that is under way.
        tokio::select! {
            () = Box::pin(work::run(setup, metrics, state)) => {}
            () = candidate.hold(&mut term) => {}
            () = ending.cancelled() => {}
        }
        metrics.leader.set(0);
        state.stand_by();
        if ending.is_cancelled() {
            // Whoever comes next can begin at once.
            candidate.release(term).await;
            return;
        }
    }
}
