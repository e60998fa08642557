//! The names that hub, operator and agents agree on: groups, labels, annotations, finalizers and
//! identities.
//!
//! Invariants: no I/O and no dependencies, so that everybody can use it, the API server included;
//! each name stands here once, and whatever is put together of parts is taken apart here, too.

mod agent;
mod metrics;
mod names;
mod status_down;
mod types;
mod upsync;

pub use agent::{AGENT_PREFIX, AGENT_SIGNER, AGENT_TOKEN_SECONDS, AGENTS, AgentUri, agent_name};
pub use metrics::{SYNC_OBJECTS, SYNC_REQUESTS, SYNC_WRITES};
pub use names::{
    LONGEST_GLOBAL_NAME, LONGEST_NAME, finalizer, global_name, parse_global_name, state_label,
    target_of_finalizer, target_of_state_label,
};

pub use types::{
    CORE, DEFINITIONS, SCHEMA_DIGEST_LENGTH, TypeName, asks_for_definitions, import_name,
    parse_type_name, schema_name, type_name, type_object_name, why_not_hashed,
};

pub use status_down::status_may_go_down;

pub use upsync::may_go_up;

/// The group of SyncTargets and ObjectSyncs. Labels have another domain: [`INTENT_LABEL`].
pub const WORKLOAD_GROUP: &str = "workload.kcp.io";

/// The group of types that physical clusters serve.
pub const APIRESOURCE_GROUP: &str = "apiresource.kcp.io";

/// The group of placements.
pub const SCHEDULING_GROUP: &str = "scheduling.kcp.io";

/// The resource of SyncTargets.
pub const SYNC_TARGETS: &str = "synctargets";

/// The resource of the records about single objects on a target.
pub const OBJECT_SYNCS: &str = "objectsyncs";

/// The resource of what a target serves.
pub const API_RESOURCE_IMPORTS: &str = "apiresourceimports";

/// The resource of descriptions of types, named by their content: [`schema_name`].
pub const API_RESOURCE_SCHEMAS: &str = "apiresourceschemas";

/// The resource of what the targets of a logical cluster have in common.
pub const NEGOTIATED_API_RESOURCES: &str = "negotiatedapiresources";

/// The resource of placements.
pub const PLACEMENTS: &str = "placements";

/// The field manager of whoever reads types in a physical cluster.
pub const TYPES_READER: &str = "kcp-types-reader";

/// The field manager of whoever negotiates types.
pub const TYPES_MANAGER: &str = "kcp-types";

/// The reason of a SyncTarget's condition `TypesComplete` while its types are being read for the first
/// time, or have changed so that it takes a while.
pub const TYPES_READING: &str = "Reading";

/// Annotation of a published CustomResourceDefinition: the NegotiatedAPIResources that its versions
/// come from are this one's and those of its group and plural. Who takes it away takes the
/// definition into own hands.
pub const PUBLISHED_BY: &str = "apiresource.kcp.io/published-by";

/// Upstream label, set by people or policies: the object, or what is in the namespace, belongs to
/// the SyncTarget of that name or global name.
pub const INTENT_LABEL: &str = "workloads.kcp.io/cluster";

/// Downstream label, and the label of what an agent makes upstream: the UID of the SyncTarget.
pub const SYNC_TARGET_LABEL: &str = "workloads.kcp.io/synctarget";

/// Upstream annotation or label: which field the hub leaves to a target, as [`YIELD_REPLICAS`].
pub const YIELD: &str = "workloads.kcp.io/yield";

/// The value of [`YIELD`] that lets a target set the number of replicas.
pub const YIELD_REPLICAS: &str = "replicas";

/// Upstream annotation: the name to use downstream.
pub const DOWNSTREAM_NAME: &str = "workloads.kcp.io/downstream-name";

/// Annotation of a SyncTarget as its agent, the operator and masters see it when they get or write it,
/// never stored: the UID of the hub, which was made with its store.
pub const HUB_UID: &str = "core.kcp.io/hub-uid";

/// Annotation of a SyncTarget, shown as [`HUB_UID`] is: the resourceVersion above which those of this
/// hub's store begin, in decimal. It is 0 until the store is one that was imported from an export;
/// each import has another one, above all resourceVersions that were served before. So what was
/// served up to this number was served by the hub before it was restored, and it may have
/// forgotten what came of it.
pub const HUB_INCARNATION: &str = "core.kcp.io/hub-incarnation";

/// Annotation of a SyncTarget, shown as [`HUB_UID`] is: the UID of its logical cluster.
pub const LOGICAL_CLUSTER_UID: &str = "core.kcp.io/logical-cluster-uid";

/// Downstream annotation: where the object comes from, as JSON.
pub const UPSTREAM: &str = "workloads.kcp.io/upstream";

/// Upstream annotation of what an agent has made of an object of its physical cluster: which one that
/// is, as JSON. Such an object also has the label [`SYNC_TARGET_LABEL`].
pub const DOWNSTREAM: &str = "workloads.kcp.io/downstream";

