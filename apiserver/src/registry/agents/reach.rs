//! Whose objects an agent sees in a list or watch over all logical clusters: those of its own and of
//! the ones that its SyncTarget serves, as of now.

use std::sync::Arc;

use machinery::ClusterName;
use parking_lot::Mutex;
use store::cache::Cache;
use store::{Key, Revision};

use crate::auth::Agent;
use crate::auth::targets::{self, SyncTarget};

/// The logical clusters whose objects an agent sees in a list or watch, as of now.
pub(in crate::registry) struct Reach {
    cache: Arc<Cache>,
    agent: Arc<Agent>,
    key: Key,
    /// The SyncTarget as it was read last: it is read once for each of its revisions.
    read: Mutex<Option<(Revision, Option<Arc<SyncTarget>>)>>,
}

// === impl Reach ===

impl Reach {
    pub(super) fn new(cache: Arc<Cache>, agent: Arc<Agent>) -> Self {
        let key = targets::key(&agent.cluster, &agent.name);
        Self { cache, agent, key, read: Mutex::default() }
    }

    /// Whether the agent sees objects of a logical cluster.
    pub(in crate::registry) fn contains(&self, cluster: &ClusterName) -> bool {
        if *cluster == self.agent.cluster {
            return true;
        }
        let Some(object) = self.cache.get(&self.key) else { return false };
        let mut read = self.read.lock();
        let target = match &*read {
            Some((revision, target)) if *revision == object.revision => target.clone(),
            _ => {
                let target = self.agent.target(&*self.cache).map(Arc::new);
                *read = Some((object.revision, target.clone()));
                target
            }
        };
        drop(read);
        target.is_some_and(|target| target.serves(&*self.cache, cluster))
    }
}

impl std::fmt::Debug for Reach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reach").field("agent", &self.agent).finish_non_exhaustive()
    }
}
