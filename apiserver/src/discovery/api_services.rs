//! The `APIService` of each group version: clients read from them what discovery says anyway.

use std::sync::Arc;

use schema::ResourceDef;

use crate::clusters::virtuals::ApiService;

/// Where upstream puts the groups that it serves, highest first, and the first of their versions.
const UPSTREAM: [(&str, i64, i64); 11] = [
    ("", 18_000, 1),
    // Upstream has no object for this one, which always comes first of those with a name.
    ("apiregistration.k8s.io", 17_900, 15),
    ("events.k8s.io", 17_750, 15),
    ("authentication.k8s.io", 17_700, 15),
    ("authorization.k8s.io", 17_600, 15),
    ("certificates.k8s.io", 17_300, 15),
    ("rbac.authorization.k8s.io", 17_000, 15),
    ("admissionregistration.k8s.io", 16_700, 15),
    ("apiextensions.k8s.io", 16_700, 15),
    ("coordination.k8s.io", 16_500, 15),
    ("flowcontrol.apiserver.k8s.io", 16_100, 21),
];

/// The priorities of a group and of its preferred version; each further version has one less.
/// Groups that upstream does not know come last, as those of custom resources.
pub(super) fn priorities(group: &str) -> (i64, i64) {
    let known = UPSTREAM.iter().find(|(name, _, _)| *name == group);
    known.map_or((1000, 100), |(_, of_group, of_version)| (*of_group, *of_version))
}

/// One for each group version, with priorities that say the order of discovery.
pub(crate) fn api_services(resources: &[Arc<ResourceDef>]) -> Vec<ApiService> {
    let documents = super::Documents::new(resources.into());
    let mut services = Vec::new();
    for group in &documents.groups {
        let (group_priority, version_priority) = priorities(&group.name);
        for (position, version) in (0..).zip(&group.versions) {
            services.push(ApiService {
                group: group.name.to_string(),
                version: version.to_string(),
                group_priority,
                version_priority: version_priority - position,
            });
        }
    }
    services
}
