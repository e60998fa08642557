//! Cells that are computed, named in `data/resources.json` and `data/known-resources.json`.

mod admission;
mod certificate;
mod event;
mod network;
mod pod;
mod rbac;
mod storage;
mod workload;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::age;

/// A named computation of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Function {
    /// When an event was seen last: of its series, or its last or first time.
    EventLastSeen,
    /// When an event was seen first.
    EventFirstSeen,
    /// What an event is about, as `pod/web-0`.
    EventObject,
    /// Who reported an event, as `kubelet, node-1`.
    EventSource,
    /// How often an event was seen.
    EventCount,
    /// An event's message without surrounding space.
    EventMessage,
    /// A Service's first cluster IP.
    ServiceClusterIp,
    /// A Service's addresses outside the cluster, by its type.
    ServiceExternalIp,
    /// A Service's ports, as `80/TCP,443:30443/TCP`.
    ServicePorts,
    /// A Service's selector, as `a=b,c=d`.
    ServiceSelector,
    /// The kind of an admission policy's parameters.
    ParamKind,
    /// The parameters of an admission policy's binding.
    ParamRef,
    /// The Service behind an APIService, or `Local`.
    ApiServiceTarget,
    /// Whether an APIService is available, and if not, why.
    ApiServiceAvailable,
    /// The role of a binding, as `ClusterRole/view`.
    RoleRef,
    /// The users among a binding's subjects.
    SubjectUsers,
    /// The groups among them.
    SubjectGroups,
    /// The ServiceAccounts among them, as `namespace/name`.
    SubjectAccounts,
    /// How long a certificate is to live, as `30d`.
    RequestedDuration,
    /// How far a request for a certificate has come, as `Approved,Issued`.
    RequestCondition,
    /// How many of a pod's containers are ready, sidecars among them, as `1/2`.
    PodReady,
    /// A pod's state in one word, as `Running`, `CrashLoopBackOff` or `Init:1/2`.
    PodStatus,
    /// How often a pod's containers were restarted, as `3 (5m ago)`.
    PodRestarts,
    /// How many of a pod's readiness gates are open, as `0/1`.
    PodReadinessGates,
    /// A Job's state in one word.
    JobStatus,
    /// How many pods of a Job succeeded, as `1/3` or `1/1 of 2`.
    JobCompletions,
    /// How long a Job took, or runs already.
    JobDuration,
    /// Whether a CronJob is suspended, as a word.
    CronJobSuspend,
    /// What a revision belongs to, as `daemonset.apps/proxy`.
    RevisionController,
    /// What an autoscaler scales, as `Deployment/web`.
    ScaleTarget,
    /// What an autoscaler measures and wants, as `cpu: 30%/80%`.
    ScaleMetrics,
    /// A node's state, as `Ready,SchedulingDisabled`.
    NodeStatus,
    /// A node's roles, from its labels.
    NodeRoles,
    /// A node's kernel and architecture.
    NodeKernel,
    /// The hosts of an Ingress, the first three.
    IngressHosts,
    /// The addresses of the load balancers of an Ingress.
    IngressAddress,
    /// The ports of an Ingress: 443 too if it has certificates.
    IngressPorts,
    /// The name of an IngressClass, with a mark if it is the default.
    IngressClassName,
    /// The parameters of an IngressClass, as `Kind.group/name`.
    IngressClassParameters,
    /// The addresses and ports of Endpoints, the first three.
    Endpoints,
    /// The ports of an EndpointSlice, the first three.
    SlicePorts,
    /// The addresses of an EndpointSlice, the first three.
    SliceEndpoints,
    /// What an IPAddress belongs to, as `services/default/kubernetes`.
    AddressParent,
    /// The phase of a volume or claim, or that it is being deleted.
    VolumePhase,
    /// The class of a volume or claim.
    VolumeClass,
    /// The access modes of a volume, as `RWO,ROX`.
    VolumeAccessModes,
    /// The size of a volume.
    VolumeCapacity,
    /// The claim of a volume, as `namespace/name`.
    VolumeClaim,
    /// The size that a claim got.
    ClaimCapacity,
    /// The access modes that a claim got.
    ClaimAccessModes,
    /// The name of a StorageClass, with a mark if it is the default.
    StorageClassName,
    /// The audiences of the tokens that a CSIDriver wants.
    TokenAudiences,
    /// What a quota counts without limits, as `pods: 1/10`.
    QuotaRequests,
    /// What a quota counts of limits.
    QuotaLimits,
    /// The state of a ResourceClaim, as `allocated,reserved`.
    ResourceClaimState,
    /// All devices of the pools that a request asked for.
    PoolTotal,
    /// The available ones among them.
    PoolAvailable,
    /// The allocated ones among them.
    PoolAllocated,
    /// The unavailable ones among them.
    PoolUnavailable,
    /// How many pools are described wrongly.
    PoolErrors,
    /// How far a request for pools has come.
    PoolStatus,
    /// When a request for pools was answered.
    PoolCompleted,
    /// The API servers and their encoding versions, the first three.
    StorageVersions,
}

