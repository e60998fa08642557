//! kubectl, of either version, as a person would run it.

use std::fmt;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::eventually::within;
use crate::process::Process;
use crate::run::Run;
use crate::tools::{Tool, path};

/// Past this a kubectl hangs: some waits and retries of its own take half a minute.
const LONGEST: Duration = Duration::from_secs(120);

/// kubectl with a kubeconfig, and the arguments and variables that every call gets.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

/// What a kubectl said and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The exit code; -1 if a signal ended it.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

// === impl Kubectl ===

impl Kubectl {
    /// The given kubectl with a kubeconfig. Its caches are in the run's folder, so neither a
    /// person's files nor another version's caches play a part.
    ///
    /// # Errors
    /// When the program is not in the cache.
    pub fn new(run: &Run, tool: Tool, kubeconfig: &Path) -> Result<Self> {
        Ok(Self {
            program: path(tool)?,
            kubeconfig: kubeconfig.to_owned(),
            home: run.subfolder(&format!("home-{}", tool.version()?))?,
            arguments: Vec::new(),
            variables: Vec::new(),
        })
    }

    /// The same, with another server: for example a logical cluster's address.
    #[must_use]
    pub fn server(&self, url: &str) -> Self {
        self.with(&format!("--server={url}"))
    }

    /// The same, in another context of its kubeconfig.
    #[must_use]
    pub fn context(&self, name: &str) -> Self {
        self.with(&format!("--context={name}"))
    }

    /// The same, with another argument for every call.
    #[must_use]
    pub fn with(&self, argument: &str) -> Self {
        let mut other = self.clone();
        other.arguments.push(argument.to_owned());
        other
    }

    /// The same, with an environment variable for every call.
    #[must_use]
    pub fn variable(&self, name: &str, value: &str) -> Self {
        let mut other = self.clone();
        other.variables.push((name.to_owned(), value.to_owned()));
        other
    }

    /// The program's file.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// When it cannot be run or hangs. A failure of kubectl is an [`Output`] like others.
    pub fn run(&self, arguments: &[&str]) -> Result<Output> {
        self.run_with_input(arguments, "")
    }

    /// Runs it to its end with something on its standard input.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Result<Output> {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("start kubectl")?;
        let mut stdin = child.stdin.take().context("stdin is piped")?;
        let input = input.to_owned();
        // A kubectl that reads no input closes it: that is no fault of ours.
        let writer = thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap_or_default());
        let stdout = reader(child.stdout.take().context("stdout is piped")?);
        let stderr = reader(child.stderr.take().context("stderr is piped")?);
        let code = end_of(&mut child, arguments)?;
        writer.join().map_err(|_| anyhow!("the writer panicked"))?;
        Ok(Output { code, stdout: text(stdout)?, stderr: text(stderr)? })
    }

    /// Runs it and returns its standard output.
    ///
    /// # Errors
    /// When it fails.
    pub fn ok(&self, arguments: &[&str]) -> Result<String> {
        self.run(arguments)?.ok().with_context(|| format!("kubectl {}", arguments.join(" ")))
    }

    /// Runs it with something on its standard input and returns its standard output.
    ///
    /// # Errors
    /// When it fails.
    pub fn ok_with_input(&self, arguments: &[&str], input: &str) -> Result<String> {
        let output = self.run_with_input(arguments, input)?;
        output.ok().with_context(|| format!("kubectl {}", arguments.join(" ")))
    }

    /// Runs it, expecting it to fail, and returns its standard error.
    ///
    /// # Errors
    /// When it succeeds.
    pub fn fails(&self, arguments: &[&str]) -> Result<String> {
        let output = self.run(arguments)?;
        if output.code == 0 {
            bail!("kubectl {} should fail, but said:\n{output}", arguments.join(" "));
        }
        Ok(output.stderr)
    }

    /// Starts it in the background: for `--watch`, `proxy` and the like.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(&self, run: &Run, name: &str, arguments: &[&str]) -> Result<Process> {
        Process::spawn(run, name, self.command(arguments))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.home)
            .env_remove("EDITOR")
            .env_remove("KUBE_EDITOR")
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

// === impl Output ===

impl Output {
    /// Its standard output, if it succeeded.
    ///
    /// # Errors
    /// With all that it said, if it failed.
    pub fn ok(self) -> Result<String> {
        if self.code == 0 { Ok(self.stdout) } else { Err(anyhow!("{self}")) }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {}\n{}{}", self.code, self.stdout, self.stderr)
    }
}

fn end_of(child: &mut Child, arguments: &[&str]) -> Result<i32> {
    let what = format!("kubectl {}", arguments.join(" "));
    match within(LONGEST, &what, || Ok(child.try_wait()?)) {
        Ok(status) => Ok(status.code().unwrap_or(-1)),
        Err(error) => {
            child.kill()?;
            child.wait()?;
            Err(error)
        }
    }
}

fn reader(mut stream: impl Read + Send + 'static) -> JoinHandle<std::io::Result<Vec<u8>>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).map(|_| bytes)
    })
}

fn text(reader: JoinHandle<std::io::Result<Vec<u8>>>) -> Result<String> {
    let bytes = reader.join().map_err(|_| anyhow!("the reader panicked"))??;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
