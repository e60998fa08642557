//! What must not change while things break and heal.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use kind_tests::{Kubectl, eventually};
use serde_json::Value;

use crate::support::json;

/// Copies of an application, its pods, and agents, as they were.
#[derive(Debug)]
pub(super) struct Steady {
    app: &'static str,
    copies: Vec<String>,
    /// By name and UID, with how often a container was started again.
    pods: BTreeSet<String>,
}

// === impl Steady ===

impl Steady {
    /// Looks at an application of a cluster and at the agents there.
    pub(super) fn of(cluster: &Kubectl, app: &'static str) -> Result<Self> {
        Ok(Self { app, copies: uids(cluster, app)?, pods: pods(cluster, app)? })
    }

    /// Fails unless the copies are those that were there, and all pods still run that did. Others
    /// may have come.
    pub(super) fn still(&self, cluster: &Kubectl) -> Result<()> {
        self.still_copied(cluster)?;
        let now = pods(cluster, self.app)?;
        let gone: Vec<_> = self.pods.difference(&now).collect();
        ensure!(gone.is_empty(), "pods have gone, or have been started again: {gone:?}");
        Ok(())
    }

    /// Fails unless the copies are those that were there.
    pub(super) fn still_copied(&self, cluster: &Kubectl) -> Result<()> {
        let now = uids(cluster, self.app)?;
        ensure!(now == self.copies, "copies were made again: {now:?}, not {:?}", self.copies);
        Ok(())
    }
}

/// The UIDs of an application's copies: as long as they stay, nothing was deleted and made again.
pub(super) fn uids(cluster: &Kubectl, app: &str) -> Result<Vec<String>> {
    let path = "--output=jsonpath={.metadata.uid}";
    let uid = |kind| cluster.ok(&["get", &format!("{kind}/{app}"), path]);
    ["deployment", "configmap", "service"].into_iter().map(uid).collect()
}

/// The pods of an application and of agents, without those that are ending.
fn pods(cluster: &Kubectl, app: &str) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for label in [format!("app={app}"), "app.kubernetes.io/name=kcp-agent".to_owned()] {
        let selector = format!("--selector={label}");
        let all = ["get", "pods", "--all-namespaces", "--output=json", &selector];
        let list = json(&cluster.ok(&all)?)?;
        let items = list["items"].as_array().context("a list")?;
        let lives = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
        let before = found.len();
        found.extend(items.iter().filter(lives).map(|pod| {
            let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
            format!("{} {} {restarts}", pod["metadata"]["name"], pod["metadata"]["uid"])
        }));
        ensure!(found.len() > before, "there is no pod with {label}");
    }
    Ok(found)
}

/// Waits until an application answers, with what its ConfigMap said when its pods began.
pub(super) fn greets(cluster: &Kubectl, app: &str) -> Result<()> {
    eventually("the application's answer", || {
        let path = format!("/api/v1/namespaces/default/services/{app}:80/proxy/");
        let said = cluster.ok(&["get", "--raw", &path])?;
        ensure!(said.starts_with(&format!("hello from {app}-")), "{said}");
        Ok(())
    })
}

/// The agents of a cluster by `NAMESPACE/ready replicas`.
pub(super) fn agents(cluster: &Kubectl) -> Result<Vec<String>> {
    let all =
        ["get", "deployments", "--all-namespaces", "--field-selector=metadata.name=kcp-agent"];
    let path =
        "--output=jsonpath={range .items[*]}{.metadata.namespace}/{.status.readyReplicas} {end}";
    let said = cluster.ok(&[&all[..], &[path]].concat())?;
    Ok(said.split_whitespace().map(str::to_owned).collect())
}

/// The flag that leads to the namespace of the one agent of a cluster.
pub(super) fn agent_namespace(cluster: &Kubectl) -> Result<String> {
    let agents = agents(cluster)?;
    let [agent] = agents.as_slice() else { bail!("one agent, not {agents:?}") };
    let (namespace, _) = agent.split_once('/').unwrap_or((agent, ""));
    Ok(format!("--namespace={namespace}"))
}
