//! Kubernetes' own groups: those of the module `k8s.io/api`, which types are imported under.

/// What the core group, whose name is empty, is called in names of CRDs.
pub const CORE: &str = "core";

const BUILTIN: [&str; 24] = [
    CORE,
    "admissionregistration.k8s.io",
    "apidiscovery.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "imagepolicy.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Whether a group is one of Kubernetes' own; the core group may be spelled either way.
pub fn is_builtin(group: &str) -> bool {
    group.is_empty() || BUILTIN.contains(&group)
}
