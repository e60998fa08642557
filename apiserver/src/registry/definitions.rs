//! What ties CRDs and the objects of their types together.
//!
//! # Guarantees
//! - An object is created only while its CRD is there and not being deleted: its creation compares
//!   the CRD's record.
//! - A CRD of `system:crds` never goes, and never drops a stored version, while any logical cluster
//!   has objects of its type.

use std::sync::Arc;

use machinery::{ClusterName, GroupResource, ObjectKey};
use serde_json::Value;
use store::cache::Object;
use store::{Expect, Key, KeyPrefix, Revision};

use super::guard::Guard;
use crate::catalog::{Definition, definitions};
use crate::clusters::record;
use crate::registry::{Error, Reason, Registry, Target};

impl Registry {
    /// What the creation of an object depends on beside its namespace.
    ///
    /// # Errors
    /// 403 while its type is being deleted, 404 when that has gone; 409 for a CRD of a type that
    /// every logical cluster has, 403 for one of the server's own group.
    pub(super) fn guard_type(
        &self,
        guard: &mut Guard,
        target: &Target,
        cluster: &ClusterName,
        name: &str,
    ) -> Result<(), Error> {
        let shared = ClusterName::system_crds();
        if is_definitions(target) && is_own(name) {
            let why = "types of this group are the server's own";
            return Err(Error::forbidden(&definitions(), name, why));
        }
        if is_definitions(target) && *cluster != shared {
            let key = shared_key(name);
            if self.cache.get(&key).is_some() {
                let why = format!(
                    "the type is served in every logical cluster, by the definition in {shared}"
                );
                return Err(Error::conflict(&definitions(), name, &why));
            }
            guard.require(key, Expect::Absent);
            return Ok(());
        }
        if target.custom.is_none() {
            return Ok(());
        }
        let resource = &target.resource;
        let of = |cluster: &ClusterName| {
            let object = self.catalog.definition(cluster, &resource.group, &resource.plural)?;
            Definition::of(&object).is_established().then_some(object)
        };
        let Some(definition) = of(cluster).or_else(|| of(&shared)) else {
            let text = "the server could not find the requested resource";
            return Err(Error::generic(Reason::NotFound, text));
        };
        if definition.header.is_deleting() {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Error::forbidden(&Self::group_resource(resource), name, why));
        }
        guard.require(definition.key.clone(), definition.expect());
        Ok(())
    }

    /// Refuses to delete a CRD of `system:crds` that is in use.
    ///
    /// # Errors
    /// 409 with the number of objects.
    pub(super) fn check_unused(&self, target: &Target, current: &Arc<Object>) -> Result<(), Error> {
        if !is_shared_definition(target) || current.header.is_deleting() {
            return Ok(());
        }
        let count = self.count_instances(&Definition::of(current).summary());
        if count == 0 {
            return Ok(());
        }
        let why = format!("{count} objects of this type exist in all logical clusters");
        Err(Error::conflict(&definitions(), &target.name, &why))
    }

    /// Refuses to drop a stored version of a CRD of `system:crds` that is in use.
    ///
    /// # Errors
    /// 409 with the number of objects.
    pub(super) fn check_versions_kept(
        &self,
        target: &Target,
        old: &Value,
        new: &Value,
    ) -> Result<(), Error> {
        if !is_shared_definition(target) {
            return Ok(());
        }
        let stored = |crd: &Value| {
            let list = crd.pointer("/status/storedVersions").and_then(Value::as_array);
            list.cloned().unwrap_or_default()
        };
        let kept = stored(new);
        let dropped = stored(old).into_iter().filter(|version| !kept.contains(version));
        let dropped = dropped.filter_map(|version| version.as_str().map(str::to_owned));
        let dropped = dropped.collect::<Vec<_>>();
        let count = if dropped.is_empty() { 0 } else { self.count_instances(old) };
        if count == 0 {
            return Ok(());
        }
        let why = format!(
            "{count} objects of this type exist in all logical clusters, some may be stored as {}",
            dropped.join(", ")
        );
        Err(Error::conflict(&definitions(), &target.name, &why))
    }

    /// The objects of a CRD's type, in one logical cluster or all.
    pub(crate) fn instances(
        &self,
        crd: &Value,
        cluster: Option<&ClusterName>,
    ) -> Vec<(Key, Revision)> {
        let plural = crd.pointer("/spec/names/plural").and_then(Value::as_str).unwrap_or_default();
        let resource = GroupResource::new(schema::crd::group(crd), plural);
        self.cache.records(&match cluster {
            Some(cluster) => KeyPrefix::cluster(&resource, cluster),
            None => KeyPrefix::resource(&resource),
        })
    }

    fn count_instances(&self, crd: &Value) -> usize {
        self.instances(crd, None).len()
    }
}

fn is_definitions(target: &Target) -> bool {
    let crds = definitions();
    target.custom.is_none()
        && target.resource.group == crds.group
        && target.resource.plural == crds.resource
}

/// Whether a CRD of that name is of the group of the server's own types, which are part of no
/// logical cluster but `root`. Who could define them elsewhere could make records that look like
/// those of logical clusters.
fn is_own(name: &str) -> bool {
    name.split_once('.').is_some_and(|(_, group)| *group == *record::logical_clusters().group)
}

fn is_shared_definition(target: &Target) -> bool {
    is_definitions(target) && target.one_cluster() == Some(&ClusterName::system_crds())
}

/// The CRD that a name stands for where there is none of its own: the shared one.
pub(super) fn fallback(target: &Target) -> Option<Key> {
    is_definitions(target).then(|| shared_key(&target.name))
}

fn shared_key(name: &str) -> Key {
    let object = ObjectKey::new(ClusterName::system_crds(), "", name);
    Key::new(&definitions(), &object)
}
