//! Owner references: those that are given twice, and what the collector does to them.

use std::sync::Arc;

use machinery::meta::{get, get_str, remove, set};
use schema::ResourceDef;
use serde_json::Value;
use store::Key;
use store::cache::Object;

use super::managed::{Tracking, manager};
use crate::registry::{ClusterScope, Context, Error, Reason, Registry, Target, WriteOptions};

/// The annotation with the UIDs of owners that live, or lived, in another namespace.
const FOREIGN: [&str; 3] = ["metadata", "annotations", "core.kcp.io/foreign-owners"];

impl Registry {
    /// What a request about the stored object at `key` is addressed to, in the version that it is
    /// stored in. `None` while its logical cluster doesn't serve its type.
    pub(crate) fn target_of(&self, key: &Key) -> Option<Target> {
        let object = key.object();
        let stored = self.catalog.stored(&object.cluster, &key.resource())?;
        Some(Target {
            cluster: ClusterScope::One(object.cluster),
            resource: stored.served.resource,
            custom: stored.served.custom,
            version: stored.version,
            namespace: object.namespace,
            name: object.name,
            subresource: "".into(),
        })
    }

    /// As [`Registry::target_of`], in the version of the object's own bytes where its type still has
    /// that: then nothing has to be converted.
    pub(crate) fn target_for(&self, object: &Object) -> Option<Target> {
        let mut target = self.target_of(&object.key)?;
        let version = object.header.api_version().rsplit('/').next().unwrap_or_default();
        if target.resource.version(version).is_some() {
            let serves = |def: &&Arc<ResourceDef>| {
                def.version(version).is_some_and(|version| version.served)
            };
            let defs = target.custom.iter().flat_map(|custom| &custom.defs);
            if let Some(def) = { defs }.find(serves) {
                target.resource = def.clone();
            }
            target.version = version.into();
        }
        Some(target)
    }

    /// The `resourceVersion` of an object.
    pub(crate) fn version_of(&self, object: &Object) -> String {
        self.versions.format(object.revision)
    }

    /// Changes the owner references of the object with this UID; `change` says of each whether it
    /// stays. Nothing happens to an object that has gone or been made anew.
    pub(crate) async fn change_owners(
        &self,
        ctx: &Context,
        target: &Target,
        uid: &str,
        change: impl Fn(&mut Value) -> bool,
    ) -> Result<(), Error> {
        self.change_metadata(ctx, target, uid, "ownerReferences", change).await
    }

    /// Takes a finalizer off the object with this UID.
    pub(crate) async fn remove_finalizer(
        &self,
        ctx: &Context,
        target: &Target,
        uid: &str,
        finalizer: &str,
    ) -> Result<(), Error> {
        let others = |name: &mut Value| name.as_str() != Some(finalizer);
        self.change_metadata(ctx, target, uid, "finalizers", others).await
    }

    /// Notes on the object with this UID that an owner which it names lives, or lived, where it can't
    /// be its owner: it is not to go with it, also when nobody remembers any more where that was.
    ///
    /// # Errors
    /// Those of an update.
    pub(crate) async fn note_foreign_owner(
        &self,
        ctx: &Context,
        target: &Target,
        uid: &str,
        owner: &str,
    ) -> Result<(), Error> {
        let manager = manager(ctx, &WriteOptions::default());
        let change = |old: &Value| {
            let mut new = old.clone();
            if get_str(old, &["metadata", "uid"]) == Some(uid) {
                let owners = get(old, &["metadata", "ownerReferences"]).and_then(Value::as_array);
                let named = owners.into_iter().flatten();
                let named = named.filter_map(|reference| get_str(reference, &["uid"]));
                let noted = noted(old).collect::<Vec<_>>();
                let foreign = named.filter(|named| *named == owner || noted.contains(named));
                let foreign = foreign.collect::<Vec<_>>().join(",");
                set(&mut new, &FOREIGN, foreign.into());
            }
            Ok(new)
        };
        let tracking = Tracking::By(&manager);
        self.transform(ctx, target, false, false, tracking, change).await.map(|_| ())
    }

    async fn change_metadata(
        &self,
        ctx: &Context,
        target: &Target,
        uid: &str,
        list: &str,
        change: impl Fn(&mut Value) -> bool,
    ) -> Result<(), Error> {
        let manager = manager(ctx, &WriteOptions::default());
        let change = |old: &Value| {
            if get_str(old, &["metadata", "uid"]) != Some(uid) {
                return Err(Error::not_found(
                    &Self::group_resource(&target.resource),
                    &target.name,
                ));
            }
            let mut new = old.clone();
            let path = ["metadata", list];
            let items = remove(&mut new, &path);
            let mut items = items.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
            items.retain_mut(&change);
            if !items.is_empty() {
                set(&mut new, &path, Value::Array(items));
            }
            Ok(new)
        };
        let tracking = Tracking::By(&manager);
        match self.transform(ctx, target, false, false, tracking, change).await {
            Err(error) if error.reason() == Reason::NotFound => Ok(()),
            changed => changed.map(|_| ()),
        }
    }

    /// Whether the store itself has an object with this UID at `key`. `None` when it has something
    /// there that can't be read.
    pub(crate) async fn is_stored_as(&self, key: &Key, uid: &str) -> Result<Option<bool>, Error> {
        let Some(record) = self.store.get(key).await.map_err(Error::internal)? else {
            return Ok(Some(false));
        };
        if record.value.is_empty() {
            return Ok(Some(false));
        }
        let header = machinery::meta::Header::scan(&record.value);
        Ok(header.ok().map(|header| *header.uid() == *uid))
    }
}

/// Whether it is noted on an object that this owner lives where it can't be its owner.
pub(crate) fn is_foreign_owner(object: &Object, owner: &str) -> bool {
    let value = serde_json::from_slice::<Value>(&object.json()).unwrap_or_default();
    noted(&value).any(|noted| noted == owner)
}

/// Owners that are noted so. Those are UIDs that the server has given, without a comma.
fn noted(object: &Value) -> impl Iterator<Item = &str> {
    get_str(object, &FOREIGN).unwrap_or_default().split(',').filter(|uid| !uid.is_empty())
}

/// Keeps the first of equal owner references, and warns about the others. `patched` says whether
/// they stand in the outcome of a patch, for which upstream has words of its own.
pub(super) fn dedup_owners(ctx: &Context, object: &mut Value, patched: bool) {
    let Some(Value::Array(owners)) = object.pointer_mut("/metadata/ownerReferences") else {
        return;
    };
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    let mut twice: Vec<String> = Vec::new();
    for owner in owners.drain(..) {
        if kept.contains(&owner) {
            let uid = get_str(&owner, &["uid"]).unwrap_or_default();
            if !twice.iter().any(|known| known == uid) {
                twice.push(uid.to_owned());
            }
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    if twice.is_empty() {
        return;
    }
    let when = if patched { " after mutating admission happens" } else { "" };
    let twice = twice.join(", ");
    ctx.warn(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner \
         references in 1.20+, and may reject such requests as early as 1.24; please fix your \
         requests; duplicate UID(s) observed: {twice}"
    ));
}
