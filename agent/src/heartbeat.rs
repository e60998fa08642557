//! The sign of life at the hub: the Lease `kube-node-lease/synctarget-<UID>`.
//!
//! It goes over a connection of its own (`client`), so that nothing else delays it. The hub's clock
//! decides how old it is; the time in it is for people.

use std::time::Duration;

use client::{Ask, JSON, Link};
use http::Method;
use jiff::Timestamp;
use prometheus::IntCounterVec;
use serde_json::{Value, json};
use tracing::debug;

use crate::leader::micro;
use crate::target::TargetRef;

/// How often it is renewed.
pub const PERIOD: Duration = Duration::from_secs(10);

/// How long it lives: whoever looks takes the agent for lost after that.
pub const LIFE: Duration = Duration::from_secs(40);

/// How soon a renewal that failed is tried again.
const AGAIN: Duration = Duration::from_secs(2);

/// Renews the Lease for ever; dropping it ends it. `renewals` counts by outcome, `ok` or `failed`.
pub async fn run(hub: &Link, target: &TargetRef, holder: &str, renewals: &IntCounterVec) {
    loop {
        let renewed = renew(hub, target, holder).await;
        renewals.with_label_values(&[if renewed { "ok" } else { "failed" }]).inc();
        tokio::time::sleep(if renewed { PERIOD } else { AGAIN }).await;
    }
}

async fn renew(hub: &Link, target: &TargetRef, holder: &str) -> bool {
    let spec = json!({
        "holderIdentity": holder,
        "leaseDurationSeconds": LIFE.as_secs(),
        "renewTime": micro(Timestamp::now()),
    });
    let path = format!("{}?fieldManager={}", target.lease_path(), contract::AGENT);
    let merge = "application/merge-patch+json";
    let body = json!({"spec": spec}).to_string().into_bytes();
    match status(hub, Ask::with(Method::PATCH, &path, merge, body)).await {
        Some(200) => true,
        // Agents are not told that something is missing.
        Some(403 | 404) => {
            let name = contract::lease_name(&target.uid);
            let lease: Value = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": name},
                "spec": spec,
            });
            let path = target.lease_path();
            let collection = path.strip_suffix(&format!("/{name}")).unwrap_or(&path);
            let body = lease.to_string().into_bytes();
            status(hub, Ask::with(Method::POST, collection, JSON, body)).await == Some(201)
        }
        other => {
            debug!(status = ?other, "the lease at the hub is not renewed");
            false
        }
    }
}

async fn status(hub: &Link, ask: Ask<'_>) -> Option<u16> {
    match hub.ask(ask).await {
        Ok(told) => Some(told.status.as_u16()),
        Err(error) => {
            debug!(%error, "the hub gives no answer");
            None
        }
    }
}
