//! How many calls are in flight.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use machinery::ClusterName;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Calls in flight of one logical cluster. A call holds its request and answer, some MB at most.
const OF_ONE: usize = 32;

/// Calls in flight of all: eight logical clusters can be as busy as they may.
const OF_ALL: usize = 256;

/// Bounds calls. Nothing remains of a logical cluster that has none in flight.
#[derive(Debug)]
pub(super) struct Limits {
    all: Arc<Semaphore>,
    each: Mutex<HashMap<ClusterName, Weak<Semaphore>>>,
}

/// Held while a call is in flight. The semaphore of the logical cluster lives as long.
#[derive(Debug)]
pub(super) struct Permits {
    _one: OwnedSemaphorePermit,
    _all: Option<OwnedSemaphorePermit>,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(OF_ALL)), each: Mutex::default() }
    }
}

impl Limits {
    /// Waits for a place.
    pub(super) async fn enter(&self, cluster: &ClusterName) -> Option<Permits> {
        let own = self.of(cluster);
        // Semaphores here are never closed, so both succeed.
        let one = own.acquire_owned().await.ok()?;
        let all = self.all.clone().acquire_owned().await.ok();
        Some(Permits { _one: one, _all: all })
    }

    fn of(&self, cluster: &ClusterName) -> Arc<Semaphore> {
        let mut each = self.each.lock();
        if let Some(own) = each.get(cluster).and_then(Weak::upgrade) {
            return own;
        }
        if each.len() >= OF_ALL {
            each.retain(|_, own| own.strong_count() > 0);
        }
        let own = Arc::new(Semaphore::new(OF_ONE));
        each.insert(cluster.clone(), Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_cluster_leaves_room_for_others() {
        let limits = Limits::default();
        let (a, b) = (ClusterName::parse("a").unwrap(), ClusterName::parse("b").unwrap());
        let mut held = Vec::new();
        for _ in 0..OF_ONE {
            held.push(limits.enter(&a).await);
        }
        assert!(limits.enter(&a).now_or_never().is_none(), "full");
        assert!(limits.enter(&b).now_or_never().is_some(), "another has its own");
        held.pop();
        assert!(limits.enter(&a).now_or_never().is_some(), "room again");
    }
}
