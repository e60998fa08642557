//! A child process with a log file, that stops when it is dropped.

mod id;

use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::eventually::within;
use crate::run::Run;

pub use self::id::{Memory, ProcessId};

/// How long a process may take to end after SIGTERM before SIGKILL follows.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// A process that the harness started. It is in a process group of its own, so a Ctrl-C at the
/// terminal reaches the harness alone, which then ends it.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    id: ProcessId,
    log: PathBuf,
    status: Option<ExitStatus>,
}

// === impl Process ===

impl Process {
    /// Starts `command`, with both of its outputs appended to `<name>.log` in the run's folder,
    /// and records it there.
    ///
    /// # Errors
    /// When it cannot be started or recorded.
    pub fn spawn(run: &Run, name: &str, mut command: Command) -> Result<Self> {
        let log = run.folder().join(format!("{name}.log"));
        let output = OpenOptions::new().create(true).append(true).open(&log)?;
        let program = command.get_program().to_owned();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let id = ProcessId::of(child.id()).and_then(|id| run.record_process(&id).map(|()| id));
        match id {
            Ok(id) => Ok(Self { name: name.to_owned(), child, id, log, status: None }),
            Err(error) => {
                // Unrecorded processes must not outlive this call.
                child.kill()?;
                child.wait()?;
                Err(error)
            }
        }
    }

    /// Which process it is.
    pub fn id(&self) -> &ProcessId {
        &self.id
    }

    /// Its log file, standard output and error together.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The exit status, if it has ended.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        Ok(self.status)
    }

    /// Fails, with the end of its log, if the process has ended.
    ///
    /// # Errors
    /// As said.
    pub fn check_running(&mut self) -> Result<()> {
        match self.exited()? {
            None => Ok(()),
            Some(status) => bail!("{} ended early ({status}):\n{}", self.name, tail(&self.log, 20)),
        }
    }

    /// Waits for its end, however long that takes.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        let status = self.child.wait()?;
        self.status = Some(status);
        Ok(status)
    }

    /// SIGTERM, then SIGKILL if it does not end within ten seconds.
    ///
    /// # Errors
    /// When it cannot be signalled or waited for.
    pub fn terminate(&mut self) -> Result<ExitStatus> {
        if let Some(status) = self.exited()? {
            return Ok(status);
        }
        self.id.signal(Signal::TERM)?;
        match within(GRACE, &format!("{} to end", self.name), || self.exited()) {
            Ok(status) => Ok(status),
            Err(_slow) => self.kill(),
        }
    }

    /// SIGKILL.
    ///
    /// # Errors
    /// When it cannot be killed or waited for.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        if let Some(status) = self.exited()? {
            return Ok(status);
        }
        self.child.kill()?;
        self.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.terminate() {
            crate::progress::say(format!("could not stop {}: {error:#}", self.name));
        }
    }
}

/// Whether there is a program of this name on the `PATH`.
pub fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The last `lines` lines of a file; empty when there is none.
pub(crate) fn tail(file: &Path, lines: usize) -> String {
    let bytes = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
}
