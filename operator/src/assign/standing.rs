//! What is known of a SyncTarget, as far as it decides where objects go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use contract::parse_global_name;
use crds::{ConditionStatus, LabelSelector, RequirementOperator, SyncedState};
use parking_lot::RwLock;

use super::index::Type;
use super::plan::{GroupResource, Standing, Targets as Standings};
use crate::targets::index::{Target, Targets};

/// The labels of logical clusters; of those that have some.
#[derive(Debug, Default)]
pub(crate) struct LogicalClusters {
    labels: RwLock<BTreeMap<String, BTreeMap<String, String>>>,
    /// Whether all have been listed: before, nothing follows from what is not there.
    listed: AtomicBool,
}

/// What of a SyncTarget decides about objects: with a change of it they are looked at again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outline {
    deleting: bool,
    allowed: Option<crds::AllowedClusters>,
    types: BTreeSet<GroupResource>,
}

/// SyncTargets and logical clusters as they are known now.
pub(crate) struct View<'v> {
    pub(crate) targets: &'v Targets,
    pub(crate) clusters: &'v LogicalClusters,
}

// === impl LogicalClusters ===

impl LogicalClusters {
    /// A logical cluster has these labels. Returns whether it had others before.
    pub(crate) fn put(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        let mut all = self.labels.write();
        let before = if labels.is_empty() {
            all.remove(name)
        } else {
            all.insert(name.to_owned(), labels.clone())
        };
        before.unwrap_or_default() != *labels
    }

    /// There are no logical clusters with labels but these.
    pub(crate) fn keep(&self, listed: &BTreeSet<String>) {
        self.labels.write().retain(|name, _| listed.contains(name));
        self.listed.store(true, Ordering::Release);
    }

    /// Whether a selector selects a logical cluster; `None` if it isn't known.
    fn matches(&self, name: &str, selector: &LabelSelector) -> Option<bool> {
        if !self.listed.load(Ordering::Acquire) {
            return None;
        }
        let all = self.labels.read();
        let none = BTreeMap::new();
        Some(selects(selector, all.get(name).unwrap_or(&none)))
    }
}

/// Whether a SyncTarget serves a logical cluster, with what tells whether a selector selects that one;
/// `None` if that isn't known.
pub(crate) fn serves(
    target: &Target,
    cluster: &str,
    selected: impl FnOnce(&LabelSelector) -> Option<bool>,
) -> Option<bool> {
    if &*target.key.cluster == cluster {
        return Some(true);
    }
    let Some(allowed) = &target.spec.allowed_clusters else { return Some(false) };
    if allowed.names.iter().any(|name| name == cluster) {
        return Some(true);
    }
    allowed.selector.as_ref().map_or(Some(false), selected)
}

/// Whether a selector selects these labels.
pub(crate) fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let equal = selector.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value));
    equal
        && selector.match_expressions.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            let within = value.is_some_and(|value| requirement.values.contains(value));
            match requirement.operator {
                RequirementOperator::In => within,
                RequirementOperator::NotIn => !within,
                RequirementOperator::Exists => value.is_some(),
                RequirementOperator::DoesNotExist => value.is_none(),
            }
        })
}

// === impl Outline ===

impl Outline {
    pub(crate) fn of(target: &Target) -> Self {
        Self {
            deleting: target.is_deleting(),
            allowed: target.spec.allowed_clusters.clone(),
            types: accepted(target).map(|kind| kind.resource).collect(),
        }
    }
}

/// The types that a SyncTarget syncs.
pub(crate) fn accepted(target: &Target) -> impl Iterator<Item = Type> {
    let accepted = target.status.synced_resources.iter();
    accepted.filter(|synced| synced.state == SyncedState::Accepted).filter_map(|synced| {
        let latest = synced.versions.iter().min_by(|a, b| machinery::version::compare(a, b))?;
        Some(Type {
            resource: (synced.group.clone(), synced.resource.clone()),
            version: latest.clone(),
        })
    })
}

// === impl View ===

