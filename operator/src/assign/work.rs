//! One object, or one namespace, at a time: read live, decide, patch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use contract::{INTENT_LABEL, parse_global_name};
use crds::LabelSelector;
use serde_json::Value;

use super::Assigner;
use super::index::{Item, NamespaceKey, ObjectKey};
use super::plan::{Around, Plan, Subject, Targets as _, global, plan, problem_around};
use super::standing::{View, selects, serves};
use crate::api::{Api, CallError};
use crate::events::{Regarding, Weight};
use crate::marks::{Change, Marks, patch};
use crate::queue::Done;
use crate::targets::index::{Target, path as target_path};

/// How often a patch is made anew because somebody else was faster.
const ATTEMPTS: usize = 4;

/// When an object that others keep changing is looked at again.
const BUSY: Duration = Duration::from_millis(500);

/// What the namespace of an object wants, as it was read.
enum Wish {
    Nothing,
    Intent(String),
    Deleting,
}

// === impl Wish ===

impl Wish {
    fn around(&self) -> Around<'_> {
        match self {
            Self::Nothing => Around::Nothing,
            Self::Intent(intent) => Around::Intent(intent),
            Self::Deleting => Around::Deleting,
        }
    }
}

/// The path of a LogicalCluster, in `root`.
pub(super) fn logical_cluster(name: &str) -> String {
    format!("/apis/core.kcp.io/v1alpha1/logicalclusters/{name}")
}

impl Assigner {
    /// Looks at everything in a namespace that may not have marks yet.
    pub(super) async fn sweep(&self, key: &NamespaceKey) -> Done {
        let place = (key.cluster.to_string(), key.name.to_string());
        let Some(intent) = self.namespaces.lock().get(&place).cloned() else {
            return Done::Settled;
        };
        if !self.targets.is_listed() {
            // Until then nothing is known of what its label means.
            return Done::After(BUSY);
        }
        let hub = self.hub.cluster(&key.cluster);
        if let Err(error) = self.tell_namespace(&hub, key, &intent).await {
            let (cluster, namespace) = (&*key.cluster, &*key.name);
            tracing::debug!(cluster, namespace, %error, "a namespace is not told");
        }
        let types = self.types.lock().clone();
        for kind in types {
            let kind = Arc::new(kind);
            match hub.list(&kind.path(&key.name), "").await {
                Ok(objects) => {
                    for object in objects {
                        let found = ObjectKey::of(&kind, &key.cluster, &object["metadata"]);
                        found.into_iter().for_each(|key| self.queue.add(Item::Object(key)));
                    }
                }
                // The logical cluster doesn't have the type, or its objects have no namespace.
                Err(CallError::Refused { code: 404 | 405, .. }) => {}
                Err(error) => {
                    let (cluster, namespace) = (&*key.cluster, &*key.name);
                    tracing::debug!(cluster, namespace, %error, "a namespace is not looked at");
                    return Done::Failed;
                }
            }
        }
        Done::Settled
    }

    /// An Event on a namespace whose label means a SyncTarget that can take nothing from there: in it there
    /// may be nothing yet that would tell.
    async fn tell_namespace(
        &self,
        hub: &Api,
        key: &NamespaceKey,
        intent: &str,
    ) -> Result<(), CallError> {
        let resource = (String::new(), "namespaces".to_owned());
        let global = global(&key.cluster, intent);
        let view = View { targets: &self.targets, clusters: &self.clusters };
        let standing = view.standing(&global, &key.cluster, &resource);
        let problem = Some(standing).filter(|_| !intent.is_empty());
        let problem = problem.and_then(|standing| problem_around(&global, standing));
        let namespace = hub.metadata(&format!("/api/v1/namespaces/{}", key.name)).await?;
        let Some(namespace) = namespace else { return Ok(()) };
        let uid = namespace["metadata"]["uid"].as_str().unwrap_or_default();
        let Some(problem) = problem else {
            self.events.settled(&key.cluster, uid, "problem");
            return Ok(());
        };
        let regarding = Regarding {
            cluster: key.cluster.to_string(),
            api_version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            namespace: String::new(),
            name: key.name.to_string(),
            uid: uid.to_owned(),
        };
        let told = (Weight::Warning, problem.reason, problem.message.as_str());
        self.events.tell(hub, &regarding, "problem", told).await;
        Ok(())
    }

