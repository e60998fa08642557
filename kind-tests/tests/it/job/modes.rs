//! The other modes: the operator syncs itself, or an agent that was started by hand. Each has a
//! logical cluster of its own, whose SyncTarget leads to the cluster that others use, too.

use anyhow::{Context, Result, ensure};
use kind_tests::{Agent, Kubectl, eventually};
use serde_json::{Value, json};

use super::steady::{Steady, agents, uids};
use super::world::{
    READY, World, absent, application, apply, belongs_to, condition, knows_no_deployment, prints,
    ready, serves_deployments,
};

const PUSHED: &str = "pushed";
const BY_HAND: &str = "by-hand";

/// The logical clusters. Each has its objects in a namespace of its name.
pub(super) const NAMES: [&str; 2] = [PUSHED, BY_HAND];

/// The SyncTarget in each.
pub(super) const TARGET: &str = "west";

/// A logical cluster and its part of the physical one.
#[derive(Debug)]
pub(super) struct Tenant {
    name: &'static str,
    pub(super) hub: Kubectl,
    pub(super) down: Kubectl,
}

/// A logical cluster by its name.
pub(super) fn tenant(world: &World, name: &'static str) -> Result<Tenant> {
    let namespace = format!("--namespace={name}");
    let hub = world.fleet.kubectl(name)?.with(&namespace);
    Ok(Tenant { name, hub, down: world.west.with(&namespace) })
}

fn target(spec: &Value) -> Value {
    json!({
        "apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
        "metadata": {"name": TARGET}, "spec": spec,
    })
}

/// The operator goes to the cluster.
pub(super) fn push(world: &mut World) -> Result<()> {
    let kubeconfig = world.kubeconfig(1)?;
    let tenant = begin(world, PUSHED)?;
    let before = agents(&world.west)?;
    apply(&tenant.hub, &[target(&json!({"mode": "Push", "kubeconfig": kubeconfig}))])?;
    joins(&tenant)?;
    condition(&tenant.hub, TARGET, "Installed", "True/Installed")?;
    ensure!(agents(&world.west)? == before, "an agent was installed");
    flows(world, &tenant)
}

/// A person runs the agent, with two kubeconfigs.
pub(super) fn by_hand(world: &mut World) -> Result<()> {
    let tenant = begin(world, BY_HAND)?;
    let before = agents(&world.west)?;
    apply(&tenant.hub, &[target(&json!({"mode": "None"}))])?;
    condition(&tenant.hub, TARGET, "Ready", "False/NotNeeded")?;
    let from = world.fleet.hub().kubeconfig_of(BY_HAND)?;
    let to = world.fleet.cluster(1)?.kubeconfig();
    let flags = [
        format!("--from-kubeconfig={}", from.display()),
        format!("--to-kubeconfig={}", to.display()),
        format!("--sync-target={TARGET}"),
    ];
    world.by_hand = Some(Agent::by_hand(&world.run, BY_HAND, &flags)?);
    joins(&tenant)?;
    ensure!(agents(&world.west)? == before, "an agent was installed");
    flows(world, &tenant)
}

/// A logical cluster without a SyncTarget knows no Deployments.
fn begin(world: &World, name: &'static str) -> Result<Tenant> {
    let tenant = tenant(world, name)?;
    tenant.hub.ok(&["create", "namespace", name])?;
    knows_no_deployment(&tenant.hub, &application("web", name, &belongs_to(TARGET))[1])?;
    Ok(tenant)
}

/// It is ready, and types are served.
fn joins(tenant: &Tenant) -> Result<()> {
    ready(&tenant.hub, TARGET)?;
    serves_deployments(&tenant.hub)
}

/// By labels of their own and by that of their namespace, objects go down and back; changes are
/// followed, and their status comes up.
fn flows(world: &World, tenant: &Tenant) -> Result<()> {
    let Tenant { name, hub, down } = tenant;
    let web = application("web", name, &belongs_to(TARGET));
    apply(hub, &web)?;
    apply(hub, &application("plain", name, &json!({}))[..1])?;
    hub.ok(&["wait", "deployment/web", "--for=condition=Available", "--timeout=110s"])?;
    prints(hub, &["get", "deployment/web", READY], "2")?;
    let before = uids(down, "web")?;
    hub.ok(&["scale", "deployment/web", "--replicas=1"])?;
    hub.ok(&["patch", "configmap/web", "--patch", "{\"data\":{\"more\":\"1\"}}"])?;
    prints(hub, &["get", "deployment/web", READY], "1")?;
    prints(down, &["get", "configmap/web", "--output=jsonpath={.data.more}"], "1")?;
    absent(down, &["configmap/plain"])?;
    let east = world.east.with(&format!("--namespace={name}"));
    absent(&east, &["deployment/web", "configmap/web", "service/web"])?;

    hub.ok(&["label", "namespace", name, "workloads.kcp.io/cluster=west"])?;
    eventually("the copy by the namespace's label", || down.ok(&["get", "configmap/plain"]))?;
    hub.ok(&["label", "namespace", name, "workloads.kcp.io/cluster-"])?;
    absent(down, &["configmap/plain"])?;
    hub.ok(&["get", "configmap/plain"])?;
    ensure!(uids(down, "web")? == before, "copies were made again");
    hub.ok(&["delete", "service/web", "--timeout=60s"])?;
    absent(down, &["service/web"])?;
    apply(hub, &web[2..])?;
    eventually("the copy again", || down.ok(&["get", "service/web"])).map(drop)
}

/// One goes after the other: each takes its own along, and nothing of its neighbours.
pub(super) fn leave(world: &mut World) -> Result<()> {
    let before = Steady::of(&world.west, "shelf")?;
    let (pushed, by_hand) = (tenant(world, PUSHED)?, tenant(world, BY_HAND)?);
    let neighbour = uids(&by_hand.down, "web")?;
    goes(&pushed)?;
    ensure!(uids(&by_hand.down, "web")? == neighbour, "copies of a neighbour were made again");
    goes(&by_hand)?;
    world.by_hand.take().context("an agent by hand")?.terminate()?;
    before.still(&world.west)
}

/// The SyncTarget is deleted: its copies go, the hub's objects are released and stay, as types do.
fn goes(tenant: &Tenant) -> Result<()> {
    let Tenant { hub, down, .. } = tenant;
    hub.ok(&["delete", "synctarget", TARGET, "--timeout=110s"])?;
    for what in ["deployment/web", "configmap/web", "service/web"] {
        prints(hub, &["get", what, "--output=jsonpath={.metadata.finalizers}"], "")?;
        absent(down, &[what])?;
    }
    let types = hub.ok(&["api-resources", "--api-group=apps"])?;
    ensure!(types.contains("deployments"), "{types}");
    Ok(())
}
