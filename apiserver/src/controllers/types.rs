//! CRDs: whose names are accepted, what is established, and what goes with a type.
//!
//! # Flow
//! A new or changed CRD is judged against the others of its logical cluster and group; when its
//! names are free it is established, and from that moment served, since the catalog reads the same
//! condition. A CRD that is being deleted takes the objects of its type with it, finalizers
//! respected, and goes when they have gone. CRDs whose names were taken are tried again when
//! another goes.
//!
//! # Guarantees
//! - The objects of a CRD of `system:crds` are never deleted here: it can't be deleted while there
//!   are any, and waits should one appear all the same.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use machinery::ClusterName;
use machinery::meta::{get_str, set};
use prometheus::IntGauge;
use schema::crd::{self, Condition};
use serde_json::Value;
use store::cache::{Audience, Object, Scope};
use store::{Key, KeyPrefix};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::context;
use super::queue::Queue;
use crate::catalog::{Definition, definitions};
use crate::registry::{
    ClusterScope, Context, DeleteOptions, Deleted, Error, Reason, Registry, Target,
};

/// How soon a deletion that waits is looked at again, at least.
const AGAIN: Duration = Duration::from_millis(50);

/// CRDs that are seen to at a time: their writes share the store's commits.
const AT_ONCE: usize = 64;

/// CRDs of logical clusters that have their turn already which are passed over for a batch.
const MOST_PASSED_OVER: usize = 16_384;

/// Follows CRDs until `stop`.
pub(super) async fn run(registry: Arc<Registry>, depth: IntGauge, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow(&registry, &depth) => {}
    }
}

async fn follow(registry: &Arc<Registry>, depth: &IntGauge) {
    let prefix = KeyPrefix::resource(&definitions());
    let mut queue = Queue::new(depth.clone());
    loop {
        let scopes = [Scope::Prefix(prefix.clone())];
        let (listed, mut events) =
            registry.cache().list_and_watch(&prefix, &scopes, None, Audience::Server);
        for object in &listed.objects {
            queue.add(object.key.clone(), Instant::now());
        }
        loop {
            loop {
                let batch = batch(&mut queue);
                if batch.is_empty() {
                    break;
                }
                let judged = batch.iter().map(|(key, _)| judge(registry, key));
                let judged = futures::future::join_all(judged).await;
                for ((key, delay), judged) in batch.into_iter().zip(judged) {
                    match judged {
                        Ok(true) => continue,
                        Ok(false) => {}
                        Err(error) => warn!(%key, %error, "cannot see to a CRD"),
                    }
                    queue.retry(key, Instant::now(), delay.max(AGAIN));
                }
            }
            match queue.next(&mut events).await {
                Some(Some(event)) => {
                    queue.add(event.key.clone(), Instant::now());
                    if event.current.is_none()
                        && let Some(previous) = &event.previous
                    {
                        refused_by(registry, previous, &mut queue);
                    }
                }
                Some(None) => break,
                None => {}
            }
        }
    }
}

/// CRDs that are due, each of another logical cluster: of one, names are given one after the other.
fn batch(queue: &mut Queue<Key>) -> Vec<(Key, Duration)> {
    let now = Instant::now();
    let mut clusters = HashSet::new();
    let mut later = Vec::new();
    let mut batch = Vec::new();
    while batch.len() < AT_ONCE && later.len() < MOST_PASSED_OVER {
        let Some((key, delay)) = queue.take(now) else { break };
        if clusters.insert(key.object().cluster) {
            batch.push((key, delay));
        } else {
            later.push(key);
        }
    }
    later.into_iter().for_each(|key| queue.add(key, now));
    batch
}

/// CRDs that may have waited for the names of one that has gone.
fn refused_by(registry: &Registry, gone: &Arc<Object>, queue: &mut Queue<Key>) {
    let gone = (Definition::of(gone), gone.key.object().cluster);
    for object in of_group(registry, &gone.1, gone.0.group()) {
        if !Definition::of(&object).has_its_names() {
            queue.add(object.key.clone(), Instant::now());
        }
    }
}

fn of_group(registry: &Registry, cluster: &ClusterName, group: &str) -> Vec<Arc<Object>> {
    let prefix = KeyPrefix::cluster(&definitions(), cluster);
    let mut all = registry.cache().list(&prefix, None, 0).objects;
    all.retain(|object| Definition::of(object).group() == group);
    all
}

/// One look at a CRD. Returns whether there is nothing to wait for.
async fn judge(registry: &Registry, key: &Key) -> Result<bool, Error> {
    // The names that were given to the one before must be seen.
    registry.consistent().await?;
    let Some(object) = registry.cache().get(key) else {
        return Ok(true);
    };
    if object.header.is_deleting() {
        return retire(registry, &object).await;
    }
    let cluster = key.object().cluster;
    let definition = Definition::of(&object);
    let others = of_group(registry, &cluster, definition.group());
    let others = others.iter().map(|other| Definition::of(other).summary()).collect::<Vec<_>>();
    let shadowed = shadowed(registry, key, &cluster);
    let context = context();
    let change = |crd: &mut Value, now: &str| {
        let names = crd::accept_names(crd, others.iter());
        set(crd, &["status", "acceptedNames"], names.names.clone());
        let approval = crd::approval(crd);
        let refused = approval.as_ref().is_some_and(is_refused);
        for condition in approval.iter().chain([&names.accepted, &names.established]) {
            crd::set_condition(crd, condition, now);
        }
        if names.accepted.status == "True" && !refused {
            crd::set_condition(crd, &crd::established(), now);
        }
        if let Some(condition) = &shadowed {
            crd::set_condition(crd, condition, now);
        }
    };
    edit(registry, &context, key, change).await?;
    Ok(true)
}

