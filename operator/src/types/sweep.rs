//! Descriptions of types that nobody names any more: they go, after a while.
//!
//! Only APIResourceSchemas do, and only those that no import and no negotiated type of their logical
//! cluster names. Whoever needs one again writes it again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use contract::{API_RESOURCE_SCHEMAS, APIRESOURCE_GROUP};
use jiff::Timestamp;
use serde_json::Value;
use tracing::{debug, info};

use super::descriptions::text;
use super::{TypesController, WorkError};
use crate::targets::index::CLUSTER;

/// How often they are looked for.
const EVERY: Duration = Duration::from_secs(600);

/// How long one is kept that nobody names: an agent writes it before it names it.
const KEPT: Duration = Duration::from_secs(3600);

/// A description, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    cluster: String,
    name: String,
    uid: String,
}

// === impl TypesController ===

impl TypesController {
    pub(super) async fn sweep(self: Arc<Self>) {
        loop {
            tokio::time::sleep(EVERY).await;
            if !self.listed.load(Ordering::Acquire) {
                continue;
            }
            match self.sweep_once(Timestamp::now()).await {
                Ok(0) => {}
                Ok(gone) => info!(gone, "descriptions that nobody names are deleted"),
                Err(error) => debug!(%error, "descriptions were not looked through"),
            }
        }
    }

    /// Deletes what nobody names; answers how many that were.
    async fn sweep_once(&self, now: Timestamp) -> Result<usize, WorkError> {
        let path = format!("/apis/{APIRESOURCE_GROUP}/v1alpha1/{API_RESOURCE_SCHEMAS}");
        let mut old = Vec::new();
        let each = |object: Value| old.extend(Found::read(&object, now));
        self.hub.of("*").list_metadata(&path, each).await?;
        // What is named is looked at afterwards: what is named meanwhile stays.
        let named = self.index.lock().named();
        old.retain(|found| !named.contains(&(found.cluster.clone(), found.name.clone())));
        let count = old.len();
        for Found { cluster, name, uid } in old {
            self.cluster(&cluster).delete(&format!("{path}/{name}"), &uid).await?;
        }
        Ok(count)
    }
}

// === impl Found ===

impl Found {
    /// Reads one that is old enough.
    fn read(object: &Value, now: Timestamp) -> Option<Self> {
        let metadata = object.get("metadata")?;
        let created: Timestamp = text(metadata, "/creationTimestamp").parse().ok()?;
        let age = now.duration_since(created);
        let old = age > jiff::SignedDuration::try_from(KEPT).ok()?;
        let cluster = metadata.get("annotations")?.get(CLUSTER)?.as_str()?.to_owned();
        let (name, uid) = (text(metadata, "/name").to_owned(), text(metadata, "/uid").to_owned());
        (old && !uid.is_empty()).then_some(Self { cluster, name, uid })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_old_ones_go() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let object = |created: &str| {
            json!({"metadata": {
                "name": "sha256-x", "uid": "u", "creationTimestamp": created,
                "annotations": {CLUSTER: "infra"},
            }})
        };
        let found = Found::read(&object("2026-01-01T10:00:00Z"), now).unwrap();
        assert_eq!((&*found.cluster, &*found.name), ("infra", "sha256-x"));
        assert_eq!(Found::read(&object("2026-01-01T11:30:00Z"), now), None);
        assert_eq!(Found::read(&object("2027-01-01T00:00:00Z"), now), None);
        assert_eq!(Found::read(&object("at some time"), now), None);
        assert_eq!(Found::read(&json!({"metadata": {"name": "x"}}), now), None);
    }
}
