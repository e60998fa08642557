//! What agents have seen of the hub goes on to those that take their place, as when the mode changes.
//!
//! It is in the physical cluster, since a hub that is restored would come back without it: in the Lease
//! of the agents there, or, of agents that run in this process, in one of `kube-system`. Where that can't
//! be read or written, the copies say enough to keep most of them (see the sync engine).

use agent::leader::{handover, kept};
use agent::manifest::{AGENT_NAME, Kind};
use serde_json::{Value, json};

use super::uninstall::is_ours;
use crate::api::{Api, CallError};

/// What agents that were installed in one of these namespaces have left.
pub(crate) async fn of_installed(
    api: &Api,
    namespaces: &[String],
) -> Result<Option<String>, CallError> {
    for namespace in namespaces {
        let lease = readable(api.metadata(&of_agents(namespace)).await)?;
        if let Some(text) = lease.as_ref().and_then(text) {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// What an agent in this process, or one of another operator's, has left.
pub(crate) async fn of_push(api: &Api, uid: &str) -> Result<Option<String>, CallError> {
    let lease = readable(api.metadata(&kept::path(uid)).await)?;
    Ok(lease.filter(|lease| is_ours(lease, uid)).as_ref().and_then(text))
}

/// Leaves it to an agent in this process.
pub(crate) async fn to_push(api: &Api, uid: &str, seen: &str) -> Result<(), CallError> {
    let mut lease = kept::lease(uid);
    handover::put(&mut lease, seen);
    readable(api.apply(&kept::path(uid), &lease).await.map(Some)).map(drop)
}

/// Leaves it to agents that are going to be in a namespace.
pub(crate) async fn to_installed(api: &Api, namespace: &str, seen: &str) -> Result<(), CallError> {
    let mut lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": AGENT_NAME, "namespace": namespace},
    });
    handover::put(&mut lease, seen);
    readable(api.apply(&of_agents(namespace), &lease).await.map(Some)).map(drop)
}

/// Takes away what an agent in this process has left.
pub(crate) async fn forget_push(api: &Api, uid: &str) -> Result<(), CallError> {
    let path = kept::path(uid);
    let Some(lease) = readable(api.metadata(&path).await)? else { return Ok(()) };
    if !is_ours(&lease, uid) {
        return Ok(());
    }
    let lease_uid = lease["metadata"]["uid"].as_str().unwrap_or_default();
    readable(api.delete(&path, lease_uid).await.map(|()| None)).map(drop)
}

fn of_agents(namespace: &str) -> String {
    Kind::named("Lease").map(|kind| kind.path(namespace, AGENT_NAME)).unwrap_or_default()
}

/// What a Lease says was seen.
fn text(lease: &Value) -> Option<String> {
    handover::text(lease).map(str::to_owned)
}

/// Whose kubeconfig has no right to it goes without.
fn readable(answer: Result<Option<Value>, CallError>) -> Result<Option<Value>, CallError> {
    match answer {
        Err(CallError::Refused { code: 403 | 404, .. }) => {
            tracing::debug!("what was seen of the hub is not handed over");
            Ok(None)
        }
        answer => answer,
    }
}
