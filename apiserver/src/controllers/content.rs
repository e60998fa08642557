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

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use machinery::ClusterName;
use machinery::meta::{get, set};
use schema::resource::{Flag, ResourceDef};
use serde_json::{Value, json};
use store::cache::{Event, Filter, Origin, Scope};
use store::{Key, KeyPrefix};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::context;
use super::queue::Queue;
use crate::catalog::definitions;
use crate::clusters::record;
use crate::registry::{ClusterScope, DeleteOptions, Error, Reason, Registry, Target};

/// The annotation that lets a logical cluster go although finalizers hold its content.
const FORCE: &str = "core.kcp.io/force-delete";

/// Something that is being deleted with all that is in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Namespace(ClusterName, String),
    Cluster(ClusterName),
}

/// What keeps a holder.
#[derive(Debug, Default)]
struct Remaining {
    /// Objects by resource.
    objects: BTreeMap<String, usize>,
    /// Objects by finalizer.
    finalizers: BTreeMap<String, usize>,
}

/// Follows deletions until `stop`.
pub(super) async fn run(registry: Arc<Registry>, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow(&registry) => {}
    }
}

async fn follow(registry: &Arc<Registry>) {
    let deleting: Filter = Arc::new(|event: &Event| {
        event.current.as_ref().is_some_and(|object| object.header.is_deleting())
    });
    let prefixes =
        [KeyPrefix::resource(&namespaces()), KeyPrefix::resource(&record::logical_clusters())];
    let mut queue = Queue::new();
    loop {
        let [(found, mut first), (more, mut second)] = prefixes.each_ref().map(|prefix| {
            let scopes = [Scope::Prefix(prefix.clone())];
            registry.cache().list_and_watch(prefix, &scopes, Some(&deleting))
        });
        let objects = found.objects.iter().chain(&more.objects);
        for object in objects.filter(|object| object.header.is_deleting()) {
            queue.add(Holder::of(&object.key), Instant::now());
        }
        loop {
            while let Some((holder, delay)) = queue.take(Instant::now()) {
                match empty(registry, &holder).await {
                    Ok(true) => debug!(?holder, "emptied"),
                    Ok(false) => queue.retry(holder, Instant::now(), delay),
                    Err(error) => {
                        warn!(?holder, %error, "cannot empty");
                        queue.retry(holder, Instant::now(), delay.max(Duration::from_millis(500)));
                    }
                }
            }
            let either = async {
                tokio::select! {
                    event = first.next() => event,
                    event = second.next() => event,
                }
            };
            match queue.or_due(either).await {
                Some(Some(event)) => queue.add(Holder::of(&event.key), Instant::now()),
                Some(None) => break,
                None => {}
            }
        }
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
    let remaining = match holder {
        Holder::Namespace(cluster, namespace) => {
            sweep(registry, cluster, Some(namespace), forced).await?
        }
        Holder::Cluster(cluster) => {
            // Content of namespaces first, then the namespaces, then the rest.
            sweep(registry, cluster, None, forced).await?
        }
    };
    if remaining.objects.is_empty() {
        return registry.release(&context(), &key).await;
    }
    let status = holder.status(&value, &remaining);
    registry.set_status(&context(), &holder.target(registry)?, status).await?;
    Ok(false)
}

/// Deletes what is in a namespace, or in a whole logical cluster, as far as finalizers allow.
async fn sweep(
    registry: &Registry,
    cluster: &ClusterName,
    namespace: Option<&str>,
    forced: bool,
) -> Result<Remaining, Error> {
    let scope = ClusterScope::One(cluster.clone());
    let mut resources = registry
        .catalog()
        .resources(&scope)
        .iter()
        .filter(|resource| resource.view_of.is_none() && !resource.has(Flag::Virtual))
        .filter(|resource| namespace.is_none() || resource.namespaced)
        .cloned()
        .collect::<Vec<_>>();
    let is_namespaces =
        |resource: &ResourceDef| resource.group.is_empty() && &*resource.plural == "namespaces";
    let is_definitions = |resource: &ResourceDef| {
        let crds = definitions();
        resource.group == crds.group && resource.plural == crds.resource
    };
    // Types go last: without its type an object could not be found.
    resources.sort_by_key(|resource| {
        (is_definitions(resource), !resource.namespaced, !is_namespaces(resource))
    });
    // A custom resource is listed once for each version.
    resources.dedup_by(|a, b| a.group == b.group && a.plural == b.plural);
    let mut remaining = Remaining::default();
    for resource in resources {
        let name = Registry::group_resource(&resource);
        let custom = registry.catalog().custom_of(cluster, &resource.group, &resource.plural);
        let prefix = match namespace {
            Some(namespace) => KeyPrefix::namespace(&name, cluster, namespace),
            None => KeyPrefix::cluster(&name, cluster),
        };
        let is_last = is_namespaces(&resource) || is_definitions(&resource);
        if is_last && !remaining.objects.is_empty() && !forced {
            // These can't go before their content; the next round sees to it.
            continue;
        }
        for (key, revision) in registry.cache().records(&prefix) {
            let object =
                registry.cache().get(&key).filter(|object| object.origin == Origin::Stored);
            let Some(object) = object.filter(|_| !forced) else {
                registry.purge(&key, revision).await?;
                continue;
            };
            let target = Target {
                cluster: scope.clone(),
                version: version(&resource),
                resource: resource.clone(),
                custom: custom.clone(),
                namespace: (&*object.header.namespace).into(),
                name: (&*object.header.name).into(),
                subresource: "".into(),
            };
            if !object.header.is_deleting() {
                let uid = Some(object.header.uid.to_string());
                let options = DeleteOptions { uid, ..DeleteOptions::default() };
                match registry.remove(&context(), &target, options).await {
                    Ok(crate::registry::Deleted::Gone(_)) => continue,
                    Ok(crate::registry::Deleted::Pending(_)) => {}
                    Err(error) if matches!(error.reason(), Reason::NotFound | Reason::Conflict) => {
                    }
                    Err(error) => return Err(error),
                }
            }
            *remaining.objects.entry(name.to_string()).or_default() += 1;
            for finalizer in &object.header.finalizers {
                *remaining.finalizers.entry(finalizer.to_string()).or_default() += 1;
            }
        }
    }
    Ok(remaining)
}

fn version(resource: &ResourceDef) -> Arc<str> {
    resource.storage_version().map_or_else(|| "v1".into(), |version| version.name.clone())
}

fn namespaces() -> machinery::GroupResource {
    machinery::GroupResource::new("", "namespaces")
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
        let (resource, cluster, name) = match self {
            Self::Namespace(cluster, name) => (namespaces(), cluster.clone(), name.as_str()),
            Self::Cluster(cluster) => {
                (record::logical_clusters(), ClusterName::root(), cluster.as_str())
            }
        };
        let def = registry.types().resource(&resource.group, &resource.resource);
        let def = def.ok_or_else(|| Error::internal(format!("no resource {resource}")))?;
        Ok(Target {
            cluster: ClusterScope::One(cluster),
            version: version(def),
            resource: def.clone(),
            custom: None,
            namespace: "".into(),
            name: name.into(),
            subresource: "status".into(),
        })
    }

    /// The holder's status with conditions that name what remains.
    fn status(&self, value: &Value, remaining: &Remaining) -> Value {
        let mut status = value.get("status").cloned().unwrap_or_else(|| json!({}));
        let counted = |counts: &BTreeMap<String, usize>, verb: &str| {
            let parts = counts
                .iter()
                .map(|(name, count)| format!("{name} {verb} {count} resource instances"));
            parts.collect::<Vec<_>>().join(", ")
        };
        let objects =
            format!("Some resources are remaining: {}", counted(&remaining.objects, "has"));
        let finalizers = format!(
            "Some content in the namespace has finalizers remaining: {}",
            counted(&remaining.finalizers, "in")
        );
        let held = !remaining.finalizers.is_empty();
        let conditions = match self {
            Self::Cluster(_) => vec![(
                "ContentDeleted",
                "False",
                if held { "SomeFinalizersRemain" } else { "SomeResourcesRemain" },
                if held { format!("{objects}. {finalizers}") } else { objects },
            )],
            Self::Namespace(..) => vec![
                (
                    "NamespaceDeletionDiscoveryFailure",
                    "False",
                    "ResourcesDiscovered",
                    "All resources successfully discovered".to_owned(),
                ),
                (
                    "NamespaceDeletionGroupVersionParsingFailure",
                    "False",
                    "ParsedGroupVersions",
                    "All legacy kube types successfully parsed".to_owned(),
                ),
                (
                    "NamespaceDeletionContentFailure",
                    "False",
                    "ContentDeleted",
                    "All content successfully deleted, may be waiting on finalization".to_owned(),
                ),
                ("NamespaceContentRemaining", "True", "SomeResourcesRemain", objects),
                (
                    "NamespaceFinalizersRemaining",
                    if held { "True" } else { "False" },
                    if held { "SomeFinalizersRemain" } else { "ContentHasNoFinalizers" },
                    if held {
                        finalizers
                    } else {
                        "All content-preserving finalizers finished".to_owned()
                    },
                ),
            ],
        };
        let before =
            status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        let now = machinery::time::Time::at(jiff::Timestamp::now()).to_string();
        let conditions = conditions.into_iter().map(|(kind, state, reason, message)| {
            let same = before.iter().find(|old| {
                old.get("type").and_then(Value::as_str) == Some(kind)
                    && old.get("status").and_then(Value::as_str) == Some(state)
            });
            let since = same.and_then(|old| old.get("lastTransitionTime")).cloned();
            json!({
                "type": kind,
                "status": state,
                "reason": reason,
                "message": message,
                "lastTransitionTime": since.unwrap_or_else(|| json!(now)),
            })
        });
        let conditions = conditions.collect::<Vec<_>>();
        set(&mut status, &["conditions"], json!(conditions));
        status
    }
}
