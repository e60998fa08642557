//! What tests of several modules begin with.

use std::collections::BTreeSet;

use crate::{Adoption, Identity, Limits, Mapping, Target};

pub(crate) fn target() -> Target {
    Target {
        identity: Identity {
            hub: "hub".into(),
            logical_cluster: "lc".into(),
            target: "t1".into(),
            incarnation: 0,
        },
        cluster: "infra".into(),
        name: "east".into(),
        wildcard: true,
        mapping: Mapping::Same,
        upsync: std::sync::Arc::default(),
        status_down: std::sync::Arc::default(),
        adoption: Adoption::Never,
        reserved_namespaces: BTreeSet::new(),
        limits: Limits::default(),
    }
}
