//! A control plane is upgraded under what runs on it.

use anyhow::{Context, Result, ensure};
use kind_tests::cluster::NODE_FOLLOWS;
use kind_tests::control_plane::Release;
use kind_tests::eventually;

use super::steady::Steady;
use super::world::{READY, World, prints, prints_within};

/// The field of a Deployment that the newer release has, and the older one has not.
const NEW_FIELD: &str = "deployment.spec.template.spec.schedulingGroup";

/// The release before is in use, so what only the other cluster knows is not served.
pub(super) fn of_two_releases(world: &mut World) -> Result<()> {
    for (target, release) in [("east", Release::Older), ("west", Release::Current)] {
        tells_version(world, target, release)?;
    }
    let said = world.hub.fails(&["explain", NEW_FIELD])?;
    ensure!(said.contains("does not exist"), "{said}");
    Ok(())
}

/// The API server and its controllers are stopped, and started again as those of the next release.
/// What is changed at the hub meanwhile arrives afterwards, and nothing is made again.
pub(super) fn upgraded(world: &mut World) -> Result<()> {
    let before = Steady::of(&world.east, "web")?;
    world.fleet.cluster(0)?.stop_api()?;
    world.hub.ok(&["scale", "deployment/web", "--replicas=2"])?;
    world.hub.ok(&["patch", "configmap/web", "--patch", "{\"data\":{\"release\":\"next\"}}"])?;
    world.fleet.cluster(0)?.upgrade(Release::Current)?;
    let version = world.east.ok(&["get", "--raw", "/version"])?;
    ensure!(version.contains(&Release::Current.version()?), "{version}");
    prints_within(NODE_FOLLOWS, &world.hub, &["get", "deployment/web", READY], "2")?;
    let data = "--output=jsonpath={.data.release}";
    prints(&world.east, &["get", "configmap/web", data], "next")?;
    // Told by an agent that has reached the new one; so what Ready says is said of that.
    tells_version(world, "east", Release::Current)?;
    world.condition("east", "Ready", "True/Ready")?;
    before.still(&world.east)?;
    world.upgraded = Some(before);
    Ok(())
}

/// What the newer release has brought is served, though no agent was started again: an agent looks
/// at types once a minute, which went by meanwhile.
pub(super) fn types_follow(world: &mut World) -> Result<()> {
    let said = eventually("the new field", || world.hub.ok(&["explain", NEW_FIELD]))?;
    ensure!(said.contains("FIELD: schedulingGroup"), "{said}");
    world.upgraded.take().context("an upgrade")?.still(&world.east)
}

/// Waits until a SyncTarget tells the version of a release.
fn tells_version(world: &World, target: &str, release: Release) -> Result<()> {
    let path = "--output=jsonpath={.status.kubernetesVersion}";
    prints(&world.hub, &["get", "synctarget", target, path], &release.version()?)
}
