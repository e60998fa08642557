//! Names: of namespaces downstream, and of ObjectSyncs.

use crate::digest::hex;
use crate::{GroupResource, Mapping, Target};

/// The longest name of an ObjectSync.
const LONGEST: usize = 253;

/// The downstream namespace of an upstream one.
pub(crate) fn namespace(target: &Target, cluster: &str, namespace: &str) -> String {
    match target.mapping {
        _ if namespace.is_empty() => String::new(),
        Mapping::Same => namespace.to_owned(),
        Mapping::Hashed => {
            let hash = hex(&[&target.identity.hub, cluster, namespace]);
            format!("kcp-{}", hash.get(..12).unwrap_or_default())
        }
    }
}

/// Whether nothing of ours may be in a downstream namespace.
pub(crate) fn is_reserved(target: &Target, namespace: &str) -> bool {
    namespace.starts_with("kube-") || target.reserved_namespaces.contains(namespace)
}

/// The name of the ObjectSync of an object: `<plural>.<group>.<name>--<target>`, and a hash for
/// the end of what is too long.
pub(crate) fn record(resource: &GroupResource, name: &str, target: &str) -> String {
    let whole = format!("{resource}.{name}--{target}");
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    if whole.len() <= LONGEST && whole.bytes().all(plain) {
        return whole;
    }
    // Names of some kinds, as `system:admin`, are none for an ObjectSync.
    let hash = hex(&[&whole]);
    let usual = |byte: u8| if plain(byte) { char::from(byte) } else { '-' };
    let head: String = whole.bytes().take(LONGEST - 21).map(usual).collect();
    let head = head.trim_end_matches(['-', '.']);
    format!("{head}-{}", hash.get(..20).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::target;

    proptest! {
        /// Whatever the name, an ObjectSync can be called so.
        #[test]
        fn records(name in ".{1,300}", target in "[a-z0-9-]{1,50}") {
            let deployments = GroupResource::new("apps", "deployments");
            let record = record(&deployments, &name, &target);
            let usual = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
            prop_assert!(record.len() <= LONGEST && record.bytes().all(usual), "{}", record);
        }
    }

    #[test]
    fn records_of_usual_names() {
        let of = |group: &str, resource: &str, name: &str| {
            record(&GroupResource::new(group, resource), name, "east")
        };
        assert_eq!(of("apps", "deployments", "web"), "deployments.apps.web--east");
        assert_eq!(of("", "services", "web"), "services.web--east");
        assert_ne!(of("", "roles", "a:b"), of("", "roles", "a-b"));
    }

    #[test]
    fn namespaces() {
        let mut target = target();
        assert_eq!(namespace(&target, "infra", "shop"), "shop");
        assert_eq!(namespace(&target, "infra", ""), "");
        target.mapping = Mapping::Hashed;
        let one = namespace(&target, "infra", "shop");
        assert!(one.starts_with("kcp-") && one.len() == 16, "{one}");
        assert_ne!(one, namespace(&target, "web", "shop"));
        assert_eq!(namespace(&target, "infra", ""), "");
        // A SyncTarget that is made again finds its copies.
        target.identity.target = "other".into();
        assert_eq!(one, namespace(&target, "infra", "shop"));
    }

    #[test]
    fn reserved() {
        let mut target = target();
        target.reserved_namespaces.insert("kcp-agent-1".into());
        for (name, expect) in
            [("kube-system", true), ("kcp-agent-1", true), ("kubernetes", false), ("shop", false)]
        {
            assert_eq!(is_reserved(&target, name), expect, "{name}");
        }
    }
}
