//! The `APIService` of each group version: clients read from them what discovery says anyway.

use std::sync::Arc;

use schema::ResourceDef;

use crate::clusters::virtuals::ApiService;

/// Priority of the core group, which comes first.
const CORE: i64 = 18_000;

/// Priority of the first other group; each further one has [`STEP`] less.
const FIRST: i64 = 17_800;

/// What a group comes after the one before it.
const STEP: i64 = 50;

/// Priority of a group's preferred version; each further one has one less.
const VERSION: i64 = 15;

/// One for each group version, with priorities that say the order of discovery.
pub(crate) fn api_services(resources: &[Arc<ResourceDef>]) -> Vec<ApiService> {
    let documents = super::Documents::new(resources.into());
    let mut services = Vec::new();
    for (position, group) in (0..).zip(&documents.groups) {
        let group_priority = if group.name.is_empty() { CORE } else { FIRST - position * STEP };
        for (position, version) in (0..).zip(&group.versions) {
            services.push(ApiService {
                group: group.name.to_string(),
                version: version.to_string(),
                group_priority,
                version_priority: VERSION - position,
            });
        }
    }
    services
}