    /// Looks at one object.
    pub(super) async fn assign(&self, key: &ObjectKey) -> Done {
        for _ in 0..ATTEMPTS {
            match self.try_assign(key).await {
                Ok(()) => return Done::Settled,
                // It has changed: it is read again.
                Err(CallError::Refused { code: 409 | 422, .. }) => {}
                Err(error) => {
                    let (cluster, namespace, name) = (&*key.cluster, &*key.namespace, &*key.name);
                    tracing::debug!(cluster, namespace, name, %error, "an object is not assigned");
                    return Done::Failed;
                }
            }
        }
        Done::After(BUSY)
    }

    async fn try_assign(&self, key: &ObjectKey) -> Result<(), CallError> {
        let hub = self.hub.cluster(&key.cluster);
        let Some(object) = hub.metadata(&key.path()).await? else {
            self.objects.lock().forget(key);
            return Ok(());
        };
        let metadata = &object["metadata"];
        let marks = Marks::of(metadata);
        self.put(key, &marks);
        // Where nothing is to be taken back, the watch's word is enough.
        let mut plan = self.plan(key, &marks, &self.wish(key));
        if plan.changes.values().any(|change| *change == Change::Unassign) {
            let wish = live_wish(&hub, key).await?;
            plan = self.plan(key, &marks, &wish);
        }
        self.confirm(key, &mut plan).await?;
        if let Some(patch) = patch(metadata, &plan.changes) {
            hub.merge(&key.path(), &patch).await?;
            self.count(&plan);
        }
        self.tell(&hub, key, metadata, &plan).await;
        Ok(())
    }

    fn plan(&self, key: &ObjectKey, marks: &Marks, wish: &Wish) -> Plan {
        let subject = Subject {
            cluster: &key.cluster,
            resource: &key.kind.resource,
            name: &key.name,
            marks,
            around: wish.around(),
        };
        plan(&subject, &View { targets: &self.targets, clusters: &self.clusters })
    }

    /// What the namespace of an object wants, as far as the watch has told.
    fn wish(&self, key: &ObjectKey) -> Wish {
        let place = (key.cluster.to_string(), key.namespace.to_string());
        let intent = self.namespaces.lock().get(&place).cloned();
        intent.map_or(Wish::Nothing, Wish::Intent)
    }

    /// Before anything is released, as if its target were gone or served its logical cluster no more,
    /// both are read live.
    async fn confirm(&self, key: &ObjectKey, plan: &mut Plan) -> Result<(), CallError> {
        let released = plan.changes.iter().filter(|(_, change)| **change == Change::Release);
        let released: Vec<String> = released.map(|(global, _)| global.clone()).collect();
        for global in released {
            if self.may_hold(&global, &key.cluster).await? {
                tracing::debug!(target = global, name = &*key.name, "a target is there after all");
                plan.changes.remove(&global);
            }
        }
        Ok(())
    }

    /// Whether a SyncTarget is there and serves a logical cluster, as live reads say.
    async fn may_hold(&self, global: &str, cluster: &str) -> Result<bool, CallError> {
        let Some((owner, name)) = parse_global_name(global) else { return Ok(false) };
        let found = match self.hub.cluster(owner).get(&target_path(name)).await {
            // No logical cluster of that name can be: no target either.
            Err(CallError::Refused { code: 400, .. }) => None,
            found => found?,
        };
        let Some(found) = found else { return Ok(false) };
        // One that can't be read may be of a later release.
        let Some(target) = Target::read(owner, &found) else { return Ok(true) };
        if let Some(served) = serves(&target, cluster, |_| None) {
            return Ok(served);
        }
        let found = self.hub.cluster("root").metadata(&logical_cluster(cluster)).await?;
        let labels = found.map(|mut found| found["metadata"]["labels"].take()).unwrap_or_default();
        let labels: BTreeMap<String, String> = serde_json::from_value(labels).unwrap_or_default();
        let selected = |selector: &LabelSelector| Some(selects(selector, &labels));
        Ok(serves(&target, cluster, selected).unwrap_or(false))
    }

