//! A whole cluster starts, runs pods, survives its API server, and leaves nothing behind.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};
use kind_tests::cargo::Profile;
use kind_tests::cluster::{NEEDS, NODE_FOLLOWS};
use kind_tests::{Cluster, Image, Kubectl, Run, Tool, eventually, eventually_within, scenario};
use serde_json::json;

fn workload() -> String {
    let labels = json!({"app": "web"});
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{
                    "name": "web",
                    "image": "sample:dev",
                    "imagePullPolicy": "Never",
                    "args": ["serve"],
                    "env": [{"name": "GREETING", "valueFrom": {"configMapKeyRef": {"name": "web", "key": "greeting"}}}],
                    "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
                }]},
            },
        },
    });
    let config = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "web"},
        "data": {"greeting": "hello"},
    });
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]},
    });
    json!({"apiVersion": "v1", "kind": "List", "items": [config, deployment, service]}).to_string()
}

fn greets(kubectl: &Kubectl) -> Result<()> {
    let path = "/api/v1/namespaces/default/services/web:80/proxy/";
    let said = kubectl.ok(&["get", "--raw", path])?;
    ensure!(said.starts_with("hello from web-"), "{said}");
    Ok(())
}

/// The network namespaces of a cluster's pods, by their addresses.
fn networks(kubectl: &Kubectl) -> Result<Vec<PathBuf>> {
    let path = "--output=jsonpath={range .items[*]}{.status.podIP} {end}";
    let addresses = kubectl.ok(&["get", "pods", path])?;
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/run/netns")? {
        let network = entry?.path();
        let mut inside = Command::new("nsenter");
        inside.arg(format!("--net={}", network.display())).args(["ip", "-o", "-4", "address"]);
        let shown = String::from_utf8(inside.output()?.stdout)?;
        let has = |address: &str| shown.contains(&format!(" {address}/"));
        if addresses.split_whitespace().any(has) {
            found.push(network);
        }
    }
    Ok(found)
}

fn pods_run(run: &Run) -> Result<()> {
    let image = Image::of("sample", "sample", Profile::Dev)?;
    let sandbox = Image {
        name: "pause:dev".to_owned(),
        arguments: vec!["pause".to_owned()],
        ..image.clone()
    };
    let files = [run.folder().join("pause.tar"), run.folder().join("sample.tar")];
    sandbox.write(&files[0])?;
    image.write(&files[1])?;
    let mut cluster = Cluster::start(run, "east", "docker.io/library/pause:dev", &files)?;
    let kubectl = Kubectl::new(run, Tool::Kubectl, cluster.kubeconfig())?;
    eventually("the node", || kubectl.ok(&["get", "node", "east"]))?;
    kubectl.ok(&["wait", "node/east", "--for=condition=Ready", "--timeout=60s"])?;
    eventually("the default ServiceAccount", || kubectl.ok(&["get", "serviceaccount", "default"]))?;
    kubectl.ok_with_input(&["apply", "-f", "-"], &workload())?;
    kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=60s"])?;
    eventually("the Service", || greets(&kubectl))?;
    ensure!(kubectl.ok(&["logs", "deployment/web"])?.contains("listening on port 8080"));

    cluster.kill_api()?;
    cluster.start_api()?;
    let again = "the Service, after the API server came back";
    eventually_within(NODE_FOLLOWS, again, || greets(&kubectl))?;
    cluster.check_running()?;
    let networks = networks(&kubectl)?;
    ensure!(networks.len() == 2, "networks of two pods: {networks:?}");
    drop(cluster);
    let left: Vec<_> = networks.iter().filter(|network| network.exists()).collect();
    ensure!(left.is_empty(), "networks of pods stay: {left:?}");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    let folder = run.folder().display().to_string();
    ensure!(!mounts.contains(&folder), "something stays mounted: {mounts}");
    Ok(())
}

#[test]
fn a_whole_cluster_runs_pods() {
    scenario("a_whole_cluster_runs_pods", &NEEDS, pods_run);
}
