//! What is done about one object: it goes with its owners, or makes its dependents go or stay.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use machinery::ObjectKey;
use machinery::meta::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN, OwnerReference, get_str, set};
use parking_lot::Mutex;
use serde_json::{Value, json};
use store::Key;
use store::cache::{Object, Slot};
use tokio::time::Instant;
use tracing::debug;

use super::context;
use super::graph::{Graph, OwnerId, deletes_dependents, group_of, has};
use super::report;
use super::uids::Uids;
use crate::catalog::Served;
use crate::clusters::record;
use crate::registry::{DeleteOptions, Error, Propagation, Reason, Registry, is_foreign_owner};

/// Dependents of one owner that are changed at a time: their writes share the store's commits.
const AT_ONCE: usize = 16;

/// Works on objects for the collector.
#[derive(Debug)]
pub(super) struct Collector {
    pub(super) registry: Arc<Registry>,
    pub(super) graph: Mutex<Graph>,
    pub(super) uids: Mutex<Uids>,
}

/// How it went.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Whether it is to be tried again later, though no change may tell when.
    pub(super) retry: bool,
    /// Objects to look at in turn.
    pub(super) next: Vec<Key>,
}

/// What an owner reference leads to.
#[derive(Debug, PartialEq, Eq)]
enum Owner {
    /// An object that is there.
    Solid,
    /// An object that waits for its dependents' deletion.
    Waiting,
    /// Nothing: the store has no such object.
    Absent,
    /// It can't be told: the type is not served, or the reference leads out of the namespace.
    Unknown,
}

/// The owner references of an object.
#[derive(Debug, Default)]
struct Owners {
    solid: bool,
    waiting: bool,
    /// UIDs of those that can be taken off.
    loose: Vec<Box<str>>,
}

// === impl Collector ===

impl Collector {
    /// One look at an object.
    ///
    /// # Errors
    /// Whatever the registry refuses; the object is to be looked at again then.
    pub(super) async fn attempt(&self, key: &Key) -> Result<Outcome, Error> {
        let Some(object) = self.registry.cache().get(key) else {
            return Ok(Outcome::default());
        };
        if object.header.is_deleting() {
            if has(&object.header, FINALIZER_FOREGROUND) {
                return self.delete_dependents(&object).await;
            }
            if has(&object.header, FINALIZER_ORPHAN) {
                return self.orphan_dependents(&object).await;
            }
            // It goes for good; its dependents have their turn when it has.
            return Ok(Outcome::default());
        }
        if object.header.owner_references().is_empty() || self.is_ending(key) {
            return Ok(Outcome::default());
        }
        let Some(owners) = self.owners(&object).await? else {
            return Ok(Outcome::default());
        };
        self.follow(&object, owners).await
    }

    /// Whether the object's logical cluster goes with all that is in it.
    fn is_ending(&self, key: &Key) -> bool {
        let cluster = self.registry.cache().get(&record::key(&key.object().cluster));
        cluster.is_none_or(|cluster| cluster.header.is_deleting())
    }

    /// What an object's owner references lead to; `None` while that can't be told of one.
    async fn owners(&self, object: &Arc<Object>) -> Result<Option<Owners>, Error> {
        let mut owners = Owners::default();
        for reference in object.header.owner_references() {
            match self.owner(object, reference).await? {
                Owner::Solid => owners.solid = true,
                Owner::Waiting => {
                    owners.waiting = true;
                    owners.loose.push(reference.uid.clone());
                }
                Owner::Absent => owners.loose.push(reference.uid.clone()),
                Owner::Unknown => return Ok(None),
            }
        }
        Ok(Some(owners))
    }

    /// What one reference leads to. An owner is absent only if the store says so.
    async fn owner(
        &self,
        object: &Arc<Object>,
        reference: &OwnerReference,
    ) -> Result<Owner, Error> {
        let cluster = object.key.object().cluster;
        let id = OwnerId::new(&object.key, &reference.uid);
        let api_version = &*reference.api_version;
        let group = group_of(api_version);
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let served = self.registry.catalog().of_kind(&cluster, group, version, &reference.kind);
        let Some(Served { resource, .. }) = served else {
            return self.owner_of_no_type(object, reference, &id).await;
        };
        if resource.namespaced && object.header.namespace().is_empty() {
            self.report_elsewhere(object, reference, &resource).await?;
            return Ok(Owner::Unknown);
        }
        let namespace = if resource.namespaced { object.header.namespace() } else { "" };
        let storage = Registry::storage(&resource);
        let key = Key::new(&storage, &ObjectKey::new(cluster, namespace, &reference.name));
        if let Some(found) = self.at(&key, &reference.uid) {
            return Ok(found);
        }
        let end = self.graph.lock().end(&id);
        if end.proven.as_ref() == Some(&key) {
            return Ok(Owner::Absent);
        }
        // The cache may be behind the store.
        self.registry.consistent().await?;
        if let Some(found) = self.at(&key, &reference.uid) {
            return Ok(found);
        }
        let seen = end.seen.as_ref().filter(|seen| seen.resource() == storage);
        let seen = seen.map(|seen| seen.parts().1);
        if seen.is_some_and(|place| place != namespace) {
            // It was never an owner here.
            return self.foreign(object, reference).await;
        }
        if seen.is_none()
            && let Some(elsewhere) = self.find(&object.key, &resource, &reference.uid)
        {
            if elsewhere.header.namespace() == object.header.namespace() || !resource.namespaced {
                // A wrong name, but the very object.
                return Ok(if deletes_dependents(&elsewhere.header) {
                    Owner::Waiting
                } else {
                    Owner::Solid
                });
            }
            report::invalid_namespace(&self.registry, object, reference).await?;
            return self.foreign(object, reference).await;
        }
        if is_foreign_owner(object, &reference.uid) {
            return Ok(Owner::Unknown);
        }
        match self.registry.is_stored_as(&key, &reference.uid).await? {
            Some(false) => {
                self.graph.lock().prove(&id, key);
                Ok(Owner::Absent)
            }
            Some(true) | None => Ok(Owner::Solid),
        }
    }