    fn count(&self, plan: &Plan) {
        for change in plan.changes.values() {
            let counter = match change {
                Change::Assign => 0,
                Change::Unassign => 1,
                Change::Release => 2,
            };
            self.metrics.assignments[counter].inc();
        }
    }

    /// Events about what was done, and about what a person has to do.
    async fn tell(&self, hub: &Api, key: &ObjectKey, metadata: &Value, plan: &Plan) {
        let done = plan.changes.iter().next().map(|(global, change)| done(global, *change));
        let problem = plan.problem.as_ref();
        if problem.is_none() {
            let uid = metadata["uid"].as_str().unwrap_or_default();
            self.events.settled(&key.cluster, uid, "problem");
        }
        let problem =
            problem.map(|problem| (Weight::Warning, problem.reason, problem.message.clone()));
        for (topic, told) in [("assigned", done), ("problem", problem)] {
            let Some((weight, reason, note)) = told else { continue };
            let Some(regarding) = self.regarding(hub, key, metadata).await else { return };
            self.events.tell(hub, &regarding, topic, (weight, reason, &note)).await;
        }
    }

    /// The object, as an Event names it. Its kind is learnt once for each type.
    async fn regarding(&self, hub: &Api, key: &ObjectKey, metadata: &Value) -> Option<Regarding> {
        let (group, resource) = &key.kind.resource;
        let version = &key.kind.version;
        let known = self.kinds.lock().get(&(group.clone(), resource.clone())).cloned();
        let kind = match known {
            Some(kind) => kind,
            None => {
                let object = hub.get(&key.path()).await.ok().flatten()?;
                let kind = object["kind"].as_str()?.to_owned();
                self.kinds.lock().insert((group.clone(), resource.clone()), kind.clone());
                kind
            }
        };
        let api_version =
            if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
        Some(Regarding {
            cluster: key.cluster.to_string(),
            api_version,
            kind,
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
            uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
        })
    }
}

/// What was done, for people.
fn done(global: &str, change: Change) -> (Weight, &'static str, String) {
    match change {
        Change::Assign => {
            (Weight::Normal, "Assigned", format!("assigned to the SyncTarget {global}"))
        }
        Change::Unassign => (
            Weight::Normal,
            "Unassigned",
            format!("the SyncTarget {global} is asked to remove its copy"),
        ),
        Change::Release => (
            Weight::Warning,
            "Released",
            format!(
                "the SyncTarget {global} is gone, or serves this logical cluster no more: a copy, \
                 if there is one, is left where it is"
            ),
        ),
    }
}

/// What the namespace of an object wants, as the hub has it now.
async fn live_wish(hub: &Api, key: &ObjectKey) -> Result<Wish, CallError> {
    if key.namespace.is_empty() {
        return Ok(Wish::Nothing);
    }
    let namespace = hub.metadata(&format!("/api/v1/namespaces/{}", key.namespace)).await?;
    // One that is gone takes its objects along.
    let Some(namespace) = namespace else { return Ok(Wish::Deleting) };
    let metadata = &namespace["metadata"];
    if !metadata["deletionTimestamp"].is_null() {
        return Ok(Wish::Deleting);
    }
    let intent = metadata["labels"][INTENT_LABEL].as_str();
    Ok(intent.map_or(Wish::Nothing, |intent| Wish::Intent(intent.to_owned())))
}
