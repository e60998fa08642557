//! The policies of the logical clusters that are in use.
//!
//! A policy is made when it is first asked for and dropped when a record that it was made of
//! changes, before that change can be seen to have come. An idle logical cluster holds nothing.
//!
//! Invariant: nothing that happens in one logical cluster keeps the policy of another from being
//! held: changes are told apart by logical cluster, and one of very many roles takes the place of
//! few others.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use machinery::ClusterName;
use parking_lot::RwLock;
use store::cache::{Cache, Observer};
use store::{Key, KeyPrefix};

use super::policy::{Policy, Records};
use crate::clusters::bootstrap::{GROUP, Kind};
use crate::clusters::record;

/// Bytes that policies take together, before those that were used least are dropped.
const MAX_COST: usize = 32 << 20;

/// The most that one of them counts for: who fills a logical cluster with roles drives out eight
/// times less than all.
const MOST_OF_ONE: usize = MAX_COST / 8;

/// Counters of changes: those of a logical cluster are in one of so many.
const LANES: usize = 256;

/// Policies made and not yet dropped, by logical cluster.
#[derive(Debug, Default)]
pub(crate) struct Held {
    inner: RwLock<Inner>,
    clock: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<ClusterName, Entry, ahash::RandomState>,
    cost: usize,
    changes: Changes,
}

/// Changes so far that policies may depend on, by the hash of their logical cluster.
#[derive(Debug)]
struct Changes(Box<[u64; LANES]>);

#[derive(Debug)]
struct Entry {
    policy: Arc<Policy>,
    used: AtomicU64,
}

// === impl Held ===

impl Held {
    /// A place for policies that follows a cache.
    pub(crate) fn new(cache: &Cache) -> Arc<Self> {
        let held = Arc::new(Self::default());
        cache.observe(held.clone());
        held
    }

    /// How many policies are held, and what they count for in bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let inner = self.inner.read();
        (inner.entries.len(), inner.cost)
    }

    /// The policy of a logical cluster as of now; `None` where there is no such logical cluster.
    pub(crate) fn policy(&self, cache: &Cache, cluster: &ClusterName) -> Option<Arc<Policy>> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let changes = {
            let inner = self.inner.read();
            if let Some(entry) = inner.entries.get(cluster) {
                entry.used.store(now, Ordering::Relaxed);
                return Some(entry.policy.clone());
            }
            inner.changes_of(cluster)
        };
        let policy = make(cache, cluster)?;
        let mut inner = self.inner.write();
        // A change that came while the records were read has found nothing to drop.
        if inner.changes_of(cluster) == changes {
            inner.hold(cluster, &policy, now);
        }
        Some(policy)
    }
}

/// The policy of a logical cluster that exists.
fn make(cache: &Cache, cluster: &ClusterName) -> Option<Arc<Policy>> {
    let record = cache.get(&record::key(cluster))?;
    let prefixes = Kind::ALL.map(|kind| KeyPrefix::cluster(&kind.resource(), cluster));
    let [cluster_role_bindings, cluster_roles, role_bindings, roles] =
        cache.stored(prefixes.each_ref());
    let owner = record::owner(&record).unwrap_or_default();
    let records = Records { cluster_role_bindings, cluster_roles, role_bindings, roles };
    Some(Policy::of(&records, &owner))
}

impl Observer for Held {
    fn changed(&self, key: &Key) {
        let group = key.as_str().strip_prefix(GROUP);
        let (cluster, _, name) = key.parts();
        let cluster = if group.is_some_and(|rest| rest.starts_with('/')) {
            cluster
        } else if record::is_key(key) {
            name
        } else {
            return;
        };
        let Ok(cluster) = ClusterName::parse(cluster) else { return };
        let mut inner = self.inner.write();
        inner.note_change(&cluster);
        inner.drop_entry(&cluster);
    }

    fn reset(&self) {
        let mut inner = self.inner.write();
        inner.changes.0.iter_mut().for_each(|lane| *lane += 1);
        inner.entries.clear();
        inner.cost = 0;
    }
}

