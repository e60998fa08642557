//! How an operator is put together, starts and ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use client::Link;
use prometheus::Registry;
use runtime::Tasks;
use runtime::pages::{self, Pages};
use tracing::{info, warn};

use crate::api::{Api, CallError};
use crate::args::Options;
use crate::assign::Assigner;
use crate::definitions::{self, DefinitionError};
use crate::events::Events;
use crate::metrics::Metrics;
use crate::targets::Controller;
use crate::targets::index::Targets;
use crate::types::TypesController;

/// The pause before the hub is tried again at the start; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// A running operator.
#[derive(Debug)]
pub struct Operator {
    tasks: Tasks,
    pages: Option<SocketAddr>,
    state: Arc<State>,
}

/// Why an operator does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The hub cannot be asked with these settings.
    #[error("set up the connection to the hub")]
    Hub(#[source] client::SettingsError),
    /// The hub does not know the operator, or does not let it do its work.
    #[error("the hub refuses the operator")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The address of the pages cannot be listened on.
    #[error("listen on {0}")]
    Listen(SocketAddr, #[source] std::io::Error),
    /// Metrics cannot be set up.
    #[error("set up metrics")]
    Metrics(#[source] prometheus::Error),
}

/// What the pages tell.
#[derive(Debug)]
struct State {
    metrics: Arc<Metrics>,
    targets: Arc<Targets>,
    /// Whether the types are there and the controllers run.
    running: AtomicBool,
}

// === impl Operator ===

impl Operator {
    /// Starts an operator: waits for the hub, installs the types, and runs the controllers.
    ///
    /// # Errors
    /// What does not pass by waiting.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let tasks = Tasks::new();
        let metrics = Arc::new(Metrics::new().map_err(StartError::Metrics)?);
        let targets = Arc::new(Targets::default());
        let state = Arc::new(State {
            metrics: metrics.clone(),
            targets: targets.clone(),
            running: AtomicBool::new(false),
        });
        let pages = match options.listen {
            Some(address) => {
                let bound = pages::serve(address, state.clone(), &tasks).await;
                Some(bound.map_err(|error| StartError::Listen(address, error))?)
            }
            None => None,
        };
        let link = Link::new(options.hub.clone()).map_err(StartError::Hub)?;
        let hub = Api::of_hub(link.client());
        install_types(&hub, &options).await?;
        let all = format!("{}/clusters/*", options.hub.server.path());
        let client = link.client_at(&all);
        let options = Arc::new(options);
        let events = Events::default();
        let controller = Arc::new(Controller::new(
            hub.clone(),
            options,
            targets.clone(),
            events.clone(),
            metrics.clone(),
        ));
        controller.start(&client, &tasks);
        let types = Arc::new(TypesController::new(link, &metrics, &tasks));
        types.start(&client);
        let assigner = Arc::new(Assigner::new(hub, targets, events, metrics));
        assigner.start(&client, &tasks);
        state.running.store(true, Ordering::Release);
        info!(pages = ?pages, "the operator runs");
        Ok(Self { tasks, pages, state })
    }

    /// Where its pages are.
    pub fn pages(&self) -> Option<SocketAddr> {
        self.pages
    }

    /// Whether it has listed everything and works.
    pub fn is_ready(&self) -> bool {
        self.state.ready().is_ok()
    }

    /// Ends it; what has not ended in time is given up.
    pub async fn shutdown(self, patience: Duration) {
        let left = self.tasks.shutdown(patience).await;
        if left > 0 {
            warn!(left, "tasks were still running");
        }
    }
}

// === impl State ===

impl Pages for State {
    fn ready(&self) -> Result<(), String> {
        if !self.running.load(Ordering::Acquire) {
            return Err("waiting for the hub".into());
        }
        if !self.targets.is_listed() {
            return Err("the SyncTargets have not been listed".into());
        }
        Ok(())
    }

    fn metrics(&self) -> &Registry {
        &self.metrics.registry
    }
}

/// Installs the types as soon as the hub is there.
async fn install_types(hub: &Api, options: &Options) -> Result<(), StartError> {
    let mut pause = FIRST_PAUSE;
    loop {
        match definitions::install(hub, options.default_mode).await {
            Ok(()) => return Ok(()),
            Err(DefinitionError::Apply(name, error)) if is_final(&error) => {
                let error = DefinitionError::Apply(name, error);
                return Err(StartError::Refused(Box::new(error)));
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                warn!(%error, cause, "the types are not installed yet");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Whether waiting changes nothing.
fn is_final(error: &CallError) -> bool {
    matches!(error.code(), Some(401 | 403 | 422))
}