    /// An owner of another namespace. Upstream looks it up in the dependent's own namespace, where
    /// it is not, and deletes the dependent although the owner lives. Here a mistake in a reference
    /// costs nobody an object: it is kept, whatever becomes of that owner, and since nobody can tell
    /// after a restart where an owner that has gone had lived, that is noted on the object.
    async fn foreign(
        &self,
        object: &Arc<Object>,
        reference: &OwnerReference,
    ) -> Result<Owner, Error> {
        let uid = &*reference.uid;
        if is_foreign_owner(object, uid) {
            return Ok(Owner::Unknown);
        }
        let Some(target) = self.registry.target_for(object) else { return Ok(Owner::Unknown) };
        let (context, own) = (context(), object.header.uid());
        match self.registry.note_foreign_owner(&context, &target, own, uid).await {
            Ok(()) => Ok(Owner::Unknown),
            Err(error) => match error.reason() {
                // It changes or goes, or the tenant's own rules forbid this: kept it is all the same.
                Reason::NotFound | Reason::Conflict | Reason::Invalid | Reason::Forbidden => {
                    Ok(Owner::Unknown)
                }
                _ => Err(error),
            },
        }
    }

    /// What the cache has at an owner's key, if it is that owner.
    fn at(&self, key: &Key, uid: &str) -> Option<Owner> {
        match self.registry.cache().slot(key) {
            // Nobody knows what it is.
            Slot::Unreadable => Some(Owner::Solid),
            Slot::Object(owner) if *owner.header.uid() == *uid => {
                Some(if deletes_dependents(&owner.header) { Owner::Waiting } else { Owner::Solid })
            }
            Slot::Object(_) | Slot::Absent | Slot::Tombstone(_) => None,
        }
    }

    /// An owner whose type the logical cluster doesn't serve is absent only if it was there, was
    /// seen to go, and the store has nothing at its place.
    async fn owner_of_no_type(
        &self,
        object: &Arc<Object>,
        reference: &OwnerReference,
        id: &OwnerId,
    ) -> Result<Owner, Error> {
        let group = group_of(&reference.api_version);
        let end = {
            let mut graph = self.graph.lock();
            let end = graph.end(id);
            if end.seen.is_none() {
                // Nothing has come between this and the look at the catalog.
                graph.wait_for_type(&object.key, group);
            }
            end
        };
        let Some(key) = end.seen.filter(|key| *key.resource().group == *group) else {
            return Ok(Owner::Unknown);
        };
        let place = key.parts().1;
        if !place.is_empty() && *place != *object.header.namespace() {
            return Ok(Owner::Unknown);
        }
        if end.proven.as_ref() == Some(&key) {
            return Ok(Owner::Absent);
        }
        if self.registry.is_stored_as(&key, &reference.uid).await? == Some(false) {
            self.graph.lock().prove(id, key);
            return Ok(Owner::Absent);
        }
        Ok(Owner::Unknown)
    }

    /// An object of a resource by its UID, anywhere in a logical cluster.
    fn find(&self, within: &Key, resource: &schema::ResourceDef, uid: &str) -> Option<Arc<Object>> {
        let cluster = within.object().cluster;
        let prefix = store::KeyPrefix::cluster(&Registry::storage(resource), &cluster);
        self.uids.lock().find(self.registry.cache(), &prefix, uid, Instant::now())
    }

    /// Tells of a cluster-scoped object whose owner lives in a namespace.
    async fn report_elsewhere(
        &self,
        object: &Arc<Object>,
        reference: &OwnerReference,
        resource: &schema::ResourceDef,
    ) -> Result<(), Error> {
        if self.find(&object.key, resource, &reference.uid).is_some() {
            report::invalid_namespace(&self.registry, object, reference).await?;
        }
        Ok(())
    }

