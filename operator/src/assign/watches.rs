//! What the hub tells: SyncTargets (by way of the other controller), namespaces with an intent, the labels
//! of logical clusters, for each synced type the metadata of all objects, and for each other type those of
//! objects with an intent.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::{Config, Event};
use runtime::Tasks;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::info_span;

use super::Assigner;
use super::index::{Item, NamespaceKey, ObjectKey, TargetName, Type, latest};
use super::plan::global;
use super::standing::{Outline, accepted};
use crate::marks::Marks;
use crate::targets::index::CLUSTER;
use crate::watching;

/// What of a type is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// All objects.
    All,
    /// Those that have an intent of their own.
    Intents,
}

/// A watch of a type.
#[derive(Debug)]
struct Running {
    of: Of,
    stop: CancellationToken,
}

impl Assigner {
    /// Watches the types that SyncTargets sync, and of all others what has an intent; looks again at the
    /// objects that name a SyncTarget which has changed.
    pub(super) async fn follow_targets(self: Arc<Self>, client: kube::Client, tasks: Tasks) {
        let mut changes = self.targets.changes();
        let mut served = self.served.subscribe();
        let mut running: BTreeMap<Type, Running> = BTreeMap::new();
        loop {
            if self.targets.is_listed() {
                self.compare();
                self.watch_types(&mut running, &client, &tasks);
            }
            let changed = tokio::select! {
                changed = changes.changed() => changed,
                changed = served.changed() => changed,
            };
            if changed.is_err() {
                return;
            }
        }
    }

    /// Begins and ends watches of types.
    fn watch_types(
        self: &Arc<Self>,
        running: &mut BTreeMap<Type, Running>,
        client: &kube::Client,
        tasks: &Tasks,
    ) {
        let wanted = self.wanted();
        running.retain(|kind, running| {
            let wanted = wanted.get(kind);
            let stays = wanted == Some(&running.of);
            if !stays {
                running.stop.cancel();
            }
            if wanted.is_none() {
                self.objects.lock().keep(kind, &BTreeSet::new());
            }
            stays
        });
        for (kind, of) in wanted {
            running.entry(kind).or_insert_with_key(|kind| {
                let stop = tasks.cancellation().child_token();
                let follow = self.clone().follow_type(client.clone(), kind.clone(), of);
                let (group, resource) = &kind.resource;
                let span = info_span!("assign", group, resource);
                let stopped = stop.clone();
                drop(tasks.spawn(span, async move {
                    stopped.run_until_cancelled(follow).await;
                }));
                Running { of, stop }
            });
        }
    }

    /// Which types are to be watched, and what of each.
    fn wanted(&self) -> BTreeMap<Type, Of> {
        let synced = self.types.lock().clone();
        let resources: BTreeSet<_> = synced.iter().map(|kind| kind.resource.clone()).collect();
        let served = self.served.borrow();
        let others = served.iter().filter(|(resource, _)| !resources.contains(resource));
        let others = others.map(|(resource, version)| {
            let kind = Type { resource: resource.clone(), version: version.clone() };
            (kind, Of::Intents)
        });
        others.chain(synced.into_iter().map(|kind| (kind, Of::All))).collect()
    }

