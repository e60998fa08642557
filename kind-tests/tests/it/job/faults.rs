//! What breaks, heals, and deletes nothing.

use anyhow::{Result, ensure};
use kind_tests::cluster::NODE_FOLLOWS;
use kind_tests::{Kubectl, eventually};

use super::steady::{Steady, agent_namespace};
use super::world::{READY, World, prints, prints_within};

fn agent_pods(cluster: &Kubectl) -> Result<String> {
    let selector = "--selector=app.kubernetes.io/name=kcp-agent";
    cluster.ok(&["get", "pods", "--all-namespaces", selector, "--output=name"])
}

/// Changes the number of replicas at the hub and waits until it is true.
fn still_follows(world: &World, replicas: &str) -> Result<()> {
    world.hub.ok(&["scale", "deployment/web", &format!("--replicas={replicas}")])?;
    prints(&world.hub, &["get", "deployment/web", READY], replicas)
}

pub(super) fn agent_killed(world: &mut World) -> Result<()> {
    let before = Steady::of(&world.east, "web")?;
    let namespace = agent_namespace(&world.east)?;
    let pod = agent_pods(&world.east)?;
    world.east.ok(&["delete", pod.trim(), &namespace, "--force", "--grace-period=0"])?;
    still_follows(world, "2")?;
    before.still_copied(&world.east)
}

pub(super) fn physical_api_down(world: &mut World) -> Result<()> {
    let before = Steady::of(&world.east, "web")?;
    world.fleet.cluster(0)?.kill_api()?;
    let status = "--output=jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
    eventually("Ready to be True no more", || {
        let said = world.hub.ok(&["get", "synctarget", "east", status])?;
        ensure!(said != "True", "Ready is {said}");
        Ok(())
    })?;
    world.hub.ok(&["scale", "deployment/web", "--replicas=3"])?;
    world.fleet.cluster(0)?.start_api()?;
    prints_within(NODE_FOLLOWS, &world.hub, &["get", "deployment/web", READY], "3")?;
    world.ready("east")?;
    before.still(&world.east)
}

pub(super) fn hub_killed(world: &mut World) -> Result<()> {
    let before = Steady::of(&world.east, "web")?;
    world.fleet.hub().kill()?;
    world.fleet.hub().restart()?;
    world.ready("east")?;
    still_follows(world, "2")?;
    before.still_copied(&world.east)
}

/// An agent whose Deployment is deleted comes back.
pub(super) fn agent_gone(world: &mut World) -> Result<()> {
    let before = Steady::of(&world.east, "web")?;
    let namespace = agent_namespace(&world.east)?;
    world.east.ok(&["delete", "deployment/kcp-agent", &namespace])?;
    eventually("the Deployment again", || {
        world.east.ok(&["get", "deployment/kcp-agent", &namespace])
    })?;
    still_follows(world, "1")?;
    before.still_copied(&world.east)
}
