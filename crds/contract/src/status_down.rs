//! Which statuses may go down to physical clusters.

/// Whether status that is written at the hub may ever go down to the copies of a type. That of a
/// definition says what its own server stores and serves.
pub fn status_may_go_down(group: &str, resource: &str) -> bool {
    crate::upsync::is_plain_type(group, resource) && (group, resource) != crate::DEFINITIONS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_go_down() {
        for (group, resource, expect) in [
            ("", "services", true),
            ("x.io", "things", true),
            ("mykcp.io", "things", true),
            ("x.io", "customresourcedefinitions", true),
            ("apiextensions.k8s.io", "customresourcedefinitions", false),
            ("workload.kcp.io", "synctargets", false),
            ("kcp.io", "things", false),
            ("x.io", "*", false),
            ("x.io", "things/status", false),
            ("x.io", "", false),
        ] {
            assert_eq!(status_may_go_down(group, resource), expect, "{group} {resource}");
        }
    }
}