    /// Which types are synced now, and which SyncTargets have changed.
    fn compare(&self) {
        let targets = self.targets.all();
        // Several versions of a type are one watch.
        let types = latest(targets.iter().flat_map(|target| accepted(target)));
        let types = types.into_iter().map(|(resource, version)| Type { resource, version });
        *self.types.lock() = types.collect();
        let now: BTreeMap<_, _> =
            targets.iter().map(|target| (target.key.clone(), Outline::of(target))).collect();
        let before = std::mem::replace(&mut *self.outlines.lock(), now.clone());
        let changed = now.iter().filter(|(key, outline)| before.get(key) != Some(outline));
        let gone = before.keys().filter(|key| !now.contains_key(*key));
        let concerned: BTreeSet<String> =
            changed.map(|(key, _)| key.global()).chain(gone.map(|key| key.global())).collect();
        for global in concerned {
            self.look_again(&global);
        }
        // What was told before this process began is looked at, too, and taken back.
        let told = targets.iter().filter_map(|target| {
            let told = target.annotation(contract::DELETING)?;
            Some((target.key.clone(), told.to_owned()))
        });
        let told: BTreeMap<_, _> = told.collect();
        let before = std::mem::replace(&mut *self.told.lock(), told.clone());
        for (key, _) in told.iter().filter(|(key, told)| before.get(key) != Some(told)) {
            let target = TargetName { cluster: key.cluster.clone(), name: key.name.clone() };
            self.queue.add(Item::Deletions(target));
        }
    }

    /// Everything that names a SyncTarget is looked at again.
    pub(super) fn look_again(&self, target: &str) {
        for key in self.objects.lock().of_target(target) {
            self.queue.add(Item::Object(key));
        }
        let namespaces = self.namespaces.lock();
        let named =
            namespaces.iter().filter(|((cluster, _), intent)| global(cluster, intent) == target);
        for ((cluster, name), _) in named {
            let key = NamespaceKey { cluster: cluster.as_str().into(), name: name.as_str().into() };
            self.queue.add(Item::Namespace(key));
        }
    }

    async fn follow_type(self: Arc<Self>, client: kube::Client, kind: Type, of: Of) {
        let (group, resource) = &kind.resource;
        let watched = watching::resource(group, &kind.version, resource);
        let config = match of {
            Of::All => Config::default(),
            Of::Intents => Config::default().labels(contract::INTENT_LABEL),
        };
        let mut events = pin!(watching::metadata(client, &watched, config));
        let kind = Arc::new(kind);
        let mut listed = BTreeSet::new();
        while let Some(event) = events.next().await {
            match &event {
                Event::Init => listed.clear(),
                Event::InitApply(object) => {
                    listed.extend(self.see(&kind, object));
                }
                Event::Apply(object) => {
                    self.see(&kind, object);
                }
                Event::Delete(object) => {
                    let Some((key, _)) = read(&kind, object) else { continue };
                    self.objects.lock().forget(&key);
                    match of {
                        // A worker that has read it before would note it once more.
                        Of::All => self.queue.revisit(&Item::Object(key)),
                        // Most likely it has lost its intent alone: there may be copies to take back.
                        Of::Intents => self.queue.add(Item::Object(key)),
                    }
                }
                Event::InitDone => {
                    let gone = self.objects.lock().keep(&kind, &std::mem::take(&mut listed));
                    gone.into_iter().for_each(|key| self.queue.revisit(&Item::Object(key)));
                }
            }
        }
    }

    /// An object was seen. Returns its key if it has marks.
    fn see(
        &self,
        kind: &Arc<Type>,
        object: &PartialObjectMeta<DynamicObject>,
    ) -> Option<ObjectKey> {
        let (key, metadata) = read(kind, object)?;
        let marks = Marks::of(&metadata);
        let place = (key.cluster.to_string(), key.namespace.to_string());
        let around = self.namespaces.lock().contains_key(&place);
        self.put(&key, &marks);
        if around || !marks.is_empty() {
            self.queue.add(Item::Object(key.clone()));
        } else {
            // A worker that has read it before would note its marks once more.
            self.queue.revisit(&Item::Object(key.clone()));
        }
        (!marks.is_empty()).then_some(key)
    }

    /// Notes the marks of an object.
    pub(super) fn put(&self, key: &ObjectKey, marks: &Marks) {
        let concerned = self.objects.lock().put(key, marks);
        for target in concerned {
            self.queue.add(Item::Deletions(target));
        }
    }

