//! What the steps share.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kind_tests::cargo::Profile;
use kind_tests::control_plane::Release;
use kind_tests::fleet::{Plan, Programs};
use kind_tests::{Agent, Fleet, Kubectl, PATIENCE, Run, Tool, eventually, eventually_within};
use serde_json::{Value, json};

use super::steady::Steady;
use crate::support::json as parse;

/// The logical cluster of the SyncTargets and their objects.
pub(super) const SHOP: &str = "shop";

/// What operators of this job are told: a person would not wait a minute for each look.
pub(super) const OPERATOR: [&str; 1] = ["--check-interval=5s"];

/// The fleet, and kubectl for each of its places. Fields drop in this order.
#[derive(Debug)]
pub(super) struct World {
    /// The agent that was started by hand.
    pub(super) by_hand: Option<Agent>,
    /// What ran in `east` while its control plane was upgraded.
    pub(super) upgraded: Option<Steady>,
    pub(super) fleet: Fleet,
    /// The logical cluster [`SHOP`].
    pub(super) hub: Kubectl,
    pub(super) east: Kubectl,
    pub(super) west: Kubectl,
    pub(super) programs: Programs,
    pub(super) run: Run,
}

// === impl World ===

impl World {
    /// Starts it. The control plane of `east` is of the older release.
    pub(super) fn start(run: &Run) -> Result<Self> {
        let programs = Programs::build(Profile::Dev)?;
        let clusters = [("east", Release::Older), ("west", Release::Current)];
        let plan = Plan { clusters: &clusters, operator: &OPERATOR };
        let mut fleet = Fleet::start(run, &programs, &plan)?;
        let hub = fleet.kubectl(SHOP)?;
        let physical = |fleet: &mut Fleet, index| {
            Kubectl::new(run, Tool::Kubectl, fleet.cluster(index)?.kubeconfig())
        };
        let (east, west) = (physical(&mut fleet, 0)?, physical(&mut fleet, 1)?);
        for (name, cluster) in [("node/east", &east), ("node/west", &west)] {
            eventually("the node", || cluster.ok(&["get", name]))?;
            cluster.ok(&["wait", name, "--for=condition=Ready", "--timeout=60s"])?;
        }
        let run = run.clone();
        Ok(Self { by_hand: None, upgraded: None, fleet, hub, east, west, programs, run })
    }

    /// Applies objects at the hub.
    pub(super) fn apply(&self, objects: &[Value]) -> Result<()> {
        apply(&self.hub, objects)
    }

    /// The kubeconfig of a cluster.
    pub(super) fn kubeconfig(&mut self, index: usize) -> Result<String> {
        Ok(std::fs::read_to_string(self.fleet.cluster(index)?.kubeconfig())?)
    }

    /// A SyncTarget with the kubeconfig of a cluster inline.
    pub(super) fn target(&mut self, name: &str, index: usize) -> Result<Value> {
        Ok(sync_target(name, &self.kubeconfig(index)?))
    }

    /// Waits for a condition of a SyncTarget to be `STATUS/REASON`.
    pub(super) fn condition(&self, target: &str, type_: &str, expect: &str) -> Result<()> {
        condition(&self.hub, target, type_, expect)
    }

    /// Waits for a SyncTarget to be ready.
    pub(super) fn ready(&self, target: &str) -> Result<()> {
        ready(&self.hub, target)
    }

    /// What runs where, for people who read of a failure.
    pub(super) fn picture(&self) -> String {
        let pods = ["get", "pods", "--all-namespaces", "--no-headers"];
        let path = "--output=jsonpath={range .items[*]}{.metadata.name}: \
            {range .status.conditions[*]}{.type}={.status}/{.reason} {end}{\"\\n\"}{end}";
        let hub = ["get", "synctargets", path];
        let looks = [
            ("hub", &self.hub, &hub[..]),
            ("east", &self.east, &pods),
            ("west", &self.west, &pods),
        ];
        let look = |(name, kubectl, arguments): (&str, &Kubectl, &[&str])| {
            let said = kubectl.ok(arguments).unwrap_or_else(|error| format!("{error:#}"));
            format!("{name} has:\n{}\n", said.trim_end())
        };
        looks.map(look).concat()
    }
}

/// Applies objects.
pub(super) fn apply(kubectl: &Kubectl, objects: &[Value]) -> Result<()> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    kubectl.ok_with_input(&["apply", "-f", "-"], &list.to_string()).map(|_| ())
}

/// Waits for a condition of a SyncTarget in a logical cluster to be `STATUS/REASON`.
pub(super) fn condition(hub: &Kubectl, target: &str, type_: &str, expect: &str) -> Result<()> {
    let path = condition_path(type_);
    eventually(&format!("{type_}={expect} of {target}"), || {
        let is = hub.ok(&["get", "synctarget", target, &path])?;
        ensure!(is == expect, "{type_} is {is}");
        Ok(())
    })
}

