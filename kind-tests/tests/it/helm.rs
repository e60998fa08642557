//! helm, of both major versions: install, upgrade, rollback and uninstall of a chart of our own, into
//! a logical cluster with imported types, and into a real cluster.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use kind_tests::imported::import_types;
use kind_tests::scenario::Need;
use kind_tests::{
    ControlPlane, Hub, Kubectl, Process, Run, Tool, control_plane, eventually, scenario,
};
use serde_json::json;

use crate::support::{check_contains, first_column, json};

const NEEDS: [Need; 3] =
    [Need::Tool(Tool::Etcd), Need::Tool(Tool::KubeApiserver), Need::Tool(Tool::Kubectl)];

/// What a chart needs beyond what the hub serves itself.
const TYPES: &str = "deployments.apps,services,jobs.batch";

#[test]
fn helm_3_in_a_logical_cluster() {
    in_a_logical_cluster("helm_3_in_a_logical_cluster", Tool::Helm3);
}

#[test]
fn helm_4_in_a_logical_cluster() {
    in_a_logical_cluster("helm_4_in_a_logical_cluster", Tool::Helm4);
}

/// What the test expects is what helm does.
#[test]
fn helm_4_in_a_real_cluster() {
    let needs = [NEEDS.as_slice(), &[Need::Tool(Tool::Helm4)]].concat();
    scenario("helm_4_in_a_real_cluster", &needs, |run| {
        let plane = ControlPlane::start(run, "plane", control_plane::Options::default())?;
        let kubectl = Kubectl::new(run, Tool::Kubectl, plane.kubeconfig())?;
        let helm = Kubectl::new(run, Tool::Helm4, plane.kubeconfig())?;
        life_of_a_release(run, &helm, &kubectl)?;
        plane.stop()
    });
}

fn in_a_logical_cluster(name: &str, tool: Tool) {
    let needs = [NEEDS.as_slice(), &[Need::Tool(tool)]].concat();
    scenario(name, &needs, |run| {
        let plane = ControlPlane::start(run, "plane", control_plane::Options::default())?;
        let mut hub = Hub::start(run, "hub")?;
        import_types(&hub, plane.kubeconfig(), "one", &["--resources", TYPES])?;
        let url = hub.cluster_url("one");
        let kubectl = Kubectl::new(run, Tool::Kubectl, &hub.kubeconfig())?.server(&url);
        // helm is started as kubectl is, and names a server by a flag of its own.
        let helm = Kubectl::new(run, tool, &hub.kubeconfig())?;
        life_of_a_release(run, &helm.with(&format!("--kube-apiserver={url}")), &kubectl)?;
        hub.terminate()
    });
}

fn life_of_a_release(run: &Run, helm: &Kubectl, kubectl: &Kubectl) -> Result<()> {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/helm/chart");
    let chart = chart.to_str().context("a path in UTF-8")?;

    with_hook(run, helm, kubectl, 1, &["install", "shop", chart])?;
    check_release(helm, kubectl, "1", "deployed")?;
    check_objects(kubectl, "registry.example.org/shop:1", "2", "hello", "small")?;

    let values = "replicas=3,image=registry.example.org/shop:2,greeting=hi,size=large";
    with_hook(run, helm, kubectl, 2, &["upgrade", "shop", chart, "--set", values])?;
    check_release(helm, kubectl, "2", "deployed")?;
    check_objects(kubectl, "registry.example.org/shop:2", "3", "hi", "large")?;

    // An upgrade that the server refuses leaves the release failed.
    let refused = ["upgrade", "shop", chart, "--no-hooks", "--set", "size=huge"];
    let error = helm.fails(&refused)?;
    check_contains(&error, &["spec.size", "huge"])?;
    check_release(helm, kubectl, "3", "failed")?;

    let back = ["rollback", "shop", "1", "--no-hooks"];
    check_contains(&helm.ok(&back)?, &["Rollback was a success"])?;
    check_release(helm, kubectl, "4", "deployed")?;
    check_objects(kubectl, "registry.example.org/shop:1", "2", "hello", "small")?;

    let history = json(&helm.ok(&["history", "shop", "--output=json"])?)?;
    ensure!(history.as_array().map(Vec::len) == Some(4), "{history}");
    let manifest = helm.ok(&["get", "manifest", "shop"])?;
    // The chart asked the server which types it has.
    check_contains(&manifest, &["apps: \"true\"", "kind: Deployment"])?;

    check_contains(&helm.ok(&["uninstall", "shop"])?, &["uninstalled"])?;
    for kind in ["deployments", "sizes"] {
        let left = kubectl.ok(&["get", kind, "--output=name"])?;
        ensure!(left.is_empty(), "{kind} are left: {left}");
    }
    let services = kubectl.ok(&["get", "services"])?;
    ensure!(first_column(&services) == ["kubernetes"], "{services}");
    let releases = json(&helm.ok(&["list", "--output=json"])?)?;
    ensure!(releases == json!([]), "{releases}");
    // helm leaves definitions and hooks where they are.
    kubectl.ok(&["get", "crd", "sizes.shop.example.org"])?;
    kubectl.ok(&["get", "configmap/shop-before", "job/shop-migrate"]).map(|_| ())
}

