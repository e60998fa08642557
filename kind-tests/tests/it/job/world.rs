//! What the steps share.

use anyhow::{Result, ensure};
use kind_tests::cargo::Profile;
use kind_tests::fleet::Programs;
use kind_tests::{Fleet, Kubectl, Run, Tool, eventually};
use serde_json::{Value, json};

/// The logical cluster of the SyncTargets and their objects.
pub(super) const SHOP: &str = "shop";

/// The fleet, and kubectl for each of its places.
#[derive(Debug)]
pub(super) struct World {
    pub(super) fleet: Fleet,
    /// The logical cluster [`SHOP`].
    pub(super) hub: Kubectl,
    pub(super) east: Kubectl,
    pub(super) west: Kubectl,
}

// === impl World ===

impl World {
    pub(super) fn start(run: &Run) -> Result<Self> {
        let programs = Programs::build(Profile::Dev)?;
        let mut fleet = Fleet::start(run, &programs, &["east", "west"])?;
        let hub = fleet.kubectl(SHOP)?;
        let physical = |fleet: &mut Fleet, index| {
            Kubectl::new(run, Tool::Kubectl, fleet.cluster(index)?.kubeconfig())
        };
        let (east, west) = (physical(&mut fleet, 0)?, physical(&mut fleet, 1)?);
        for (name, cluster) in [("node/east", &east), ("node/west", &west)] {
            eventually("the node", || cluster.ok(&["get", name]))?;
            cluster.ok(&["wait", name, "--for=condition=Ready", "--timeout=60s"])?;
        }
        Ok(Self { fleet, hub, east, west })
    }

    /// Applies objects at the hub.
    pub(super) fn apply(&self, objects: &[Value]) -> Result<()> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        self.hub.ok_with_input(&["apply", "-f", "-"], &list.to_string()).map(|_| ())
    }

    /// A SyncTarget with the kubeconfig of a cluster inline.
    pub(super) fn target(&mut self, name: &str, index: usize) -> Result<Value> {
        let kubeconfig = std::fs::read_to_string(self.fleet.cluster(index)?.kubeconfig())?;
        Ok(sync_target(name, &kubeconfig))
    }

    /// Waits for a condition of a SyncTarget to be `STATUS/REASON`.
    pub(super) fn condition(&self, target: &str, type_: &str, expect: &str) -> Result<()> {
        let path = format!(
            "--output=jsonpath={{.status.conditions[?(@.type==\"{type_}\")].status}}/{{.status.conditions[?(@.type==\"{type_}\")].reason}}"
        );
        eventually(&format!("{type_}={expect} of {target}"), || {
            let is = self.hub.ok(&["get", "synctarget", target, &path])?;
            ensure!(is == expect, "{type_} is {is}");
            Ok(())
        })
    }

    /// Waits for a SyncTarget to be ready.
    pub(super) fn ready(&self, target: &str) -> Result<()> {
        let target = format!("synctarget/{target}");
        self.hub.ok(&["wait", &target, "--for=condition=Ready", "--timeout=110s"]).map(|_| ())
    }
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

/// Labels by which an object belongs to `east`.
pub(super) fn for_east() -> Value {
    json!({"workloads.kcp.io/cluster": "east"})
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
    eventually(&format!("{} to print {expect:?}", arguments.join(" ")), || {
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