const NONE: &str = "<none>";
/// Why writing to a text can't fail.
const ENDLESS: &str = "a String takes any text";

/// The annotations that make a StorageClass the default one.
const DEFAULT_STORAGE: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
/// The annotation that makes an IngressClass the default one.
const DEFAULT_INGRESS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];

// === impl Function ===

impl Function {
    pub(super) fn cell(self, object: &Value, now: Timestamp) -> Value {
        if self == Self::EventCount {
            return Value::from(event::count(object));
        }
        Value::String(self.built_in(object, now).unwrap_or_else(|| self.imported(object, now)))
    }

    /// Cells of the kinds that the server always serves.
    fn built_in(self, object: &Value, now: Timestamp) -> Option<String> {
        Some(match self {
            Self::EventLastSeen => event::last_seen(object, now),
            Self::EventFirstSeen => event::first_seen(object, now),
            Self::EventObject => event::about(object),
            Self::EventSource => event::source(object),
            Self::EventMessage => event::message(object),
            Self::ServiceClusterIp => network::cluster_ip(object),
            Self::ServiceExternalIp => network::external_ip(object),
            Self::ServicePorts => network::ports(object),
            Self::ServiceSelector => labels(at(at(object, "spec"), "selector")),
            Self::ParamKind => match get(at(object, "spec"), "paramKind") {
                None => "<unset>".to_owned(),
                Some(kind) => format!("{}/{}", str_at(kind, "apiVersion"), str_at(kind, "kind")),
            },
            Self::ParamRef => admission::param_ref(at(object, "spec")),
            Self::ApiServiceTarget => match get(at(object, "spec"), "service") {
                None => "Local".to_owned(),
                Some(target) => {
                    format!("{}/{}", str_at(target, "namespace"), str_at(target, "name"))
                }
            },
            Self::ApiServiceAvailable => admission::available(object),
            Self::RoleRef => rbac::role_ref(object),
            Self::SubjectUsers => rbac::subjects(object, "User"),
            Self::SubjectGroups => rbac::subjects(object, "Group"),
            Self::SubjectAccounts => rbac::subjects(object, "ServiceAccount"),
            Self::RequestedDuration => certificate::duration(object),
            Self::RequestCondition => certificate::condition(object),
            _ => return None,
        })
    }

