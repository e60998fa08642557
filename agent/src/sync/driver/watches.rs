//! Which watches are open.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::{Side, SyncedType};
use runtime::Tasks;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::DropGuard;
use tracing::debug_span;

use crate::sync::Settings;
use crate::sync::side::Shape;
use crate::sync::watch::{Input, Source, Watch, escape, resources};

/// Kinds whose Events are the most by far; they are only followed where such objects are synced.
const NOISY: [(&str, &str); 3] =
    [("pods", "Pod"), ("replicasets", "ReplicaSet"), ("nodes", "Node")];

/// The watches of one driver. Those that are dropped end.
pub(super) struct Watches {
    open: BTreeMap<Source, Open>,
    template: Watch,
    upstream: crate::sync::Upstream,
    downstream: client::Link,
    cluster: Arc<str>,
    wildcard: bool,
    state_selector: String,
    own_selector: String,
    recovered: [Arc<watch::Sender<u64>>; 2],
    tasks: Tasks,
    inputs: mpsc::Sender<Input>,
}

struct Open {
    path: String,
    query: String,
    _end: DropGuard,
}

// === impl Watches ===

impl Watches {
    pub(super) fn new(settings: &Settings, tasks: &Tasks, inputs: mpsc::Sender<Input>) -> Self {
        let recovered = [Arc::new(watch::Sender::new(0)), Arc::new(watch::Sender::new(0))];
        let target = &settings.target;
        let global = contract::global_name(&target.cluster, &target.name);
        let template = Watch {
            source: Source::Namespaces,
            side: Side::Downstream,
            link: settings.downstream.clone(),
            path: String::new(),
            query: String::new(),
            partial: true,
            fresh: false,
            recovered: recovered[1].clone(),
            newest: Arc::default(),
            metrics: settings.metrics.clone(),
        };
        Self {
            open: BTreeMap::new(),
            template,
            upstream: settings.upstream.clone(),
            downstream: settings.downstream.clone(),
            cluster: target.cluster.clone(),
            wildcard: false,
            state_selector: format!("labelSelector={}", escape(&contract::state_label(&global))),
            own_selector: format!(
                "labelSelector={}",
                escape(&format!("{}={}", contract::SYNC_TARGET_LABEL, target.uid))
            ),
            recovered,
            tasks: tasks.clone(),
            inputs,
        }
    }

    /// Whether the hub is watched over all logical clusters. Changing it begins upstream watches anew.
    pub(super) fn set_wildcard(&mut self, wildcard: bool) {
        self.wildcard = wildcard;
    }

    /// Lets every watch of a side that pauses try again.
    pub(super) fn recovered(&self, side: Side) {
        self.recovered[super::index(side)].send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Opens what is missing and ends what is no longer wanted.
    pub(super) fn set<'t>(
        &mut self,
        types: impl Iterator<Item = &'t SyncedType>,
        upsynced: impl Iterator<Item = (&'t SyncedType, &'static str)>,
    ) {
        let types: Vec<&SyncedType> = types.collect();
        let mut wanted = Vec::with_capacity(types.len() * 2 + 3);
        let base = self.upstream.base(if self.wildcard { "*" } else { &self.cluster });
        for synced in &types {
            let path = collection(synced);
            let (own, state) = (&self.own_selector, &self.state_selector);
            let upstream = Source::Upstream(synced.resource.clone());
            wanted.push(self.watch(upstream, format!("{base}{path}"), state));
            let downstream = Source::Downstream(synced.resource.clone());
            wanted.push(self.watch(downstream, path, own));
        }
        for (synced, selector) in upsynced {
            let path = collection(synced);
            let risen = Source::Risen(synced.resource.clone());
            wanted.push(self.watch(risen, format!("{base}{path}"), &self.own_selector));
            let selector = format!("labelSelector={}", escape(selector));
            wanted.push(self.watch(Source::Born(synced.resource.clone()), path, &selector));
        }
        if !types.is_empty() {
            let namespaces = "/api/v1/namespaces".to_owned();
            wanted.push(self.watch(Source::Namespaces, namespaces, &self.own_selector));
            let is_synced = |plural: &str| types.iter().any(|t| *t.resource.resource == *plural);
            let noise = NOISY.iter().filter(|(plural, _)| !is_synced(plural));
            let noise = noise.map(|(_, kind)| format!("involvedObject.kind!={kind}"));
            let noise = noise.collect::<Vec<_>>().join(",");
            let fields = format!("fieldSelector={}", escape(&noise));
            wanted.push(self.watch(Source::Events, "/api/v1/events".to_owned(), &fields));
            if self.upstream.shape == Shape::Hub {
                let group = contract::WORKLOAD_GROUP;
                let path = format!("{base}/apis/{group}/v1alpha1/{}", contract::OBJECT_SYNCS);
                wanted.push(self.watch(Source::Records, path, &self.own_selector));
            }
        }
        let wanted: BTreeMap<Source, Watch> =
            wanted.into_iter().map(|watch| (watch.source.clone(), watch)).collect();
        self.open.retain(|source, open| {
            wanted.get(source).is_some_and(|w| w.path == open.path && w.query == open.query)
        });
        for watch in wanted.into_values() {
            if !self.open.contains_key(&watch.source) {
                self.begin(watch);
            }
        }
    }

    /// Lists that are asked for from now on show no less of the hub than this.
    pub(super) fn known(&self, newest: u64) {
        self.template.newest.store(newest, Ordering::Release);
    }

    fn watch(&self, source: Source, path: String, query: &str) -> Watch {
        let side = match source {
            Source::Upstream(_) | Source::Risen(_) | Source::Records => Side::Upstream,
            Source::Downstream(_) | Source::Born(_) | Source::Namespaces | Source::Events => {
                Side::Downstream
            }
        };
        Watch {
            side,
            link: match side {
                Side::Upstream => self.upstream.link.clone(),
                Side::Downstream => self.downstream.clone(),
            },
            path,
            query: query.to_owned(),
            partial: matches!(source, Source::Records | Source::Namespaces),
            fresh: source == Source::Events,
            recovered: self.recovered[super::index(side)].clone(),
            source,
            ..self.template.clone()
        }
    }

    fn begin(&mut self, watch: Watch) {
        let end = self.tasks.cancellation().child_token();
        let open = Open {
            path: watch.path.clone(),
            query: watch.query.clone(),
            _end: end.clone().drop_guard(),
        };
        let source = watch.source.clone();
        let namespaces = source == Source::Namespaces;
        let inputs = self.inputs.clone();
        let following = watch.run(inputs.clone());
        let stop = end.clone();
        self.tasks.spawn(debug_span!("watch", source = ?source), async move {
            stop.run_until_cancelled(following).await;
        });
        if namespaces {
            // What a namespace can hold is looked through before it is deleted.
            let downstream = self.downstream.clone();
            self.tasks.spawn(debug_span!("resources"), async move {
                end.run_until_cancelled(resources(downstream, inputs)).await;
            });
        }
        self.open.insert(source, open);
    }
}

/// The path of all objects of a type.
fn collection(synced: &SyncedType) -> String {
    let (group, version, plural) =
        (&synced.resource.group, &synced.version, &synced.resource.resource);
    if group.is_empty() {
        format!("/api/{version}/{plural}")
    } else {
        format!("/apis/{group}/{version}/{plural}")
    }
}