/// Downstream label: with the value `true`, the object goes up to the hub, where the SyncTarget
/// says so of its type.
pub const UPSYNC: &str = "workloads.kcp.io/upsync";

/// `spec.upsync[].objects` of a SyncTarget: all objects of the type go up.
pub const UPSYNC_ALL: &str = "All";

/// The field manager of what goes up from physical clusters.
pub const UPSYNCER: &str = "kcp-upsyncer";

/// Upstream annotation: with the value `true`, the copy stays downstream, without our marks, when
/// the object goes or is unassigned.
pub const ORPHAN: &str = "workloads.kcp.io/orphan";

/// Upstream annotation: with the value [`RECREATE`], a copy whose immutable fields would have to
/// change is deleted and made again.
pub const ON_IMMUTABLE: &str = "workloads.kcp.io/on-immutable";

/// The value of [`ON_IMMUTABLE`].
pub const RECREATE: &str = "Recreate";

/// Annotation of a SyncTarget: so many deletes, the number that its condition `DeletionPaused`
/// shows, may go on.
pub const APPROVE_DELETIONS: &str = "workloads.kcp.io/approve-deletions";

/// Annotation of a SyncTarget: so many orphans, the number that its status shows, may be deleted.
pub const APPROVE_ORPHANS: &str = "workloads.kcp.io/approve-orphans";

/// Annotation of a SyncTarget: the hub is accepted as it is, after it has gone back in time; the
/// value is the number that the condition `UpstreamChanged` shows.
pub const APPROVE_UPSTREAM: &str = "workloads.kcp.io/approve-upstream";

/// Annotation of the Lease by which agents elect one of them: what the one that leads has seen of the
/// hub, as JSON, for whoever leads next. Agents in the operator's process keep it in a Lease of
/// `kube-system` in their physical cluster.
pub const HUB_SEEN: &str = "workloads.kcp.io/hub-seen";

/// Annotation of a SyncTarget, written by the operator: the logical clusters (`infra`) and
/// namespaces (`infra/shop`) that people are deleting, with commas between them ([`deleting`]).
/// Deletes in them need no approval. Setting or changing it needs the verb `sync` on the SyncTarget.
pub const DELETING: &str = "workloads.kcp.io/deleting";

/// The field manager of copies.
pub const SYNCER: &str = "kcp-syncer";

/// The field manager of what agents write upstream.
pub const AGENT: &str = "kcp-agent";

/// Annotation of objects in lists and watches over several logical clusters: which one it is of.
pub const CLUSTER_ANNOTATION: &str = "kcp.io/cluster";

/// The value of a state label by which a target is to hold the object.
pub const STATE_SYNC: &str = "Sync";

/// The value of a state label by which a target is to remove its copy.
pub const STATE_REMOVE: &str = "Remove";

/// The namespace of the Leases of agents.
pub const LEASE_NAMESPACE: &str = "kube-node-lease";

/// The finalizer of the operator on SyncTargets: something may be installed in the physical cluster,
/// and objects may be held there.
pub const TARGET_FINALIZER: &str = "workload.kcp.io/operator";

/// Annotation of a SyncTarget: the UID of its physical cluster, which is that of its namespace
/// `kube-system`. Who changes it confirms that another cluster is meant.
pub const CLUSTER_UID: &str = "workload.kcp.io/cluster-uid";

/// Annotation of a SyncTarget that is being deleted: with the value `true`, what is in the physical
/// cluster is left there, and nobody waits for it.
pub const ABANDON: &str = "workload.kcp.io/abandon";

/// Annotation of the Deployment of an agent: a digest of everything that was installed with it.
pub const MANIFEST_DIGEST: &str = "workload.kcp.io/manifest";

/// The field manager of the operator.
pub const OPERATOR_MANAGER: &str = "kcp-operator";

/// The name of the operator.
pub const OPERATOR: &str = "system:kcp:operator";

/// The group of the operator.
pub const OPERATORS: &str = "system:kcp:operators";

/// Entry of a bootstrap token's Secret: the name of the SyncTarget that the token introduces an
/// agent of. With [`BOOTSTRAP_TARGET_UID`].
pub const BOOTSTRAP_TARGET_NAME: &str = "synctarget-name";

/// Entry of a bootstrap token's Secret: the UID of that SyncTarget, so that the token is void for
/// another one of the same name.
pub const BOOTSTRAP_TARGET_UID: &str = "synctarget-uid";

/// The places in [`DELETING`]: logical clusters, and namespaces of them.
pub fn deleting(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(|item| match item.split_once('/') {
        Some((cluster, namespace)) => (cluster, Some(namespace)),
        None => (item, None),
    })
}

/// The name of the Lease that an agent of the SyncTarget with `uid` renews.
pub fn lease_name(uid: &str) -> String {
    format!("synctarget-{uid}")
}
