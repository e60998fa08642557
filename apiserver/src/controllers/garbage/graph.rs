//! Who depends on whom: a pure function of the changes that it was given.
//!
//! Only objects with owner references are held, by the UID of each owner in their own logical
//! cluster: a UID of another logical cluster means nothing here. Owners themselves are not held.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use machinery::meta::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN, Header, OwnerReference};
use store::Key;
use store::cache::{Event, Object};

use crate::catalog::Definition;

/// The part of a key that says that the object is a CRD.
const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// An owner as its dependents name it: its UID in a logical cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct OwnerId(Box<str>);

/// What is known of an owner's end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    /// Where its deletion was seen.
    pub(super) seen: Option<Key>,
    /// Where the store was asked for it, and had nothing of this UID.
    pub(super) proven: Option<Key>,
}

/// Dependents by owner.
#[derive(Debug, Default)]
pub(super) struct Graph {
    owners: BTreeMap<OwnerId, Dependents>,
    /// Owners that wait for their dependents, by finalizer.
    waiting: HashMap<OwnerId, Key>,
    /// Dependents whose owner's type was not served, by logical cluster and group.
    unserved: BTreeMap<(Box<str>, Box<str>), BTreeSet<Key>>,
}

#[derive(Debug, Default)]
struct Dependents {
    keys: BTreeSet<Key>,
    end: End,
}

/// Whether a change may matter to a [`Graph`].
pub(super) fn matters(event: &Event) -> bool {
    let (previous, current) = (event.previous.as_deref(), event.current.as_deref());
    refs(previous) != refs(current)
        || has_ended(previous, current)
        || previous.is_some_and(|old| waits(&old.header))
        || current.is_some_and(|new| waits(&new.header))
        || (event.key.resource_part() == DEFINITIONS && current.is_some())
}

/// Whether an object that is being deleted waits for what the collector does.
pub(super) fn waits(header: &Header) -> bool {
    header.is_deleting() && (has(header, FINALIZER_FOREGROUND) || has(header, FINALIZER_ORPHAN))
}

/// Whether a finalizer stands on an object.
pub(super) fn has(header: &Header, finalizer: &str) -> bool {
    header.finalizers().iter().any(|name| **name == *finalizer)
}

/// Whether an object waits for its dependents' deletion.
pub(super) fn deletes_dependents(header: &Header) -> bool {
    header.is_deleting() && has(header, FINALIZER_FOREGROUND)
}

/// The group in an `apiVersion`.
pub(super) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn refs(object: Option<&Object>) -> &[OwnerReference] {
    object.map(|object| object.header.owner_references()).unwrap_or_default()
}

fn has_ended(previous: Option<&Object>, current: Option<&Object>) -> bool {
    previous.is_some_and(|old| current.is_none_or(|new| new.header.uid() != old.header.uid()))
}

// === impl OwnerId ===

impl OwnerId {
    /// The owner of that UID in the logical cluster of `key`.
    pub(super) fn new(key: &Key, uid: &str) -> Self {
        // No name of a logical cluster has a slash, so this is unambiguous whatever the UID is.
        Self(format!("{}/{uid}", key.parts().0).into())
    }

    pub(super) fn of(object: &Object) -> Self {
        Self::new(&object.key, object.header.uid())
    }
}

// === impl Graph ===

impl Graph {
    /// Takes over an object that is there from the start. Returns what is to be looked at.
    pub(super) fn begin(&mut self, object: &Arc<Object>) -> Vec<Key> {
        self.step(&object.key, None, Some(object))
    }

    /// Takes over one change. Returns the objects that are to be looked at.
    pub(super) fn apply(&mut self, event: &Event) -> Vec<Key> {
        let mut due = self.step(&event.key, event.previous.as_ref(), event.current.as_ref());
        if event.key.resource_part() == DEFINITIONS
            && let Some(object) = &event.current
        {
            due.extend(self.served_again(object));
        }
        due
    }

