//! Global names of SyncTargets, and the labels and finalizers that hold them.

/// The longest name of a SyncTarget.
pub const LONGEST_NAME: usize = 50;

/// The longest global name of a SyncTarget: with room for what a label's name may have before it.
pub const LONGEST_GLOBAL_NAME: usize = 56;

/// What stands before the global name in the key of a state label.
const STATE_PREFIX: &str = "sync.workloads.kcp.io/";

/// What stands before the global name in a finalizer.
const FINALIZER_PREFIX: &str = "workloads.kcp.io/";

/// The name of a SyncTarget over all logical clusters, as `infra.east`.
pub fn global_name(cluster: &str, name: &str) -> String {
    format!("{cluster}.{name}")
}

/// The logical cluster and the name in a global name: neither has a dot.
pub fn parse_global_name(global: &str) -> Option<(&str, &str)> {
    let (cluster, name) = global.split_once('.')?;
    (!cluster.is_empty() && !name.is_empty() && !name.contains('.')).then_some((cluster, name))
}

/// The key of the label that says whether a target is to hold an object.
pub fn state_label(global: &str) -> String {
    format!("{STATE_PREFIX}{global}")
}

/// The finalizer that says that a target may hold a copy of an object.
pub fn finalizer(global: &str) -> String {
    format!("{FINALIZER_PREFIX}{global}")
}

/// The global name in the key of a label, if it is a state label.
pub fn target_of_state_label(key: &str) -> Option<&str> {
    key.strip_prefix(STATE_PREFIX)
}

/// The global name in a finalizer, if it is a target's.
pub fn target_of_finalizer(finalizer: &str) -> Option<&str> {
    finalizer.strip_prefix(FINALIZER_PREFIX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_come_back(cluster in "[a-z0-9:-]{1,20}", name in "[a-z0-9-]{1,20}") {
            let global = global_name(&cluster, &name);
            prop_assert_eq!(parse_global_name(&global), Some((&*cluster, &*name)));
            let (label, finalizer) = (state_label(&global), finalizer(&global));
            prop_assert_eq!(target_of_state_label(&label), Some(&*global));
            prop_assert_eq!(target_of_finalizer(&finalizer), Some(&*global));
        }
    }

    #[test]
    fn what_is_no_global_name() {
        for text in ["", "east", ".east", "infra.", "a.b.c", "."] {
            assert_eq!(parse_global_name(text), None, "{text}");
        }
    }

    #[test]
    fn other_keys() {
        assert_eq!(target_of_state_label("workloads.kcp.io/cluster"), None);
        assert_eq!(target_of_finalizer("kubernetes"), None);
        assert_eq!(target_of_finalizer("sync.workloads.kcp.io/infra.east"), None);
    }
}
