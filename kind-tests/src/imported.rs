//! A server with the types of a real cluster.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo::Profile;
use crate::hub::{self, Hub};

/// Imports types from the cluster of the kubeconfig `from` into a logical cluster, with further
/// arguments of the program, and returns what it said.
///
/// # Errors
/// When it fails.
pub fn import_types(hub: &Hub, from: &Path, cluster: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(hub::PROGRAM.path(Profile::Dev)?)
        .args(["import-types", "--cluster", cluster, "--from"])
        .arg(from)
        .arg("--root-directory")
        .arg(hub.root())
        .args(arguments)
        .output()
        .context("start the import of types")?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("types are not imported: {}\n{told}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(told)
}