    fn step(
        &mut self,
        key: &Key,
        previous: Option<&Arc<Object>>,
        current: Option<&Arc<Object>>,
    ) -> Vec<Key> {
        let mut due = Vec::new();
        let before = refs(previous.map(|object| &**object));
        let after = refs(current.map(|object| &**object));
        for old in before {
            let kept = after.iter().find(|new| new.uid == old.uid);
            let blocks = kept.is_some_and(|new| new.block_owner_deletion);
            let id = OwnerId::new(key, &old.uid);
            if kept.is_none() {
                self.remove(&id, key);
                self.stop_waiting_for_type(key, group_of(&old.api_version));
            }
            if !blocks && let Some(owner) = self.waiting.get(&id) {
                due.push(owner.clone());
            }
        }
        for new in after.iter().filter(|new| !before.contains(new)) {
            let owner = self.owners.entry(OwnerId::new(key, &new.uid)).or_default();
            owner.keys.insert(key.clone());
            due.push(key.clone());
        }
        if let Some(object) = current {
            let id = OwnerId::of(object);
            if waits(&object.header) {
                let first = self.waiting.insert(id.clone(), key.clone()).is_none();
                due.push(key.clone());
                if first && has(&object.header, FINALIZER_FOREGROUND) {
                    due.extend(self.dependents(&id));
                }
            } else {
                self.waiting.remove(&id);
            }
        }
        if let Some(old) = previous
            && has_ended(Some(old), current.map(|new| &**new))
        {
            let id = OwnerId::of(old);
            self.waiting.remove(&id);
            if let Some(owner) = self.owners.get_mut(&id) {
                owner.end.seen = Some(key.clone());
                due.extend(owner.keys.iter().cloned());
            }
        }
        due
    }

    /// The objects that name this owner.
    pub(super) fn dependents(&self, owner: &OwnerId) -> Vec<Key> {
        self.owners.get(owner).map(|owner| owner.keys.iter().cloned().collect()).unwrap_or_default()
    }

    /// What is known of an owner's end.
    pub(super) fn end(&self, owner: &OwnerId) -> End {
        self.owners.get(owner).map(|owner| owner.end.clone()).unwrap_or_default()
    }

    /// Notes that an owner is not at `key`: UIDs are never given twice, so this holds for ever.
    pub(super) fn prove(&mut self, owner: &OwnerId, key: Key) {
        if let Some(owner) = self.owners.get_mut(owner) {
            owner.end.proven = Some(key);
        }
    }

    /// Notes that a dependent waits for types of a group to be served in its logical cluster.
    pub(super) fn wait_for_type(&mut self, key: &Key, group: &str) {
        let cluster: Box<str> = key.parts().0.into();
        self.unserved.entry((cluster, group.into())).or_default().insert(key.clone());
    }

    fn stop_waiting_for_type(&mut self, key: &Key, group: &str) {
        if self.unserved.is_empty() {
            return;
        }
        let id = (key.parts().0.into(), group.into());
        if let Some(keys) = self.unserved.get_mut(&id) {
            keys.remove(key);
            if keys.is_empty() {
                self.unserved.remove(&id);
            }
        }
    }

    fn served_again(&mut self, crd: &Arc<Object>) -> Vec<Key> {
        let definition = Definition::of(crd);
        if self.unserved.is_empty() || !definition.is_established() {
            return Vec::new();
        }
        let cluster = crd.key.parts().0;
        let everywhere = cluster == machinery::ClusterName::system_crds().as_str();
        let group = definition.group();
        let matching = |(of, needs): &(Box<str>, Box<str>)| {
            **needs == *group && (everywhere || **of == *cluster)
        };
        let ids = self.unserved.keys().filter(|id| matching(id)).cloned().collect::<Vec<_>>();
        ids.iter().filter_map(|id| self.unserved.remove(id)).flatten().collect()
    }

    fn remove(&mut self, owner: &OwnerId, key: &Key) {
        if let Some(dependents) = self.owners.get_mut(owner) {
            dependents.keys.remove(key);
            if dependents.keys.is_empty() {
                self.owners.remove(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests;
