//! Upstream programs, built from exact versions into a cache outside the checkout.
//!
//! Each comes from a small wrapper module below `tools/`, whose `go.mod` is the only place that
//! names a version. A program's folder in the cache is keyed by its version and by a hash of the
//! wrapper and of the way it is built, so a change of either builds anew.

mod build;
mod recipe;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::run::cache_folder;

use self::recipe::Recipe;

/// A program that the harness can build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// The store of real control planes.
    Etcd,
    /// The real API server.
    KubeApiserver,
    /// The real API server one minor version older.
    KubeApiserverOlder,
    /// The real controllers.
    KubeControllerManager,
    /// The real controllers one minor version older.
    KubeControllerManagerOlder,
    /// The real scheduler.
    KubeScheduler,
    /// The real node agent.
    Kubelet,
    /// The real service proxy.
    KubeProxy,
    /// kubectl of the same version as the real API server.
    Kubectl,
    /// kubectl one minor version older.
    KubectlOlder,
    /// The Kubernetes conformance suite.
    E2eTest,
    /// Simulated nodes.
    Kwok,
    /// helm 3.
    Helm3,
    /// helm 4.
    Helm4,
    /// Our load generator.
    Loadgen,
    /// A controller of ours, made with controller-runtime, that starts an API server for itself.
    Controller,
}

// === impl Tool ===

impl Tool {
    /// Every program there is.
    pub const ALL: [Self; 16] = [
        Self::Etcd,
        Self::Kubectl,
        Self::KubeApiserver,
        Self::E2eTest,
        Self::KubectlOlder,
        Self::Loadgen,
        Self::KubeControllerManager,
        Self::KubeScheduler,
        Self::Kubelet,
        Self::KubeProxy,
        Self::KubeApiserverOlder,
        Self::KubeControllerManagerOlder,
        Self::Kwok,
        Self::Helm3,
        Self::Helm4,
        Self::Controller,
    ];

    /// What the committed tests use.
    pub const FOR_TESTS: [Self; 14] = [
        Self::Etcd,
        Self::Kubectl,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::KubeScheduler,
        Self::Kubelet,
        Self::KubeProxy,
        Self::E2eTest,
        Self::KubectlOlder,
        Self::KubeApiserverOlder,
        Self::KubeControllerManagerOlder,
        Self::Helm3,
        Self::Helm4,
        Self::Controller,
    ];

    /// The name of its file.
    pub fn program(self) -> &'static str {
        self.recipe().program
    }

    /// Its version, as its wrapper module pins it.
    ///
    /// # Errors
    /// When the wrapper cannot be read.
    pub fn version(self) -> Result<String> {
        self.recipe().version()
    }

    /// Where it is, if it has been built.
    ///
    /// # Errors
    /// When its wrapper cannot be read.
    pub fn cached(self) -> Result<Option<PathBuf>> {
        let path = self.folder()?.join(self.program());
        Ok(path.is_file().then_some(path))
    }

    /// The folder in the cache that holds exactly this build.
    fn folder(self) -> Result<PathBuf> {
        let recipe = self.recipe();
        let mut hash = Sha256::new();
        let mut files: Vec<PathBuf> = fs::read_dir(recipe.module())
            .and_then(|entries| entries.map(|e| e.map(|e| e.path())).collect())
            .with_context(|| format!("read {}", recipe.module().display()))?;
        files.sort_unstable();
        for file in files {
            let content = fs::read(&file)?;
            hash.update(file.file_name().context("a file has a name")?.as_encoded_bytes());
            hash.update(content.len().to_le_bytes());
            hash.update(content);
        }
        hash.update(recipe.arguments()?.join(" "));
        let digest: String = hash.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect();
        let name = format!("{}-{}-{digest}", recipe.program, recipe.version()?);
        Ok(cache_folder()?.join("tools").join(name))
    }

    fn recipe(self) -> Recipe {
        Recipe::of(self)
    }
}

/// Where the program is; builds it first if the cache has none.
///
/// # Errors
/// When it does not build.
pub fn ensure(tool: Tool) -> Result<PathBuf> {
    match tool.cached()? {
        Some(path) => Ok(path),
        None => build::build(tool),
    }
}

/// The path of the program, which a [`crate::scenario::Need`] has made sure of.
///
/// # Errors
/// When it is not in the cache.
pub fn path(tool: Tool) -> Result<PathBuf> {
    let missing = || format!("{} is not built; `cargo xtask setup` builds it", tool.program());
    tool.cached()?.with_context(missing)
}

/// The folder of this crate, where the wrapper modules are.
fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wrapper_pins_its_program() {
        for tool in Tool::ALL {
            let version = tool.version().unwrap();
            assert!(version.starts_with('v'), "{tool:?}: {version}");
            let folder = tool.folder().unwrap();
            assert!(folder.starts_with(cache_folder().unwrap().join("tools")));
        }
    }

    #[test]
    fn older_programs_are_of_the_minor_version_before() {
        let minor = |tool: Tool| -> u32 {
            tool.version().unwrap().split('.').nth(1).unwrap().parse().unwrap()
        };
        for (tool, older) in [
            (Tool::Kubectl, Tool::KubectlOlder),
            (Tool::KubeApiserver, Tool::KubeApiserverOlder),
            (Tool::KubeControllerManager, Tool::KubeControllerManagerOlder),
        ] {
            assert_eq!(minor(tool), minor(older) + 1, "{tool:?}");
        }
    }
}