/// The flag by which kubectl prints `STATUS/REASON` of a condition.
pub(super) fn condition_path(type_: &str) -> String {
    let field = |name: &str| format!("{{.status.conditions[?(@.type==\"{type_}\")].{name}}}");
    format!("--output=jsonpath={}/{}", field("status"), field("reason"))
}

/// Waits for a SyncTarget in a logical cluster to be ready.
pub(super) fn ready(hub: &Kubectl, target: &str) -> Result<()> {
    let target = format!("synctarget/{target}");
    hub.ok(&["wait", &target, "--for=condition=Ready", "--timeout=110s"]).map(|_| ())
}

/// Waits until an Event of this reason is told about an object.
pub(super) fn told(hub: &Kubectl, reason: &str, name: &str) -> Result<()> {
    eventually(&format!("{reason} to be told about {name}"), || {
        let events = parse(&hub.ok(&["get", "events", "--output=json"])?)?;
        let events = events["items"].as_array().context("a list")?;
        let is = |event: &&Value| event["involvedObject"]["name"] == name;
        let about: Vec<&Value> = events.iter().filter(is).map(|event| &event["reason"]).collect();
        ensure!(about.iter().any(|told| **told == reason), "{about:?}");
        Ok(())
    })
}

/// A SyncTarget with this kubeconfig.
pub(super) fn sync_target(name: &str, kubeconfig: &str) -> Value {
    json!({
        "apiVersion": "workload.kcp.io/v1alpha1",
        "kind": "SyncTarget",
        "metadata": {"name": name},
        "spec": {"kubeconfig": kubeconfig},
    })
}

/// Labels by which an object belongs to a SyncTarget.
pub(super) fn belongs_to(target: &str) -> Value {
    json!({contract::INTENT_LABEL: target})
}

/// Labels by which an object belongs to `east`.
pub(super) fn for_east() -> Value {
    belongs_to("east")
}

/// The application: a ConfigMap, a Deployment of two pods and a Service, with these labels.
pub(super) fn application(name: &str, namespace: &str, labels: &Value) -> [Value; 3] {
    let metadata = json!({"name": name, "namespace": namespace, "labels": labels});
    let pods = json!({"app": name});
    let key = json!({"configMapKeyRef": {"name": name, "key": "greeting"}});
    [
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {"greeting": "hello"},
        }),
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": pods},
                "template": {
                    "metadata": {"labels": pods},
                    "spec": {"terminationGracePeriodSeconds": 1, "containers": [{
                        "name": "web",
                        "image": "sample:dev",
                        "args": ["serve"],
                        "env": [{"name": "GREETING", "valueFrom": key}],
                        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
                    }]},
                },
            },
        }),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"selector": pods, "ports": [{"port": 80, "targetPort": 8080}]},
        }),
    ]
}

/// Waits until `arguments` print exactly `expect`.
pub(super) fn prints(kubectl: &Kubectl, arguments: &[&str], expect: &str) -> Result<()> {
    prints_within(PATIENCE, kubectl, arguments, expect)
}

/// The same with another patience.
pub(super) fn prints_within(
    patience: Duration,
    kubectl: &Kubectl,
    arguments: &[&str],
    expect: &str,
) -> Result<()> {
    eventually_within(patience, &format!("{} to print {expect:?}", arguments.join(" ")), || {
        let said = kubectl.ok(arguments)?;
        ensure!(said == expect, "it printed {said:?}");
        Ok(())
    })
}

/// Waits until something is not found.
pub(super) fn absent(kubectl: &Kubectl, what: &[&str]) -> Result<()> {
    let arguments = [&["get", "--output=name", "--ignore-not-found"], what].concat();
    prints(kubectl, &arguments, "")
}

/// The ready replicas of a Deployment.
pub(super) const READY: &str = "--output=jsonpath={.status.readyReplicas}";

/// Waits until the hub serves Deployments, and explains them.
pub(super) fn serves_deployments(hub: &Kubectl) -> Result<()> {
    eventually("the types", || {
        let types = hub.ok(&["api-resources", "--api-group=apps"])?;
        ensure!(types.contains("deployments"), "{types}");
        Ok(())
    })?;
    let explained = hub.ok(&["explain", "deployment.spec"])?;
    ensure!(explained.contains("replicas"), "{explained}");
    Ok(())
}

/// The hub refuses a Deployment, since it knows no such type.
pub(super) fn knows_no_deployment(hub: &Kubectl, deployment: &Value) -> Result<()> {
    let refused = hub.run_with_input(&["create", "-f", "-"], &deployment.to_string())?;
    let expect = "no matches for kind \"Deployment\" in version \"apps/v1\"";
    ensure!(refused.stderr.contains(expect), "{}", refused.stderr);
    Ok(())
}
