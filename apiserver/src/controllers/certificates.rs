//! Signs requests for certificates that were approved, and removes those that are old.
//!
//! One task for all logical clusters; the old ones are looked for all at once, every hour. Servers
//! that share a store may sign the same request, of which one certificate is kept.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contract::AGENT_SIGNER;
use jiff::Timestamp;
use machinery::meta::{get, get_str, set};
use machinery::{ClusterName, GroupResource};
use prometheus::IntGauge;
use serde_json::{Value, json};
use store::cache::{Audience, Event, Filter, Scope};
use store::{Key, KeyPrefix};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::context;
use super::queue::Queue;
use crate::auth::targets::{self, SyncTarget, sync_targets};
use crate::certificates::{
    APPROVED, CLIENT_SIGNER, DENIED, FAILED, GROUP, Leaf, REQUESTS, has_condition, is_old,
    judge_agent, judge_client, signer_of,
};
use crate::pki::ClientIssuer;
use crate::registry::{ClusterScope, DeleteOptions, Error, Reason, Registry, Target};

/// How often old requests are looked for, as upstream.
const CLEANING: Duration = Duration::from_secs(3600);

/// How soon a request is looked at again that could not be written.
const AGAIN: Duration = Duration::from_millis(200);

/// Follows requests until `stop`.
pub(super) async fn run(
    registry: Arc<Registry>,
    issuer: Arc<ClientIssuer>,
    depth: IntGauge,
    stop: CancellationToken,
) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow(&registry, &issuer, &depth) => {}
    }
}

fn requests() -> GroupResource {
    GroupResource::new(GROUP, REQUESTS)
}

async fn follow(registry: &Registry, issuer: &ClientIssuer, depth: &IntGauge) {
    let prefix = KeyPrefix::resource(&requests());
    let scopes = [Scope::Prefix(prefix.clone())];
    let there: Filter = Arc::new(|event: &Event| event.current.is_some());
    let mut cleaning = tokio::time::interval(CLEANING);
    let mut queue: Queue<Key> = Queue::new(depth.clone());
    loop {
        let (listed, mut events) =
            registry.cache().list_and_watch(&prefix, &scopes, Some(&there), Audience::Server);
        for object in &listed.objects {
            queue.add(object.key.clone(), Instant::now());
        }
        drop(listed);
        loop {
            while let Some((key, delay)) = queue.take(Instant::now()) {
                if let Err(error) = settle(registry, issuer, &key).await {
                    warn!(%key, %error, "cannot answer a request for a certificate");
                    queue.retry(key, Instant::now(), delay.max(AGAIN));
                }
            }
            let either = async {
                tokio::select! {
                    event = events.next() => Some(event),
                    _ = cleaning.tick() => None,
                }
            };
            match queue.or_due(either).await {
                Some(Some(Some(event))) => queue.add(event.key.clone(), Instant::now()),
                Some(Some(None)) => break,
                Some(None) => clean(registry, &prefix).await,
                None => {}
            }
        }
    }
}

/// Signs a request if it waits for that.
async fn settle(registry: &Registry, issuer: &ClientIssuer, key: &Key) -> Result<(), Error> {
    let Some(object) = registry.cache().get(key) else { return Ok(()) };
    let request: Value = serde_json::from_slice(&object.json()).map_err(Error::internal)?;
    let cluster = key.object().cluster;
    let now = Timestamp::now();
    if !waits(&request) {
        return Ok(());
    }
    let leaf = match signer_of(&request) {
        CLIENT_SIGNER => judge_client(&request, &cluster, now),
        AGENT_SIGNER => judge_agent(&request, &cluster, now, |uid| by_uid(registry, &cluster, uid)),
        // Others sign these.
        _ => return Ok(()),
    };
    let sign = |leaf: Leaf| issuer.issue(&leaf).map_err(|error| error.to_string());
    let outcome = leaf.and_then(sign);
    let target = target(registry, &cluster, object.header.name(), "status")?;
    let written = registry
        .change_status(&context(), &target, |present| {
            // It may have been changed meanwhile, or be another of the same name.
            if !waits(present) || get(present, &["spec"]) != get(&request, &["spec"]) {
                return;
            }
            match &outcome {
                Ok(pem) => {
                    set(present, &["status", "certificate"], json!(STANDARD.encode(pem)));
                }
                Err(why) => fail(present, why, now),
            }
        })
        .await;
    match written {
        Ok(()) => {
            debug!(%key, issued = outcome.is_ok(), "answered a request for a certificate");
            Ok(())
        }
        Err(error) if error.reason() == Reason::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a request has been approved, and nothing has come of it yet.
fn waits(request: &Value) -> bool {
    let issued = get_str(request, &["status", "certificate"]).is_some_and(|text| !text.is_empty());
    has_condition(request, APPROVED)
        && !has_condition(request, DENIED)
        && !has_condition(request, FAILED)
        && !issued
}

fn fail(request: &mut Value, why: &str, now: Timestamp) {
    let now = machinery::time::Time::at(now).to_string();
    let mut conditions = get(request, &["status", "conditions"]).cloned().unwrap_or_default();
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.push(json!({
            "type": FAILED,
            "status": "True",
            "reason": "SignerValidationFailure",
            "message": why,
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        }));
    }
    set(request, &["status", "conditions"], conditions);
}

/// The SyncTarget of a logical cluster with a UID.
fn by_uid(registry: &Registry, cluster: &ClusterName, uid: &str) -> Option<SyncTarget> {
    let cache = registry.cache();
    if !targets::has_type(&**cache, cluster) {
        return None;
    }
    let all = cache.list(&KeyPrefix::cluster(&sync_targets(), cluster), None, 0).objects;
    all.iter()
        .find(|object| *object.header.uid() == *uid)
        .and_then(|object| SyncTarget::read(object))
}

/// Removes requests that are old.
async fn clean(registry: &Registry, prefix: &KeyPrefix) {
    let now = Timestamp::now();
    for object in registry.cache().list(prefix, None, 0).objects {
        let old = serde_json::from_slice(&object.json()).is_ok_and(|request| is_old(&request, now));
        if !old {
            continue;
        }
        let cluster = object.key.object().cluster;
        let uid = Some(object.header.uid().to_string());
        let options = DeleteOptions { uid, ..DeleteOptions::default() };
        let removed = match target(registry, &cluster, object.header.name(), "") {
            Ok(target) => registry.delete(&context(), &target, options).await.map(drop),
            Err(error) => Err(error),
        };
        match removed {
            Ok(()) => debug!(key = %object.key, "removed an old request for a certificate"),
            Err(error) => warn!(key = %object.key, %error, "cannot remove an old request"),
        }
    }
}

fn target(
    registry: &Registry,
    cluster: &ClusterName,
    name: &str,
    subresource: &str,
) -> Result<Target, Error> {
    let GroupResource { group, resource } = requests();
    let resource = registry.types().resource(&group, &resource);
    let resource = resource.ok_or_else(|| Error::internal("these requests are built in"))?;
    Ok(Target {
        cluster: ClusterScope::One(cluster.clone()),
        resource: resource.clone(),
        custom: None,
        version: "v1".into(),
        namespace: "".into(),
        name: name.into(),
        subresource: subresource.into(),
    })
}