    /// Cells of the kinds that a server may have imported.
    fn imported(self, object: &Value, now: Timestamp) -> String {
        match self {
            Self::PodReady => pod::ready(object),
            Self::PodStatus => pod::status(object),
            Self::PodRestarts => pod::restarts(object, now),
            Self::PodReadinessGates => pod::readiness_gates(object),
            Self::JobStatus => workload::job_status(object),
            Self::JobCompletions => workload::job_completions(object),
            Self::JobDuration => workload::job_duration(object, now),
            Self::CronJobSuspend => workload::suspended(object),
            Self::RevisionController => workload::revision_controller(object),
            Self::ScaleTarget => workload::scale_target(object),
            Self::ScaleMetrics => workload::metrics(object),
            Self::NodeStatus => workload::node_status(object),
            Self::NodeRoles => workload::node_roles(object),
            Self::NodeKernel => workload::node_kernel(object),
            Self::IngressHosts => network::ingress_hosts(object),
            Self::IngressAddress => network::ingress_address(object),
            Self::IngressPorts => network::ingress_ports(object),
            Self::IngressClassName => storage::class_name(object, &DEFAULT_INGRESS),
            Self::IngressClassParameters => network::class_parameters(object),
            Self::Endpoints => network::endpoints(object),
            Self::SlicePorts => network::slice_ports(object),
            Self::SliceEndpoints => network::slice_endpoints(object),
            Self::AddressParent => network::address_parent(object),
            Self::VolumePhase => storage::phase(object),
            Self::VolumeClass => storage::class(object),
            Self::VolumeAccessModes => storage::access_modes(at(at(object, "spec"), "accessModes")),
            Self::VolumeCapacity => storage::volume_capacity(object),
            Self::VolumeClaim => storage::volume_claim(object),
            Self::ClaimCapacity => storage::claim_capacity(object),
            Self::ClaimAccessModes => storage::claim_access_modes(object),
            Self::StorageClassName => storage::class_name(object, &DEFAULT_STORAGE),
            Self::TokenAudiences => storage::token_audiences(object),
            Self::QuotaRequests => storage::quota(object, false),
            Self::QuotaLimits => storage::quota(object, true),
            Self::ResourceClaimState => storage::resource_claim(object),
            Self::PoolTotal => storage::pool_sum(object, "totalDevices"),
            Self::PoolAvailable => storage::pool_sum(object, "availableDevices"),
            Self::PoolAllocated => storage::pool_sum(object, "allocatedDevices"),
            Self::PoolUnavailable => storage::pool_sum(object, "unavailableDevices"),
            Self::PoolErrors => storage::pool_errors(object),
            Self::PoolStatus => storage::pool_status(object),
            Self::PoolCompleted => match storage::pool_outcome(object) {
                Some(c) if str_at(c, "type") == "Complete" => {
                    age::since(get(c, "lastTransitionTime"), now)
                }
                _ => NONE.to_owned(),
            },
            Self::StorageVersions => {
                let entry = |v: &Value| {
                    format!("{}={}", str_at(v, "apiServerID"), str_at(v, "encodingVersion"))
                };
                network::some_of(
                    items(at(at(object, "status"), "storageVersions")).iter().map(entry),
                )
            }
            _ => String::new(),
        }
    }
}

/// A member, null when absent.
fn at<'v>(value: &'v Value, name: &str) -> &'v Value {
    value.get(name).unwrap_or(&Value::Null)
}

/// A member that isn't null.
fn get<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    value.get(name).filter(|member| !member.is_null())
}

fn str_at<'v>(value: &'v Value, name: &str) -> &'v str {
    at(value, name).as_str().unwrap_or_default()
}

fn number(value: &Value, name: &str) -> i64 {
    at(value, name).as_i64().unwrap_or_default()
}

/// The items of a list, none if it isn't one.
fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Whether a condition in the status is true; the first of its type counts.
fn has_condition(object: &Value, name: &str) -> bool {
    let conditions = items(at(at(object, "status"), "conditions"));
    let found = conditions.iter().find(|c| str_at(c, "type") == name);
    found.is_some_and(|c| str_at(c, "status") == "True")
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// A map of labels, as `a=b,c=d`.
pub(super) fn labels(value: &Value) -> String {
    let pairs = value.as_object().into_iter().flatten();
    let texts: Vec<String> =
        pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    if texts.is_empty() { NONE.to_owned() } else { texts.join(",") }
}
