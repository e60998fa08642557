//! The SyncTarget, as far as the engine needs it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{GroupResource, StatusDown, SyncedType};

/// A SyncTarget and how its objects are to be treated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Who is upstream.
    pub identity: Identity,
    /// The logical cluster of the SyncTarget.
    pub cluster: Arc<str>,
    /// The name of the SyncTarget.
    pub name: Arc<str>,
    /// Whether upstream watches show several logical clusters, each object with the annotation
    /// `kcp.io/cluster`. Otherwise all objects are of the SyncTarget's own, whatever they say.
    pub wildcard: bool,
    /// How downstream namespaces are called.
    pub mapping: Mapping,
    /// What becomes of objects that are there already and not ours.
    pub adoption: Adoption,
    /// Types of which objects that are born in the physical cluster go up.
    pub upsync: Arc<[Upsync]>,
    /// Types of which status goes down, too.
    pub status_down: Arc<[StatusDown]>,
    /// Downstream namespaces that are never used, besides `kube-*`: the agent's own.
    pub reserved_namespaces: BTreeSet<Arc<str>>,
    /// Bounds.
    pub limits: Limits,
}

/// Who is upstream: evidence for deletes counts only while all three are as known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The hub's UID: annotation `core.kcp.io/hub-uid` of the SyncTarget; of a plain Kubernetes API
    /// server, the UID of its namespace `kube-system`.
    pub hub: Arc<str>,
    /// The UID of the SyncTarget's logical cluster: annotation `core.kcp.io/logical-cluster-uid`; of
    /// a plain API server, the hub's.
    pub logical_cluster: Arc<str>,
    /// The UID of the SyncTarget; of a run by hand without one, any fixed text.
    pub target: Arc<str>,
    /// How often the hub was made of a backup: annotation `core.kcp.io/hub-incarnation` of the
    /// SyncTarget. Each time it is another number, which is above all revisions from before; 0 for
    /// a hub that never was, and where nobody says.
    pub incarnation: u64,
}

/// What a process of this engine has seen of the hub, for the next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// The hub's UID.
    pub hub: Arc<str>,
    /// The SyncTarget's UID.
    pub target: Arc<str>,
    /// The hub's incarnation.
    #[serde(default)]
    pub incarnation: u64,
    /// The newest resource version that the hub has shown.
    pub revision: u64,
    /// The hub has gone back, behind this resource version, and nobody has accepted that: as it goes
    /// on, its revisions tell nothing of it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_back: Option<u64>,
    /// To where it has gone back.
    #[serde(default)]
    pub back_at: u64,
    /// A person has accepted that the hub went back to this resource version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<u64>,
    /// The incarnation that a person has accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_incarnation: Option<u64>,
}

/// How downstream namespaces are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// As upstream.
    #[default]
    Same,
    /// `kcp-` and 12 characters of a hash of hub, logical cluster and namespace.
    Hashed,
}

/// What becomes of objects that are there already and not ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Adoption {
    /// They are left alone, and reported.
    #[default]
    Never,
    /// They become ours if that changes nothing in them.
    IfNoDiff,
    /// They become ours.
    Always,
}

/// Objects of one type go up from the physical cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upsync {
    /// The type.
    pub resource: GroupResource,
    /// All of them; else only those with the label `workloads.kcp.io/upsync: "true"`.
    pub all: bool,
}

/// Bounds of what the engine does and keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bodies up to so many bytes are kept; larger ones are read again when they are needed.
    pub kept_body: usize,
    /// The shortest time between two statuses of one object going up.
    pub status_interval: Duration,
    /// The first pause after something failed for an object; it doubles with each failure.
    pub backoff: Duration,
    /// The longest such pause.
    pub longest_backoff: Duration,
    /// How many repairs of one object in a minute are made at once; further ones wait.
    pub repairs: u32,
    /// The wave of deletes that needs no approval, at least.
    pub brake_count: u64,
    /// The wave of deletes that needs no approval, in percent of the copies.
    pub brake_percent: u64,
    /// The time over which deletes are counted.
    pub brake_window: Duration,
    /// How long more deletes than that wait before a person is asked: meanwhile it may be told that
    /// one is deleting the whole ([`Exemption`]).
    pub brake_patience: Duration,
    /// How many Kubernetes Events may be made in a minute; half as many of those that are no
    /// warnings.
    pub events: u32,
    /// How long a namespace that we made stays when the last copy in it has gone.
    pub namespace_grace: Duration,
}

/// What people have approved, by annotations of the SyncTarget: each names the number that a
/// condition shows, and counts for exactly that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Approvals {
    /// `workloads.kcp.io/approve-deletions`: [`Paused::number`](crate::Paused::number).
    pub deletions: Option<u64>,
    /// `workloads.kcp.io/approve-orphans`: so many orphans may be deleted
    /// ([`Summary::orphans`](crate::Summary::orphans)).
    pub orphans: Option<u64>,
    /// `workloads.kcp.io/approve-upstream`: the number of
    /// [`UpstreamChange::Older`](crate::UpstreamChange::Older).
    pub upstream: Option<u64>,
}

