//! The server's inner state: what each part knows of itself anyway, as JSON.
//!
//! It is for people; its form may change from version to version.

use serde_json::{Map, Value, json};

use crate::http::App;
use crate::metrics;

/// So many of the logical clusters that have most of something are named.
const MOST: usize = 20;

// === impl App ===

impl App {
    /// All that is known now.
    pub(super) async fn state(&self) -> Value {
        let clusters = self.registry.clusters();
        let (documents, document_bytes) = self.openapi.size();
        let objects: Map<String, Value> = self
            .registry
            .objects()
            .map(|(resource, count)| (resource.to_string(), Value::from(count)))
            .collect();
        let queues: Map<String, Value> = self
            .metrics
            .queue_depths()
            .into_iter()
            .map(|(name, depth)| (name, Value::from(depth)))
            .collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "process": process(),
            "runtime": threads(),
            "connections": self.metrics.connections.get(),
            "requests": {
                "reading": self.metrics.reading.get(),
                "mutating": self.metrics.mutating.get(),
                "panics": self.metrics.panics.get(),
                "series": self.metrics.series_held(),
            },
            "fairness": self.fairness.state(clusters.iter().map(|name| &**name), MOST),
            "logicalClusters": clusters.len(),
            "objects": objects,
            "cache": self.registry.cache_figures(MOST),
            "documents": {
                "discovery": self.discovery.len(),
                "openapi": documents,
                "openapiBytes": document_bytes,
            },
            "store": self.registry.store_figures().await,
            "queues": queues,
            "auditBytesWaiting": self.audit.as_ref().map(|audit| audit.waiting()),
        })
    }
}

fn process() -> Value {
    let figures = metrics::figures().into_iter();
    figures
        .map(|(name, _, _, value)| (name.to_owned(), Value::from(value)))
        .collect::<Map<_, _>>()
        .into()
}

fn threads() -> Value {
    let runtime = tokio::runtime::Handle::current().metrics();
    json!({
        "threads": runtime.num_workers(),
        "tasks": runtime.num_alive_tasks(),
        "queued": runtime.global_queue_depth(),
    })
}
