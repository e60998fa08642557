//! The whole job: two physical clusters join, an application is applied once and runs in one of
//! them, and its status is told where it was applied.

use std::path::{Path, PathBuf};

use anyhow::Result;
use kind_tests::{Fleet, Kubectl, Run, Tool};

use super::shell::{Shell, explain};

/// The names of the physical clusters, as their SyncTargets.
pub(super) const CLUSTERS: [&str; 2] = ["east", "west"];

/// The logical cluster of the application and of the SyncTargets.
pub(super) const LOGICAL_CLUSTER: &str = "shop";

/// Where the files are that are applied.
fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("demo")
}

/// Does it, and shows every command with its output.
pub(super) fn show(run: &Run, fleet: &mut Fleet) -> Result<()> {
    let url = fleet.hub().cluster_url(LOGICAL_CLUSTER);
    let hub = Shell::new(fleet.kubectl(LOGICAL_CLUSTER)?, &format!("--server={url}"));
    let mut physical = Vec::new();
    for (index, name) in CLUSTERS.iter().enumerate() {
        let kubeconfig = fleet.cluster(index)?.kubeconfig().to_owned();
        let kubectl = Kubectl::new(run, Tool::Kubectl, &kubeconfig)?;
        let shown = format!("--kubeconfig={}", kubeconfig.display());
        physical.push((name, Shell::new(kubectl, &shown), kubeconfig));
    }

    explain("Two physical clusters, each a whole Kubernetes with a node of its own.");
    for (name, cluster, _) in &physical {
        cluster.comes_to(&["get", "nodes"], &[name, " Ready"])?;
    }
    explain("The hub knows no Deployments, since nothing there could run them.");
    hub.refuses(&["get", "deployments"], "the server doesn't have a resource type")?;
    explain("Each cluster becomes a SyncTarget. The operator installs an agent in it.");
    for (name, _, kubeconfig) in &physical {
        let file = format!("--from-file=kubeconfig={}", kubeconfig.display());
        hub.shows(&["create", "secret", "generic", name, &file], &["created"])?;
        hub.applies(&files().join(format!("{name}.yaml")))?;
    }
    for (name, cluster, _) in &physical {
        let target = format!("synctarget/{name}");
        hub.shows(&["wait", &target, "--for=condition=Ready", "--timeout=120s"], &["met"])?;
        // The cluster counts a pod as ready a moment after its agent has told the hub.
        cluster.comes_to(&["get", "deployments", "--all-namespaces"], &["kcp-agent", "1/1"])?;
    }
    hub.shows(&["get", "synctargets"], &["east", "west", "True"])?;
    explain("Now the hub serves what both clusters serve.");
    for name in CLUSTERS {
        let imported = ["wait", &format!("synctarget/{name}"), "--for=condition=TypesImported"];
        hub.shows(&imported, &["met"])?;
    }
    hub.comes_to(&["api-resources", "--api-group=apps"], &["deployments"])?;
    hub.comes_to(&["explain", "deployment.spec.replicas"], &["FIELD"])?;

    explain("An application is applied once, to the hub, and runs in east.");
    hub.applies(&files().join("web.yaml"))?;
    let available = ["wait", "deployment/web", "--for=condition=Available", "--timeout=120s"];
    hub.shows(&available, &["met"])?;
    hub.comes_to(&["get", "deployments,configmaps,services"], &["2/2"])?;
    for (name, cluster, _) in &physical {
        let pods: &[&str] = if **name == "east" { &["Running"] } else { &[] };
        cluster.shows(&["get", "pods"], pods)?;
    }
    explain("It answers, with what its ConfigMap says.");
    if let Some((_, east, _)) = physical.first() {
        let path = "/api/v1/namespaces/default/services/web:80/proxy/";
        east.comes_to(&["get", "--raw", path], &["hello from web-"])?;
    }
    explain("What is changed at the hub is followed.");
    hub.shows(&["scale", "deployment/web", "--replicas=3"], &["scaled"])?;
    hub.comes_to(&["get", "deployment", "web"], &["3/3"])?;
    explain("Another label moves it.");
    let label = ["label", "--overwrite", "deployment/web", "configmap/web", "service/web"];
    hub.shows(&[&label[..], &["workloads.kcp.io/cluster=west"]].concat(), &["labeled"])?;
    if let [(_, east, _), (_, west, _)] = physical.as_slice() {
        west.comes_to(&["get", "deployments"], &["web", "3/3"])?;
        east.comes_to(&["get", "deployments,pods"], &[])?;
    }
    hub.comes_to(&["get", "deployment", "web"], &["3/3"])?;
    Ok(())
}
