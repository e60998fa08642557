//! Taking away what was installed in a physical cluster, and nothing else.
//!
//! Invariants: what is deleted carries the labels of this very SyncTarget, and is deleted by its UID;
//! the namespace goes only if every resource in it was looked at and nothing foreign was found.

use agent::manifest::{
    AGENT_NAME, HUB_SECRET, IDENTITY_SECRET, Kind, MANAGED_BY, MANAGED_BY_OPERATOR, PULL_SECRET,
};
use contract::{SYNC_TARGET_LABEL, UPSTREAM};
use serde_json::Value;

use crate::api::{Api, CallError};
use crate::discovery::{Listed, Versions, resources};

/// Groups whose objects are views of others.
const VIEWS: [&str; 3] = ["metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"];

/// Foreign objects that are named.
const MOST_NAMED: usize = 5;

/// What was left where it is, for people; empty if nothing was.
pub(crate) type LeftBehind = Vec<String>;

/// Whether an object is one that was installed for the SyncTarget with `uid`.
pub(crate) fn is_ours(object: &Value, uid: &str) -> bool {
    let metadata = &object["metadata"];
    let label = |key: &str| metadata["labels"][key].as_str();
    label(MANAGED_BY) == Some(MANAGED_BY_OPERATOR)
        && label(SYNC_TARGET_LABEL) == Some(uid)
        // A copy of somebody's object.
        && metadata["annotations"].get(UPSTREAM).is_none()
}

/// The namespaces in which something is installed for the SyncTarget with `uid`.
///
/// # Errors
/// When they cannot be listed.
pub(crate) async fn installed_in(api: &Api, uid: &str) -> Result<Vec<String>, CallError> {
    let selector = format!("{MANAGED_BY}={MANAGED_BY_OPERATOR},{SYNC_TARGET_LABEL}={uid}");
    let found = api.list("/api/v1/namespaces", &selector).await?;
    let ours = found.iter().filter(|namespace| is_ours(namespace, uid));
    Ok(ours.filter_map(|found| found["metadata"]["name"].as_str().map(str::to_owned)).collect())
}

/// Whether an agent of the SyncTarget with `uid` is installed in `namespace`, and not going already.
///
/// # Errors
/// When the cluster does not answer.
pub(crate) async fn holds_agent(api: &Api, namespace: &str, uid: &str) -> Result<bool, CallError> {
    let Some(kind) = Kind::named("Deployment") else { return Ok(false) };
    let found = api.metadata(&kind.path(namespace, AGENT_NAME)).await?;
    let stays = |found: &Value| found["metadata"]["deletionTimestamp"].is_null();
    Ok(found.is_some_and(|found| is_ours(&found, uid) && stays(&found)))
}

/// Takes away what was installed for the SyncTarget with `uid` in `namespace`.
///
/// # Errors
/// When the cluster does not answer, or refuses; what was done stays done.
pub(crate) async fn uninstall(
    api: &Api,
    namespace: &str,
    uid: &str,
) -> Result<LeftBehind, CallError> {
    let mut left = LeftBehind::new();
    // The agent first: it would only notice that its rights are gone.
    for kind in Kind::ALL.iter().rev() {
        for name in names(kind, namespace) {
            let path = kind.path(namespace, name);
            let Some(found) = api.metadata(&path).await? else { continue };
            // The Lease is made by the agent itself.
            if kind.kind == "Lease" || is_ours(&found, uid) {
                api.delete(&path, uid_of(&found)).await?;
            } else {
                left.push(format!("{} {name}, which has other labels", kind.kind));
            }
        }
    }
    let path = format!("/api/v1/namespaces/{namespace}");
    let Some(found) = api.metadata(&path).await? else { return Ok(left) };
    if !is_ours(&found, uid) {
        left.push(format!("Namespace {namespace}, which has other labels"));
        return Ok(left);
    }
    match foreign(api, namespace, uid).await? {
        None => api.delete(&path, uid_of(&found)).await?,
        Some(why) => left.push(format!("Namespace {namespace}: {why}")),
    }
    Ok(left)
}

fn uid_of(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// The names of what is installed of a kind; the namespace itself comes last, on its own terms.
fn names<'n>(kind: &Kind, namespace: &'n str) -> Vec<&'n str> {
    match kind.kind {
        "Namespace" => Vec::new(),
        "Secret" => vec![HUB_SECRET, IDENTITY_SECRET, PULL_SECRET],
        _ if kind.namespaced => vec![AGENT_NAME],
        _ => vec![namespace],
    }
}

/// Why a namespace can't go; `None` if nothing foreign is in it.
async fn foreign(api: &Api, namespace: &str, uid: &str) -> Result<Option<String>, CallError> {
    let resources = resources(api, Versions::Preferred).await?;
    let mut found = Vec::new();
    for listed in resources.listed.iter().filter(|listed| listed.namespaced) {
        if VIEWS.contains(&listed.group.as_str()) || listed.resource == "events" {
            continue;
        }
        for object in api.list(&listed.path(namespace), "").await? {
            if !belongs(listed, &object, uid) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                found.push(format!("{} {name}", listed.resource));
            }
        }
    }
    if !found.is_empty() {
        let number = found.len();
        found.truncate(MOST_NAMED);
        return Ok(Some(format!("it holds {number} objects of others, as {}", found.join(", "))));
    }
    Ok((!resources.complete).then(|| "not all resources could be looked at".to_owned()))
}

/// Whether an object in our namespace is ours, or there by itself.
fn belongs(listed: &Listed, object: &Value, uid: &str) -> bool {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let account = metadata["annotations"]["kubernetes.io/service-account.name"].as_str();
    is_ours(object, uid)
        || match (listed.group.as_str(), listed.resource.as_str()) {
            ("", "configmaps") => name == "kube-root-ca.crt",
            ("", "serviceaccounts") => name == "default",
            // Tokens that clusters before 1.24 make.
            ("", "secrets") => matches!(account, Some("default" | AGENT_NAME)),
            ("coordination.k8s.io", "leases") => name == AGENT_NAME,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labelled(uid: &str) -> Value {
        json!({"metadata": {"name": "x", "labels": {
            MANAGED_BY: MANAGED_BY_OPERATOR, SYNC_TARGET_LABEL: uid,
        }}})
    }

    #[test]
    fn only_what_was_installed_is_ours() {
        assert!(is_ours(&labelled("u"), "u"));
        assert!(!is_ours(&labelled("v"), "u"), "of another target");
        let mut copy = labelled("u");
        copy["metadata"]["annotations"] = json!({UPSTREAM: "{}"});
        assert!(!is_ours(&copy, "u"), "a copy of somebody's object");
        let mut plain = labelled("u");
        plain["metadata"]["labels"][MANAGED_BY] = "Helm".into();
        assert!(!is_ours(&plain, "u"));
        assert!(!is_ours(&json!({}), "u"));
    }

    #[test]
    fn what_is_in_every_namespace_is_not_foreign() {
        let check = |group: &str, resource: &str, name: &str, expect: bool| {
            let listed = Listed {
                group: group.into(),
                version: "v1".into(),
                resource: resource.into(),
                namespaced: true,
            };
            let object = json!({"metadata": {"name": name}});
            assert_eq!(belongs(&listed, &object, "u"), expect, "{resource} {name}");
        };
        check("", "configmaps", "kube-root-ca.crt", true);
        check("", "configmaps", "mine", false);
        check("", "serviceaccounts", "default", true);
        check("", "secrets", "default", false);
        check("coordination.k8s.io", "leases", "kcp-agent", true);
        check("x.io", "things", "default", false);
    }
}
