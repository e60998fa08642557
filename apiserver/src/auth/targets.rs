//! SyncTargets, as far as identities rest on them.
//!
//! Their type is custom: it lives in `system:crds`, and a logical cluster that has a type of its own
//! by that name, from before, has no SyncTargets that anybody could trust.

use jiff::Timestamp;
use machinery::selector::LabelSelector;
use machinery::{ClusterName, GroupResource, ObjectKey};
use schema::ResourceDef;
use serde::Deserialize;
use serde_json::Value;
use store::Key;
use store::cache::Object;

use super::objects::Objects;
use crate::catalog::definitions;
use crate::clusters::record;

/// What identities and signers must know of a SyncTarget.
#[derive(Clone, Debug)]
pub(crate) struct SyncTarget {
    /// Its name.
    pub(crate) name: Box<str>,
    /// Its UID.
    pub(crate) uid: Box<str>,
    /// Credentials from before this time are revoked.
    pub(crate) credentials_not_before: Option<Timestamp>,
    allowed: Allowed,
    /// Types of which objects go up from the physical cluster.
    upsync: Vec<GroupResource>,
}

/// The other logical clusters that a SyncTarget serves.
#[derive(Clone, Debug, Default)]
struct Allowed {
    names: Vec<Box<str>>,
    selector: Option<LabelSelector>,
}

/// The fields that are read; everything else is passed over.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Shape {
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    allowed_clusters: Option<AllowedShape>,
    upsync: Vec<UpsyncShape>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct UpsyncShape {
    resource: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AllowedShape {
    names: Vec<Box<str>>,
    selector: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    credentials_not_before: Option<Timestamp>,
}

/// The resource of SyncTargets.
pub(crate) fn sync_targets() -> GroupResource {
    GroupResource::new(contract::WORKLOAD_GROUP, contract::SYNC_TARGETS)
}

/// Whether a type is that of SyncTargets.
pub(crate) fn is_sync_targets(resource: &ResourceDef) -> bool {
    *resource.group == *contract::WORKLOAD_GROUP && *resource.plural == *contract::SYNC_TARGETS
}

/// The key of a SyncTarget.
pub(crate) fn key(cluster: &ClusterName, name: &str) -> Key {
    Key::new(&sync_targets(), &ObjectKey::new(cluster.clone(), "", name))
}

/// The SyncTarget of a name in a logical cluster.
pub(crate) fn find(objects: &dyn Objects, cluster: &ClusterName, name: &str) -> Option<SyncTarget> {
    has_type(objects, cluster)
        .then(|| objects.object(&key(cluster, name)))
        .flatten()
        .and_then(|object| SyncTarget::read(&object))
}

/// Whether SyncTargets of a logical cluster are of the type that all have in common.
pub(crate) fn has_type(objects: &dyn Objects, cluster: &ClusterName) -> bool {
    let resource = sync_targets();
    let name = format!("{}.{}", resource.resource, resource.group);
    let own = ObjectKey::new(cluster.clone(), "", &name);
    *cluster == ClusterName::system_crds()
        || objects.object(&Key::new(&definitions(), &own)).is_none()
}

// === impl SyncTarget ===

impl SyncTarget {
    /// Reads the record of a SyncTarget; `None` for one that can't be understood.
    pub(crate) fn read(object: &Object) -> Option<Self> {
        let Shape { spec, status } = serde_json::from_slice(&object.json()).ok()?;
        let allowed = match spec.allowed_clusters {
            None => Allowed::default(),
            Some(AllowedShape { names, selector }) => {
                let selector = match selector.filter(|selector| !selector.is_null()) {
                    Some(selector) => Some(LabelSelector::from_value(&selector).ok()?),
                    None => None,
                };
                Allowed { names, selector }
            }
        };
        Some(Self {
            name: object.header.name().into(),
            uid: object.header.uid().into(),
            credentials_not_before: status.credentials_not_before,
            allowed,
            upsync: { spec.upsync.iter() }.map(|one| resource(&one.resource)).collect(),
        })
    }

    /// Whether objects of a type go up from its physical cluster.
    pub(crate) fn goes_up(&self, group: &str, resource: &str) -> bool {
        let is = |one: &GroupResource| *one.group == *group && *one.resource == *resource;
        self.upsync.iter().any(is)
    }

    /// Whether it serves a logical cluster other than its own.
    pub(crate) fn serves(&self, objects: &dyn Objects, cluster: &ClusterName) -> bool {
        let named = || self.allowed.names.iter().any(|name| **name == *cluster.as_str());
        let selected = || {
            let Some(selector) = &self.allowed.selector else { return false };
            let object = objects.object(&record::key(cluster));
            object.is_some_and(|object| selector.matches(|key| object.header.label(key)))
        };
        named() || selected()
    }
}

/// A resource by its name, as `things.example.org`.
fn resource(name: &str) -> GroupResource {
    let (group, plural) = contract::parse_type_name(name);
    GroupResource::new(group, plural)
}

#[cfg(test)]
pub(crate) mod tests;