    /// Does to an object what its owners ask for.
    async fn follow(&self, object: &Arc<Object>, owners: Owners) -> Result<Outcome, Error> {
        let Some(target) = self.registry.target_for(object) else {
            return Ok(Outcome { retry: true, ..Outcome::default() });
        };
        let (registry, context) = (&self.registry, context());
        let uid = object.header.uid();
        if owners.solid {
            if owners.loose.is_empty() {
                return Ok(Outcome::default());
            }
            let stays = |reference: &mut Value| {
                let uid = get_str(reference, &["uid"]).unwrap_or_default();
                !owners.loose.iter().any(|loose| **loose == *uid)
            };
            registry.change_owners(&context, &target, uid, stays).await?;
            return Ok(Outcome::default());
        }
        let dependents = if owners.waiting { self.dependents(object) } else { Vec::new() };
        let propagation = if dependents.is_empty() {
            match &object.header {
                header if has(header, FINALIZER_ORPHAN) => Propagation::Orphan,
                header if has(header, FINALIZER_FOREGROUND) => Propagation::Foreground,
                _ => Propagation::Background,
            }
        } else {
            Propagation::Foreground
        };
        let mut version = Some(registry.version_of(object));
        if dependents.iter().any(|dependent| deletes_dependents(&dependent.header)) {
            // Two that wait for each other would wait for ever.
            let unblock = |reference: &mut Value| {
                set(reference, &["blockOwnerDeletion"], json!(false));
                true
            };
            registry.change_owners(&context, &target, uid, unblock).await?;
            // What was changed is another version; that it is the same object is enough.
            version = None;
        }
        let options = DeleteOptions {
            propagation: Some(propagation),
            uid: Some(uid.to_owned()),
            resource_version: version,
            ..DeleteOptions::default()
        };
        match registry.delete(&context, &target, options).await {
            Ok(_) => debug!(key = %object.key, ?propagation, "collected"),
            Err(error) if error.reason() == Reason::NotFound => {}
            // It is not as it was judged: it is judged again.
            Err(error) if error.reason() == Reason::Conflict => {
                return Ok(Outcome { retry: true, ..Outcome::default() });
            }
            Err(error) => return Err(error),
        }
        Ok(Outcome::default())
    }

    /// The objects that depend on an owner: that name it, and live where it can be named.
    fn dependents(&self, owner: &Arc<Object>) -> Vec<Arc<Object>> {
        let keys = self.graph.lock().dependents(&OwnerId::of(owner));
        let valid = |dependent: &Arc<Object>| {
            let names = |reference: &OwnerReference| *reference.uid == *owner.header.uid();
            dependent.header.owner_references().iter().any(names)
                && (owner.header.namespace().is_empty()
                    || owner.header.namespace() == dependent.header.namespace())
        };
        keys.iter().filter_map(|key| self.registry.cache().get(key)).filter(valid).collect()
    }

    /// Lets an object go once nothing blocks it any more.
    async fn delete_dependents(&self, owner: &Arc<Object>) -> Result<Outcome, Error> {
        let blocks = |dependent: &&Arc<Object>| {
            dependent.header.owner_references().iter().any(|reference| {
                *reference.uid == *owner.header.uid() && reference.block_owner_deletion
            })
        };
        let dependents = self.dependents(owner);
        let blocking = dependents.iter().filter(blocks).collect::<Vec<_>>();
        if blocking.is_empty() {
            self.release(owner, FINALIZER_FOREGROUND).await?;
            return Ok(Outcome::default());
        }
        let idle = blocking.iter().filter(|dependent| !dependent.header.is_deleting());
        Ok(Outcome { retry: false, next: idle.map(|object| object.key.clone()).collect() })
    }

    /// Takes an owner off its dependents, then lets it go.
    async fn orphan_dependents(&self, owner: &Arc<Object>) -> Result<Outcome, Error> {
        let dependents = self.dependents(owner);
        let uid = owner.header.uid();
        let orphan = |dependent: Arc<Object>| async move {
            let Some(target) = self.registry.target_for(&dependent) else {
                return Err(Error::internal(format!("{} is of no type", dependent.key)));
            };
            let others = |reference: &mut Value| get_str(reference, &["uid"]) != Some(uid);
            let own = dependent.header.uid();
            self.registry.change_owners(&context(), &target, own, others).await
        };
        stream::iter(dependents)
            .map(orphan)
            .buffer_unordered(AT_ONCE)
            .try_for_each(|()| std::future::ready(Ok(())))
            .await?;
        self.registry.consistent().await?;
        if !self.dependents(owner).is_empty() {
            return Ok(Outcome { retry: true, ..Outcome::default() });
        }
        self.release(owner, FINALIZER_ORPHAN).await?;
        Ok(Outcome::default())
    }

    async fn release(&self, owner: &Arc<Object>, finalizer: &str) -> Result<(), Error> {
        let Some(target) = self.registry.target_for(owner) else {
            return Err(Error::internal(format!("{} is of no type", owner.key)));
        };
        let uid = owner.header.uid();
        self.registry.remove_finalizer(&context(), &target, uid, finalizer).await
    }
}
