//! SyncTargets that are wrong, and one that is right.

use anyhow::{Context, Result, ensure};

use super::world::{
    World, application, for_east, knows_no_deployment, prints, serves_deployments, sync_target,
};
use crate::support::json;

const PLACEHOLDERS: &str = r#"apiVersion: v1
kind: Config
clusters:
- name: c
  cluster:
    server: "..."
    certificate-authority-data: "..."
users:
- name: u
  user:
    token: "..."
"#;

/// A kubeconfig as examples have it is taken, and said to be none.
pub(super) fn placeholders_are_named(world: &mut World) -> Result<()> {
    world.apply(&[sync_target("sketch", PLACEHOLDERS)])?;
    world.condition("sketch", "Ready", "False/InvalidKubeconfig")?;
    let message = "--output=jsonpath={.status.conditions[?(@.type==\"Ready\")].message}";
    let said = world.hub.ok(&["get", "synctarget", "sketch", message])?;
    for field in ["server", "certificate-authority-data"] {
        ensure!(said.contains(field), "the message should name {field}: {said}");
    }
    world.hub.ok(&["delete", "synctarget", "sketch", "--timeout=60s"]).map(|_| ())
}

/// An address that nobody answers is told in bounded time. 192.0.2.0/24 is for documentation.
pub(super) fn nobody_answers(world: &mut World) -> Result<()> {
    let config = std::fs::read_to_string(world.fleet.cluster(0)?.kubeconfig())?;
    let address = world.fleet.cluster(0)?.control_plane().url().to_owned();
    let nobody = config.replace(&address, "https://192.0.2.1:6443");
    ensure!(nobody != config, "the kubeconfig should name {address}");
    world.apply(&[sync_target("nobody", &nobody)])?;
    world.condition("nobody", "Ready", "False/Unreachable")?;
    world.hub.ok(&["delete", "synctarget", "nobody", "--timeout=60s"]).map(|_| ())
}

/// Without a cluster that has them there are no Deployments.
pub(super) fn no_type_without_a_target(world: &mut World) -> Result<()> {
    knows_no_deployment(&world.hub, &application("early", "default", &for_east())[1])
}

/// A SyncTarget with a kubeconfig is ready in a minute, its agent runs, its types are there.
pub(super) fn a_cluster_joins(world: &mut World) -> Result<()> {
    let target = world.target("east", 0)?;
    world.apply(&[target])?;
    world.ready("east")?;
    let agent =
        ["get", "deployments", "--all-namespaces", "--field-selector=metadata.name=kcp-agent"];
    let ready = "--output=jsonpath={.items[*].status.readyReplicas}";
    prints(&world.east, &[&agent[..], &[ready]].concat(), "1")?;
    serves_deployments(&world.hub)?;
    // One cluster and one user are enough; nothing need say that they belong together.
    let mut kubeconfig = json(&world.kubeconfig(1)?)?;
    let config = kubeconfig.as_object_mut().context("a kubeconfig")?;
    config.retain(|field, _| !field.contains("context"));
    ensure!(config.len() == 4, "{:?}", config.keys());
    let target = sync_target("west", &kubeconfig.to_string());
    world.apply(&[target])?;
    world.ready("west")
}
