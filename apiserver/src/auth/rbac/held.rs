//! The policies of the logical clusters that are in use.
//!
//! A policy is made when it is first asked for and dropped when a record that it was made of
//! changes, before that change can be seen to have come. An idle logical cluster holds nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use machinery::ClusterName;
use parking_lot::RwLock;
use store::cache::{Cache, Observer};
use store::{Key, KeyPrefix};

use super::policy::{Policy, Records};
use crate::clusters::bootstrap::{GROUP, Kind};
use crate::clusters::{logical_clusters, record};

/// Bytes that policies take together, before those that were used least are dropped.
const MAX_COST: usize = 32 << 20;

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
    /// Changes so far that a policy may depend on.
    changes: u64,
}

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

    /// The policy of a logical cluster as of now; `None` where there is no such logical cluster.
    pub(crate) fn policy(&self, cache: &Cache, cluster: &ClusterName) -> Option<Arc<Policy>> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let changes = {
            let inner = self.inner.read();
            if let Some(entry) = inner.entries.get(cluster) {
                entry.used.store(now, Ordering::Relaxed);
                return Some(entry.policy.clone());
            }
            inner.changes
        };
        let policy = make(cache, cluster)?;
        let mut inner = self.inner.write();
        // A change that came while the records were read has found nothing to drop.
        if inner.changes == changes {
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
        let text = key.as_str();
        let (cluster, _, name) = key.parts();
        let cluster = if text.strip_prefix(GROUP).is_some_and(|rest| rest.starts_with('/')) {
            cluster
        } else if is_record(text) {
            name
        } else {
            return;
        };
        let mut inner = self.inner.write();
        inner.changes += 1;
        if let Ok(cluster) = ClusterName::parse(cluster) {
            inner.drop_entry(&cluster);
        }
    }

    fn reset(&self) {
        let mut inner = self.inner.write();
        let changes = inner.changes + 1;
        *inner = Inner { changes, ..Inner::default() };
    }
}

fn is_record(key: &str) -> bool {
    let clusters = logical_clusters();
    let rest = key.strip_prefix(&*clusters.group).and_then(|rest| rest.strip_prefix('/'));
    rest.and_then(|rest| rest.strip_prefix(&*clusters.resource))
        .is_some_and(|rest| rest.starts_with('/'))
}

// === impl Inner ===

impl Inner {
    fn hold(&mut self, cluster: &ClusterName, policy: &Arc<Policy>, now: u64) {
        self.drop_entry(cluster);
        self.cost += policy.cost();
        if self.cost > MAX_COST {
            self.make_room();
        }
        let entry = Entry { policy: policy.clone(), used: AtomicU64::new(now) };
        self.entries.insert(cluster.clone(), entry);
    }

    fn drop_entry(&mut self, cluster: &ClusterName) {
        if let Some(entry) = self.entries.remove(cluster) {
            self.cost = self.cost.saturating_sub(entry.policy.cost());
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
            freed += if stays { 0 } else { entry.policy.cost() };
            stays
        });
        self.cost = self.cost.saturating_sub(freed);
    }
}