/// What a person has deleted as a whole: deletes in it are no wave.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exemption {
    /// The SyncTarget itself.
    Target,
    /// A logical cluster.
    Cluster(Arc<str>),
    /// A namespace of a logical cluster.
    Namespace(Arc<str>, Arc<str>),
}

// === impl Target ===

impl Target {
    /// The global name of the SyncTarget.
    pub fn global_name(&self) -> String {
        contract::global_name(&self.cluster, &self.name)
    }

    /// The label selector of upstream watches.
    pub fn upstream_selector(&self) -> String {
        contract::state_label(&self.global_name())
    }

    /// The label selector of downstream watches, and of ObjectSyncs.
    pub fn downstream_selector(&self) -> String {
        format!("{}={}", contract::SYNC_TARGET_LABEL, self.identity.target)
    }
}

// === impl Identity ===

impl Identity {
    /// Whether it is the same hub, logical cluster and SyncTarget, in whatever incarnation.
    pub fn is(&self, other: &Self) -> bool {
        let of = |one: &Self| [&one.hub, &one.logical_cluster, &one.target].map(Arc::clone);
        of(self) == of(other)
    }
}

// === impl Upsync ===

impl Upsync {
    /// Reads them from a SyncTarget's `spec.upsync`. What may never go up is left out, whatever it says.
    pub fn of(sync_target: &Value) -> Arc<[Self]> {
        let listed = sync_target.pointer("/spec/upsync").and_then(Value::as_array);
        let read = |item: &Value| {
            let (group, plural) = contract::parse_type_name(item.get("resource")?.as_str()?);
            let all = item.get("objects").and_then(Value::as_str) == Some(contract::UPSYNC_ALL);
            let resource = GroupResource::new(group, plural);
            contract::may_go_up(group, plural).then_some(Self { resource, all })
        };
        listed.into_iter().flatten().filter_map(read).collect()
    }

    pub(crate) fn is_of(&self, synced: &SyncedType) -> bool {
        self.resource == synced.resource
    }

    /// The label selector of the watch that shows them in the physical cluster: copies are none.
    pub(crate) fn selector(&self) -> &'static str {
        if self.all { NO_COPIES } else { MARKED }
    }
}

const NO_COPIES: &str = "!workloads.kcp.io/synctarget";
const MARKED: &str = "workloads.kcp.io/upsync=true,!workloads.kcp.io/synctarget";

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            kept_body: 8 << 10,
            status_interval: Duration::from_millis(200),
            backoff: Duration::from_millis(500),
            longest_backoff: Duration::from_secs(300),
            repairs: 10,
            brake_count: 20,
            brake_percent: 25,
            brake_window: Duration::from_secs(60),
            brake_patience: Duration::from_secs(15),
            events: 60,
            namespace_grace: Duration::from_secs(30),
        }
    }
}

// === impl Approvals ===

impl Approvals {
    /// Reads them from a SyncTarget.
    pub fn of(sync_target: &Value) -> Self {
        let number = |key: &str| {
            let annotations = sync_target.pointer("/metadata/annotations")?;
            annotations.get(key)?.as_str()?.parse().ok()
        };
        Self {
            deletions: number(contract::APPROVE_DELETIONS),
            orphans: number(contract::APPROVE_ORPHANS),
            upstream: number(contract::APPROVE_UPSTREAM),
        }
    }
}

// === impl Exemption ===

impl Exemption {
    /// Reads them from a SyncTarget: its own deletion, and the annotation
    /// `workloads.kcp.io/deleting`, which the operator keeps: logical clusters (`infra`) and
    /// namespaces (`infra/shop`) that are being deleted, with commas between them.
    pub fn of(sync_target: &Value) -> BTreeSet<Self> {
        let mut exemptions = BTreeSet::new();
        if sync_target.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string) {
            exemptions.insert(Self::Target);
        }
        let annotations = sync_target.pointer("/metadata/annotations");
        let deleting = annotations.and_then(|all| all.get(contract::DELETING));
        let deleting = deleting.and_then(Value::as_str).unwrap_or_default();
        exemptions.extend(contract::deleting(deleting).map(|place| match place {
            (cluster, Some(namespace)) => Self::Namespace(cluster.into(), namespace.into()),
            (cluster, None) => Self::Cluster(cluster.into()),
        }));
        exemptions
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_sync_target_says() {
        let object = json!({"metadata": {
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {
                "workloads.kcp.io/approve-deletions": "31",
                "workloads.kcp.io/approve-orphans": "many",
                "workloads.kcp.io/deleting": "infra, web/shop,,",
            },
        }});
        let approvals = Approvals { deletions: Some(31), ..Approvals::default() };
        assert_eq!(Approvals::of(&object), approvals);
        let expect = BTreeSet::from([
            Exemption::Target,
            Exemption::Cluster("infra".into()),
            Exemption::Namespace("web".into(), "shop".into()),
        ]);
        assert_eq!(Exemption::of(&object), expect);
        assert_eq!(Exemption::of(&json!({})), BTreeSet::new());
        assert_eq!(Approvals::of(&json!(null)), Approvals::default());
    }
}
