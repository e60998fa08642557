//! The one task that owns the engine.

mod telling;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use engine::{
    Adoption, Approvals, Engine, Exemption, Identity, Limits, Mapping, Memory, Now, Outcome, Side,
    StatusDown, Target, UpstreamChange, Upsync,
};
use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use runtime::Tasks;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::DropGuard;
use tracing::{debug, debug_span, info};

use super::exec::{Done, execute};
use super::follow::{self, Followed, Poke, Reach};
use super::watch::{Input, Source};
use super::{Progress, Settings};
use crate::leader::Handover;
use telling::{HUB, StatusWriter};
use watches::Watches;

/// Inputs that wait for the engine. Each holds an object; a watch that has no room waits, and with it
/// its server.
const INPUTS: usize = 512;

/// Inputs that are told to the engine before it is asked what to do.
const BATCH: usize = 256;

/// How soon after a change it is told how it goes: counting takes a look at every object.
const REPORT: Duration = Duration::from_millis(250);

/// The longest between two turns, so that it shows when there are none.
const TICK: Duration = Duration::from_secs(5);

/// Syncs until it is dropped; then nothing of it is under way any more.
///
/// `progress` tells how it goes, `seen` the SyncTarget each time that it was read.
pub async fn run(
    settings: Settings,
    progress: watch::Sender<Progress>,
    seen: watch::Sender<Option<Arc<Value>>>,
) {
    let tasks = Tasks::new();
    let _end = tasks.cancellation().clone().drop_guard();
    progress.send_replace(Progress { complete: false, waits_for: HUB.to_owned() });
    let mut following = Following::new(&settings, &tasks);
    // What the engine is told of is of the hub that it begins with, and of no other.
    let (identity, object, opened) = loop {
        match following.followed.recv().await {
            Some(Followed::Known(identity, object, opened))
                if identity.target == settings.target.uid =>
            {
                break (identity, object, opened);
            }
            // One that was made again under the same name is another target.
            Some(Followed::Known(..) | Followed::Unknown) => {}
            None => return,
        }
    };
    let mut driver = Driver::new(settings, &tasks, following, &identity, progress, seen);
    driver.follow(Followed::Known(identity, object, opened));
    driver.run().await;
}

/// What is looked at again and again.
struct Following {
    followed: mpsc::Receiver<Followed>,
    reach: watch::Receiver<Reach>,
    poke: Arc<Poke>,
    _end: DropGuard,
}

struct Driver {
    engine: Engine,
    settings: Settings,
    begun: Instant,
    inputs: mpsc::Receiver<Input>,
    following: Following,
    watches: Watches,
    running: FuturesUnordered<BoxFuture<'static, Done>>,
    /// The SyncTarget as read last.
    object: Arc<Value>,
    /// Whether the hub is known to be the same as before.
    known: bool,
    proof: Proof,
    /// What was handed over last.
    handed: Option<Memory>,
    /// What was told last of how the hub has changed.
    told_change: Option<UpstreamChange>,
    lost: [bool; 2],
    status: StatusWriter,
    progress: watch::Sender<Progress>,
    report_due: Option<Instant>,
    seen: watch::Sender<Option<Arc<Value>>>,
    /// What of the gauges is this engine's: another one of the process may share them.
    gauged: [i64; 5],
    dropped_events: u64,
}

/// Of which connections to the hub it is known who answers.
struct Proof {
    /// How many were opened so far.
    opened: watch::Receiver<u64>,
    /// How many had been when the SyncTarget was read.
    proven: u64,
    /// More have been since, and the engine knows.
    in_doubt: bool,
}

enum Step {
    Inputs(usize),
    Done(Done),
    Followed(Followed),
    Reach,
    Types,
    /// Something is to be looked at that is looked at in every turn.
    Woken,
    Status(Option<Value>),
    Due,
}

// === impl Driver ===

impl Driver {
    fn new(
        settings: Settings,
        tasks: &Tasks,
        following: Following,
        identity: &Identity,
        progress: watch::Sender<Progress>,
        seen: watch::Sender<Option<Arc<Value>>>,
    ) -> Self {
        let (sender, inputs) = mpsc::channel(INPUTS);
        let watches = Watches::new(&settings, tasks, sender);
        let mut engine = Engine::new(target_of(&settings, &Value::Null, identity.clone()));
        let kept = settings.handover.as_ref().and_then(Handover::text);
        let handed = kept.and_then(|text| serde_json::from_str::<Memory>(&text).ok());
        if let Some(memory) = &handed {
            engine.remember(memory);
        }
        let opened = settings.upstream.link.opened();
        Self {
            engine,
            begun: Instant::now(),
            inputs,
            following,
            watches,
            running: FuturesUnordered::new(),
            object: Arc::new(Value::Null),
            known: false,
            handed,
            told_change: None,
            proof: Proof { opened, proven: 0, in_doubt: false },
            lost: [false; 2],
            status: StatusWriter::default(),
            progress,
            report_due: None,
            seen,
            gauged: [0; 5],
            dropped_events: 0,
            settings,
        }
    }

