//! What was seen of the hub, kept where nobody is elected: for agents that run in the operator's
//! process, of which one at most runs by other means.

use std::time::Duration;

use client::{Ask, Link};
use contract::SYNC_TARGET_LABEL;
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::{debug, warn};

use super::Handover;
use crate::manifest::{MANAGED_BY, MANAGED_BY_OPERATOR};

/// The namespace of the Lease: every cluster has it.
pub const NAMESPACE: &str = "kube-system";

/// How often it is written, if there is news: as often as an agent renews its Lease at the hub.
const PERIOD: Duration = Duration::from_secs(10);

/// The pause after a failure; it doubles.
const FIRST: Duration = Duration::from_secs(1);

/// The longest pause after failures.
const LONGEST: Duration = Duration::from_secs(60);

/// Keeps a [`Handover`] in a Lease of the physical cluster, which nobody holds.
///
/// # Guarantees
/// - What was kept is known before [`Self::load`] returns: it waits for a cluster that doesn't answer.
/// - What is there and not ours is left alone.
///
/// # Assumptions
/// - At most one keeps it at a time.
#[derive(Debug)]
pub struct Kept {
    /// The physical cluster.
    pub link: Link,
    /// The UID of the SyncTarget.
    pub uid: String,
    /// What is kept.
    pub handover: Handover,
}

/// The name of the Lease for a SyncTarget.
pub fn name(uid: &str) -> String {
    format!("kcp-agent-{uid}")
}

/// The path of the Lease for a SyncTarget.
pub fn path(uid: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{}", name(uid))
}

/// The Lease for a SyncTarget, with nothing in it yet.
pub fn lease(uid: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name(uid),
            "namespace": NAMESPACE,
            "labels": {MANAGED_BY: MANAGED_BY_OPERATOR, SYNC_TARGET_LABEL: uid},
        },
    })
}

// === impl Kept ===

impl Kept {
    /// Reads what was kept; waits until that is known. Whose credentials may not read it goes without.
    pub async fn load(&self) {
        let mut pause = FIRST;
        loop {
            match self.read().await {
                Ok(()) => return,
                Err(403) => {
                    let lease = path(&self.uid);
                    warn!(lease, "what was seen of the hub is not kept: the Lease may not be read");
                    self.handover.give_up();
                    return;
                }
                Err(status) => debug!(status, "what was seen of the hub is not known"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
    }

    /// Keeps it for ever; dropping it ends it.
    pub async fn keep(&self) {
        let mut written = self.handover.text();
        let mut pause = FIRST;
        loop {
            let begun = Instant::now();
            let text = self.handover.text();
            let is_kept = text == written && !self.handover.is_urgent();
            if is_kept || self.write().await {
                written = text;
                pause = FIRST;
                tokio::select! {
                    () = tokio::time::sleep_until(begun + PERIOD) => {}
                    () = self.handover.urgent() => {}
                }
            } else {
                pause = (pause * 2).min(LONGEST);
                tokio::time::sleep_until(begun + pause).await;
            }
        }
    }

    /// Reads it once; the status of an answer that says nothing, or 0 for none.
    async fn read(&self) -> Result<(), u16> {
        let told = self.link.ask(Ask::get(&path(&self.uid))).await.map_err(|_| 0_u16)?;
        match told.status.as_u16() {
            200 => {
                let lease: Value = serde_json::from_slice(&told.body).map_err(|_| 200_u16)?;
                if self.is_ours(&lease) {
                    self.handover.read(&lease);
                }
                Ok(())
            }
            404 => Ok(()),
            status => Err(status),
        }
    }

    async fn write(&self) -> bool {
        let path = format!("{}?fieldManager={}&force=true", path(&self.uid), contract::AGENT);
        let mut lease = lease(&self.uid);
        let handed = self.handover.write(&mut lease);
        let body = lease.to_string().into_bytes();
        let ask = Ask::with(Method::PATCH, &path, "application/apply-patch+yaml", body);
        let told = self.link.ask(ask).await;
        let written = told.as_ref().is_ok_and(|told| told.status.is_success());
        if written {
            self.handover.written(handed);
        } else {
            let status = told.ok().map(|told| told.status.as_u16());
            if status == Some(403) {
                self.handover.give_up();
            }
            debug!(?status, "what was seen of the hub is not kept");
        }
        written
    }

    fn is_ours(&self, lease: &Value) -> bool {
        lease["metadata"]["labels"][SYNC_TARGET_LABEL] == *self.uid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases() {
        let handover = Handover::default();
        let mut lease = lease("u");
        let _written = handover.write(&mut lease);
        assert_eq!(lease["metadata"].get("annotations"), None);
        handover.set("x".to_owned());
        let _written = handover.write(&mut lease);
        assert_eq!(lease["metadata"]["annotations"], json!({contract::HUB_SEEN: "x"}));
        assert_eq!(lease["metadata"]["labels"][SYNC_TARGET_LABEL], "u");
        assert!(path("u").ends_with("/kube-system/leases/kcp-agent-u"));
        assert_eq!(lease["metadata"]["name"], "kcp-agent-u");
    }
}
