//! A logical cluster's name can be given again. What was under it before belongs to whoever had it
//! then, though the keys are the same.
//!
//! # Guarantees
//! - Nothing is read at a revision, and no watch begins at one, at which the name stood for another
//!   logical cluster, or for none.
//! - A watch ends with its logical cluster, before anything of the next one of that name is seen.

use std::sync::Arc;

use store::Revision;
use store::cache::{Event, Filter, Object, Scope};

use crate::clusters::record;
use crate::registry::{ClusterScope, Error, Registry};

/// The logical cluster that a watch began in.
#[derive(Clone, Debug)]
pub(super) struct Lifetime {
    record: Arc<Object>,
}

impl Registry {
    /// Refuses a revision from before the logical cluster of a request.
    ///
    /// # Errors
    /// 410, as for any revision that history has lost; 404 where there is no such logical cluster.
    pub(super) fn check_lifetime(
        &self,
        scope: &ClusterScope,
        asked: Revision,
    ) -> Result<(), Error> {
        let Some(Lifetime { record }) = self.lifetime(scope)? else { return Ok(()) };
        if asked < record.created {
            let oldest = record.created;
            return Err(self.history_error(store::ReadError::Compacted { oldest }, asked));
        }
        Ok(())
    }

    /// The logical cluster of a request, unless it is one that never goes, or all.
    ///
    /// # Errors
    /// 404 where there is no such logical cluster.
    pub(super) fn lifetime(&self, scope: &ClusterScope) -> Result<Option<Lifetime>, Error> {
        let ClusterScope::One(cluster) = scope else { return Ok(None) };
        if cluster.is_root() || cluster.is_system() {
            return self.require_cluster(cluster).map(|()| None);
        }
        match self.cache.get(&record::key(cluster)) {
            Some(record) => Ok(Some(Lifetime { record })),
            None => Err(Error::not_found(&record::logical_clusters(), cluster.as_str())),
        }
    }

    /// Whether the logical cluster is still there.
    ///
    /// # Errors
    /// 404 where it is not; another of its name is not it.
    pub(super) fn check_alive(&self, lifetime: Option<&Lifetime>) -> Result<(), Error> {
        let Some(lifetime) = lifetime else { return Ok(()) };
        let record = &lifetime.record;
        if lifetime.is_of(self.cache.get(&record.key).as_ref()) {
            return Ok(());
        }
        Err(Error::not_found(&record::logical_clusters(), record.header.name()))
    }
}

// === impl Lifetime ===

impl Lifetime {
    /// What else a watch has to follow, to know when it ends.
    pub(super) fn scope(&self) -> Scope {
        Scope::Key(self.record.key.clone())
    }

    /// The events that `wants` wants, and the end.
    pub(super) fn filter(&self, wants: Option<Filter>) -> Filter {
        let own = self.clone();
        Arc::new(move |event: &Event| {
            if event.key == own.record.key {
                own.ends_with(event)
            } else {
                wants.as_ref().is_none_or(|wants| wants(event))
            }
        })
    }

    /// Whether the logical cluster has gone with this event.
    pub(super) fn ends_with(&self, event: &Event) -> bool {
        event.key == self.record.key && !self.is_of(event.current.as_ref())
    }

    /// Whether it is the logical cluster whose object is there now; another of its name is not.
    fn is_of(&self, now: Option<&Arc<Object>>) -> bool {
        now.is_some_and(|now| now.header.uid() == self.record.header.uid())
    }
}