/// Runs helm while its job hook waits, and says for the job that it is done.
fn with_hook(
    run: &Run,
    helm: &Kubectl,
    kubectl: &Kubectl,
    revision: u32,
    arguments: &[&str],
) -> Result<()> {
    let mut waiting = helm.spawn(run, &format!("helm-{revision}"), arguments)?;
    let before = "--output=jsonpath={.data.revision}";
    let job = eventually("the hooks", || {
        waiting.check_running()?;
        let told = kubectl.ok(&["get", "configmap", "shop-before", before])?;
        ensure!(told == revision.to_string(), "the hook is of revision {told}");
        let job = json(&kubectl.ok(&["get", "job", "shop-migrate", "--output=json"])?)?;
        ensure!(job["status"]["succeeded"].is_null(), "an old job");
        Ok(job)
    })?;
    let started = &job["metadata"]["creationTimestamp"];
    let condition = |kind: &str| {
        json!({
            "type": kind,
            "status": "True",
            "lastProbeTime": started,
            "lastTransitionTime": started,
        })
    };
    let status = json!({"status": {
        "startTime": started,
        "completionTime": started,
        "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    }});
    let patch = format!("--patch={status}");
    kubectl.ok(&["patch", "job/shop-migrate", "--subresource=status", "--type=merge", &patch])?;
    ended(&mut waiting)
}

fn ended(process: &mut Process) -> Result<()> {
    let status = eventually("helm to end", || process.exited()?.context("it still runs"))?;
    let log = std::fs::read_to_string(process.log())?;
    ensure!(status.success(), "helm ended with {status}:\n{log}");
    Ok(())
}

fn check_release(helm: &Kubectl, kubectl: &Kubectl, revision: &str, status: &str) -> Result<()> {
    let releases = json(&helm.ok(&["list", "--output=json"])?)?;
    let (release, count) = (&releases[0], releases.as_array().map(Vec::len));
    ensure!(
        count == Some(1) && release["revision"] == revision && release["status"] == status,
        "not one release of revision {revision}, {status}: {releases}"
    );
    // Where helm keeps it.
    let selector = format!("--selector=owner=helm,name=shop,version={revision}");
    let secrets = kubectl.ok(&["get", "secrets", "--no-headers", &selector])?;
    check_contains(&secrets, &["helm.sh/release.v1"])
}

fn check_objects(
    kubectl: &Kubectl,
    image: &str,
    replicas: &str,
    greeting: &str,
    size: &str,
) -> Result<()> {
    let get = |object: &str, path: &str| {
        kubectl.ok(&["get", object, &format!("--output=jsonpath={{{path}}}")])
    };
    let check = |object: &str, path: &str, expect: &str| -> Result<()> {
        let found = get(object, path)?;
        ensure!(found == expect, "{object} {path} is {found:?}, not {expect:?}");
        Ok(())
    };
    let container = ".spec.template.spec.containers[0]";
    check("deployment/shop", &format!("{container}.image"), image)?;
    check("deployment/shop", &format!("{container}.env[*].value"), greeting)?;
    check("deployment/shop", ".spec.replicas", replicas)?;
    // A default that the imported type publishes.
    check("deployment/shop", &format!("{container}.ports[0].protocol"), "TCP")?;
    check("service/shop", ".spec.ports[*].port", "80 9090")?;
    check("configmap/shop-settings", ".data.greeting", greeting)?;
    check("size/shop", ".spec.size", size)?;
    check("size/shop", ".spec.colours[*]", "red green")
}
