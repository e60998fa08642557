//! The operator as a process.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Result, bail};

use crate::cargo::{self, Profile};
use crate::hub::Hub;
use crate::process::Process;
use crate::run::Run;

/// The operator's program and its package.
pub const PROGRAM: &str = "kcp-operator";
const PACKAGE: &str = "operator";

/// Names a program to test instead of the one that cargo builds.
const PROGRAM_VARIABLE: &str = "KCP_OPERATOR";

/// The file that the API server writes for it.
const KUBECONFIG: &str = "operator.kubeconfig";

/// A running operator. Stops when it is dropped.
#[derive(Debug)]
pub struct Operator {
    process: Process,
}

// === impl Operator ===

impl Operator {
    /// Starts the operator that the checkout holds for a hub, with further flags. Physical clusters on
    /// loopback may be reached.
    ///
    /// # Errors
    /// When it does not build or start.
    pub fn start(run: &Run, name: &str, hub: &Hub, arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(program()?);
        command
            .arg("--kubeconfig")
            .arg(hub.root().join(KUBECONFIG))
            .arg("--listen=127.0.0.1:0")
            .arg("--allow-outbound=127.0.0.0/8")
            .args(arguments);
        Ok(Self { process: Process::spawn(run, name, command)? })
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// SIGTERM; fails unless it ends by itself and well.
    ///
    /// # Errors
    /// As said.
    pub fn terminate(&mut self) -> Result<()> {
        let status = self.process.terminate()?;
        if !status.success() {
            bail!("after SIGTERM the operator ended with {status}");
        }
        Ok(())
    }
}

/// The operator's program: the one that `KCP_OPERATOR` names, else as cargo builds it, once.
///
/// # Errors
/// When it does not build.
pub fn program() -> Result<PathBuf> {
    static PROGRAM_BUILT: OnceLock<std::result::Result<PathBuf, String>> = OnceLock::new();
    let program = PROGRAM_BUILT.get_or_init(|| match std::env::var_os(PROGRAM_VARIABLE) {
        Some(program) => Ok(PathBuf::from(program)),
        None => cargo::build(PACKAGE, PROGRAM, Profile::Dev).map_err(|error| format!("{error:#}")),
    });
    program.clone().map_err(anyhow::Error::msg)
}