/// A type of a protected group without the approval that it needs. One that says that it is
/// unapproved is served, as upstream.
fn is_refused(approval: &Condition) -> bool {
    approval.status == "False" && approval.reason != "UnapprovedAnnotation"
}

/// The logical clusters that had a type of their own before it was defined for all.
fn shadowed(registry: &Registry, key: &Key, cluster: &ClusterName) -> Option<Condition> {
    if *cluster != ClusterName::system_crds() {
        return None;
    }
    let all = registry.cache().list(&KeyPrefix::resource(&definitions()), None, 0).objects;
    let name = key.object().name;
    let mut clusters = all
        .iter()
        .map(|object| object.key.object())
        .filter(|other| other.name == name && other.cluster != *cluster)
        .map(|other| other.cluster.to_string())
        .collect::<Vec<_>>();
    clusters.sort();
    let (status, reason, message) = if clusters.is_empty() {
        ("True", "NoLocalDefinitions", "every logical cluster is served by this definition".into())
    } else {
        let shown = clusters.iter().take(20).cloned().collect::<Vec<_>>().join(", ");
        let count = clusters.len();
        let text =
            format!("{count} logical clusters go on with a definition of their own: {shown}");
        ("False", "LocalDefinitions", text)
    };
    Some(Condition { kind: "ServedEverywhere", status, reason: reason.into(), message })
}

/// Changes a CRD's status.
async fn edit(
    registry: &Registry,
    context: &Context,
    key: &Key,
    change: impl Fn(&mut Value, &str),
) -> Result<(), Error> {
    let target = target(registry, key)?;
    let now = machinery::time::Time::at(context.now).to_string();
    let edited = registry.change_status(context, &target, |crd| change(crd, &now)).await;
    match edited {
        Err(error) if error.reason() == Reason::NotFound => Ok(()),
        edited => edited,
    }
}

fn target(registry: &Registry, key: &Key) -> Result<Target, Error> {
    let crds = definitions();
    let def = registry.types().resource(&crds.group, &crds.resource);
    let def = def.ok_or_else(|| Error::internal(format!("no resource {crds}")))?;
    let object = key.object();
    Ok(Target {
        cluster: ClusterScope::One(object.cluster),
        resource: def.clone(),
        custom: None,
        version: "v1".into(),
        namespace: "".into(),
        name: object.name,
        subresource: "status".into(),
    })
}

/// Deletes the objects of a type, then lets its CRD go. Returns whether it is done.
async fn retire(registry: &Registry, object: &Arc<Object>) -> Result<bool, Error> {
    let cluster = object.key.object().cluster;
    let shared = cluster == ClusterName::system_crds();
    let definition = Definition::of(object);
    let within = Some(&cluster).filter(|_| !shared);
    let instances = registry.instances(&definition.summary(), within);
    let context = context();
    if instances.is_empty() {
        let done = Condition {
            kind: "Terminating",
            status: "False",
            reason: "InstanceDeletionCompleted".into(),
            message: "removed all instances".into(),
        };
        let set = |crd: &mut Value, now: &str| crd::set_condition(crd, &done, now);
        edit(registry, &context, &object.key, set).await?;
        let gone = registry.release(&context, &object.key).await?;
        debug!(key = %object.key, gone, "type removed");
        return Ok(true);
    }
    let left =
        if shared { instances.len() } else { sweep(registry, &context, object, instances).await? };
    if left == 0 {
        return Ok(false);
    }
    let waiting = Condition {
        kind: "Terminating",
        status: "True",
        reason: "InstanceDeletionInProgress".into(),
        message: format!("CustomResource deletion is in progress: {left} remaining"),
    };
    let set = |crd: &mut Value, now: &str| crd::set_condition(crd, &waiting, now);
    edit(registry, &context, &object.key, set).await?;
    Ok(false)
}

/// Deletes objects as far as finalizers allow; returns how many stay.
async fn sweep(
    registry: &Registry,
    context: &Context,
    crd: &Arc<Object>,
    instances: Vec<(Key, store::Revision)>,
) -> Result<usize, Error> {
    let cluster = crd.key.object().cluster;
    let definition = Definition::of(crd);
    let summary = definition.summary();
    let plural = get_str(&summary, &["spec", "names", "plural"]).unwrap_or_default();
    let custom = registry.catalog().custom_of(&cluster, definition.group(), plural);
    let Some(custom) = custom else {
        // It was never established, or can't be read: there is nothing to serve these as.
        return Ok(instances.len());
    };
    let Some(def) = custom.defs.first() else {
        return Ok(instances.len());
    };
    let version = def.versions.iter().find(|version| version.served);
    let version = version.map(|version| version.name.clone()).unwrap_or_default();
    let mut left = 0;
    for (key, revision) in instances {
        let Some(object) = registry.cache().get(&key) else {
            registry.purge(&key, revision).await?;
            continue;
        };
        left += 1;
        if object.header.is_deleting() {
            continue;
        }
        let target = Target {
            cluster: ClusterScope::One(cluster.clone()),
            resource: def.clone(),
            custom: Some(custom.clone()),
            version: version.clone(),
            namespace: object.header.namespace().into(),
            name: object.header.name().into(),
            subresource: "".into(),
        };
        let uid = Some(object.header.uid().to_string());
        let options = DeleteOptions { uid, ..DeleteOptions::default() };
        match registry.remove(context, &target, options).await {
            Ok(Deleted::Gone(_)) => left -= 1,
            Ok(Deleted::Pending(_)) => {}
            Err(error) if matches!(error.reason(), Reason::NotFound | Reason::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(left)
}
