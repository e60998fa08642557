//! The one task that owns the engine.

mod watches;

use std::sync::Arc;
use std::time::Duration;

use engine::{
    Adoption, Approvals, Engine, Exemption, Identity, Limits, Mapping, Now, Outcome, Side, Target,
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
use super::side::Shape;
use super::status::{self, Facts};
use super::watch::{Input, Source};
use super::{Progress, Settings};
use crate::identity::Standing;
use watches::Watches;

/// Inputs that wait for the engine. Each holds an object; a watch that has no room waits, and with it
/// its server.
const INPUTS: usize = 512;

/// Inputs that are told to the engine before it is asked what to do.
const BATCH: usize = 256;

/// The shortest time between two writes of the status.
const STATUS_INTERVAL: Duration = Duration::from_secs(5);

/// How long after it could not be written the status is written again.
const STATUS_AGAIN: Duration = Duration::from_secs(10);

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
    let (identity, object) = loop {
        match following.followed.recv().await {
            Some(Followed::Known(identity, object)) if identity.target == settings.target.uid => {
                break (identity, object);
            }
            // One that was made again under the same name is another target.
            Some(Followed::Known(..) | Followed::Unknown) => {}
            None => return,
        }
    };
    let mut driver = Driver::new(settings, &tasks, following, &identity, progress, seen);
    driver.follow(Followed::Known(identity, object));
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
    lost: [bool; 2],
    status: StatusWriter,
    progress: watch::Sender<Progress>,
    report_due: Option<Instant>,
    seen: watch::Sender<Option<Arc<Value>>>,
    /// What of the gauges is this engine's: another one of the process may share them.
    gauged: [i64; 5],
    dropped_events: u64,
}

/// Writes the status now and then, one write at a time.
#[derive(Default)]
struct StatusWriter {
    written: Option<Value>,
    due: Option<Instant>,
    running: Option<BoxFuture<'static, Option<Value>>>,
}

/// What a sync waits for at first.
const HUB: &str = "the hub";

