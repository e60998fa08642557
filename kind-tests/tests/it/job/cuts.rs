//! Links that are cut while pods run, for longer than a heartbeat is waited for: packets are dropped,
//! no program ends, and nobody is told.

use std::fs;

use anyhow::{Result, ensure};
use kind_tests::control_plane::PORT;
use kind_tests::namespace::Route;
use kind_tests::{Kubectl, Process, eventually};
use serde_json::{Value, json};

use super::modes::{self, Tenant};
use super::steady::{Steady, agent_namespace, agents, greets};
use super::world::{
    READY, World, absent, application, belongs_to, condition, condition_path, for_east, prints,
    ready, told,
};

/// The flag by which kubectl prints how many replicas are wanted.
const REPLICAS: &str = "--output=jsonpath={.spec.replicas}";

fn config(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": for_east()},
    })
}

/// How often an agent renews its Lease while that would run out: after 40 s, and it does so every
/// 10 s. One of them may have been before, and one comes early as the agent changes its work.
const RENEWALS: usize = 7;

/// What a field at the hub has said over time, however short it said so.
struct History(Process);

// === impl History ===

impl History {
    /// Follows the object that `what` names by a flag that prints one line.
    fn of(world: &World, name: &str, what: &[&str], path: &str) -> Result<Self> {
        let path = format!("{path}{{\"\\n\"}}");
        let arguments = [&["get", "--watch", &path][..], what].concat();
        let history = Self(world.hub.spawn(&world.run, name, &arguments)?);
        history.has("to say something", |lines| !lines.is_empty())?;
        Ok(history)
    }

    /// Waits until what was said is as `check` wants it.
    fn has(&self, what: &str, check: impl Fn(&[&str]) -> bool) -> Result<()> {
        eventually(what, || {
            let log = fs::read_to_string(self.0.log())?;
            ensure!(check(&log.lines().collect::<Vec<_>>()), "{log}");
            Ok(())
        })
    }
}

/// The signs of life of a SyncTarget's agent.
fn renewals(world: &World, target: &str) -> Result<History> {
    let uid = ["get", "synctarget", target, "--output=jsonpath={.metadata.uid}"];
    let lease = contract::lease_name(&world.hub.ok(&uid)?);
    let namespace = format!("--namespace={}", contract::LEASE_NAMESPACE);
    let what = ["lease", &lease, &namespace];
    History::of(world, &format!("{target}-lease"), &what, "--output=jsonpath={.spec.renewTime}")
}

/// Changes the application at the hub, and waits until that is true.
fn arrives(hub: &Kubectl, replicas: &str) -> Result<()> {
    hub.ok(&["scale", "deployment/web", &format!("--replicas={replicas}")])?;
    prints(hub, &["get", "deployment/web", READY], replicas)
}