    pub(super) async fn follow_namespaces(self: Arc<Self>, client: kube::Client) {
        let kind = watching::resource("", "v1", "namespaces");
        let config = Config::default().labels(contract::INTENT_LABEL);
        let mut events = pin!(watching::metadata(client, &kind, config));
        let mut listed = BTreeSet::new();
        while let Some(event) = events.next().await {
            match &event {
                Event::Init => listed.clear(),
                Event::InitApply(object) | Event::Apply(object) => {
                    let Some((place, intent)) = intent(object) else { continue };
                    if matches!(event, Event::InitApply(_)) {
                        listed.insert(place.clone());
                    }
                    let before = self.namespaces.lock().insert(place.clone(), intent.clone());
                    if before != Some(intent) {
                        self.turned(&place);
                    }
                }
                Event::Delete(object) => {
                    let Some((place, _)) = intent(object) else { continue };
                    self.namespaces.lock().remove(&place);
                    self.turned(&place);
                }
                Event::InitDone => {
                    let listed = std::mem::take(&mut listed);
                    let mut gone = Vec::new();
                    self.namespaces.lock().retain(|place, _| {
                        let stays = listed.contains(place);
                        if !stays {
                            gone.push(place.clone());
                        }
                        stays
                    });
                    for place in gone {
                        self.turned(&place);
                    }
                }
            }
        }
    }

    /// What a namespace wants has changed: everything in it is looked at.
    fn turned(&self, (cluster, name): &(String, String)) {
        let key = NamespaceKey { cluster: cluster.as_str().into(), name: name.as_str().into() };
        for key in self.objects.lock().of_namespace(&key) {
            self.queue.add(Item::Object(key));
        }
        self.queue.add(Item::Namespace(key));
    }

    /// Everything that names a SyncTarget which selects logical clusters is looked at again.
    fn selecting_again(&self) {
        for target in self.targets.all() {
            let allowed = target.spec.allowed_clusters.as_ref();
            if allowed.is_some_and(|allowed| allowed.selector.is_some()) {
                self.look_again(&target.key.global());
            }
        }
    }

    pub(super) async fn follow_clusters(self: Arc<Self>, client: kube::Client) {
        let kind = watching::resource("core.kcp.io", "v1alpha1", "logicalclusters");
        let mut events = pin!(watching::metadata(client, &kind, Config::default()));
        let mut listed = BTreeSet::new();
        while let Some(event) = events.next().await {
            let (object, there) = match &event {
                Event::Init => {
                    listed.clear();
                    continue;
                }
                Event::InitDone => {
                    self.clusters.keep(&std::mem::take(&mut listed));
                    // What could not be decided before can be now.
                    self.selecting_again();
                    continue;
                }
                Event::InitApply(object) | Event::Apply(object) => (object, true),
                Event::Delete(object) => (object, false),
            };
            let Some(name) = object.metadata.name.clone() else { continue };
            let labels = object.metadata.labels.clone().filter(|_| there).unwrap_or_default();
            if self.clusters.put(&name, &labels) && matches!(event, Event::Apply(_)) {
                self.selecting_again();
            }
            if there {
                listed.insert(name);
            }
        }
    }
}

fn read(kind: &Arc<Type>, object: &PartialObjectMeta<DynamicObject>) -> Option<(ObjectKey, Value)> {
    let cluster = object.metadata.annotations.as_ref()?.get(CLUSTER)?;
    let metadata = serde_json::to_value(&object.metadata).ok()?;
    Some((ObjectKey::of(kind, cluster, &metadata)?, metadata))
}

/// The logical cluster, the name and the intent of a namespace.
fn intent(object: &PartialObjectMeta<DynamicObject>) -> Option<((String, String), String)> {
    let metadata = &object.metadata;
    let cluster = metadata.annotations.as_ref()?.get(CLUSTER)?.clone();
    let intent = metadata.labels.as_ref().and_then(|labels| labels.get(contract::INTENT_LABEL));
    Some(((cluster, metadata.name.clone()?), intent.cloned().unwrap_or_default()))
}
