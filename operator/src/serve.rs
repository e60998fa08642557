//! How an operator is put together, starts and ends.
//!
//! Of several, one leads, by a Lease in `root`; the others stand by. Everything that an operator does
//! runs in its term and ends with it, before another may begin.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent::leader::{Candidate, Handover, MARGIN};
use client::{Link, Settings};
use parking_lot::Mutex;
use prometheus::Registry;
use runtime::Tasks;
use runtime::pages::{self, Pages};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tracing::{info, info_span, warn};

use crate::api::{Api, CallError};
use crate::args::{Options, read_hub};
use crate::assign::Assigner;
use crate::assign::index::Objects;
use crate::definitions::{self, DefinitionError};
use crate::events::Events;
use crate::metrics::Metrics;
use crate::push::Pushes;
use crate::targets::Controller;
use crate::targets::index::Targets;
use crate::types::TypesController;

/// The pause before the hub is tried again at the start; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// The Lease by which one leads, in `root`.
const LEASE: (&str, &str) = ("kube-system", contract::OPERATOR_MANAGER);

/// How often the kubeconfig is read again while the hub refuses the operator.
const REREAD: Duration = Duration::from_secs(10);

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
    /// It was ended before.
    #[error("it was ended before it began")]
    Ended,
}

/// What it does now.
#[derive(Debug)]
enum Phase {
    /// Nothing: the hub has not answered.
    Waits,
    /// Another one leads.
    StandsBy,
    /// It leads, and follows these.
    Leads(Arc<Targets>),
}

/// What the pages tell.
#[derive(Debug)]
struct State {
    metrics: Arc<Metrics>,
    phase: Mutex<Phase>,
}

/// What a term needs.
struct Work {
    options: Arc<Options>,
    link: Link,
    state: Arc<State>,
    /// Told when it has begun or stands by, and when it can't go on.
    told: mpsc::Sender<Result<(), StartError>>,
}

// === impl Operator ===

impl Operator {
    /// Starts an operator. Returns when it leads and its controllers run, or when it stands by.
    ///
    /// # Errors
    /// What does not pass by waiting.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let tasks = Tasks::new();
        let metrics = Arc::new(Metrics::new().map_err(StartError::Metrics)?);
        let state = Arc::new(State { metrics, phase: Mutex::new(Phase::Waits) });
        let pages = match options.listen {
            Some(address) => {
                let bound = pages::serve(address, state.clone(), &tasks).await;
                Some(bound.map_err(|error| StartError::Listen(address, error))?)
            }
            None => None,
        };
        let link = Link::new(options.hub.clone()).map_err(StartError::Hub)?;
        if let Some(kubeconfig) = options.kubeconfig.clone() {
            let follow = follow_credentials(link.clone(), kubeconfig);
            let cancelled = tasks.cancellation().clone();
            drop(tasks.spawn(info_span!("credentials"), async move {
                cancelled.run_until_cancelled(follow).await;
            }));
        }
        let root = Settings {
            server: options
                .hub
                .server
                .with_path(&format!("{}/clusters/root", options.hub.server.path())),
            ..options.hub.clone()
        };
        let candidate = Candidate {
            // Of its own: the Lease is renewed whatever else goes on.
            link: Link::new(root).map_err(StartError::Hub)?,
            namespace: LEASE.0.to_owned(),
            name: LEASE.1.to_owned(),
            identity: own_name(),
            handover: Handover::default(),
        };
        // One word is enough: that it has begun.
        let (told, mut begun) = mpsc::channel(1);
        let work = Work { options: Arc::new(options), link, state: state.clone(), told };
        let ending = tasks.cancellation().clone();
        drop(tasks.spawn(info_span!("operator"), async move {
            let led = work.lead(&candidate, &ending);
            // What it holds is given back by itself.
            led.await;
        }));
        match begun.recv().await {
            Some(Ok(())) => Ok(Self { tasks, pages, state }),
            Some(Err(error)) => {
                tasks.cancel();
                Err(error)
            }
            None => Err(StartError::Ended),
        }
    }

    /// Where its pages are.
    pub fn pages(&self) -> Option<SocketAddr> {
        self.pages
    }

    /// Whether it has listed everything and works, or stands by.
    pub fn is_ready(&self) -> bool {
        self.state.ready().is_ok()
    }

    /// Whether it is the one that works.
    pub fn leads(&self) -> bool {
        matches!(*self.state.phase.lock(), Phase::Leads(_))
    }

    /// Ends it; what has not ended in time is given up.
    pub async fn shutdown(self, patience: Duration) {
        let left = self.tasks.shutdown(patience).await;
        if left > 0 {
            warn!(left, "tasks were still running");
        }
    }
}

