//! The loop: what changed in the cluster goes up, what is accepted comes back.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use client::Link;
use crds::{NamespaceMapping, SyncTarget};
use engine::SyncedType;
use futures::{Stream, StreamExt};
use kube::Api;
use kube::api::ApiResource;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::cluster::{Cluster, Known};
use super::common::common;
use super::hub::{Hub, HubError};
use super::report::Report;
use super::selection::Selection;
use crate::target::{Read, TargetRef};

/// How long changes of definitions are gathered: installing a product makes dozens.
const GATHER: Duration = Duration::from_millis(300);

/// How often the SyncTarget is read while something is awaited of it, and for how long.
const SOON: Duration = Duration::from_secs(1);
const AWAITED: Duration = Duration::from_secs(60);

/// How often it is read otherwise.
const LATER: Duration = Duration::from_secs(15);

/// After so many turns all is read anew, on both sides: what discovery says beside schemas, as short
/// names, is in no list of documents, and somebody may have deleted what was written.
const THOROUGH: u32 = 30;

/// The pauses after failures.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What is read for whom.
#[derive(Debug)]
pub struct Settings {
    /// The SyncTarget.
    pub target: TargetRef,
    /// The hub: a link to what stands before `/clusters/…`.
    pub hub: Link,
    /// The physical cluster.
    pub cluster: Link,
    /// How often the cluster's types are looked at; a minute does. Changes of definitions are seen at
    /// once.
    pub every: Duration,
    /// Where the types go that are synced.
    pub types: watch::Sender<Arc<[SyncedType]>>,
}

/// The definitions of the cluster, as its watch shows them.
#[derive(Debug, Default)]
struct Definitions {
    /// The resourceVersion of each; `None` until all have been listed.
    known: Option<BTreeMap<String, String>>,
    listing: BTreeMap<String, String>,
}

struct Loop {
    settings: Settings,
    target: Hub,
    cluster: Hub,
    read: Cluster,
    report: Option<Report>,
    definitions: Definitions,
    /// What of the SyncTarget was seen last.
    selection: Option<Selection>,
    /// Until when news of the SyncTarget are expected.
    awaited: Instant,
    turns: u32,
    /// Whether the last turn left something to the next.
    left: bool,
}

/// Reads types and tells of them until it is dropped.
pub async fn run(settings: Settings) {
    let target = Hub::cluster(settings.hub.clone(), &settings.target.cluster);
    let cluster = Hub::root(settings.cluster.clone());
    let now = Instant::now();
    let mut state = Loop {
        target,
        cluster,
        read: Cluster::default(),
        report: None,
        definitions: Definitions::default(),
        selection: None,
        awaited: now + AWAITED,
        turns: 0,
        left: false,
        settings,
    };
    let mut events = pin!(definitions(&state.settings.cluster));
    let (mut look_at, mut turn_at) = (now, None);
    let mut pause = PAUSES.0;
    loop {
        let turn = async {
            match turn_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            event = events.next() => match event {
                Some(event) => {
                    if state.definitions.see(event) {
                        turn_at = Some(Instant::now() + GATHER);
                    }
                }
                // It has no end.
                None => return,
            },
            () = tokio::time::sleep_until(look_at) => {
                if state.look().await {
                    turn_at = Some(Instant::now());
                }
                let soon = Instant::now() < state.awaited;
                look_at = Instant::now() + if soon { SOON } else { LATER };
            }
            () = turn => {
                let next = match state.turn().await {
                    Ok(more) => {
                        pause = PAUSES.0;
                        if more { Duration::ZERO } else { state.settings.every }
                    }
                    Err(error) => {
                        // What the hub has may be something else by now.
                        state.report = None;
                        warn!(%error, "types were not read, or not told");
                        pause = (pause * 2).min(PAUSES.1);
                        pause
                    }
                };
                turn_at = Some(Instant::now() + next);
                look_at = Instant::now();
            }
        }
    }
}

/// Events of the cluster's definitions.
fn definitions(
    cluster: &Link,
) -> impl Stream<Item = Event<PartialObjectMeta<DynamicObject>>> + Send + use<> {
    let kind = ApiResource {
        group: "apiextensions.k8s.io".into(),
        version: "v1".into(),
        api_version: "apiextensions.k8s.io/v1".into(),
        kind: "CustomResourceDefinition".into(),
        plural: "customresourcedefinitions".into(),
    };
    let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(cluster.client(), &kind);
    watcher::watcher(api, watcher::Config::default()).default_backoff().filter_map(async |event| {
        match event {
            Ok(event) => Some(event),
            Err(error) => {
                debug!(%error, "the watch of definitions broke off");
                None
            }
        }
    })
}

