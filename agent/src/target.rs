//! Which SyncTarget an agent is of, and where it is in the hub.

use std::sync::Arc;

use client::{Ask, Link};
use serde_json::Value;

/// A SyncTarget as an agent is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRef {
    /// Its logical cluster.
    pub cluster: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its UID: another one of the same name is another target.
    pub uid: Arc<str>,
}

// === impl TargetRef ===

impl TargetRef {
    /// A SyncTarget.
    pub fn new(cluster: &str, name: &str, uid: &str) -> Self {
        Self { cluster: cluster.into(), name: name.into(), uid: uid.into() }
    }

    /// The path of its logical cluster, below the hub's own.
    pub fn base(&self) -> String {
        format!("/clusters/{}", self.cluster)
    }

    /// Its path, below the hub's own.
    pub fn path(&self) -> String {
        format!(
            "{}/apis/{}/v1alpha1/{}/{}",
            self.base(),
            contract::WORKLOAD_GROUP,
            contract::SYNC_TARGETS,
            self.name
        )
    }

    /// The path of the Lease that its agent renews.
    pub fn lease_path(&self) -> String {
        format!(
            "{}/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}",
            self.base(),
            contract::LEASE_NAMESPACE,
            contract::lease_name(&self.uid)
        )
    }

    /// Reads it, live. What the hub says of it is told as it is.
    ///
    /// # Errors
    /// When the hub gives no answer.
    pub async fn read(&self, hub: &Link) -> Result<Read, client::Error> {
        Ok(match self.read_any(hub).await? {
            Read::Found(object) => {
                let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
                if uid == Some(&*self.uid) { Read::Found(object) } else { Read::Other }
            }
            other => other,
        })
    }

    /// Reads whatever SyncTarget has its name, live.
    ///
    /// # Errors
    /// When the hub gives no answer.
    pub async fn read_any(&self, hub: &Link) -> Result<Read, client::Error> {
        let path = self.path();
        let told = hub.ask(Ask::get(&path)).await?;
        let status = told.status.as_u16();
        let object = serde_json::from_slice::<Value>(&told.body).unwrap_or_default();
        Ok(match status {
            200 => Read::Found(object),
            401 => Read::Unauthorized,
            403 => Read::Forbidden,
            404 => Read::Gone,
            _ => Read::Failed(status),
        })
    }
}

/// What the hub says of a SyncTarget.
#[derive(Clone, Debug, PartialEq)]
pub enum Read {
    /// The object.
    Found(Value),
    /// There is another one of that name.
    Other,
    /// Who asks is nobody.
    Unauthorized,
    /// Who asks may not see it.
    Forbidden,
    /// It is not there.
    Gone,
    /// The hub can't tell; its status code.
    Failed(u16),
}
