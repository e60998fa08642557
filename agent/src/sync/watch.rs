//! One list and watch, for ever.
//!
//! # Guarantees
//! - A list is told whole, between [`Event::InitStart`] and [`Event::InitDone`]; what is told in
//!   between counts only then. Nothing that fails is told as an event.
//! - A watch goes on where the last one ended. Only a server that no longer has that place makes it
//!   list again.
//!
//! # Flow
//! list, in pages → watch until the server ends it → watch from there → … Whatever fails is tried
//! again after a pause, which ends early when the same server has answered another watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use client::{Ask, Error, Link};
use engine::{Event, GroupResource, Side};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tracing::debug;

use super::side;
use crate::metrics::Metrics;

/// Objects of one page of a list. They are in memory all at once.
const PAGE: usize = 200;

/// How long a server is asked to let a watch live: less than proxies and HTTP/1.1 connections do.
const LIFE: u64 = 280;

/// How often the physical cluster is asked what it serves.
const DISCOVERY: Duration = Duration::from_secs(300);

/// The first pause after something failed, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// What a watch is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Source {
    /// A synced type in the hub.
    Upstream(GroupResource),
    /// A synced type in the physical cluster.
    Downstream(GroupResource),
    /// What is born of a type in the physical cluster and goes up.
    Born(GroupResource),
    /// What has gone up of a type, in the hub.
    Risen(GroupResource),
    /// Our ObjectSyncs in the hub.
    Records,
    /// Our namespaces in the physical cluster.
    Namespaces,
    /// Events in the physical cluster.
    Events,
}

/// What a watch tells.
#[derive(Debug)]
pub(super) enum Input {
    /// What it has seen, and when.
    Seen(Source, Event, Instant),
    /// What was known of the hub when the list was asked for that comes next.
    Asked(Source, u64),
    /// It has failed: the server was not reached, or broke off.
    Lost(Side),
    /// The server answers.
    Reached(Side),
    /// What the physical cluster serves in namespaces.
    Served(Vec<(GroupResource, String)>),
}

/// A list and watch.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    pub(super) source: Source,
    pub(super) side: Side,
    pub(super) link: Link,
    /// The path of the collection.
    pub(super) path: String,
    /// The query that selects: `labelSelector=…`, escaped; or nothing.
    pub(super) query: String,
    /// Metadata alone.
    pub(super) partial: bool,
    /// Only what comes from now on: what is there is not told.
    pub(super) fresh: bool,
    /// Raised when the server has answered after it had not.
    pub(super) recovered: Arc<watch::Sender<u64>>,
    /// The newest revision of the hub that is known.
    pub(super) newest: Arc<AtomicU64>,
    pub(super) metrics: Metrics,
}

