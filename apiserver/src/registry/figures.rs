//! What the registry and those below it know of themselves, for those who debug a server: sizes and
//! revisions, and of what tenants have written only the names of logical clusters.

use serde_json::{Map, Value, json};

use super::Registry;
use crate::clusters::record;

impl Registry {
    /// The names of all logical clusters.
    pub(crate) fn clusters(&self) -> Vec<Box<str>> {
        let records = self.cache.list(&record::prefix(), None, 0).objects;
        records.iter().map(|record| record.header.name().into()).collect()
    }

    /// Sizes of the cache, with so many of the largest logical clusters at most.
    pub(crate) fn cache_figures(&self, most: usize) -> Value {
        let figures = self.cache.figures(most);
        let largest: Vec<Value> = figures
            .largest
            .iter()
            .map(|(cluster, objects)| json!({"cluster": cluster, "objects": objects}))
            .collect();
        let (policies, policy_bytes) = self.authorizer.policies();
        json!({
            "revision": figures.revision.0,
            "records": figures.records,
            "clusters": figures.clusters,
            "largest": largest,
            "recentEvents": figures.recent_events,
            "recentBytes": figures.recent_bytes,
            "recentAfter": figures.recent_after.0,
            "watchers": figures.watchers,
            "scopes": figures.scopes,
            "eventsAside": figures.events_aside,
            "policies": policies,
            "policyBytes": policy_bytes,
            "tokens": self.bearers.accounts().remembered(),
        })
    }

    /// Where the store stands, and its sizes.
    pub(crate) async fn store_figures(&self) -> Value {
        let figures = self.store.figures();
        let mut told = Map::new();
        told.insert("backend".to_owned(), figures.backend.into());
        for (name, number) in figures.numbers {
            told.insert(name.to_owned(), number.into());
        }
        // A store that does not answer is what one may be looking for: the rest is told nevertheless.
        let revision = self.store.revision().await.map(|revision| revision.0).ok();
        let oldest = self.store.oldest().await.map(|revision| revision.0).ok();
        told.insert("revision".to_owned(), revision.into());
        told.insert("oldest".to_owned(), oldest.into());
        told.into()
    }
}
