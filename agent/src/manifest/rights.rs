//! What an agent may do in the physical cluster: as rules of roles.
//!
//! They follow the types that are synced; a person reads them before lending a kubeconfig, and the
//! operator asks whether that kubeconfig may give them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::names::{AGENT_NAME, IDENTITY_SECRET};

/// What an agent does with objects that it syncs.
pub const SYNC_VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

/// What an agent does with definitions of types, where they go down: it never deletes one, and with it
/// what is stored of its type.
pub const DEFINE_VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "update"];

/// What an agent does with what it only looks at.
const READ_ONLY: [&str; 3] = ["get", "list", "watch"];

/// A type whose objects are synced.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SyncedType {
    /// The group; empty for core, `*` for all.
    pub group: String,
    /// The resource; `*` for all.
    pub resource: String,
}

/// The rules of the agent's ClusterRole: sorted, one for each group. Status goes down to the copies of
/// `statuses`.
pub fn cluster_rules(types: &[SyncedType], statuses: &[SyncedType]) -> Vec<Value> {
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let (mut of_definitions, (definers, definitions)) = (&READ_ONLY[..], contract::DEFINITIONS);
    for synced in types {
        if (&*synced.group, &*synced.resource) == contract::DEFINITIONS {
            of_definitions = &DEFINE_VERBS;
        } else {
            groups.entry(&synced.group).or_default().insert(&synced.resource);
        }
    }
    let mut rules = vec![
        // Where objects are put. A namespace is deleted only if the agent made it.
        rule("", &["namespaces"], &SYNC_VERBS),
        // What happens to copies is told at the hub; what the agent does is told here.
        rule("", &["events"], &["get", "list", "watch", "create", "patch"]),
        rule("events.k8s.io", &["events"], &["create", "patch"]),
        // Which types there are, and how large the cluster is.
        rule(definers, &[definitions], of_definitions),
        rule("", &["nodes"], &READ_ONLY),
        // The documents of types; bound to everybody in most clusters, not in all.
        json!({
            "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/openapi/*", "/version"],
            "verbs": ["get"],
        }),
    ];
    rules.extend(groups.into_iter().map(|(group, resources)| {
        let resources: Vec<&str> = resources.into_iter().collect();
        rule(group, &resources, &SYNC_VERBS)
    }));
    rules.extend(statuses.iter().map(|synced| {
        let status = format!("{}/status", synced.resource);
        rule(&synced.group, &[&status], &["patch"])
    }));
    rules
}

/// The rules of the agent's Role in its own namespace: its certificate, and who leads.
pub fn own_rules() -> Vec<Value> {
    let mut identity = rule("", &["secrets"], &["get", "update", "patch"]);
    identity["resourceNames"] = json!([IDENTITY_SECRET]);
    let mut lease = rule("coordination.k8s.io", &["leases"], &["get", "update", "patch"]);
    lease["resourceNames"] = json!([AGENT_NAME]);
    // A creation has no name yet that could be asked for.
    vec![identity, lease, rule("coordination.k8s.io", &["leases"], &["create"])]
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}
