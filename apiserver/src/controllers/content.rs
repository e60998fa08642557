//! Empties namespaces and logical clusters that are being deleted, then lets them go.
//!
//! # Flow
//! A deletion marks the object. Nothing can be created inside from then on (every creation compares
//! the record), so what the cache shows at that revision is all there is. The content is deleted,
//! finalizers respected; while something stays, a condition names it; then the object goes.
//!
//! # Guarantees
//! - A logical cluster's namespaces go before the rest of it.
//! - Only objects under the deleted thing's own keys are touched.

mod status;
mod sweep;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use machinery::ClusterName;
use machinery::meta::get;
use prometheus::IntGauge;
use serde_json::Value;
use store::cache::{Audience, Event, Filter, Scope};
use store::{Key, KeyPrefix};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::fair::{Fair, InCluster, Limits};
use super::housekeeping;
use crate::clusters::record;
use crate::registry::{Error, Registry, Target};
use status::Remaining;
use sweep::Sweep;

/// The annotation that lets a logical cluster go although finalizers hold its content.
const FORCE: &str = "core.kcp.io/force-delete";

/// Each deletes some objects at a time, so that all together leave room in the store's commits.
const LIMITS: Limits = Limits { most: 8, share: 2, longest: Duration::from_secs(5) };

/// Something that is being deleted with all that is in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Holder {
    Namespace(ClusterName, String),
    Cluster(ClusterName),
}

/// Follows deletions until `stop`.
pub(super) async fn run(registry: Arc<Registry>, depth: IntGauge, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow(&registry, &depth) => {}
    }
}

async fn follow(registry: &Arc<Registry>, depth: &IntGauge) {
    let deleting: Filter = Arc::new(|event: &Event| {
        event.current.as_ref().is_some_and(|object| object.header.is_deleting())
    });
    let prefixes = [KeyPrefix::resource(&namespaces()), record::prefix()];
    let mut queue = Fair::new(LIMITS, depth.clone());
    let mut running = FuturesUnordered::new();
    loop {
        let [(found, mut first), (more, mut second)] = prefixes.each_ref().map(|prefix| {
            let scopes = [Scope::Prefix(prefix.clone())];
            registry.cache().list_and_watch(prefix, &scopes, Some(&deleting), Audience::Server)
        });
        let objects = found.objects.iter().chain(&more.objects);
        for object in objects.filter(|object| object.header.is_deleting()) {
            queue.add(Holder::of(&object.key));
        }
        drop((found, more));
        loop {
            while let Some(holder) = queue.take(Instant::now()) {
                running.push(async {
                    let emptied = empty(registry, &holder).await;
                    (holder, emptied)
                });
            }
            let step = async {
                tokio::select! {
                    event = first.next() => Step::Event(event),
                    event = second.next() => Step::Event(event),
                    Some((holder, emptied)) = running.next(), if !running.is_empty() => {
                        Step::Done(holder, emptied)
                    }
                }
            };
            match queue.or_due(step).await {
                // Its status changes with each round: the news is that it is being deleted.
                Some(Step::Event(Some(event))) if !began(&event) => {}
                Some(Step::Event(Some(event))) => queue.add(Holder::of(&event.key)),
                Some(Step::Event(None)) => break,
                Some(Step::Done(holder, emptied)) => {
                    let retry = match emptied {
                        Ok(true) => {
                            debug!(?holder, "emptied");
                            false
                        }
                        Ok(false) => true,
                        Err(error) => {
                            warn!(?holder, %error, "cannot empty");
                            true
                        }
                    };
                    queue.done(holder, retry, Instant::now());
                }
                None => {}
            }
        }
    }
}

enum Step {
    Event(Option<Arc<Event>>),
    Done(Holder, Result<bool, Error>),
}

/// Whether a change tells something new of how an object is to go.
fn began(event: &Event) -> bool {
    let said = |object: &Arc<store::cache::Object>| {
        let value = serde_json::from_slice::<Value>(&object.json()).unwrap_or_default();
        let finalizers = value.pointer("/spec/finalizers").cloned();
        (get(&value, &["metadata", "annotations", FORCE]).cloned(), finalizers)
    };
    match (&event.previous, &event.current) {
        (Some(old), Some(new)) if old.header.is_deleting() => {
            old.header.finalizers() != new.header.finalizers() || said(old) != said(new)
        }
        _ => true,
    }
}

/// One round for one holder. Returns whether it is gone, or none of our business.
async fn empty(registry: &Registry, holder: &Holder) -> Result<bool, Error> {
    registry.consistent().await?;
    let key = holder.key();
    let Some(object) = registry.cache().get(&key) else {
        return Ok(true);
    };
    if !object.header.is_deleting() {
        return Ok(true);
    }
    let value = serde_json::from_slice::<Value>(&object.json()).map_err(Error::internal)?;
    let forced = matches!(holder, Holder::Cluster(_))
        && get(&value, &["metadata", "annotations", FORCE]).and_then(Value::as_str) == Some("true");
    let (cluster, namespace) = match holder {
        Holder::Namespace(cluster, namespace) => (cluster, Some(namespace.as_str())),
        // Content of namespaces first, then the namespaces, then the rest.
        Holder::Cluster(cluster) => (cluster, None),
    };
    let remaining = Sweep { registry, cluster, namespace, forced }.run().await;
    if remaining.is_nothing() && registry.release(&housekeeping(), &key).await? {
        return Ok(true);
    }
    let status = holder.status(&value, &remaining);
    registry.set_status(&housekeeping(), &holder.target(registry)?, status).await?;
    // Others may hold what is empty: their last change is the news.
    Ok(remaining.is_nothing())
}

fn namespaces() -> machinery::GroupResource {
    machinery::GroupResource::new("", "namespaces")
}

impl InCluster for Holder {
    fn cluster(&self) -> &str {
        match self {
            Self::Namespace(cluster, _) | Self::Cluster(cluster) => cluster.as_str(),
        }
    }
}

// === impl Holder ===

impl Holder {
    fn of(key: &Key) -> Self {
        let object = key.object();
        if key.resource_part() == "core/namespaces" {
            return Self::Namespace(object.cluster, object.name.to_string());
        }
        match ClusterName::parse(&object.name) {
            Ok(cluster) => Self::Cluster(cluster),
            // The registry admits no other names; such a record would name nothing to empty.
            Err(_) => Self::Namespace(object.cluster, String::new()),
        }
    }

    fn key(&self) -> Key {
        match self {
            Self::Namespace(cluster, name) => {
                let object = machinery::ObjectKey::new(cluster.clone(), "", name);
                Key::new(&namespaces(), &object)
            }
            Self::Cluster(cluster) => record::key(cluster),
        }
    }

    fn target(&self, registry: &Registry) -> Result<Target, Error> {
        let key = self.key();
        let target = registry.target_of(&key);
        let target = target.ok_or_else(|| Error::internal(format!("{key} is of no type")))?;
        Ok(Target { subresource: "status".into(), ..target })
    }

    /// The holder's status with conditions that name what remains.
    fn status(&self, value: &Value, remaining: &Remaining) -> Value {
        let now = machinery::time::Time::at(Timestamp::now()).to_string();
        let status = value.get("status");
        match self {
            Self::Cluster(_) => remaining.of_cluster(status, &now),
            Self::Namespace(..) => remaining.of_namespace(status, &now),
        }
    }
}
