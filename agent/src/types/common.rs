//! What hub and cluster have in common: the types that are synced.

use std::sync::Arc;

use crds::{SyncTargetStatus, SyncedState};
use engine::{GroupResource, Scope, SyncedType};

use super::cluster::Known;

/// The types that a SyncTarget's status accepts and that are among `known`, sorted. `definitions` says
/// whether the SyncTarget asks for definitions of types, which every hub and every cluster knows.
pub(super) fn common(
    status: &SyncTargetStatus,
    known: &[&Known],
    definitions: bool,
) -> Arc<[SyncedType]> {
    let accepted = status.synced_resources.iter().filter(|r| r.state == SyncedState::Accepted);
    let mut made: Vec<SyncedType> = accepted
        .filter_map(|resource| {
            if (&*resource.group, &*resource.resource) == contract::DEFINITIONS {
                return definitions.then(definition_type);
            }
            let found = |version: &String| {
                known.iter().find(|one| {
                    (&*one.group, &*one.plural) == (&*resource.group, &*resource.resource)
                        && one.version == *version
                })
            };
            let one = resource.versions.iter().find_map(found)?;
            let hub_has = |part: &str| resource.subresources.iter().any(|own| own == part);
            Some(SyncedType {
                resource: GroupResource::new(&resource.group, &resource.resource),
                version: one.version.as_str().into(),
                kind: one.kind.as_str().into(),
                scope: if one.namespaced { Scope::Namespaced } else { Scope::Cluster },
                upstream_status: hub_has("status"),
                downstream_status: one.status,
                upstream_scale: hub_has("scale"),
            })
        })
        .collect();
    made.sort_by(|a, b| a.resource.cmp(&b.resource));
    made.into()
}

/// The type of definitions.
fn definition_type() -> SyncedType {
    let (group, plural) = contract::DEFINITIONS;
    SyncedType {
        resource: GroupResource::new(group, plural),
        version: "v1".into(),
        kind: "CustomResourceDefinition".into(),
        scope: Scope::Cluster,
        // A definition's status is its own server's.
        upstream_status: false,
        downstream_status: true,
        upstream_scale: false,
    }
}

#[cfg(test)]
mod tests {
    use crds::SyncedResource;

    use super::*;

    #[test]
    fn only_what_is_accepted_and_there() {
        let known = |version: &str, plural: &str| Known {
            group: "x.io".into(),
            version: version.into(),
            plural: plural.into(),
            kind: "Kind".into(),
            namespaced: true,
            status: true,
            schema: "s".into(),
            losses: Vec::new(),
        };
        let resource = |plural: &str, versions: &[&str], state| SyncedResource {
            group: "x.io".into(),
            resource: plural.into(),
            versions: versions.iter().map(|version| (*version).to_owned()).collect(),
            kind: "Kind".into(),
            subresources: vec!["scale".into()],
            state,
            message: None,
        };
        let status = SyncTargetStatus {
            synced_resources: vec![
                resource("things", &["v2", "v1"], SyncedState::Accepted),
                resource("others", &["v1"], SyncedState::Incompatible),
                resource("missing", &["v1"], SyncedState::Accepted),
                resource("late", &["v1"], SyncedState::Pending),
            ],
            ..SyncTargetStatus::default()
        };
        let all = [known("v1", "things"), known("v1", "others"), known("v1", "late")];
        let all: Vec<&Known> = all.iter().collect();
        let [one] = &*common(&status, &all, false) else { panic!("one type") };
        assert_eq!((one.resource.to_string(), &*one.version), ("things.x.io".to_owned(), "v1"));
        assert!(one.downstream_status && !one.upstream_status && one.upstream_scale);
    }

    /// Both sides have to say so, and nobody has to have seen the type.
    #[test]
    fn definitions_need_no_import() {
        let (group, resource) = contract::DEFINITIONS;
        let status = |state| SyncTargetStatus {
            synced_resources: vec![SyncedResource {
                group: group.into(),
                resource: resource.into(),
                versions: vec!["v1".into()],
                kind: "CustomResourceDefinition".into(),
                subresources: Vec::new(),
                state,
                message: None,
            }],
            ..SyncTargetStatus::default()
        };
        let [one] = &*common(&status(SyncedState::Accepted), &[], true) else { panic!("one type") };
        assert_eq!((&*one.resource.resource, one.scope), (resource, Scope::Cluster));
        assert!(!one.upstream_status);
        assert!(common(&status(SyncedState::Accepted), &[], false).is_empty());
        assert!(common(&status(SyncedState::Pending), &[], true).is_empty());
    }
}
