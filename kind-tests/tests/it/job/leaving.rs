//! A SyncTarget goes.

use anyhow::{Result, ensure};

use super::world::{World, absent, prints};

/// Its agent is uninstalled, finalizers are released, the hub's objects and types stay.
pub(super) fn target_deleted(world: &mut World) -> Result<()> {
    world.hub.ok(&["delete", "synctarget", "east", "--timeout=110s"])?;
    for what in ["deployment/web", "configmap/web", "service/web"] {
        prints(&world.hub, &["get", what, "--output=jsonpath={.metadata.finalizers}"], "")?;
        absent(&world.east, &[what])?;
    }
    let ours = "--selector=app.kubernetes.io/managed-by=kcp-operator";
    for kinds in [
        "deployments,secrets,serviceaccounts,roles,rolebindings",
        "namespaces,clusterroles,clusterrolebindings",
    ] {
        absent(&world.east, &[kinds, "--all-namespaces", ours])?;
    }
    let types = world.hub.ok(&["api-resources", "--api-group=apps"])?;
    ensure!(types.contains("deployments"), "{types}");
    Ok(())
}
