//! Physical clusters that are wiped or cut off while objects run on them: nothing is
//! deleted that should stay, what goes on is told, and afterwards all is as it should be.

use anyhow::{Result, ensure};
use kind_tests::cable::Condition;
use kind_tests::deletions::Gone;
use kind_tests::{Deletions, Run, eventually, scenario};
use serde_json::{Value, json};

use crate::site::{self, Kind, Site, TARGET, condition};
use crate::support::json as parse;

/// What is synced where other types play no part.
const RESOURCES: [&str; 3] = ["configmaps", "services", "deployments.apps"];

/// What is watched for deletions.
const COLLECTIONS: [&str; 3] =
    ["/api/v1/configmaps", "/api/v1/services", "/apis/apps/v1/deployments"];

/// The annotation by which a person confirms which cluster is meant.
const CLUSTER_UID: &str = "workload.kcp.io/cluster-uid";

/// An application: a ConfigMap, a Service and a Deployment, for the cluster.
fn application(value: &str) -> Vec<Value> {
    let metadata = json!({"name": "web", "labels": {contract::INTENT_LABEL: TARGET}});
    let labels = json!({"app": "web"});
    let container =
        json!({"name": "main", "image": "sample:dev", "env": [{"name": "V", "value": value}]});
    vec![
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": value},
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"selector": labels, "ports": [{"port": 80}]},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {
                "replicas": 2, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        }),
    ]
}

/// Waits until the application has come down as it was applied.
fn runs(site: &Site, value: &str) -> Result<()> {
    eventually(&format!("the application with {value}"), || {
        let config = site.down.ok(&["get", "configmap/web", "--output=jsonpath={.data.v}"])?;
        let path = "--output=jsonpath={.spec.template.spec.containers[0].env[0].value}";
        let deployment = site.down.ok(&["get", "deployment/web", path])?;
        site.down.ok(&["get", "service/web"])?;
        ensure!(config == value && deployment == value, "it is {config}, {deployment}");
        Ok(())
    })
}

/// Starts to watch for deletions on both sides.
fn deletions(site: &Site) -> Result<[Deletions; 2]> {
    let at_the_hub = COLLECTIONS.map(|path| format!("/clusters/infra{path}"));
    let at_the_hub = at_the_hub.each_ref().map(String::as_str);
    Ok([
        Deletions::watch(&site.hub.kubeconfig(), &at_the_hub)?,
        Deletions::watch(site.plane.kubeconfig(), &COLLECTIONS)?,
    ])
}

/// Fails if something of the application has gone.
fn none_of_ours(gone: &[Gone]) -> Result<()> {
    let ours: Vec<String> =
        gone.iter().filter(|gone| gone.metadata["name"] == "web").map(Gone::name).collect();
    ensure!(ours.is_empty(), "deleted: {}", ours.join(", "));
    Ok(())
}

fn uids(site: &Site) -> Result<String> {
    let all = ["get", "configmap/web", "service/web", "deployment/web"];
    site.up.ok(&[&all[..], &["--output=jsonpath={.items[*].metadata.uid}"]].concat())
}

fn wiped(run: &Run) -> Result<()> {
    let mut site = Site::start(run, Kind { resources: &RESOURCES, ..Kind::default() })?;
    site.apply(&application("one"))?;
    runs(&site, "one")?;
    let (before, [at_the_hub, _]) = (uids(&site)?, deletions(&site)?);
    // The agent's pod goes with its cluster.
    site.agent.process().kill()?;
    site.plane.wipe(run)?;
    let told = site.says("Installed", "ClusterIdentityChanged")?;
    site.says("Ready", "ClusterIdentityChanged")?;
    let uid =
        site.down.ok(&["get", "namespace/kube-system", "--output=jsonpath={.metadata.uid}"])?;
    ensure!(told.contains(&uid), "{told}");
    // Objects can be changed meanwhile; nothing is put into a cluster that nobody has confirmed.
    site.apply(&application("two"))?;
    let namespaces = site.down.ok(&["get", "namespaces", "--output=name"])?;
    ensure!(!namespaces.contains("kcp-agent"), "{namespaces}");
    site.down.fails(&["get", "configmap/web"])?;
    ensure!(uids(&site)? == before, "objects of the hub were made again");
    site.says("Heartbeat", "LeaseExpired")?;

    let confirmed = format!("{CLUSTER_UID}={uid}");
    site.up.ok(&["annotate", "--overwrite", "synctarget", TARGET, &confirmed])?;
    site.install_agent("agent-again")?;
    site.says("Installed", "True")?;
    site.says("Ready", "True")?;
    runs(&site, "two")?;
    ensure!(uids(&site)? == before, "objects of the hub were made again");
    none_of_ours(&at_the_hub.finish()?)?;
    site.agent.process().check_running()?;
    site.operator.terminate()?;
    site.hub.terminate()
}

#[test]
fn a_cluster_is_wiped_and_made_again() {
    scenario("wiped_and_made_again", &site::NEEDS, wiped);
}

/// Links that are cut for as long as it takes to be told: first the agent's to the hub, then its link
/// to the cluster.
fn cut_off(run: &Run) -> Result<()> {
    let mut site = Site::start(run, Kind { resources: &RESOURCES, ..Kind::default() })?;
    site.apply(&application("one"))?;
    runs(&site, "one")?;
    let watched = deletions(&site)?;
    site.cables.agent_to_hub.set(Condition::Silent);
    site.says("Ready", "LeaseExpired")?;
    // Both sides change while neither hears of the other.
    site.apply(&application("two"))?;
    let status = json!({"status": {"replicas": 2, "readyReplicas": 1}}).to_string();
    let patch = ["--subresource=status", "--type=merge", "--patch", &status];
    site.down.ok(&[&["patch", "deployment/web"][..], &patch].concat())?;
    site.cables.agent_to_hub.set(Condition::Whole);
    site.says("Ready", "True")?;
    runs(&site, "two")?;
    eventually("the status", || {
        let object = parse(&site.up.ok(&["get", "deployment/web", "--output=json"])?)?;
        ensure!(object["status"]["readyReplicas"] == 1, "{}", object["status"]);
        Ok(())
    })?;

    site.cables.agent_to_cluster.set(Condition::Silent);
    site.says("Ready", "ClusterUnreachable")?;
    let target = site.target()?;
    ensure!(condition(&target, "Heartbeat")?["status"] == "True", "{target}");
    site.apply(&application("three"))?;
    site.cables.agent_to_cluster.set(Condition::Whole);
    site.says("Ready", "True")?;
    runs(&site, "three")?;
    for side in watched {
        none_of_ours(&side.finish()?)?;
    }
    site.agent.process().check_running()?;
    site.operator.terminate()?;
    site.hub.terminate()
}

#[test]
fn links_are_cut_and_mended() {
    scenario("links_are_cut", &site::NEEDS, cut_off);
}
