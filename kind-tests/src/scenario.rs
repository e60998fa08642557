//! What a test over real programs stands on, and what happens where that is missing.

use anyhow::{Result, bail};

use crate::cluster::missing_packages;
use crate::progress::say;
use crate::run::Run;
use crate::tools::{Tool, ensure};

/// Something a scenario cannot run without.
#[derive(Clone, Copy, Debug)]
pub enum Need {
    /// A program in the cache.
    Tool(Tool),
    /// The right to make network namespaces: root, and the `ip` program.
    Namespaces,
    /// The programs of a node that Debian ships.
    Node,
}

/// Runs one test with a [`Run`] of its own, and fails, with the ends of all logs, if it errs.
///
/// Where a need is not met the test is skipped, and says why; with `CI=true` in the environment
/// missing programs are built, and what is still not met fails the test.
///
/// # Panics
/// When the test fails, as test runners want it.
pub fn scenario(name: &str, needs: &[Need], test: impl FnOnce(&Run) -> Result<()>) {
    for need in needs {
        if let Err(reason) = need.check() {
            assert!(!in_ci(), "{name} cannot run, and with CI=true it must: {reason:#}");
            say(format!("skipped {name}: {reason:#}"));
            return;
        }
    }
    let outcome = Run::open(name).and_then(|run| test(&run).inspect_err(|_| run.failed()));
    if let Err(error) = outcome {
        panic!("{name}: {error:#}");
    }
}

/// Whether this is an automatic run, where nothing may be skipped.
pub fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

// === impl Need ===

impl Need {
    /// Whether it is met.
    ///
    /// # Errors
    /// With the reason, if it is not.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Tool(tool) if in_ci() => ensure(tool).map(|_| ()),
            Self::Tool(tool) if tool.cached()?.is_none() => {
                let (program, version) = (tool.program(), tool.version()?);
                bail!("{program} {version} is not built yet; `cargo xtask setup` builds it")
            }
            Self::Tool(_) => Ok(()),
            Self::Namespaces if !rustix::process::geteuid().is_root() => {
                bail!("network namespaces need root")
            }
            Self::Namespaces if std::process::Command::new("ip").arg("-V").output().is_err() => {
                bail!("the program `ip` is missing; `cargo xtask setup` installs it")
            }
            Self::Namespaces => Ok(()),
            Self::Node => {
                let missing = missing_packages();
                if !missing.is_empty() {
                    bail!("{} is missing; `cargo xtask setup` installs it", missing.join(", "))
                }
                Ok(())
            }
        }
    }
}
