//! ClusterRoles that collect the rules of others: what they come to is written into them.
//!
//! Authorization does not depend on this (see `auth/rbac/policy/collect.rs`): it shows readers what
//! is in force. As upstream's controller does, each role takes the rules that stand in the roles it
//! selects, in the order of selectors and names; roles that collect from roles that collect settle
//! one after the other. Servers that share a store write the same, so they need no leader.
//!
//! # Guarantees
//! - A virtual role becomes real only when its rules are no longer those of the bootstrap policy.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use machinery::ClusterName;
use machinery::selector::LabelSelector;
use prometheus::IntGauge;
use serde_json::json;
use store::KeyPrefix;
use store::cache::{Audience, Object, Scope};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::context;
use super::queue::Queue;
use crate::auth::rbac::{RoleObject, Rule};
use crate::clusters::bootstrap::{GROUP, Kind};
use crate::registry::{
    Body, ClusterScope, Error, Media, PatchType, Reason, Registry, Target, WriteOptions,
};

/// Who manages the rules that are collected, as upstream names it.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// Stands in every role that collects, and costs less to look for than to read the role.
const MARK: &[u8] = b"\"aggregationRule\":{";

/// How soon roles are looked at again whose rules could not be written.
const AGAIN: Duration = Duration::from_millis(200);

/// Follows ClusterRoles until `stop`.
pub(super) async fn run(registry: Arc<Registry>, depth: IntGauge, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow(&registry, &depth) => {}
    }
}

async fn follow(registry: &Arc<Registry>, depth: &IntGauge) {
    let prefix = KeyPrefix::resource(&Kind::ClusterRole.resource());
    let scopes = [Scope::Prefix(prefix.clone())];
    let mut queue: Queue<String> = Queue::new(depth.clone());
    loop {
        let (listed, mut events) =
            registry.cache().list_and_watch(&prefix, &scopes, None, Audience::Server);
        for object in &listed.objects {
            queue.add(object.key.parts().0.to_owned(), Instant::now());
        }
        drop(listed);
        loop {
            while let Some((cluster, delay)) = queue.take(Instant::now()) {
                let Ok(name) = ClusterName::parse(&cluster) else { continue };
                if let Err(error) = settle(registry, &name).await {
                    warn!(%cluster, %error, "cannot collect the rules of roles");
                    queue.retry(cluster, Instant::now(), delay.max(AGAIN));
                }
            }
            match queue.next(&mut events).await {
                Some(Some(event)) => {
                    queue.add(event.key.parts().0.to_owned(), Instant::now());
                }
                Some(None) => break,
                None => {}
            }
        }
    }
}

/// Writes the rules of those roles of a logical cluster that collect others, where they differ.
async fn settle(registry: &Registry, cluster: &ClusterName) -> Result<(), Error> {
    let prefix = KeyPrefix::cluster(&Kind::ClusterRole.resource(), cluster);
    let roles = registry.cache().list(&prefix, None, 0).objects;
    for role in &roles {
        if !contains(&role.json(), MARK) || role.header.is_deleting() {
            continue;
        }
        let object = RoleObject::parse(&role.json());
        let Some(selectors) = object.selectors() else { continue };
        let rules = collected(&roles, role, &selectors);
        if rules == object.rules {
            continue;
        }
        match write(registry, cluster, role.header.name(), &rules).await {
            Ok(()) => debug!(%cluster, role = %role.header.name(), "collected rules"),
            // It went, or its logical cluster goes.
            Err(error) if matches!(error.reason(), Reason::NotFound | Reason::Forbidden) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The rules of all roles that a role selects, each once.
fn collected(roles: &[Arc<Object>], to: &Object, selectors: &[LabelSelector]) -> Vec<Rule> {
    let mut seen: HashSet<Rule> = HashSet::new();
    let mut rules = Vec::new();
    for selector in selectors {
        let selects = |role: &&Arc<Object>| {
            role.header.name() != to.header.name() && selector.matches(|key| role.header.label(key))
        };
        // Keys of one resource in one logical cluster are in the order of names.
        for role in roles.iter().filter(selects) {
            for rule in RoleObject::parse(&role.json()).rules {
                if seen.insert(rule.clone()) {
                    rules.push(rule);
                }
            }
        }
    }
    rules
}

async fn write(
    registry: &Registry,
    cluster: &ClusterName,
    name: &str,
    rules: &[Rule],
) -> Result<(), Error> {
    let resource = registry.types().resource(GROUP, Kind::ClusterRole.plural());
    let resource = resource.ok_or_else(|| Error::internal("ClusterRoles are built in"))?;
    let target = Target {
        cluster: ClusterScope::One(cluster.clone()),
        resource: resource.clone(),
        custom: None,
        version: "v1".into(),
        namespace: "".into(),
        name: name.into(),
        subresource: "".into(),
    };
    let applied = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": Kind::ClusterRole.name(),
        "metadata": {"name": name},
        "rules": rules,
    });
    let body = Body { media: Media::Yaml, bytes: applied.to_string().into() };
    let options = WriteOptions {
        field_manager: MANAGER.into(),
        force: Some(true),
        ..WriteOptions::default()
    };
    registry.patch(&context(), &target, PatchType::Apply, body, options).await.map(|_| ())
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