// === impl Work ===

impl Work {
    /// Works whenever it leads, until it is to end.
    async fn lead(&self, candidate: &Candidate, ending: &tokio_util::sync::CancellationToken) {
        loop {
            let elected = candidate.lead(|| {
                *self.state.phase.lock() = Phase::StandsBy;
                self.tell(Ok(()));
            });
            let Some(mut term) = ending.run_until_cancelled(elected).await else { return };
            let tasks = Tasks::new();
            tokio::select! {
                () = self.work(&tasks) => {}
                () = candidate.hold(&mut term) => {}
                () = ending.cancelled() => {}
            }
            // Another may begin a margin after the term: until then all of this has ended.
            let left = tasks.shutdown(MARGIN).await;
            if left > 0 {
                warn!(left, "tasks of this term were still running");
            }
            candidate.release(term).await;
            if ending.is_cancelled() {
                return;
            }
            *self.state.phase.lock() = Phase::StandsBy;
        }
    }

    /// One term: it ends by being dropped, or when the hub refuses the operator.
    async fn work(&self, tasks: &Tasks) {
        let hub = Api::of_hub(self.link.client());
        if let Err(error) = install_types(&hub, &self.options).await {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            warn!(%error, cause, "the types are not installed");
            self.tell(Err(error));
            // Another time; whoever waits for the start has ended it by then.
            tokio::time::sleep(LONGEST_PAUSE).await;
            return;
        }
        let targets = Arc::new(Targets::default());
        let objects = Arc::new(Mutex::new(Objects::default()));
        let metrics = self.state.metrics.clone();
        let all = format!("{}/clusters/*", self.options.hub.server.path());
        let client = self.link.client_at(&all);
        let events = Events::default();
        let pushes = Pushes::new(&self.options.hub, metrics.agents.clone(), tasks.clone());
        let controller = Arc::new(Controller::new(
            hub.clone(),
            self.options.clone(),
            targets.clone(),
            objects.clone(),
            events.clone(),
            metrics.clone(),
            pushes,
        ));
        controller.start(&client, tasks);
        let types = Arc::new(TypesController::new(self.link.clone(), &metrics, tasks));
        types.start(&client);
        let assigner = Arc::new(Assigner::new(hub, targets.clone(), objects, events, metrics));
        assigner.start(&client, tasks);
        *self.state.phase.lock() = Phase::Leads(targets);
        info!("the operator works");
        self.tell(Ok(()));
        std::future::pending::<()>().await;
    }

    /// The first word counts.
    fn tell(&self, word: Result<(), StartError>) {
        // The queue is full, or nobody waits any more, when it has begun.
        self.told.try_send(word).ok();
    }
}

// === impl State ===

impl Pages for State {
    fn ready(&self) -> Result<(), String> {
        match &*self.phase.lock() {
            Phase::Waits => Err("waiting for the hub".into()),
            Phase::Leads(targets) if !targets.is_listed() => {
                Err("the SyncTargets have not been listed".into())
            }
            Phase::StandsBy | Phase::Leads(_) => Ok(()),
        }
    }

    fn metrics(&self) -> &Registry {
        &self.metrics.registry
    }
}

/// Unlike any other process: the host's name, and something of this run alone.
fn own_name() -> String {
    let host = std::env::var("POD_NAME").ok();
    let host = host.or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
    let host = host.as_deref().map_or("operator", str::trim).to_owned();
    let now = jiff::Timestamp::now().as_nanosecond();
    let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), now);
    let digest = Sha256::digest(format!("{host}|{}|{now}|{seed}", std::process::id()));
    let run: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("{host}_{run}")
}

/// Reads the kubeconfig again when the hub refuses the operator: its certificate may have been renewed.
async fn follow_credentials(link: Link, kubeconfig: PathBuf) {
    let mut refused = link.unauthorized();
    while refused.changed().await.is_ok() {
        match read_hub(&kubeconfig) {
            Ok((settings, _)) => {
                let replaced = link
                    .replace_credentials(&settings.credentials)
                    .and_then(|()| link.replace_authorities(settings.authorities));
                if let Err(error) = replaced {
                    warn!(%error, "the kubeconfig has nothing of use");
                }
            }
            Err(error) => warn!(error = format!("{error:#}"), "the kubeconfig is not read again"),
        }
        tokio::time::sleep(REREAD).await;
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
