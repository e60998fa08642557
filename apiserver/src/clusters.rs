//! Logical clusters: what makes one, what each has from the start, and how one ends.
//!
//! A logical cluster is an object of the resource `logicalclusters.core.kcp.io` in `root`. No
//! task, timer or lock exists for one.

pub mod record;
pub mod virtuals;

use std::sync::Arc;

use schema::Types;

pub use record::logical_clusters;
use virtuals::{ApiService, Virtuals};

/// The virtual objects of a server that listens on `port` with a certificate of `ca` (PEM).
pub fn overlay(types: &Types, ca: &str, port: u16, rv_base: u64) -> Arc<Virtuals> {
    let mut api_services = Vec::<ApiService>::new();
    // Upstream's priorities: core at 18000, the others below it in the order of discovery.
    let mut group_priority = 18_000;
    for resource in types.resources() {
        let known = api_services.iter().any(|service| *service.group == *resource.group);
        if !known {
            group_priority -= if resource.group.is_empty() { 0 } else { 50 };
        }
        for (at, version) in resource.versions.iter().filter(|version| version.served).enumerate() {
            let service = ApiService {
                group: resource.group.to_string(),
                version: version.name.to_string(),
                group_priority,
                version_priority: 15 - i64::try_from(at).unwrap_or(14).min(14),
            };
            if !api_services.iter().any(|other| other.name() == service.name()) {
                api_services.push(service);
            }
        }
    }
    Arc::new(Virtuals { ca: ca.into(), port, rv_base, api_services })
}