/// The agent's pod does not reach the hub. That is told; the application runs on as it was; what is
/// made, changed and deleted at the hub meanwhile is so in the cluster afterwards.
///
/// In the other cluster somebody has scaled the agent away, which looks the same to the hub. It is
/// noticed in the same time, and the operator puts it back.
pub(super) fn from_the_hub(world: &mut World) -> Result<()> {
    world.apply(&[config("doomed")])?;
    eventually("the copy", || world.east.ok(&["get", "configmap/doomed"]))?;
    let before = Steady::of(&world.east, "web")?;
    let what = ["synctarget", "west"];
    let west = History::of(world, "west-ready", &what, &condition_path("Ready"))?;

    let route = Route::PodsOutside(world.fleet.hub().port());
    let cut = world.fleet.cluster(0)?.cut(route)?;
    let namespace = agent_namespace(&world.west)?;
    world.west.ok(&["scale", "deployment/kcp-agent", "--replicas=0", &namespace])?;
    world.hub.ok(&["scale", "deployment/web", "--replicas=3"])?;
    world.hub.ok(&["patch", "configmap/web", "--patch", "{\"data\":{\"during\":\"cut\"}}"])?;
    world.hub.ok(&["delete", "configmap/doomed", "--wait=false"])?;
    world.condition("east", "Heartbeat", "Unknown/LeaseExpired")?;
    world.condition("east", "Ready", "Unknown/LeaseExpired")?;
    world.condition("east", "Installed", "True/Installed")?;
    world.apply(&[config("late")])?;
    told(&world.hub, "TargetNotReady", "late")?;
    prints(&world.east, &["get", "deployment/web", REPLICAS], "2")?;
    world.east.ok(&["get", "configmap/doomed"])?;
    absent(&world.east, &["configmap/late"])?;
    greets(&world.east, "web")?;
    before.still(&world.east)?;

    cut.mend()?;
    world.ready("east")?;
    prints(&world.hub, &["get", "deployment/web", READY], "3")?;
    prints(&world.east, &["get", "configmap/web", "--output=jsonpath={.data.during}"], "cut")?;
    eventually("what was made meanwhile", || world.east.ok(&["get", "configmap/late"]))?;
    absent(&world.east, &["configmap/doomed"])?;
    absent(&world.hub, &["configmap/doomed"])?;
    before.still(&world.east)?;
    world.hub.ok(&["delete", "configmap/late", "--timeout=60s"])?;

    let missed = |lines: &[&str]| lines.contains(&"Unknown/LeaseExpired");
    west.has("the agent that was scaled away to be missed", missed)?;
    eventually("the agent to run again", || {
        let agents = agents(&world.west)?;
        ensure!(agents.iter().all(|agent| agent.ends_with("/1")), "{agents:?}");
        Ok(())
    })?;
    world.ready("west")
}

/// In one cluster the agent's pod does not reach its API server; to the other one nobody comes from
/// outside. Whoever can't work says so, and the agent inside the other cluster goes on.
pub(super) fn from_the_cluster(world: &mut World) -> Result<()> {
    world.apply(&application("shelf", "default", &belongs_to("west")))?;
    prints(&world.hub, &["get", "deployment/shelf", READY], "2")?;
    let east = Steady::of(&world.east, "web")?;
    let west = Steady::of(&world.west, "shelf")?;
    let tenants = modes::NAMES.map(|name| modes::tenant(world, name));
    let tenants = tenants.into_iter().collect::<Result<Vec<Tenant>>>()?;

    let beats = renewals(world, "east")?;
    let inside = world.fleet.cluster(0)?.cut(Route::PodsToControlPlane(PORT))?;
    let outside = world.fleet.cluster(1)?.cut(Route::OutsideToControlPlane(PORT))?;
    world.hub.ok(&["scale", "deployment/web", "--replicas=4"])?;
    world.hub.ok(&["scale", "deployment/shelf", "--replicas=3"])?;
    world.condition("east", "ClusterReachable", "False/NoAnswer")?;
    world.condition("east", "Ready", "False/ClusterUnreachable")?;
    world.condition("east", "Installed", "True/Installed")?;
    world.condition("west", "Installed", "False/Unreachable")?;
    world.condition("west", "Ready", "True/Ready")?;
    prints(&world.hub, &["get", "deployment/shelf", READY], "3")?;
    for Tenant { hub, .. } in &tenants {
        condition(hub, modes::TARGET, "Ready", "False/ClusterUnreachable")?;
        condition(hub, modes::TARGET, "Heartbeat", "True/LeaseRenewed")?;
    }
    condition(&tenants[0].hub, modes::TARGET, "Installed", "False/Unreachable")?;
    // The longer nobody could come, the later somebody tries again.
    outside.mend()?;
    // The agent lives, and goes on to tell so for longer than silence would be borne.
    beats.has("signs of life", |lines| lines.len() >= RENEWALS)?;
    world.condition("east", "Heartbeat", "True/LeaseRenewed")?;
    world.condition("east", "Ready", "False/ClusterUnreachable")?;
    prints(&world.east, &["get", "deployment/web", REPLICAS], "3")?;
    greets(&world.east, "web")?;

    inside.mend()?;
    world.ready("east")?;
    prints(&world.hub, &["get", "deployment/web", READY], "4")?;
    world.condition("west", "Installed", "True/Installed")?;
    for Tenant { hub, .. } in &tenants {
        ready(hub, modes::TARGET)?;
        arrives(hub, "2")?;
    }
    east.still(&world.east)?;
    west.still(&world.west)
}