    fn now(&self) -> Now {
        Now { clock: self.begun.elapsed(), wall: Timestamp::now() }
    }

    async fn run(mut self) {
        self.apply_types();
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let step = self.step(&mut batch).await;
            let turn = Instant::now();
            match step {
                Step::Inputs(0) => return,
                Step::Inputs(_) => {
                    for input in batch.drain(..) {
                        self.input(input);
                    }
                }
                Step::Done(done) => {
                    self.done(done);
                    // What else is answered already is told before the engine is asked again.
                    while let Some(Some(done)) = self.running.next().now_or_never() {
                        self.done(done);
                    }
                }
                Step::Followed(followed) => self.follow(followed),
                Step::Types => self.apply_types(),
                Step::Reach => {
                    if self.following.reach.borrow_and_update().answers == Some(true) {
                        let now = self.now();
                        self.engine.reachable(Side::Downstream, now);
                    }
                }
                Step::Status(written) => self.status.done(written),
                Step::Woken => {}
                Step::Due => {
                    let past = |due: &Instant| *due <= turn;
                    // What is due now is looked at in the report.
                    if self.status.due.as_ref().is_some_and(past) {
                        self.status.due = None;
                        self.report_due = Some(turn);
                    }
                }
            }
            self.doubt();
            self.plan();
            self.watches.known(self.engine.newest());
            let due = *self.report_due.get_or_insert(turn + REPORT);
            if Instant::now() >= due {
                self.report_due = None;
                self.report();
            }
            self.settings.metrics.turn_seconds.observe(turn.elapsed().as_secs_f64());
        }
    }

    /// Waits for the next thing to do.
    async fn step(&mut self, batch: &mut Vec<Input>) -> Step {
        // While no more may run, an answer has to come before anything can be planned.
        let due = if self.room() > 0 { self.engine.next_due() } else { None };
        let due = due.map(|due| self.begun + due);
        let due = due.unwrap_or_else(far).min(Instant::now() + TICK);
        let due = [self.status.due, self.report_due].into_iter().flatten().fold(due, Instant::min);
        let standing = async {
            if let Some(standing) = &mut self.settings.standing
                && standing.changed().await.is_ok()
            {
                return;
            }
            std::future::pending::<()>().await;
        };
        let writing = async {
            match &mut self.status.running {
                Some(writing) => writing.await,
                None => std::future::pending().await,
            }
        };
        let types = async {
            if self.settings.types.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let handover = self.settings.handover.as_ref().filter(|handover| handover.is_urgent());
        let kept = async {
            match handover {
                Some(handover) => handover.kept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            count = self.inputs.recv_many(batch, BATCH) => Step::Inputs(count),
            Some(done) = self.running.next(), if !self.running.is_empty() => Step::Done(done),
            Some(followed) = self.following.followed.recv() => Step::Followed(followed),
            () = types => Step::Types,
            () = standing => Step::Woken,
            Ok(()) = self.proof.opened.changed() => Step::Woken,
            () = kept => Step::Woken,
            written = writing => Step::Status(written),
            Ok(()) = self.following.reach.changed() => Step::Reach,
            () = tokio::time::sleep_until(due) => Step::Due,
        }
    }

    fn input(&mut self, input: Input) {
        let now = self.now();
        match input {
            Input::Seen(source, event, at) => {
                self.settings.metrics.input_seconds.observe(at.elapsed().as_secs_f64());
                match source {
                    Source::Upstream(resource) => self.engine.upstream(&resource, event, now),
                    Source::Downstream(resource) => self.engine.downstream(&resource, event, now),
                    Source::Born(resource) => self.engine.born(&resource, event, now),
                    Source::Risen(resource) => self.engine.risen(&resource, event, now),
                    Source::Records => self.engine.records(event, now),
                    Source::Namespaces => self.engine.namespaces(event, now),
                    Source::Events => {
                        if let engine::Event::Applied(event) = event {
                            self.engine.event(&event, now);
                        }
                    }
                }
            }
            Input::Asked(source, newest) => {
                if let Source::Upstream(resource) = source {
                    self.engine.listing(&resource, newest);
                }
            }
            Input::Served(resources) => self.engine.resources(resources),
            Input::Lost(side) => {
                self.lost[index(side)] = true;
                if side == Side::Upstream {
                    // Whoever answers next may be another.
                    if self.known {
                        info!("the connection to the hub broke");
                    }
                    self.known = false;
                    self.engine.identity(None, now);
                    self.following.poke.now();
                }
            }
            Input::Reached(side) => {
                if std::mem::take(&mut self.lost[index(side)]) {
                    self.engine.reachable(side, now);
                    self.watches.recovered(side);
                }
            }
        }
    }

    fn done(&mut self, done: Done) {
        done.measure(&self.settings.metrics);
        if let Outcome::Failed(failure) = &done.outcome {
            debug!(kind = done.kind.name(), ?failure, "no answer");
        }
        let now = self.now();
        self.engine.outcome(done.id, done.outcome, now);
    }

    fn follow(&mut self, followed: Followed) {
        let now = self.now();
        match followed {
            Followed::Unknown => {
                self.known = false;
                self.engine.identity(None, now);
            }
            Followed::Known(identity, object, opened) => {
                self.proof.proven = opened;
                self.proof.in_doubt = false;
                if !self.known {
                    info!(hub = %identity.hub, target = %identity.target, "the hub is known");
                    self.engine.reachable(Side::Upstream, now);
                }
                self.known = true;
                self.engine.identity(Some(identity.clone()), now);
                if self.object != object {
                    let target = target_of(&self.settings, &object, identity);
                    self.watches.set_wildcard(target.wildcard);
                    self.engine.set_target(target, now);
                    let (approvals, exemptions) = (Approvals::of(&object), Exemption::of(&object));
                    self.engine.approvals(approvals, exemptions, now);
                    self.object = object.clone();
                }
                self.watches.set(self.engine.watched(), self.engine.upsynced());
                self.seen.send_replace(Some(object));
            }
        }
    }

    /// Whoever answers over a connection that was opened since the SyncTarget was read may be another
    /// hub, or the same one after it was restored: until it is read again, nothing that was said over
    /// it is evidence.
    fn doubt(&mut self) {
        let opened = *self.proof.opened.borrow_and_update();
        if opened > self.proof.proven && !self.proof.in_doubt {
            self.proof.in_doubt = true;
            self.engine.identity(None, self.now());
            self.following.poke.now();
        }
    }

    fn apply_types(&mut self) {
        let types = self.settings.types.borrow_and_update().clone();
        let now = self.now();
        self.engine.types(types.to_vec(), now);
        // Where objects are is not known before the SyncTarget is.
        if self.known {
            self.watches.set(self.engine.watched(), self.engine.upsynced());
        }
    }

    /// How many more actions may run.
    fn room(&self) -> usize {
        self.settings.parallel.saturating_sub(self.running.len())
    }

    fn plan(&mut self) {
        let room = self.room();
        if room > 0 {
            let now = self.now();
            for action in self.engine.plan(now, room) {
                let (upstream, downstream) =
                    (self.settings.upstream.clone(), self.settings.downstream.clone());
                self.running.push(execute(upstream, downstream, action).boxed());
            }
        }
        let running = i64::try_from(self.running.len()).unwrap_or(i64::MAX);
        self.settings.metrics.in_flight.set(running);
    }
}

// === impl Following ===

impl Following {
    fn new(settings: &Settings, tasks: &Tasks) -> Self {
        // One that waits is enough: each replaces the one before.
        let (follower, followed) = mpsc::channel(1);
        let (probe, reach) = watch::channel(Reach::default());
        let poke = Arc::new(Poke::default());
        let (upstream, target) = (settings.upstream.clone(), settings.target.clone());
        let poked = poke.clone();
        let end = tasks.cancellation().child_token();
        let stop = end.clone();
        tasks.spawn(debug_span!("sync_target"), async move {
            let following = follow::upstream(&upstream, &target, &poked, &follower);
            stop.run_until_cancelled(following).await;
        });
        let (downstream, stop) = (settings.downstream.clone(), end.clone());
        tasks.spawn(debug_span!("probe"), async move {
            stop.run_until_cancelled(follow::downstream(&downstream, &probe)).await;
        });
        Self { followed, reach, poke, _end: end.drop_guard() }
    }
}

fn index(side: Side) -> usize {
    match side {
        Side::Upstream => 0,
        Side::Downstream => 1,
    }
}

/// A moment that does not come.
fn far() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}

/// What the SyncTarget says, as the engine takes it.
fn target_of(settings: &Settings, object: &Value, identity: Identity) -> Target {
    let spec = object.get("spec");
    let text = |field: &str| spec.and_then(|spec| spec.get(field)?.as_str());
    let plain = settings.plain.unwrap_or_default();
    Target {
        identity,
        cluster: settings.target.cluster.clone(),
        name: settings.target.name.clone(),
        wildcard: spec.is_some_and(|spec| spec.get("allowedClusters").is_some()),
        mapping: match text("namespaceMapping") {
            Some("Hashed") => Mapping::Hashed,
            Some(_) => Mapping::Same,
            None => plain.mapping,
        },
        adoption: match text("adoption") {
            Some("IfNoDiff") => Adoption::IfNoDiff,
            Some("Always") => Adoption::Always,
            Some(_) => Adoption::Never,
            None => plain.adoption,
        },
        upsync: Upsync::of(object),
        status_down: StatusDown::of(object),
        reserved_namespaces: settings.reserved_namespaces.clone(),
        limits: Limits::default(),
    }
}

#[cfg(test)]
mod tests;
