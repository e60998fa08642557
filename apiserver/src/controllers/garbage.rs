//! Garbage collection by owner references, for all logical clusters at once.
//!
//! # Flow
//! The graph of dependents is built from the cache once, then follows every change. A change makes
//! objects due: those whose owner has gone or is new to them, and owners that wait for dependents.
//! Each is looked at against the cache and, before anything is deleted, against the store.
//!
//! # Guarantees
//! - Nothing outside an object's own logical cluster and namespace counts as its owner or
//!   dependent.
//! - An object is deleted only when the store has none of its owners: read by UID, of types that
//!   its logical cluster serves or at the very place where an owner was seen to go. An owner in
//!   another namespace, or a namespaced one of a cluster-scoped object, is never evidence, not after
//!   a restart either; users are told by an event. (Upstream deletes such a dependent at once.)
//! - Deletions and changes compare the version that was judged. So several collectors over one
//!   store only repeat each other's work.
//! - After a restart everything that dangles is found again.
//!
//! # Assumptions
//! - UIDs are never given twice.

mod attempt;
mod graph;
mod report;
mod uids;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use prometheus::IntGauge;
use store::cache::{Audience, Event, Filter, Scope, Subscription};
use store::{Key, KeyPrefix, Revision, Urgency};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::fair::{Fair, Limits};
use super::make_way;
use crate::auth::{MASTERS, UserInfo};
use crate::registry::{Context, Error, Registry};
use attempt::{Collector, Outcome};

/// Objects that are read at a time while the graph is built.
const PAGE: usize = 1_000;

/// Changes that are taken at a time before finished work is looked at.
const BURST: usize = 100;

/// Of one logical cluster eight at a time, so that others have theirs while its webhooks take
/// their time; in all, as many as share a commit of the store well.
const LIMITS: Limits = Limits { most: 128, share: 8, longest: Duration::from_secs(60) };

/// Collects until `stop`.
pub(super) async fn run(registry: Arc<Registry>, depth: IntGauge, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = collect(&registry, &depth) => {}
    }
}

/// Who collects, as webhooks see it.
fn context() -> Context {
    let user = UserInfo {
        name: "system:serviceaccount:kube-system:generic-garbage-collector".into(),
        groups: vec![MASTERS.into()],
        ..UserInfo::default()
    };
    let mut context =
        Context::new(Arc::new(user), Timestamp::now(), "kube-controller-manager".into());
    context.urgency = Urgency::Later;
    context
}

async fn collect(registry: &Arc<Registry>, depth: &IntGauge) {
    let everything = KeyPrefix::everything();
    loop {
        let collector = Collector {
            registry: registry.clone(),
            graph: Default::default(),
            uids: Default::default(),
        };
        let since = registry.cache().revision();
        let mut queue = Fair::new(LIMITS, depth.clone());
        let mut after: Option<Key> = None;
        loop {
            let page = registry.cache().scan(&everything, after.as_ref(), PAGE);
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            for object in &page {
                let due = collector.graph.lock().begin(object);
                due.into_iter().for_each(|key| queue.add(key));
            }
            tokio::task::yield_now().await;
        }
        follow(&collector, &mut queue, since).await;
    }
}

/// Follows changes after `since`, until history has lost the last one that was seen.
async fn follow(collector: &Collector, queue: &mut Fair<Key>, since: Revision) {
    let filter: Filter = Arc::new(graph::matters);
    let cache = collector.registry.cache();
    let mut seen = since;
    let mut running = FuturesUnordered::new();
    loop {
        // The revision before: of a commit only a part may have come.
        let after = Revision(seen.0.saturating_sub(1)).max(since);
        let mut events =
            match cache.watch(&[Scope::Everything], Some(&filter), Audience::Server, after).await {
                Ok(events) => events,
                Err(error) => {
                    debug!(%error, "the graph of owners is built anew");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    return;
                }
            };
        loop {
            while let Some(key) = queue.take(Instant::now()) {
                running.push(async {
                    let outcome = collector.attempt(&key).await;
                    (key, outcome)
                });
            }
            let unused = collector.uids.lock().due();
            let step = async {
                tokio::select! {
                    event = events.next() => Step::Event(event),
                    Some((key, outcome)) = running.next(), if !running.is_empty() => {
                        Step::Done(key, outcome)
                    }
                    () = past(unused), if unused.is_some() => Step::Unused,
                }
            };
            let step = queue.or_due(step).await;
            make_way();
            match step {
                Some(Step::Event(Some(event))) => {
                    seen = take(collector, queue, &event, &mut events);
                }
                Some(Step::Event(None)) => break,
                Some(Step::Done(key, outcome)) => finish(queue, key, outcome),
                Some(Step::Unused) => collector.uids.lock().forget(Instant::now()),
                None => {}
            }
        }
    }
}

enum Step {
    Event(Option<Arc<Event>>),
    Done(Key, Result<Outcome, Error>),
    Unused,
}

async fn past(due: Option<Instant>) {
    if let Some(due) = due {
        tokio::time::sleep_until(due).await;
    }
}

/// Takes over a change and those that wait behind it. Returns the revision that has been reached.
fn take(
    collector: &Collector,
    queue: &mut Fair<Key>,
    event: &Arc<Event>,
    events: &mut Subscription,
) -> Revision {
    let mut graph = collector.graph.lock();
    let mut event = event.clone();
    for _ in 0..BURST {
        graph.apply(&event).into_iter().for_each(|key| queue.add(key));
        match events.try_next() {
            Some(next) => event = next,
            None => break,
        }
    }
    drop(graph);
    events.progress().unwrap_or(event.revision)
}

fn finish(queue: &mut Fair<Key>, key: Key, outcome: Result<Outcome, Error>) {
    let retry = match outcome {
        Ok(outcome) => {
            outcome.next.into_iter().for_each(|key| queue.add(key));
            outcome.retry
        }
        Err(error) => {
            warn!(%key, %error, "cannot collect");
            true
        }
    };
    queue.done(key, retry, Instant::now());
}
