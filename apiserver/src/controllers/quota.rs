//! Counts what quotas bound: when a quota is new or changed, and when something goes or changes
//! what it uses. What is created is counted by its own commit.
//!
//! A namespace is counted at most so often that the counting takes a small part of the time,
//! however much happens in it.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use machinery::ClusterName;
use prometheus::IntGauge;
use store::KeyPrefix;
use store::cache::{Audience, Event, Filter, Scope};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::fair::{Fair, InCluster, Limits};
use crate::registry::{Error, Registry, is_measured, quotas};

/// Counting is reading: a few at a time are as many as there are cores for it.
const LIMITS: Limits = Limits { most: 16, share: 4, longest: Duration::from_secs(30) };

/// After a count that took a while, the namespace rests so many times as long.
const REST: u32 = 20;

/// A namespace of a logical cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    cluster: ClusterName,
    namespace: Arc<str>,
}

impl InCluster for Place {
    fn cluster(&self) -> &str {
        self.cluster.as_str()
    }
}

/// Counts until `stop`.
pub(super) async fn run(registry: Arc<Registry>, depth: IntGauge, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow(&registry, &depth) => {}
    }
}

async fn follow(registry: &Arc<Registry>, depth: &IntGauge) {
    let prefix = KeyPrefix::resource(&quotas());
    let of_interest: Filter = Arc::new(of_interest);
    let mut queue = Fair::new(LIMITS, depth.clone());
    let mut running = FuturesUnordered::new();
    loop {
        let scopes = [Scope::Everything];
        let (found, mut events) =
            registry.cache().list_and_watch(&prefix, &scopes, Some(&of_interest), Audience::Server);
        for quota in &found.objects {
            queue.add(Place::of(&quota.key));
        }
        drop(found);
        loop {
            while let Some(place) = queue.take(Instant::now()) {
                running.push(async {
                    let begin = Instant::now();
                    let counted = registry.recount_all(&place.cluster, &place.namespace).await;
                    (place, counted.map(|()| begin.elapsed()))
                });
            }
            let step = async {
                tokio::select! {
                    event = events.next() => Step::Event(event),
                    Some((place, counted)) = running.next(), if !running.is_empty() => {
                        Step::Done(place, counted)
                    }
                }
            };
            match queue.or_due(step).await {
                Some(Step::Event(Some(event))) => {
                    let place = Place::of(&event.key);
                    if matters(registry, &event, &place) {
                        queue.add(place);
                    }
                }
                Some(Step::Event(None)) => break,
                Some(Step::Done(place, Ok(took))) => {
                    let now = Instant::now();
                    queue.rest(place, now + took * REST);
                }
                Some(Step::Done(place, Err(error))) => {
                    warn!(?place, %error, "cannot count");
                    queue.done(place, true, Instant::now());
                }
                None => {}
            }
        }
    }
}

enum Step {
    Event(Option<Arc<Event>>),
    /// How long it took to count.
    Done(Place, Result<Duration, Error>),
}

/// Whether a change may be one that is not counted by its own commit.
fn of_interest(event: &Event) -> bool {
    let part = event.key.resource_part();
    part == "core/resourcequotas"
        || is_measured(part)
        || (event.previous.is_some() != event.current.is_some() && !event.key.parts().1.is_empty())
}

fn matters(registry: &Registry, event: &Event, place: &Place) -> bool {
    let part = event.key.resource_part();
    if part == "core/resourcequotas" {
        return event.current.is_some();
    }
    // Of what is created only default objects come without being charged.
    let uncharged =
        event.previous.is_some() || registry.cache().virtual_object(&event.key).is_some();
    uncharged && registry.has_quotas(&place.cluster, &place.namespace)
}

// === impl Place ===

impl Place {
    fn of(key: &store::Key) -> Self {
        let object = key.object();
        Self { cluster: object.cluster, namespace: object.namespace }
    }
}
