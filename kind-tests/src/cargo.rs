//! The workspace and the programs that cargo builds in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// How cargo builds a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Quick to build, with checks on.
    Dev,
    /// Optimised, but not at any price: for who waits for it.
    Quick,
    /// As users run it.
    Release,
}

/// A program of the workspace that the harness starts.
#[derive(Debug)]
pub struct Program {
    package: &'static str,
    binary: &'static str,
    /// The variable of the environment that names one to test instead of the one that cargo builds.
    variable: &'static str,
    to_test: OnceLock<std::result::Result<PathBuf, String>>,
}

// === impl Program ===

impl Program {
    pub(crate) const fn new(
        package: &'static str,
        binary: &'static str,
        variable: &'static str,
    ) -> Self {
        Self { package, binary, variable, to_test: OnceLock::new() }
    }

    /// The file that its variable names, else as cargo builds it.
    ///
    /// # Errors
    /// When it does not build.
    pub fn path(&self, profile: Profile) -> Result<PathBuf> {
        match std::env::var_os(self.variable) {
            Some(program) => Ok(PathBuf::from(program)),
            None => build(self.package, self.binary, profile),
        }
    }

    /// The one that tests start, looked for once.
    pub(crate) fn to_test(&self) -> Result<PathBuf> {
        let found = || self.path(Profile::Dev).map_err(|error| format!("{error:#}"));
        self.to_test.get_or_init(found).clone().map_err(anyhow::Error::msg)
    }
}

/// The folder with the workspace's `Cargo.toml`.
///
/// # Panics
/// Never: this crate has a parent folder.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate is inside the workspace")
}

/// The command `cargo` of this toolchain, in the workspace.
pub fn command() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace());
    cargo
}

/// Builds the program `binary` of `package`, unless it is up to date, and says where it is.
///
/// # Errors
/// When it does not build.
pub fn build(package: &str, binary: &str, profile: Profile) -> Result<PathBuf> {
    build_by(command(), package, ["--bin", binary], profile)
}

/// As [`build`], for an example.
///
/// # Errors
/// When it does not build.
pub fn build_example(package: &str, example: &str, profile: Profile) -> Result<PathBuf> {
    build_by(command(), package, ["--example", example], profile)
}

/// As [`build`], but the program needs no libraries of the system: for images that hold it alone.
///
/// # Errors
/// When it does not build.
pub fn build_static(package: &str, binary: &str, profile: Profile) -> Result<PathBuf> {
    let mut cargo = command();
    // For the target alone: what runs while building, as procedural macros do, is loaded by the
    // compiler.
    cargo.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS", "-C target-feature=+crt-static");
    cargo.env("CARGO_BUILD_TARGET", "x86_64-unknown-linux-gnu");
    build_by(cargo, package, ["--bin", binary], profile)
}

fn build_by(
    mut cargo: Command,
    package: &str,
    what: [&str; 2],
    profile: Profile,
) -> Result<PathBuf> {
    let [_, binary] = what;
    cargo.args(["build", "--package", package]).args(what);
    cargo.arg("--message-format=json-render-diagnostics");
    match profile {
        Profile::Dev => {}
        Profile::Quick => {
            cargo.arg("--profile=quick");
        }
        Profile::Release => {
            cargo.arg("--release");
        }
    }
    let output = cargo.stderr(Stdio::inherit()).output().context("run cargo")?;
    if !output.status.success() {
        bail!("{binary} does not build");
    }
    let text = String::from_utf8(output.stdout)?;
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let executable = messages
        .filter(|m| m["reason"] == "compiler-artifact" && m["target"]["name"] == binary)
        .find_map(|m| m["executable"].as_str().map(PathBuf::from));
    executable.with_context(|| format!("cargo did not say where {binary} is"))
}