// === impl Definitions ===

impl Definitions {
    /// Takes an event; answers whether something changed.
    fn see(&mut self, event: Event<PartialObjectMeta<DynamicObject>>) -> bool {
        let entry = |object: PartialObjectMeta<DynamicObject>| {
            let metadata = object.metadata;
            Some((metadata.name?, metadata.resource_version.unwrap_or_default()))
        };
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(object) => self.listing.extend(entry(object)),
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listing);
                let changed = self.known.as_ref() != Some(&listed);
                self.known = Some(listed);
                return changed;
            }
            Event::Apply(object) => {
                if let Some(known) = &mut self.known {
                    known.extend(entry(object));
                    return true;
                }
            }
            Event::Delete(object) => {
                if let (Some(known), Some((name, _))) = (&mut self.known, entry(object)) {
                    return known.remove(&name).is_some();
                }
            }
        }
        false
    }
}

// === impl Loop ===

impl Loop {
    /// Looks at the SyncTarget; answers whether other types are asked for.
    async fn look(&mut self) -> bool {
        let object = match self.settings.target.read(&self.settings.hub).await {
            Ok(Read::Found(object)) => object,
            other => {
                debug!(?other, "the SyncTarget was not read");
                return false;
            }
        };
        // The hub leaves parts out for agents; what is asked for is not among them.
        let Ok(target) = serde_json::from_value::<SyncTarget>(object) else { return false };
        let hashed = target.spec.namespace_mapping == NamespaceMapping::Hashed;
        let selection = Selection::of(target.spec.resources.iter().map(String::as_str), hashed);
        let known: Vec<&Known> = self.read.known().collect();
        let status = target.status.unwrap_or_default();
        let types = common(&status, &known, selection.has_definitions());
        let count = types.len();
        let changed = self.settings.types.send_if_modified(|current| {
            let differs = **current != *types;
            if differs {
                *current = types;
            }
            differs
        });
        if changed {
            info!(types = count, "the types that are synced have changed");
        }
        let news = self.selection.as_ref() != Some(&selection);
        self.selection = Some(selection);
        news
    }

    /// Reads what changed in the cluster and tells the hub. Answers whether there is more to read.
    async fn turn(&mut self) -> Result<bool, HubError> {
        let (Some(selection), Some(definitions)) = (&self.selection, &self.definitions.known)
        else {
            // Either comes first.
            return Ok(false);
        };
        self.turns += u32::from(!self.left);
        if self.turns >= THOROUGH {
            (self.turns, self.report) = (0, None);
            self.read.forget();
        }
        let report = match &mut self.report {
            Some(report) => report,
            None => {
                let begun =
                    Report::begin(self.target.clone(), self.settings.target.clone()).await?;
                self.report.insert(begun)
            }
        };
        let mut unread = self.read.read(&self.cluster, selection, definitions, report).await?;
        // What was known before may be missing in the hub.
        report.write(self.read.known(), &mut unread).await?;
        report.mark_gone(self.read.known(), &mut unread).await?;
        report.tell(&unread).await?;
        let written = report.take_written();
        if written > 0 {
            info!(written, "told the hub of types");
            self.awaited = Instant::now() + AWAITED;
        }
        self.left = unread.left;
        Ok(self.left)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn definitions_count_when_all_are_listed() {
        let object = |name: &str, version: &str| -> PartialObjectMeta<DynamicObject> {
            serde_json::from_value(json!({
                "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                "metadata": {"name": name, "resourceVersion": version},
            }))
            .unwrap()
        };
        let mut seen = Definitions::default();
        assert!(!seen.see(Event::Init));
        assert!(!seen.see(Event::InitApply(object("a", "1"))));
        assert_eq!(seen.known, None);
        assert!(seen.see(Event::InitDone));
        assert!(seen.see(Event::Apply(object("b", "2"))));
        // A list that says the same is no news, and none that has begun takes anything away.
        assert!(!seen.see(Event::Init));
        assert_eq!(seen.known.as_ref().unwrap().len(), 2);
        seen.see(Event::InitApply(object("a", "1")));
        seen.see(Event::InitApply(object("b", "2")));
        assert!(!seen.see(Event::InitDone));
        assert!(seen.see(Event::Delete(object("a", "1"))));
        assert!(!seen.see(Event::Delete(object("a", "1"))));
    }
}
