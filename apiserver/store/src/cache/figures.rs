//! What the cache knows of itself, for those who debug a server.

use super::Cache;
use crate::Revision;

/// Sizes of a cache, all of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// The revision that it has reached.
    pub revision: Revision,
    /// Records held, tombstones included.
    pub records: usize,
    /// Logical clusters that have stored objects.
    pub clusters: usize,
    /// Those of them that have most, with the number of their objects.
    pub largest: Vec<(Box<str>, usize)>,
    /// Events that are kept for watches that resume.
    pub recent_events: usize,
    /// Their bytes.
    pub recent_bytes: usize,
    /// They reach back to just after this revision.
    pub recent_after: Revision,
    /// Who is told of events: watches of clients, and the server's own.
    pub watchers: usize,
    /// What they watch, each place once.
    pub scopes: usize,
    /// Events that wait where many watch.
    pub events_aside: usize,
}

// === impl Cache ===

impl Cache {
    /// Its sizes, with so many of the largest logical clusters at most.
    pub fn figures(&self, most: usize) -> Figures {
        let inner = self.inner.read();
        let (state, watchers) = (&inner.state, self.watchers.lock());
        let (recent_events, recent_bytes, recent_after) = state.recent();
        let mut largest = state.populations();
        let clusters = largest.len();
        largest.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        largest.truncate(most);
        Figures {
            revision: state.revision(),
            records: state.len(),
            clusters,
            largest: largest.into_iter().map(|(name, count)| (name.into(), count)).collect(),
            recent_events,
            recent_bytes,
            recent_after,
            watchers: watchers.count(),
            scopes: watchers.scopes(),
            events_aside: watchers.aside(),
        }
    }
}