enum Step {
    Inputs(usize),
    Done(Done),
    Followed(Followed),
    Reach,
    Types,
    Standing,
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
        let engine = Engine::new(target_of(&settings, &Value::Null, identity.clone()));
        Self {
            engine,
            begun: Instant::now(),
            inputs,
            following,
            watches,
            running: FuturesUnordered::new(),
            object: Arc::new(Value::Null),
            known: false,
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
                Step::Standing => {}
                Step::Due => {
                    let past = |due: &Instant| *due <= turn;
                    // What is due now is looked at in the report.
                    if self.status.due.as_ref().is_some_and(past) {
                        self.status.due = None;
                        self.report_due = Some(turn);
                    }
                }
            }
            self.plan();
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
        let due = self.engine.next_due().map(|due| self.begun + due);
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
        tokio::select! {
            count = self.inputs.recv_many(batch, BATCH) => Step::Inputs(count),
            Some(done) = self.running.next(), if !self.running.is_empty() => Step::Done(done),
            Some(followed) = self.following.followed.recv() => Step::Followed(followed),
            () = types => Step::Types,
            () = standing => Step::Standing,
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
                    Source::Records => self.engine.records(event, now),
                    Source::Namespaces => self.engine.namespaces(event, now),
                    Source::Events => {
                        if let engine::Event::Applied(event) = event {
                            self.engine.event(&event, now);
                        }
                    }
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
            Followed::Known(identity, object) => {
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
                self.watches.set(self.engine.watched());
                self.seen.send_replace(Some(object));
            }
        }
    }

    fn apply_types(&mut self) {
        let types = self.settings.types.borrow_and_update().clone();
        let now = self.now();
        self.engine.types(types.to_vec(), now);
        // Where objects are is not known before the SyncTarget is.
        if self.known {
            self.watches.set(self.engine.watched());
        }
    }

    fn plan(&mut self) {
        let room = self.settings.parallel.saturating_sub(self.running.len());
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

    /// Tells how it goes: to probes, metrics, and the SyncTarget's status.
    fn report(&mut self) {
        let summary = self.engine.summary();
        self.following.poke.often(summary.undecided);
        let waits_for = if !self.known {
            HUB
        } else if self.following.reach.borrow().answers != Some(true) {
            "the physical cluster"
        } else if !summary.complete {
            "the first lists"
        } else {
            ""
        };
        let told = Progress { complete: summary.complete, waits_for: waits_for.to_owned() };
        self.progress.send_if_modified(|present| {
            let changed = *present != told;
            *present = told;
            changed
        });
        let gauges = ["synced", "failed", "pending", "orphan", "copy"];
        let counts =
            [summary.synced, summary.failed, summary.pending, summary.orphans, summary.copies];
        for ((name, count), gauged) in gauges.iter().zip(counts).zip(&mut self.gauged) {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            if count != *gauged {
                self.settings.metrics.objects.with_label_values(&[name]).add(count - *gauged);
                *gauged = count;
            }
        }
        let dropped = summary.dropped_events.saturating_sub(self.dropped_events);
        self.settings.metrics.dropped_events.inc_by(dropped);
        self.dropped_events = summary.dropped_events;
        if self.settings.upstream.shape == Shape::Hub && self.known {
            let standing = self.settings.standing.as_ref().map(|s| s.borrow().clone());
            let facts = Facts {
                standing: standing.filter(|standing| *standing != Standing::Unknown),
                reach: self.following.reach.borrow().clone(),
                summary,
                agent_version: self.settings.version.to_owned(),
            };
            self.write_status(&facts);
        }
    }

    fn write_status(&mut self, facts: &Facts) {
        let now = Instant::now();
        let writer = &mut self.status;
        if writer.running.is_some() || self.object.is_null() {
            return;
        }
        // What was written is what is there; before, what the SyncTarget says.
        let present = match &writer.written {
            Some(written) => written,
            None => &*self.object,
        };
        let wanted = status::body(facts, present, Timestamp::now());
        let written = writer.written.as_ref().and_then(|written| written.get("status"));
        if written == Some(&wanted) {
            writer.due = None;
            return;
        }
        if writer.due.is_some_and(|due| due > now) {
            return;
        }
        if written.is_none() && says(&self.object, &wanted) {
            // As the agent before has left it: nothing is written.
            writer.written = Some(status::object(&self.settings.target.name, &wanted));
            return;
        }
        let object = status::object(&self.settings.target.name, &wanted);
        let hub = self.settings.upstream.link.clone();
        let path = format!(
            "{}/status?fieldManager={}&force=true",
            self.settings.target.path(),
            contract::AGENT
        );
        writer.due = Some(now + STATUS_INTERVAL);
        writer.running = Some(
            async move {
                let apply = "application/apply-patch+yaml";
                let body = object.to_string().into_bytes();
                let ask = client::Ask::with(http::Method::PATCH, &path, apply, body);
                match hub.ask(ask).await {
                    Ok(told) if told.status.is_success() => Some(object),
                    Ok(told) => {
                        debug!(status = told.status.as_u16(), "the status is not written");
                        None
                    }
                    Err(error) => {
                        debug!(%error, "the status is not written");
                        None
                    }
                }
            }
            .boxed(),
        );
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        for (name, gauged) in
            ["synced", "failed", "pending", "orphan", "copy"].iter().zip(self.gauged)
        {
            self.settings.metrics.objects.with_label_values(&[name]).sub(gauged);
        }
        self.settings.metrics.in_flight.set(0);
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

// === impl StatusWriter ===

impl StatusWriter {
    fn done(&mut self, written: Option<Value>) {
        self.running = None;
        match written {
            Some(written) => self.written = Some(written),
            None => self.due = Some(Instant::now() + STATUS_AGAIN),
        }
    }
}

/// Whether an object's status says all of this already.
fn says(object: &Value, wanted: &Value) -> bool {
    let Some(status) = object.get("status") else { return false };
    let Some(wanted) = wanted.as_object() else { return false };
    wanted.iter().all(|(field, value)| match (field.as_str(), value) {
        ("conditions", Value::Array(conditions)) => {
            let there = status.get("conditions").and_then(Value::as_array);
            conditions.iter().all(|condition| there.is_some_and(|all| all.contains(condition)))
        }
        _ => status.get(field) == Some(value),
    })
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
        reserved_namespaces: settings.reserved_namespaces.clone(),
        limits: Limits::default(),
    }
}
