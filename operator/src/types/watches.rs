//! What the hub tells, over all logical clusters.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use contract::{
    API_RESOURCE_IMPORTS, APIRESOURCE_GROUP, NEGOTIATED_API_RESOURCES, SYNC_TARGETS, WORKLOAD_GROUP,
};
use futures::StreamExt;
use futures::stream::{BoxStream, select_all};
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::{Config, Event};
use serde_json::Value;
use tracing::info;

use super::entries::Place;
use super::index::Kind;
use super::{Item, TypeKey, TypesController};
use crate::targets::index::CLUSTER;
use crate::watching;

/// The kinds that are kept, with their groups and resources.
const KINDS: [(Kind, &str, &str); 4] = [
    (Kind::Target, WORKLOAD_GROUP, SYNC_TARGETS),
    (Kind::Import, APIRESOURCE_GROUP, API_RESOURCE_IMPORTS),
    (Kind::Negotiated, APIRESOURCE_GROUP, NEGOTIATED_API_RESOURCES),
    (Kind::Cluster, "core.kcp.io", "logicalclusters"),
];

/// What a watch shows.
enum Seen {
    Kept(Kind, Event<DynamicObject>),
    /// A definition, of which only the name matters.
    Definition(Event<PartialObjectMeta<DynamicObject>>),
}

/// What was listed so far.
#[derive(Default)]
struct Listing {
    listed: [BTreeSet<Place>; KINDS.len()],
    done: [bool; KINDS.len()],
    /// What is to be looked at as soon as everything is known: decided on a part of the imports, a type
    /// would be another.
    held: BTreeSet<Item>,
}

// === impl TypesController ===

impl TypesController {
    /// Follows all watches. `client` leads to all logical clusters.
    pub(super) async fn follow(self: Arc<Self>, client: kube::Client) {
        let mut all: Vec<BoxStream<'static, Seen>> = Vec::new();
        for (kind, group, resource) in KINDS {
            let watched = watching::resource(group, "v1alpha1", resource);
            let events = watching::objects(client.clone(), &watched, Config::default());
            all.push(events.map(move |event| Seen::Kept(kind, event)).boxed());
        }
        let definitions =
            watching::resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        let definitions = watching::metadata(client, &definitions, Config::default());
        all.push(definitions.map(Seen::Definition).boxed());
        let mut all = pin!(select_all(all));
        let mut listing = Listing::default();
        while let Some(seen) = all.next().await {
            let concerned = match seen {
                Seen::Kept(kind, event) => self.kept(kind, event, &mut listing),
                Seen::Definition(event) => self.definition(&event),
            };
            if listing.done.iter().all(|done| *done) {
                self.listed.store(true, Ordering::Release);
                if !listing.held.is_empty() {
                    info!(items = listing.held.len(), "types and targets are known");
                    self.add(std::mem::take(&mut listing.held));
                }
                self.add(concerned);
            } else {
                listing.held.extend(concerned);
            }
        }
    }

    fn kept(
        &self,
        kind: Kind,
        event: Event<DynamicObject>,
        listing: &mut Listing,
    ) -> BTreeSet<Item> {
        let at = KINDS.iter().position(|(known, ..)| *known == kind).unwrap_or_default();
        let mut index = self.index.lock();
        match event {
            Event::Init => {
                listing.listed.get_mut(at).map(BTreeSet::clear);
                BTreeSet::new()
            }
            Event::InitApply(object) => {
                let Some((place, value)) = parts(&object) else { return BTreeSet::new() };
                if let Some(listed) = listing.listed.get_mut(at) {
                    listed.insert(place.clone());
                }
                index.apply(kind, place, &value)
            }
            Event::InitDone => {
                if let Some(done) = listing.done.get_mut(at) {
                    *done = true;
                }
                let listed = listing.listed.get_mut(at).map(std::mem::take);
                index.keep(kind, &listed.unwrap_or_default())
            }
            Event::Apply(object) => match parts(&object) {
                Some((place, value)) => index.apply(kind, place, &value),
                None => BTreeSet::new(),
            },
            Event::Delete(object) => match parts(&object) {
                Some((place, _)) => index.delete(kind, &place),
                None => BTreeSet::new(),
            },
        }
    }

    /// Definitions that nobody imports are of no interest, and nothing is kept of any.
    fn definition(&self, event: &Event<PartialObjectMeta<DynamicObject>>) -> BTreeSet<Item> {
        let (Event::Apply(object) | Event::InitApply(object) | Event::Delete(object)) = event
        else {
            return BTreeSet::new();
        };
        let annotations = object.metadata.annotations.as_ref();
        let Some(cluster) = annotations.and_then(|all| all.get(CLUSTER)) else {
            return BTreeSet::new();
        };
        let name = object.metadata.name.as_deref().unwrap_or_default();
        if !name.contains('.') {
            return BTreeSet::new();
        }
        let (group, plural) = contract::parse_type_name(name);
        let (cluster, group, plural) = (cluster.clone(), group.to_owned(), plural.to_owned());
        let key = TypeKey { cluster, group, plural };
        let concerns = self.index.lock().concerns(&key);
        concerns.then_some(Item::Type(key)).into_iter().collect()
    }
}

fn parts(object: &DynamicObject) -> Option<(Place, Value)> {
    let cluster = object.metadata.annotations.as_ref()?.get(CLUSTER)?.clone();
    let name = object.metadata.name.clone()?;
    Some(((cluster, name), serde_json::to_value(object).ok()?))
}