/// Why a round ended.
enum Ended {
    /// The place is no longer known: list anew.
    Expired,
    /// As watches end.
    Normally,
    /// The server answers, with this code.
    Refused(u16),
    /// The server gives no answer.
    Failed(Error),
    /// Nobody wants to know any more.
    Unwanted,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMeta,
    #[serde(default)]
    items: Option<Vec<Value>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PageMeta {
    resource_version: String,
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Frame {
    #[serde(rename = "type")]
    kind: String,
    object: Value,
}

// === impl Watch ===

impl Watch {
    /// Follows it until nobody reads `inputs` any more.
    pub(super) async fn run(self, inputs: mpsc::Sender<Input>) {
        let mut pause = PAUSES.0;
        let mut place: Option<String> = None;
        let mut recovered = self.recovered.subscribe();
        loop {
            let begun = Instant::now();
            let ended = match place.as_mut() {
                None => match self.list(&inputs).await {
                    Ok(listed) => {
                        place = Some(listed);
                        pause = PAUSES.0;
                        continue;
                    }
                    Err(ended) => ended,
                },
                Some(place) => self.watch(place, &inputs).await,
            };
            match ended {
                Ended::Unwanted => return,
                Ended::Expired => place = None,
                Ended::Normally if begun.elapsed() > PAUSES.0 => {
                    pause = PAUSES.0;
                    continue;
                }
                Ended::Normally => {}
                Ended::Refused(status) => {
                    debug!(source = ?self.source, status, "a watch is refused");
                }
                Ended::Failed(error) => {
                    debug!(source = ?self.source, %error, "a watch broke");
                    if inputs.send(Input::Lost(self.side)).await.is_err() {
                        return;
                    }
                }
            }
            self.metrics.broken_watches.with_label_values(&[side::name(self.side)]).inc();
            recovered.mark_unchanged();
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(PAUSES.1),
                // The sender lives as long as this.
                _ = recovered.changed() => pause = PAUSES.0,
                () = inputs.closed() => return,
            }
        }
    }

    /// Tells all that is there; gives the place to watch from.
    async fn list(&self, inputs: &mpsc::Sender<Input>) -> Result<String, Ended> {
        let mut next: Option<String> = None;
        let mut begun = false;
        let newest = self.newest.load(Ordering::Acquire);
        loop {
            let limit = if self.fresh { 1 } else { PAGE };
            let mut path = self.with_query(&format!("limit={limit}"));
            if let Some(token) = &next {
                path.push_str("&continue=");
                path.push_str(&escape(token));
            }
            let accept = if self.partial { PARTIAL_LIST } else { client::JSON };
            let told =
                self.link.ask(Ask { accept, ..Ask::get(&path) }).await.map_err(Ended::Failed)?;
            match told.status.as_u16() {
                200 => {}
                410 => return Err(Ended::Expired),
                status => return Err(Ended::Refused(status)),
            }
            let page: Page = serde_json::from_slice(&told.body).map_err(|_| Ended::Refused(200))?;
            if !begun {
                begun = true;
                self.reached(inputs).await?;
                let asked = Input::Asked(self.source.clone(), newest);
                inputs.send(asked).await.map_err(|_| Ended::Unwanted)?;
                self.tell(inputs, Event::InitStart).await?;
            }
            if !self.fresh {
                for item in page.items.unwrap_or_default() {
                    self.tell(inputs, Event::Applied(item)).await?;
                }
                next = page.metadata.next.filter(|token| !token.is_empty());
            }
            if next.is_none() {
                let resource_version = page.metadata.resource_version;
                let done = Event::InitDone { resource_version: resource_version.clone() };
                self.tell(inputs, done).await?;
                return Ok(resource_version);
            }
        }
    }

    /// Tells what changes from a place on, and moves it.
    async fn watch(&self, place: &mut String, inputs: &mpsc::Sender<Input>) -> Ended {
        let path = self.with_query(&format!(
            "watch=true&allowWatchBookmarks=true&timeoutSeconds={LIFE}&resourceVersion={}",
            escape(place)
        ));
        let accept = if self.partial { PARTIAL } else { client::JSON };
        let mut lines = match self.link.follow(Ask { accept, ..Ask::get(&path) }).await {
            Ok(Ok(lines)) => lines,
            Ok(Err(told)) if told.status.as_u16() == 410 => return Ended::Expired,
            Ok(Err(told)) => return Ended::Refused(told.status.as_u16()),
            Err(error) => return Ended::Failed(error),
        };
        if let Err(ended) = self.reached(inputs).await {
            return ended;
        }
        let open = self.metrics.watches.with_label_values(&[side::name(self.side)]);
        open.inc();
        let ended = loop {
            let line = tokio::select! {
                line = lines.next() => line,
                () = inputs.closed() => break Ended::Unwanted,
            };
            match line {
                Ok(Some(line)) => {
                    if let Err(ended) = self.frame(&line, place, inputs).await {
                        break ended;
                    }
                }
                Ok(None) => break Ended::Normally,
                Err(error) => break Ended::Failed(error),
            }
        };
        open.dec();
        ended
    }

    async fn frame(
        &self,
        line: &Bytes,
        place: &mut String,
        inputs: &mpsc::Sender<Input>,
    ) -> Result<(), Ended> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        // What can't be read may have been a change: the list tells what there is.
        let frame: Frame = serde_json::from_slice(line).map_err(|_| Ended::Expired)?;
        let version = frame.object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let version = version.map(str::to_owned);
        let event = match &*frame.kind {
            "ADDED" | "MODIFIED" => Event::Applied(frame.object),
            "DELETED" => Event::Deleted(frame.object),
            "BOOKMARK" => {
                let resource_version = version.clone().ok_or(Ended::Expired)?;
                Event::Bookmark { resource_version }
            }
            _ => {
                let code = frame.object.get("code").and_then(Value::as_u64).unwrap_or(0);
                return Err(match u16::try_from(code) {
                    Ok(410) => Ended::Expired,
                    Ok(code) => Ended::Refused(code),
                    Err(_) => Ended::Expired,
                });
            }
        };
        self.tell(inputs, event).await?;
        if let Some(version) = version {
            *place = version;
        }
        Ok(())
    }

    async fn tell(&self, inputs: &mpsc::Sender<Input>, event: Event) -> Result<(), Ended> {
        let seen = Input::Seen(self.source.clone(), event, Instant::now());
        inputs.send(seen).await.map_err(|_| Ended::Unwanted)
    }

    async fn reached(&self, inputs: &mpsc::Sender<Input>) -> Result<(), Ended> {
        inputs.send(Input::Reached(self.side)).await.map_err(|_| Ended::Unwanted)
    }

    fn with_query(&self, more: &str) -> String {
        let Self { path, query, .. } = self;
        if query.is_empty() { format!("{path}?{more}") } else { format!("{path}?{query}&{more}") }
    }
}

const PARTIAL: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const PARTIAL_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// Tells what the physical cluster serves in namespaces, now and then.
pub(super) async fn resources(link: Link, inputs: mpsc::Sender<Input>) {
    loop {
        let pause = match super::discover(&link, "").await {
            Ok(found) => {
                let mut served: Vec<(GroupResource, String)> = Vec::new();
                for resource in found {
                    let listed = resource.verbs.iter().any(|verb| verb == "list");
                    let name = GroupResource::new(&resource.group, &resource.plural);
                    // The first version of a resource is the server's own choice.
                    let known = served.iter().any(|(other, _)| *other == name);
                    if resource.namespaced && listed && !known {
                        served.push((name, resource.version));
                    }
                }
                if inputs.send(Input::Served(served)).await.is_err() {
                    return;
                }
                DISCOVERY
            }
            Err(error) => {
                debug!(%error, "the physical cluster's resources are not known");
                PAUSES.1
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// A value in a query.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
