//! What the hub tells of SyncTargets and of the Leases of agents.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt;
use kube::core::DynamicObject;
use kube::runtime::watcher::{Config, Event};
use tokio::time::Instant;

use super::Controller;
use super::heartbeat::Renewal;
use super::index::{CLUSTER, TargetKey};
use crate::watching;

/// What stands before the UID in the name of an agent's Lease.
const LEASE_PREFIX: &str = "synctarget-";

impl Controller {
    pub(super) async fn follow_targets(self: Arc<Self>, client: kube::Client) {
        let kind = watching::resource(contract::WORKLOAD_GROUP, "v1alpha1", contract::SYNC_TARGETS);
        let mut events = pin!(watching::objects(client, &kind, Config::default()));
        let mut listed = BTreeSet::new();
        while let Some(event) = events.next().await {
            let changed = match &event {
                Event::Init => {
                    listed.clear();
                    continue;
                }
                Event::InitApply(object) => {
                    listed.extend(place(object));
                    self.targets.apply(object)
                }
                Event::Apply(object) => self.targets.apply(object),
                Event::Delete(object) => self.targets.delete(object),
                Event::InitDone => self.targets.keep(&std::mem::take(&mut listed)),
            };
            for key in changed {
                self.changed(key);
            }
        }
    }

    pub(super) async fn follow_leases(self: Arc<Self>, client: kube::Client) {
        let kind = watching::resource("coordination.k8s.io", "v1", "leases");
        let field = format!("metadata.namespace={}", contract::LEASE_NAMESPACE);
        let config = Config::default().fields(&field);
        let mut events = pin!(watching::objects(client, &kind, config));
        let mut listed = BTreeSet::new();
        while let Some(event) = events.next().await {
            let now = Instant::now();
            match &event {
                Event::Init => listed.clear(),
                Event::InitApply(object) => {
                    let Some((cluster, uid)) = lease(object) else { continue };
                    let news = self.beats.see(&cluster, &uid, &renewed(object), now);
                    self.heard(news, &cluster, &uid);
                    listed.insert((cluster, uid));
                }
                Event::Apply(object) => {
                    let Some((cluster, uid)) = lease(object) else { continue };
                    let news = self.beats.begin(&cluster, &uid, &renewed(object), now);
                    self.heard(news, &cluster, &uid);
                }
                Event::Delete(object) => {
                    let Some((cluster, uid)) = lease(object) else { continue };
                    self.beats.forget(&cluster, &uid);
                    self.heard(true, &cluster, &uid);
                }
                Event::InitDone => {
                    for (cluster, uid) in self.beats.keep(&std::mem::take(&mut listed)) {
                        self.heard(true, &cluster, &uid);
                    }
                }
            }
        }
    }

    /// The Secrets with kubeconfigs: a SyncTarget is looked at when its own has changed. Of others nothing
    /// is remembered.
    pub(super) async fn follow_secrets(self: Arc<Self>, client: kube::Client) {
        let kind = watching::resource("", "v1", "secrets");
        let mut events = pin!(watching::metadata(client, &kind, Config::default()));
        while let Some(event) = events.next().await {
            let (Event::Apply(object) | Event::InitApply(object) | Event::Delete(object)) = &event
            else {
                continue;
            };
            let metadata = &object.metadata;
            let cluster = metadata.annotations.as_ref().and_then(|all| all.get(CLUSTER));
            let (Some(cluster), Some(name)) = (cluster, &metadata.name) else { continue };
            let namespace = metadata.namespace.as_deref().unwrap_or_default();
            for target in self.targets.with_secret(cluster, namespace, name) {
                let version = metadata.resource_version.clone();
                let version = version.filter(|_| !matches!(event, Event::Delete(_)));
                let mut news = false;
                self.know(&target, |known| {
                    // Before its first turn a target has read no Secret.
                    news = known.installed.is_some() && known.secret != version;
                    known.secret = version;
                });
                if news {
                    self.installing.hurry(target);
                }
            }
        }
    }

    /// An agent has come back, or its Lease is gone: its target is looked at.
    fn heard(&self, news: bool, cluster: &str, uid: &str) {
        if !news {
            return;
        }
        let concerned = self.known.lock().keys().find(|key| &*key.uid == uid).cloned();
        if let Some(key) = concerned.filter(|key: &TargetKey| &*key.cluster == cluster) {
            self.telling.add(key.clone());
            // A token that was of use is taken away. And where the agent is, the cluster is, too.
            self.installing.hurry(key);
        }
    }
}

fn place(object: &DynamicObject) -> Option<(String, String)> {
    let cluster = object.metadata.annotations.as_ref()?.get(CLUSTER)?.clone();
    Some((cluster, object.metadata.name.clone()?))
}

/// The logical cluster and the SyncTarget's UID of an agent's Lease.
fn lease(object: &DynamicObject) -> Option<(String, String)> {
    let (cluster, name) = place(object)?;
    Some((cluster, name.strip_prefix(LEASE_PREFIX)?.to_owned()))
}

/// What changes when a Lease is renewed.
fn renewed(object: &DynamicObject) -> Renewal {
    let renewed = object.data["spec"]["renewTime"].as_str().unwrap_or_default();
    let holder = object.data["spec"]["holderIdentity"].as_str().unwrap_or_default();
    let version = object.metadata.resource_version.as_deref();
    let revision = version.and_then(|version| version.parse().ok());
    // What has none is not known to be old.
    Renewal { text: format!("{renewed} {holder}"), revision: revision.unwrap_or(u64::MAX) }
}
