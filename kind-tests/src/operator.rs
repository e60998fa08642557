//! The operator as a process.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::cargo::Program;
use crate::hub::Hub;
use crate::process::Process;
use crate::run::Run;

/// The operator's program.
pub static PROGRAM: Program = Program::new("operator", "kcp-operator", "KCP_OPERATOR");

/// The file that the API server writes for it.
const KUBECONFIG: &str = "operator.kubeconfig";

/// A running operator. Stops when it is dropped.
#[derive(Debug)]
pub struct Operator {
    process: Process,
    program: PathBuf,
    arguments: Vec<String>,
    run: Run,
    name: String,
}

// === impl Operator ===

impl Operator {
    /// Starts the operator that the checkout holds for a hub, with further flags. Physical clusters on
    /// loopback may be reached.
    ///
    /// # Errors
    /// When it does not build or start.
    pub fn start(run: &Run, name: &str, hub: &Hub, arguments: &[&str]) -> Result<Self> {
        Self::by(run, name, &Self::kubeconfig(hub), arguments)
    }

    /// The same, for the hub that a kubeconfig leads to.
    ///
    /// # Errors
    /// When it does not build or start.
    pub fn by(run: &Run, name: &str, kubeconfig: &Path, arguments: &[&str]) -> Result<Self> {
        let loopback = ["--allow-outbound=127.0.0.0/8"];
        let arguments = [&loopback[..], arguments].concat();
        Self::of(&PROGRAM.to_test()?, run, name, kubeconfig, &arguments)
    }

    /// Starts an operator by its program.
    ///
    /// # Errors
    /// When it does not start.
    pub fn of(
        program: &Path,
        run: &Run,
        name: &str,
        kubeconfig: &Path,
        arguments: &[&str],
    ) -> Result<Self> {
        let own = [format!("--kubeconfig={}", kubeconfig.display()), "--listen=127.0.0.1:0".into()];
        let arguments: Vec<String> =
            own.into_iter().chain(arguments.iter().map(|&argument| argument.to_owned())).collect();
        let process = spawn(program, run, name, &arguments)?;
        let (program, run, name) = (program.to_owned(), run.clone(), name.to_owned());
        Ok(Self { process, program, arguments, run, name })
    }

    /// The kubeconfig that a hub has written for its operator.
    pub fn kubeconfig(hub: &Hub) -> PathBuf {
        hub.root().join(KUBECONFIG)
    }

    /// Starts it again with the same flags; ends it first, if it still runs.
    ///
    /// # Errors
    /// When it does not start.
    pub fn restart(&mut self) -> Result<()> {
        self.process.terminate()?;
        self.process = spawn(&self.program, &self.run, &self.name, &self.arguments)?;
        Ok(())
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

fn spawn(program: &Path, run: &Run, name: &str, arguments: &[String]) -> Result<Process> {
    let mut command = Command::new(program);
    command.args(arguments);
    Process::spawn(run, name, command)
}
