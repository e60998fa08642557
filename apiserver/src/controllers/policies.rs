//! ValidatingAdmissionPolicies: what can't be right in their expressions is told in their status.
//!
//! A policy is looked at once for each of its generations, as upstream: a type that changes later
//! changes no status.

use std::sync::{Arc, LazyLock};

use cel_rules::DeclType;
use machinery::meta::{get, get_i64, set};
use machinery::{ClusterName, GroupResource, GroupVersion, Gvk};
use prometheus::IntGauge;
use serde_json::{Value, json};
use store::cache::{Audience, Event, Filter, Scope};
use store::{Key, KeyPrefix};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::context;
use super::queue::Queue;
use crate::admission::typecheck;
use crate::catalog::Served;
use crate::registry::{ClusterScope, Error, Reason, Registry, Target};

static POLICIES: LazyLock<GroupResource> = LazyLock::new(|| {
    GroupResource::new("admissionregistration.k8s.io", "validatingadmissionpolicies")
});

/// Follows policies until `stop`.
pub(super) async fn run(registry: Arc<Registry>, depth: IntGauge, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow(&registry, &depth) => {}
    }
}

async fn follow(registry: &Arc<Registry>, depth: &IntGauge) {
    let prefix = KeyPrefix::resource(&POLICIES);
    // A status that was written, by whomever, leads nowhere.
    let changed: Filter = Arc::new(|event: &Event| {
        let generation = |object: &Option<Arc<store::cache::Object>>| {
            object.as_ref().and_then(|object| object.header.generation())
        };
        event.current.is_some() && generation(&event.current) != generation(&event.previous)
    });
    let mut queue = Queue::new(depth.clone());
    loop {
        let scopes = [Scope::Prefix(prefix.clone())];
        let (listed, mut events) =
            registry.cache().list_and_watch(&prefix, &scopes, Some(&changed), Audience::Server);
        for object in &listed.objects {
            queue.add(object.key.clone(), Instant::now());
        }
        loop {
            while let Some((key, delay)) = queue.take(Instant::now()) {
                if let Err(error) = check(registry, &key).await {
                    warn!(%key, %error, "cannot check the types of a policy");
                    queue.retry(key, Instant::now(), delay);
                }
            }
            match queue.next(&mut events).await {
                Some(Some(event)) => queue.add(event.key.clone(), Instant::now()),
                Some(None) => break,
                None => {}
            }
        }
    }
}

/// Checks the types of a policy, unless that has been done.
async fn check(registry: &Registry, key: &Key) -> Result<(), Error> {
    let Some(object) = registry.cache().get(key) else { return Ok(()) };
    let policy = serde_json::from_slice::<Value>(&object.json()).map_err(Error::internal)?;
    let observed = |policy: &Value| get_i64(policy, &["status", "observedGeneration"]).unwrap_or(0);
    let generation = object.header.generation().unwrap_or(0);
    if observed(&policy) >= generation {
        return Ok(());
    }
    let cluster = key.object().cluster;
    let spec = get(&policy, &["spec"]).cloned().unwrap_or_default();
    let kinds = typecheck::named(&spec).into_iter();
    let kinds = kinds.filter_map(|(group, version, plural)| {
        let scope = ClusterScope::One(cluster.clone());
        let served = registry.catalog().find(&scope, &group, &version, &plural)?;
        declared(registry, &served, &group, &version)
    });
    let kinds = kinds.collect::<Vec<_>>();
    let params = params(registry, &cluster, &spec);
    let warnings = move || typecheck::warnings(&spec, kinds, params.as_ref());
    let warnings = tokio::task::spawn_blocking(warnings).await.map_err(Error::internal)?;
    let mut checking = json!({});
    if !warnings.is_empty() {
        checking["expressionWarnings"] = json!(warnings);
    }
    let target = target(registry, key)?;
    let context = context();
    let written = registry.change_status(&context, &target, |policy| {
        // Another generation has another check to come.
        let now = get_i64(policy, &["metadata", "generation"]).unwrap_or(0);
        if now == generation && observed(policy) < generation {
            set(policy, &["status", "observedGeneration"], json!(generation));
            set(policy, &["status", "typeChecking"], checking.clone());
        }
    });
    match written.await {
        Err(error) if error.reason() == Reason::NotFound => Ok(()),
        written => written,
    }
}

/// The kind of a resource in a version, and the type of its objects.
fn declared(
    registry: &Registry,
    served: &Served,
    group: &str,
    version: &str,
) -> Option<(Gvk, Arc<DeclType>)> {
    let kind = GroupVersion::new(group, version).kind(&served.resource.kind);
    let declared = match &served.custom {
        Some(custom) => {
            let version = custom.versions.iter().find(|known| *known.name == *version)?;
            version.schema.declared(&kind.kind)
        }
        None => registry.types().kind(&kind)?.declared(),
    };
    Some((kind, declared))
}

/// The type of a policy's parameters, if the logical cluster serves it.
fn params(registry: &Registry, cluster: &ClusterName, spec: &Value) -> Option<Arc<DeclType>> {
    let text = |field: &str| spec.get("paramKind")?.get(field)?.as_str();
    let GroupVersion { group, version } = GroupVersion::parse(text("apiVersion")?)?;
    let served = registry.catalog().of_kind(cluster, &group, &version, text("kind")?)?;
    declared(registry, &served, &group, &version).map(|(_, declared)| declared)
}

fn target(registry: &Registry, key: &Key) -> Result<Target, Error> {
    let def = registry.types().resource(&POLICIES.group, &POLICIES.resource);
    let def = def.ok_or_else(|| Error::internal("there are no policies"))?;
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
