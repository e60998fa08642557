//! What must be true of a logical cluster and a namespace while something is created in them.
//!
//! Every creation compares the records that it was judged by, so that one which races with a
//! deletion fails and is judged again: no lock is needed, also with several servers on one store.

use std::sync::Arc;

use machinery::{ClusterName, GroupResource, ObjectKey};
use store::cache::{Object, Origin, Slot};
use store::{Compare, Expect, Key, Op, Urgency};

use crate::clusters::record;
use crate::registry::{Context, Error, Registry, Target};

/// Compares and writes that go along with a creation.
#[derive(Debug, Default)]
pub(super) struct Guard {
    pub(super) compares: Vec<Compare>,
    pub(super) ops: Vec<Op>,
    /// How soon the write is wanted.
    pub(super) urgency: Urgency,
}

impl Registry {
    /// What a creation in `cluster`, and in `namespace` unless that is empty, depends on.
    ///
    /// # Errors
    /// 404 when the logical cluster is not there and the caller may not create it, or the
    /// namespace is not there; 403 while one of them is being deleted.
    pub(super) fn guard(
        &self,
        ctx: &Context,
        cluster: &ClusterName,
        namespace: &str,
    ) -> Result<Guard, Error> {
        let cluster_key = record::key(cluster);
        let namespace_key =
            Key::new(&namespaces(), &ObjectKey::new(cluster.clone(), "", namespace));
        let [cluster_slot, namespace_slot] = self.cache.slots([&cluster_key, &namespace_key]);
        let mut guard = Guard::of(ctx.urgency);
        let mut new_cluster = false;
        match &cluster_slot {
            Slot::Object(object) if object.header.is_deleting() => {
                let why = "it is being deleted, nothing can be created in it";
                return Err(Error::forbidden(&record::logical_clusters(), cluster.as_str(), why));
            }
            Slot::Object(object) => {
                check_owner(ctx, object)?;
                guard.require(cluster_key, object.expect());
            }
            Slot::Unreadable => return Err(unreadable(&cluster_key)),
            Slot::Absent | Slot::Tombstone(_) => {
                self.may_create_cluster(ctx, cluster)?;
                let expect = cluster_slot.expect().unwrap_or(Expect::Absent);
                let object = record::new(cluster, &self.new_uid(), ctx.now, ctx.owner());
                let value = store::object::encode(&object);
                guard.require(cluster_key.clone(), expect);
                guard.ops.push(Op::Put { key: cluster_key, value });
                new_cluster = true;
            }
        }
        if namespace.is_empty() {
            return Ok(guard);
        }
        match &namespace_slot {
            Slot::Object(object) if object.header.is_deleting() => {
                return Err(terminating(namespace));
            }
            Slot::Object(object) => guard.require(namespace_key, object.expect()),
            // A new logical cluster has the namespaces that it begins with.
            Slot::Absent
                if new_cluster && crate::clusters::virtuals::NAMESPACES.contains(&namespace) =>
            {
                guard.require(namespace_key, Expect::Absent);
            }
            Slot::Unreadable => return Err(unreadable(&namespace_key)),
            Slot::Absent | Slot::Tombstone(_) => {
                return Err(Error::not_found(&namespaces(), namespace));
            }
        }
        Ok(guard)
    }

    /// Refuses a caller who was let in to create a logical cluster that somebody else has created
    /// meanwhile. What a change is made to has been read before.
    pub(super) fn check_entry(&self, ctx: &Context, cluster: &ClusterName) -> Result<(), Error> {
        if !ctx.creating {
            return Ok(());
        }
        match self.cache.get(&record::key(cluster)) {
            Some(object) => check_owner(ctx, &object),
            None => Ok(()),
        }
    }

    /// The object at a key that a change is made to.
    ///
    /// # Errors
    /// 404 when it, or its logical cluster, is not there; 500 for a record that can't be read.
    pub(super) fn present<'s>(
        &self,
        target: &Target,
        cluster: &ClusterName,
        key: &Key,
        slot: &'s Slot,
    ) -> Result<&'s Arc<Object>, Error> {
        match slot {
            Slot::Object(current) => Ok(current),
            Slot::Unreadable => Err(unreadable(key)),
            Slot::Absent | Slot::Tombstone(_) => {
                self.require_cluster(cluster)?;
                Err(Error::not_found(&Self::group_resource(&target.resource), &target.name))
            }
        }
    }

    /// Whether the logical cluster of a request is there: reads of one that isn't are 404.
    pub(super) fn require_cluster(&self, cluster: &ClusterName) -> Result<(), Error> {
        match self.cache.get(&record::key(cluster)) {
            Some(_) => Ok(()),
            None => Err(Error::not_found(&record::logical_clusters(), cluster.as_str())),
        }
    }

    fn may_create_cluster(&self, ctx: &Context, cluster: &ClusterName) -> Result<(), Error> {
        let missing = || Error::not_found(&record::logical_clusters(), cluster.as_str());
        // The server's own logical clusters are made by the server alone.
        if cluster.is_system() {
            return Err(missing());
        }
        if self.catalog.may_create(&ctx.user, cluster) { Ok(()) } else { Err(missing()) }
    }
}

// === impl Guard ===

impl Guard {
    /// Nothing to compare, and somebody waits or not.
    pub(super) fn of(urgency: Urgency) -> Self {
        Self { urgency, ..Self::default() }
    }

    pub(super) fn require(&mut self, key: Key, expect: Expect) {
        self.compares.push(Compare { key, expect });
    }
}

/// As [`Registry::check_entry`], given the object of the logical cluster. Asked again, the request
/// is judged by what is there now.
fn check_owner(ctx: &Context, cluster: &Object) -> Result<(), Error> {
    let mine = || record::owner(cluster).is_some_and(|owner| *owner == ctx.user.name);
    if !ctx.creating || mine() { Ok(()) } else { Err(super::create::contended()) }
}

/// Whether the store itself holds what a slot shows.
pub(super) fn is_stored(slot: &Slot) -> bool {
    matches!(slot, Slot::Object(object) if object.origin == Origin::Stored)
}

pub(super) fn namespaces() -> GroupResource {
    GroupResource::new("", "namespaces")
}

pub(super) fn unreadable(key: &Key) -> Error {
    Error::internal(format!("the record at {key} is not readable"))
}

fn terminating(namespace: &str) -> Error {
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    Error::new(crate::registry::Reason::Forbidden, why).cause(
        "NamespaceTerminating",
        format!("namespace {namespace} is being terminated"),
        "metadata.namespace",
    )
}
