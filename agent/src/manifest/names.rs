//! The names of what is installed, and the labels that tell it from everything else.

use std::collections::BTreeMap;
use std::fmt::Write;

use contract::SYNC_TARGET_LABEL;
use sha2::{Digest, Sha256};

/// The name of the agent's ServiceAccount, Deployment, Lease, Role and RoleBinding.
pub const AGENT_NAME: &str = "kcp-agent";

/// The Secret that holds how the hub is reached (`ca.crt`) and a bootstrap token (`token`).
pub const HUB_SECRET: &str = "kcp-agent-hub";

/// The Secret that the agent keeps its certificate in (`tls.crt`, `tls.key`).
pub const IDENTITY_SECRET: &str = "kcp-agent-identity";

/// The Secret that the image is pulled with.
pub const PULL_SECRET: &str = "kcp-agent-pull";

/// The label that says who manages an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The value of [`MANAGED_BY`] on what is installed.
pub const MANAGED_BY_OPERATOR: &str = "kcp-operator";

/// How many hex digits of the digest stand in a namespace's name.
const DIGITS: usize = 10;

/// A kind that is installed, and where its API is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The version with its group, as `apps/v1`.
    pub api_version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The resource.
    pub resource: &'static str,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

// === impl Kind ===

impl Kind {
    /// Everything that is ever installed, or made by what is, in the order of installation. The
    /// Lease is the agent's own.
    pub const ALL: [Self; 9] = [
        Self::new("v1", "Namespace", "namespaces", false),
        Self::new("v1", "ServiceAccount", "serviceaccounts", true),
        Self::new("v1", "Secret", "secrets", true),
        Self::new("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", false),
        Self::new(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            "clusterrolebindings",
            false,
        ),
        Self::new("rbac.authorization.k8s.io/v1", "Role", "roles", true),
        Self::new("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", true),
        Self::new("apps/v1", "Deployment", "deployments", true),
        Self::new("coordination.k8s.io/v1", "Lease", "leases", true),
    ];

    const fn new(
        api_version: &'static str,
        kind: &'static str,
        resource: &'static str,
        namespaced: bool,
    ) -> Self {
        Self { api_version, kind, resource, namespaced }
    }

    /// The kind of that name, if it is one that is installed.
    pub fn named(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.kind == kind)
    }

    /// The group; empty for core.
    pub fn group(&self) -> &'static str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The path of an object of this kind, or of all in a namespace where `name` is empty.
    pub fn path(&self, namespace: &str, name: &str) -> String {
        let base = if self.group().is_empty() { "api" } else { "apis" };
        let (version, resource) = (self.api_version, self.resource);
        let place =
            if self.namespaced { format!("namespaces/{namespace}/") } else { String::new() };
        let slash = if name.is_empty() { "" } else { "/" };
        format!("/{base}/{version}/{place}{resource}{slash}{name}")
    }
}

/// The namespace of the agent of the SyncTarget with `uid` of the hub at `hub`.
pub fn namespace(hub: &str, uid: &str) -> String {
    let digest = Sha256::digest(format!("{}|{uid}", hub.trim_end_matches('/')));
    format!("{AGENT_NAME}-{}", hex(&digest, DIGITS))
}

/// The name of what is installed without a namespace.
pub fn cluster_scoped_name(hub: &str, uid: &str) -> String {
    namespace(hub, uid)
}

/// The labels of everything that is installed for the SyncTarget with `uid`.
pub fn labels(uid: &str) -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        (MANAGED_BY, MANAGED_BY_OPERATOR.to_owned()),
        ("app.kubernetes.io/name", AGENT_NAME.to_owned()),
        (SYNC_TARGET_LABEL, uid.to_owned()),
    ])
}

/// The first `digits` of bytes in hex.
pub(super) fn hex(bytes: &[u8], digits: usize) -> String {
    let mut text = bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text does not fail.
        let _written = write!(text, "{byte:02x}");
        text
    });
    text.truncate(digits);
    text
}
