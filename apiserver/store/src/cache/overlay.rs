//! Virtual objects: what is visible where the store holds nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use crate::object::Object;
use crate::{Key, KeyPrefix};

/// Slots by key. A slot with empty bytes is a tombstone.
pub(super) type Slots = BTreeMap<Key, Arc<Object>>;

/// The records of the store, as an [`Overlay`] may look at them.
#[derive(Clone, Copy)]
pub struct Slice<'a>(pub(super) &'a Slots);

/// Decides which virtual objects stand where the store holds nothing.
///
/// # Assumptions
/// Pure: the answer depends on the records alone. A virtual object depends on the records of its
/// logical cluster and namespace only.
pub trait Overlay: fmt::Debug + Send + Sync + 'static {
    /// The virtual object at `key`, whether or not a record hides it.
    fn object(&self, records: Slice<'_>, key: &Key) -> Option<Arc<Object>>;

    /// The virtual objects under `prefix` in key order, hidden ones included.
    fn range(&self, records: Slice<'_>, prefix: &KeyPrefix) -> Vec<Arc<Object>>;

    /// The keys whose virtual object may come or go when the record at `key` changes.
    fn dependents(&self, records: Slice<'_>, key: &Key) -> Vec<Key>;
}

/// No virtual objects.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOverlay;

// === impl Slice ===

impl<'a> Slice<'a> {
    /// The record at `key`, unless it is absent or a tombstone.
    pub fn get(self, key: &Key) -> Option<&'a Arc<Object>> {
        self.0.get(key).filter(|object| !is_tombstone(object))
    }

    /// The records under `prefix` in key order, without tombstones.
    pub fn range(self, prefix: &KeyPrefix) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        under(self.0, prefix, None).map(|(_, object)| object).filter(|object| !is_tombstone(object))
    }
}

impl fmt::Debug for Slice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slice({} records)", self.0.len())
    }
}

// === impl NoOverlay ===

impl Overlay for NoOverlay {
    fn object(&self, _records: Slice<'_>, _key: &Key) -> Option<Arc<Object>> {
        None
    }

    fn range(&self, _records: Slice<'_>, _prefix: &KeyPrefix) -> Vec<Arc<Object>> {
        Vec::new()
    }

    fn dependents(&self, _records: Slice<'_>, _key: &Key) -> Vec<Key> {
        Vec::new()
    }
}

/// Whether a slot hides the virtual object of its key instead of showing one.
pub(super) fn is_tombstone(object: &Object) -> bool {
    object.is_empty()
}

/// The slots under `prefix`, after `after`, in key order.
pub(super) fn under<'a>(
    slots: &'a Slots,
    prefix: &KeyPrefix,
    after: Option<&Key>,
) -> impl Iterator<Item = (&'a Key, &'a Arc<Object>)> + use<'a> {
    let prefix = prefix.clone();
    let start = match after {
        Some(after) if after.as_bytes() >= prefix.as_bytes() => Bound::Excluded(after.as_bytes()),
        _ => Bound::Included(prefix.as_bytes()),
    };
    let range = slots.range::<[u8], _>((start, Bound::Unbounded));
    range.take_while(move |(key, _)| prefix.contains(key))
}