impl Standings for View<'_> {
    fn standing(&self, global: &str, cluster: &str, resource: &GroupResource) -> Standing {
        let Some((owner, name)) = parse_global_name(global) else { return Standing::Gone };
        let Some(target) = self.targets.named(owner, name) else {
            let known = self.targets.is_listed() && !self.targets.has(owner, name);
            return if known { Standing::Gone } else { Standing::Unknown };
        };
        if target.is_deleting() {
            return Standing::Deleting;
        }
        let selected = |selector: &LabelSelector| self.clusters.matches(cluster, selector);
        match serves(&target, cluster, selected) {
            Some(true) => {}
            Some(false) => return Standing::NotAllowed,
            None => return Standing::Unknown,
        }
        if !accepted(&target).any(|kind| kind.resource == *resource) {
            return Standing::OtherTypes;
        }
        let ready = target.status.conditions.iter().any(|condition| {
            condition.type_ == "Ready" && condition.status == ConditionStatus::True
        });
        if ready { Standing::Fit } else { Standing::NotReady }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::DynamicObject;
    use serde_json::{Value, json};

    use super::*;

    fn targets(cases: &[(&str, &str, Value, Value)]) -> Targets {
        let targets = Targets::default();
        for (cluster, name, spec, more) in cases {
            let mut object = json!({
                "apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
                "metadata": {"name": name, "uid": name, "annotations": {"kcp.io/cluster": cluster}},
                "spec": spec,
                "status": {
                    "conditions": [{
                        "type": "Ready", "status": "True", "reason": "Ready", "message": "",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }],
                    "syncedResources": [
                        {"group": "apps", "resource": "deployments", "versions": ["v1beta1", "v1"],
                         "state": "Accepted"},
                        {"resource": "services", "versions": ["v1"], "state": "Pending"},
                    ],
                },
            });
            if let Some(more) = more.as_object() {
                for (pointer, value) in more {
                    let (parent, field) = pointer.rsplit_once('/').unwrap();
                    object.pointer_mut(parent).unwrap()[field] = value.clone();
                }
            }
            let object: DynamicObject = serde_json::from_value(object).unwrap();
            targets.apply(&object);
        }
        targets
    }

    #[test]
    fn standings() {
        let clusters = LogicalClusters::default();
        assert!(clusters.put("blue", &BTreeMap::from([("team".to_owned(), "blue".to_owned())])));
        let hashed = json!({
            "namespaceMapping": "Hashed",
            "allowedClusters": {"names": ["red"], "selector": {"matchLabels": {"team": "blue"}}},
        });
        let targets = targets(&[
            ("infra", "east", hashed, Value::Null),
            ("infra", "own", json!({}), Value::Null),
            (
                "infra",
                "going",
                json!({}),
                json!({"/metadata/deletionTimestamp": "2026-01-01T00:00:00Z"}),
            ),
            ("infra", "down", json!({}), json!({"/status/conditions/0/status": "Unknown"})),
            ("infra", "odd", json!({"mode": "Odd"}), Value::Null),
        ]);
        let view = View { targets: &targets, clusters: &clusters };
        // Before logical clusters are listed, nobody is known not to be selected.
        let apps = ("apps".to_owned(), "deployments".to_owned());
        for (cluster, expect) in
            [("infra", Standing::Fit), ("red", Standing::Fit), ("green", Standing::Unknown)]
        {
            assert_eq!(view.standing("infra.east", cluster, &apps), expect, "{cluster}");
        }
        clusters.keep(&BTreeSet::from(["blue".to_owned()]));
        let check = |global: &str, cluster: &str, resource: (&str, &str), expect: Standing| {
            let resource = (resource.0.to_owned(), resource.1.to_owned());
            assert_eq!(view.standing(global, cluster, &resource), expect, "{global} {cluster}");
        };
        let apps = ("apps", "deployments");
        for (cluster, expect) in [
            ("infra", Standing::Fit),
            ("red", Standing::Fit),
            ("blue", Standing::Fit),
            ("green", Standing::NotAllowed),
        ] {
            check("infra.east", cluster, apps, expect);
        }
        check("infra.own", "red", apps, Standing::NotAllowed);
        check("infra.own", "infra", ("", "services"), Standing::OtherTypes);
        check("infra.own", "infra", ("x", "deployments"), Standing::OtherTypes);
        check("infra.going", "infra", apps, Standing::Deleting);
        check("infra.down", "infra", apps, Standing::NotReady);
        check("infra.none", "infra", apps, Standing::Gone);
        check("nonsense", "infra", apps, Standing::Gone);
        check("infra.odd", "infra", apps, Standing::Unknown);
        let kinds: Vec<Type> = accepted(&targets.named("infra", "own").unwrap()).collect();
        assert_eq!(kinds.len(), 1);
        assert_eq!(kinds[0].version, "v1");
        let unlisted = Targets::default();
        let view = View { targets: &unlisted, clusters: &clusters };
        let apps = ("apps".to_owned(), "deployments".to_owned());
        assert_eq!(view.standing("a.b", "a", &apps), Standing::Unknown, "before all are listed");
    }

    #[test]
    fn selectors() {
        let labels = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        let check = |selector: Value, expect: bool| {
            let selector: LabelSelector = serde_json::from_value(selector).unwrap();
            assert_eq!(selects(&selector, &labels), expect, "{selector:?}");
        };
        let one = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        check(json!({}), true);
        check(json!({"matchLabels": {"a": "1"}}), true);
        check(json!({"matchLabels": {"a": "2"}}), false);
        check(one("a", "In", &["1", "2"]), true);
        check(one("b", "In", &["1"]), false);
        check(one("a", "NotIn", &["1"]), false);
        check(one("b", "NotIn", &["1"]), true);
        check(one("a", "Exists", &[]), true);
        check(one("a", "DoesNotExist", &[]), false);
    }
}