// === impl Inner ===

impl Inner {
    /// The number of changes so far that concern a logical cluster, and some others.
    fn changes_of(&self, cluster: &ClusterName) -> u64 {
        self.changes.0.get(self.lane(cluster)).copied().unwrap_or_default()
    }

    fn note_change(&mut self, cluster: &ClusterName) {
        let lane = self.lane(cluster);
        if let Some(count) = self.changes.0.get_mut(lane) {
            *count += 1;
        }
    }

    fn lane(&self, cluster: &ClusterName) -> usize {
        let hash = self.entries.hasher().hash_one(cluster) % LANES as u64;
        usize::try_from(hash).unwrap_or_default()
    }

    fn hold(&mut self, cluster: &ClusterName, policy: &Arc<Policy>, now: u64) {
        self.drop_entry(cluster);
        self.cost += counted(policy);
        if self.cost > MAX_COST {
            self.make_room();
        }
        let entry = Entry { policy: policy.clone(), used: AtomicU64::new(now) };
        self.entries.insert(cluster.clone(), entry);
    }

    fn drop_entry(&mut self, cluster: &ClusterName) {
        if let Some(entry) = self.entries.remove(cluster) {
            self.cost = self.cost.saturating_sub(counted(&entry.policy));
        }
    }

    /// Drops the half that was used least lately, so that room is made seldom.
    fn make_room(&mut self) {
        let mut used: Vec<u64> =
            self.entries.values().map(|entry| entry.used.load(Ordering::Relaxed)).collect();
        let middle = used.len() / 2;
        let Some((_, median, _)) = (middle < used.len()).then(|| used.select_nth_unstable(middle))
        else {
            return;
        };
        let median = *median;
        let mut freed = 0;
        self.entries.retain(|_, entry| {
            let stays = entry.used.load(Ordering::Relaxed) > median;
            freed += if stays { 0 } else { counted(&entry.policy) };
            stays
        });
        self.cost = self.cost.saturating_sub(freed);
    }
}

fn counted(policy: &Policy) -> usize {
    policy.cost().min(MOST_OF_ONE)
}

impl Default for Changes {
    fn default() -> Self {
        Self(Box::new([0; LANES]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(name: &str) -> ClusterName {
        ClusterName::parse(name).unwrap()
    }

    fn role_of(cluster: &ClusterName) -> Key {
        let object = machinery::ObjectKey::new(cluster.clone(), "", "r");
        Key::new(&Kind::ClusterRole.resource(), &object)
    }

    #[test]
    fn changes_elsewhere_keep_nothing_from_being_held() {
        let held = Held::default();
        let (own, record) = (cluster("quiet"), record::key(&cluster("quiet")));
        let before = held.inner.read().changes_of(&own);
        // Of many others few share a counter with it.
        let busy = (0..LANES).map(|number| cluster(&format!("busy-{number}")));
        busy.for_each(|busy| held.changed(&role_of(&busy)));
        let after = held.inner.read().changes_of(&own);
        assert!(after - before < 10, "{before} {after}");
        for key in [role_of(&own), record] {
            let before = held.inner.read().changes_of(&own);
            held.changed(&key);
            assert_eq!(held.inner.read().changes_of(&own), before + 1, "{key}");
        }
        let before = held.inner.read().changes_of(&own);
        held.reset();
        assert_eq!(held.inner.read().changes_of(&own), before + 1);
    }

    #[test]
    fn a_change_drops_the_policy_that_was_made_of_it() {
        let held = Held::default();
        let policy = Policy::of(&Records::default(), "olga");
        let (one, other) = (cluster("one"), cluster("other"));
        for cluster in [&one, &other] {
            held.inner.write().hold(cluster, &policy, 0);
        }
        held.changed(&role_of(&one));
        let inner = held.inner.read();
        assert!(!inner.entries.contains_key(&one) && inner.entries.contains_key(&other));
        assert_eq!(inner.cost, counted(&policy));
    }
}
