//! What breaks, heals, and deletes nothing.

use anyhow::{Result, ensure};
use kind_tests::{Kubectl, eventually};

use super::world::{READY, World, prints};

const UID: &str = "--output=jsonpath={.metadata.uid}";

/// The UIDs of copies: as long as they stay, nothing was deleted and made again.
fn copies(world: &World) -> Result<Vec<String>> {
    let what = ["deployment/web", "configmap/web", "service/web"];
    what.iter().map(|what| world.east.ok(&["get", what, UID])).collect()
}

fn agent_pods(cluster: &Kubectl) -> Result<String> {
    let selector = "--selector=app.kubernetes.io/name=kcp-agent";
    cluster.ok(&["get", "pods", "--all-namespaces", selector, "--output=name"])
}

fn agent_namespace(cluster: &Kubectl) -> Result<String> {
    let agent =
        ["get", "deployments", "--all-namespaces", "--field-selector=metadata.name=kcp-agent"];
    cluster.ok(&[&agent[..], &["--output=jsonpath={.items[0].metadata.namespace}"]].concat())
}

/// Changes the number of replicas at the hub and waits until it is true.
fn still_follows(world: &World, replicas: &str) -> Result<()> {
    world.hub.ok(&["scale", "deployment/web", &format!("--replicas={replicas}")])?;
    prints(&world.hub, &["get", "deployment/web", READY], replicas)
}

pub(super) fn agent_killed(world: &mut World) -> Result<()> {
    let before = copies(world)?;
    let namespace = agent_namespace(&world.east)?;
    let pod = agent_pods(&world.east)?;
    let namespace = format!("--namespace={namespace}");
    world.east.ok(&["delete", pod.trim(), &namespace, "--force", "--grace-period=0"])?;
    still_follows(world, "2")?;
    ensure!(copies(world)? == before, "copies were made again");
    Ok(())
}

pub(super) fn physical_api_down(world: &mut World) -> Result<()> {
    let before = copies(world)?;
    world.fleet.cluster(0)?.kill_api()?;
    let status = "--output=jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
    eventually("Ready to be True no more", || {
        let said = world.hub.ok(&["get", "synctarget", "east", status])?;
        ensure!(said != "True", "Ready is {said}");
        Ok(())
    })?;
    world.hub.ok(&["scale", "deployment/web", "--replicas=3"])?;
    world.fleet.cluster(0)?.start_api()?;
    world.ready("east")?;
    prints(&world.hub, &["get", "deployment/web", READY], "3")?;
    ensure!(copies(world)? == before, "copies were made again");
    Ok(())
}

pub(super) fn hub_killed(world: &mut World) -> Result<()> {
    let before = copies(world)?;
    world.fleet.hub().kill()?;
    world.fleet.hub().restart()?;
    world.ready("east")?;
    still_follows(world, "2")?;
    ensure!(copies(world)? == before, "copies were made again");
    Ok(())
}

/// An agent that somebody scales away is missed; one whose Deployment is deleted comes back.
pub(super) fn agent_gone(world: &mut World) -> Result<()> {
    let before = copies(world)?;
    let namespace = format!("--namespace={}", agent_namespace(&world.east)?);
    world.east.ok(&["delete", "deployment/kcp-agent", &namespace])?;
    eventually("the Deployment again", || {
        world.east.ok(&["get", "deployment/kcp-agent", &namespace])
    })?;
    still_follows(world, "3")?;
    ensure!(copies(world)? == before, "copies were made again");
    Ok(())
}
