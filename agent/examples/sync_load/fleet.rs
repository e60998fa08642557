//! Many SyncTargets, each with a logical cluster of another server for its physical cluster, and the
//! files that their agents are started with.

use std::path::Path;

use anyhow::{Context, Result};
use client::JSON;
use http::Method;
use serde_json::{Value, json};

use crate::side::{Side, TARGETS, THINGS};

/// Where the agents' own objects are in their physical clusters.
const NAMESPACE: &str = "kcp-agent";

/// The name of a SyncTarget.
pub(crate) fn target(number: usize) -> String {
    format!("bench-{number}")
}

/// The path of a physical cluster.
pub(crate) fn base(number: usize) -> String {
    format!("/clusters/physical-{number}")
}

/// Defines the type on both sides, makes the SyncTargets, and for each a token, what would have been
/// installed, and the files `NUMBER.uid`, `NUMBER.token` and `NUMBER.kubeconfig`.
pub(crate) async fn define(
    upstream: &Side,
    downstream: &Side,
    kubeconfig: &Path,
    agents: usize,
    folder: &Path,
) -> Result<()> {
    upstream.define().await?;
    // The operator installs the type.
    upstream.until_served(upstream.base, TARGETS).await?;
    downstream.define_in("/clusters/system:crds").await?;
    downstream.until_served("/clusters/root", THINGS).await?;
    let kubeconfig = std::fs::read_to_string(kubeconfig)?;
    for number in 0..agents {
        let uid = make_target(upstream, number).await?;
        let token = make_token(upstream, number, &uid).await?;
        let base = base(number);
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        let path = format!("{base}/api/v1/namespaces");
        downstream.send(Method::POST, &path, JSON, namespace.to_string()).await?;
        let secret = json!({"metadata": {"name": "kcp-agent-identity"}, "type": "Opaque"});
        let path = format!("{path}/{NAMESPACE}/secrets");
        downstream.send(Method::POST, &path, JSON, secret.to_string()).await?;
        let write =
            |end: &str, text: &str| std::fs::write(folder.join(format!("{number}.{end}")), text);
        write("uid", &uid)?;
        write("token", &token)?;
        write("kubeconfig", &kubeconfig.replace("/clusters/root", &base))?;
    }
    Ok(())
}

async fn make_target(upstream: &Side, number: usize) -> Result<String> {
    let object = json!({
        "apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
        "metadata": {"name": target(number)},
        // Nobody but this installs agents.
        "spec": {"mode": "None", "resources": ["things.bench.io"]},
    });
    let path = format!("{}{TARGETS}", upstream.base);
    let made = upstream.send(Method::POST, &path, JSON, object.to_string()).await?;
    made["metadata"]["uid"].as_str().map(str::to_owned).context("a UID")
}

async fn make_token(upstream: &Side, number: usize, uid: &str) -> Result<String> {
    let (id, secret) = (format!("b{number:05}"), "0123456789abcdef");
    let object = json!({
        "metadata": {"name": format!("bootstrap-token-{id}")},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": id,
            "token-secret": secret,
            "usage-bootstrap-authentication": "true",
            "expiration": "2100-01-01T00:00:00Z",
            contract::BOOTSTRAP_TARGET_NAME: target(number),
            contract::BOOTSTRAP_TARGET_UID: uid,
        },
    });
    let path = format!("{}/api/v1/namespaces/kube-system/secrets", upstream.base);
    upstream.send(Method::POST, &path, JSON, object.to_string()).await?;
    Ok(format!("{id}.{secret}"))
}

/// Waits until so many SyncTargets are ready.
pub(crate) async fn until_ready(upstream: &Side, agents: usize) -> Result<()> {
    upstream.until(TARGETS, agents, "SyncTargets are ready", is_ready).await
}

fn is_ready(target: &Value) -> bool {
    let conditions = target["status"]["conditions"].as_array();
    let is = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(is))
}
