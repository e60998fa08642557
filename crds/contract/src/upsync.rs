//! What may go up from physical clusters.

/// The groups whose objects give rights or credentials, or say how an API server works.
const GROUPS: [&str; 10] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "rbac.authorization.k8s.io",
];

/// Such resources of the core group.
const RESOURCES: [&str; 9] = [
    "bindings",
    "componentstatuses",
    "events",
    "limitranges",
    "namespaces",
    "nodes",
    "resourcequotas",
    "secrets",
    "serviceaccounts",
];

/// Whether this names one type, which is none of the hub's own.
pub(crate) fn is_plain_type(group: &str, resource: &str) -> bool {
    let of_hubs = group == "kcp.io" || group.ends_with(".kcp.io");
    !of_hubs && !resource.is_empty() && !resource.contains(['*', '/'])
}

/// Whether objects of a type may ever go up from a physical cluster to the hub. Those by which
/// somebody gets rights or credentials, or that say how a hub works, are made there by people alone.
pub fn may_go_up(group: &str, resource: &str) -> bool {
    let of_core = group.is_empty() && RESOURCES.contains(&resource);
    is_plain_type(group, resource) && !of_core && !GROUPS.contains(&group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_go_up() {
        for (group, resource, expect) in [
            ("", "configmaps", true),
            ("x.io", "things", true),
            ("x.io", "secrets", true),
            ("mykcp.io", "things", true),
            ("", "secrets", false),
            ("", "serviceaccounts", false),
            ("rbac.authorization.k8s.io", "roles", false),
            ("workload.kcp.io", "synctargets", false),
            ("kcp.io", "things", false),
            ("x.io", "*", false),
            ("x.io", "things/status", false),
            ("x.io", "", false),
        ] {
            assert_eq!(may_go_up(group, resource), expect, "{group} {resource}");
        }
    }
}
