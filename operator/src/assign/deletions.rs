//! Telling agents what people are deleting as a whole, so that the copies in it need no approval.
//!
//! # Guarantees
//! - A namespace or logical cluster is told only while a live read of it says that it is being
//!   deleted: neither ever comes back. Objects that are deleted one by one, or unassigned with their
//!   namespace, say nothing.
//! - It is taken back when it is gone, before long: a namesake is another one.
//! - Nothing is told to targets that hold nothing there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use contract::DELETING;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};

use super::Assigner;
use super::index::{NamespaceKey, TargetName};
use super::work::logical_cluster;
use crate::api::{Api, CallError};
use crate::queue::Done;
use crate::targets::index::path as target_path;

/// How often what is being deleted is looked at, at least.
const AGAIN: Duration = Duration::from_secs(2);

/// What is added to that for each place: places that stay for long cost little.
const AGAIN_EACH: Duration = Duration::from_millis(10);

/// When it is told after somebody else has changed the SyncTarget at the same time.
const BUSY: Duration = Duration::from_millis(200);

/// Places that are read at a time.
const AT_A_TIME: usize = 16;

/// The most places that are told to an agent at a time, each of 127 bytes at most: an object's
/// annotations have 256 KiB. Others come when these have gone.
const MOST_TOLD: usize = 1000;

impl Assigner {
    /// Looks at what of a SyncTarget's objects is being deleted as a whole, and tells it.
    pub(super) async fn tell_deletions(&self, target: &TargetName) -> Done {
        let global = contract::global_name(&target.cluster, &target.name);
        match self.try_tell_deletions(target, &global).await {
            Ok(0) => Done::Settled,
            Ok(places) => {
                let places = u32::try_from(places).unwrap_or(u32::MAX);
                Done::After(AGAIN + AGAIN_EACH.saturating_mul(places))
            }
            Err(CallError::Refused { code: 409 | 422, .. }) => Done::After(BUSY),
            Err(error) => {
                tracing::debug!(target = global, %error, "deletions are not told");
                Done::Failed
            }
        }
    }

    /// Returns how many places are to be looked at again.
    async fn try_tell_deletions(
        &self,
        target: &TargetName,
        global: &str,
    ) -> Result<usize, CallError> {
        let known = self.targets.named(&target.cluster, &target.name);
        // Of one that is being deleted itself everything goes: its agent sees that.
        let Some(known) = known.filter(|known| !known.is_deleting()) else { return Ok(0) };
        let mut places = self.objects.lock().going(global);
        let told = known.annotation(DELETING);
        places.extend(contract::deleting(told.unwrap_or_default()).map(|(cluster, namespace)| {
            NamespaceKey { cluster: cluster.into(), name: namespace.unwrap_or_default().into() }
        }));
        if places.is_empty() {
            return Ok(0);
        }
        let deleting = being_deleted(&self.hub, &places).await?;
        let text = deleting.into_iter().take(MOST_TOLD).collect::<Vec<_>>().join(",");
        let wanted = Some(text.as_str()).filter(|text| !text.is_empty());
        if wanted != told {
            let patch = json!({"metadata": {
                "uid": &*known.key.uid,
                "resourceVersion": known.metadata.resource_version,
                "annotations": {DELETING: wanted},
            }});
            let hub = self.hub.cluster(&target.cluster);
            hub.merge(&target_path(&target.name), &patch).await?;
            tracing::info!(target = global, deleting = text, "deletions are told");
        }
        Ok(places.len())
    }
}

/// What of these places is being deleted, as an agent is told it. A logical cluster stands for all
/// that is in it.
async fn being_deleted(
    hub: &Api,
    places: &BTreeSet<NamespaceKey>,
) -> Result<BTreeSet<String>, CallError> {
    let mut by_cluster: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for place in places {
        by_cluster.entry(&place.cluster).or_default().push(&place.name);
    }
    let mut told = BTreeSet::new();
    let mut asked: Vec<BoxFuture<'static, Result<Option<String>, CallError>>> = Vec::new();
    for (cluster, names) in by_cluster {
        if is_deleting(&hub.cluster("root"), logical_cluster(cluster)).await? {
            told.insert(cluster.to_owned());
            continue;
        }
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            let (hub, path) = (hub.cluster(cluster), format!("/api/v1/namespaces/{name}"));
            let entry = format!("{cluster}/{name}");
            asked
                .push(Box::pin(async move { Ok(is_deleting(&hub, path).await?.then_some(entry)) }));
        }
    }
    let found: Vec<Option<String>> =
        futures::stream::iter(asked).buffer_unordered(AT_A_TIME).try_collect().await?;
    told.extend(found.into_iter().flatten());
    Ok(told)
}

/// Whether an object is there and being deleted, as a live read says.
async fn is_deleting(hub: &Api, path: String) -> Result<bool, CallError> {
    match hub.metadata(&path).await {
        // No logical cluster of that name can be, or it has gone with all that was in it.
        Err(CallError::Refused { code: 400 | 403 | 404, .. }) => Ok(false),
        found => {
            let timestamp = found?.map(|mut found| found["metadata"]["deletionTimestamp"].take());
            Ok(timestamp.is_some_and(|timestamp: Value| timestamp.is_string()))
        }
    }
}
