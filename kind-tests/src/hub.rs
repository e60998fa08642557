//! Our server as a process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cargo::Program;
use crate::clock::Stopwatch;
use crate::etcd::Etcd;
use crate::eventually::{PATIENCE, within};
use crate::https;
use crate::kubeconfig::Access;
use crate::process::{Memory, Process};
use crate::run::Run;

/// The server's program.
pub static PROGRAM: Program = Program::new("apiserver", "kcp-apiserver", "KCP_APISERVER");

/// The file that the server writes into its root directory.
const KUBECONFIG: &str = "admin.kubeconfig";

/// Where it keeps its keys there.
const KEYS: &str = "pki";

/// A running server with a root directory of its own. Stops when it is dropped.
#[derive(Debug)]
pub struct Hub {
    process: Process,
    options: Options,
    run: Run,
    name: String,
    root: PathBuf,
    url: String,
    ready_after: Duration,
}

/// What to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server's program.
    pub program: PathBuf,
    /// Its root directory; a fresh one in the run's folder if not given.
    pub root: Option<PathBuf>,
    /// The port, 0 for any free one.
    pub port: u16,
    /// Further flags.
    pub arguments: Vec<String>,
}

// === impl Options ===

impl Options {
    /// A server in a fresh root directory on a free port, with no further flags.
    pub fn new(program: PathBuf) -> Self {
        Self { program, root: None, port: 0, arguments: Vec::new() }
    }
}

// === impl Hub ===

impl Hub {
    /// Starts the server that the checkout holds, in a fresh root directory, on a free port.
    ///
    /// # Errors
    /// When it does not build, start, or become ready.
    pub fn start(run: &Run, name: &str) -> Result<Self> {
        Self::with(run, name, Options::new(PROGRAM.to_test()?))
    }

    /// Starts a server over an etcd, with the keys of another one over the same, if there is one.
    ///
    /// # Errors
    /// As [`Hub::with`].
    pub fn over(run: &Run, name: &str, etcd: &Etcd, other: Option<&Self>) -> Result<Self> {
        let root = run.subfolder(&format!("{name}-root"))?;
        if let Some(other) = other {
            copy_keys(&other.root, &root)?;
        }
        let mut options = Options { root: Some(root), ..Options::new(PROGRAM.to_test()?) };
        options.arguments.push(format!("--etcd-servers={}", etcd.urls().join(",")));
        if let Some(files) = etcd.certificates() {
            options.arguments.extend([
                format!("--etcd-cafile={}", files.authority.display()),
                format!("--etcd-certfile={}", files.certificate.display()),
                format!("--etcd-keyfile={}", files.key.display()),
            ]);
        }
        Self::with(run, name, options)
    }

    /// Starts a server as `options` say, and waits until it is ready.
    ///
    /// # Errors
    /// When it ends, or does not become ready in time.
    pub fn with(run: &Run, name: &str, mut options: Options) -> Result<Self> {
        let root = match &options.root {
            Some(root) => root.clone(),
            None => run.subfolder(&format!("{name}-root"))?,
        };
        let (process, url, ready_after) = launch(run, name, &options, &root)?;
        // Clients know it by its address, so it comes back at the same one.
        options.port = url.rsplit_once(':').context("a URL with a port")?.1.parse()?;
        Ok(Self {
            process,
            options,
            run: run.clone(),
            name: name.to_owned(),
            root,
            url,
            ready_after,
        })
    }

    /// Its address, `https://ADDRESS:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its port, which it keeps over restarts.
    pub fn port(&self) -> u16 {
        self.options.port
    }

    /// The address of a logical cluster; `*` for all.
    pub fn cluster_url(&self, cluster: &str) -> String {
        format!("{}/clusters/{cluster}", self.url)
    }

    /// The administrator's kubeconfig, with the contexts `root` (current) and `base`.
    pub fn kubeconfig(&self) -> PathBuf {
        self.root.join(KUBECONFIG)
    }

    /// The administrator's kubeconfig for one logical cluster, which is all that it knows of.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn kubeconfig_of(&self, cluster: &str) -> Result<PathBuf> {
        let text = fs::read_to_string(self.kubeconfig())?;
        let file = self.root.join(format!("{cluster}.kubeconfig"));
        fs::write(&file, text.replace("/clusters/root", &format!("/clusters/{cluster}")))?;
        Ok(file)
    }

    /// Its root directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// How long it took from its start until `/readyz` answered 200.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// Its resident memory.
    ///
    /// # Errors
    /// When it does not run.
    pub fn memory(&self) -> Result<Memory> {
        self.process.id().memory()
    }

    /// The processor time that it has used.
    ///
    /// # Errors
    /// When it does not run.
    pub fn cpu(&self) -> Result<Duration> {
        self.process.id().cpu()
    }

    /// SIGTERM; fails unless it ends by itself and well.
    ///
    /// # Errors
    /// As said.
    pub fn terminate(&mut self) -> Result<()> {
        let status = self.process.terminate()?;
        if !status.success() {
            bail!("after SIGTERM the server ended with {status}");
        }
        Ok(())
    }

    /// SIGKILL.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        self.process.kill()
    }

    /// Starts it again in the same root directory; ends it first, if it still runs.
    ///
    /// # Errors
    /// When it does not become ready again.
    pub fn restart(&mut self) -> Result<()> {
        self.process.terminate()?;
        let (process, url, ready_after) = launch(&self.run, &self.name, &self.options, &self.root)?;
        (self.process, self.url, self.ready_after) = (process, url, ready_after);
        Ok(())
    }

    /// Writes what its store holds to a file. The server must have ended.
    ///
    /// # Errors
    /// When it runs, or the file is there already.
    pub fn export(&self, file: &Path) -> Result<()> {
        self.of_store(&self.root, "export", file)
    }

    /// Starts in another root directory, at the same address and with the same keys: with a store
    /// that holds what an export says, else with an empty one. It ends first, if it still runs;
    /// returns the root directory that it had.
    ///
    /// # Errors
    /// When the directory has a store already, or the server does not become ready.
    pub fn replace(&mut self, root: &Path, export: Option<&Path>) -> Result<PathBuf> {
        self.process.terminate()?;
        copy_keys(&self.root, root)?;
        if let Some(export) = export {
            self.of_store(root, "import", export)?;
        }
        self.put_back(root)
    }

    /// Starts again in a root directory that it had; returns the one that it has.
    ///
    /// # Errors
    /// When it does not become ready.
    pub fn put_back(&mut self, root: &Path) -> Result<PathBuf> {
        self.process.terminate()?;
        let before = std::mem::replace(&mut self.root, root.to_owned());
        self.restart()?;
        Ok(before)
    }

    fn of_store(&self, root: &Path, action: &str, file: &Path) -> Result<()> {
        let mut command = Command::new(&self.options.program);
        command.args(["store", action]).arg(file).arg("--root-directory").arg(root);
        let output = command.output().context("run the server's program")?;
        if !output.status.success() {
            bail!("{action} of the store: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }
}

/// Copies the keys of the server in one root directory to another.
fn copy_keys(from: &Path, to: &Path) -> Result<()> {
    let (from, to) = (from.join(KEYS), to.join(KEYS));
    fs::create_dir_all(&to)?;
    for file in ["ca.crt", "ca.key", "sa.key"] {
        fs::copy(from.join(file), to.join(file)).with_context(|| format!("copy {file}"))?;
    }
    Ok(())
}

fn launch(
    run: &Run,
    name: &str,
    options: &Options,
    root: &Path,
) -> Result<(Process, String, Duration)> {
    let mut command = Command::new(&options.program);
    command.arg("--root-directory").arg(root).arg(format!("--secure-port={}", options.port));
    command.args(&options.arguments);
    let before = fs::metadata(run.folder().join(format!("{name}.log"))).map_or(0, |m| m.len());
    let watch = Stopwatch::start();
    let mut process = Process::spawn(run, name, command)?;
    let url = within(PATIENCE, "the server to say where it listens", || {
        process.check_running()?;
        let log = fs::read(process.log())?;
        let new = log.get(usize::try_from(before)?..).unwrap_or_default();
        Ok(announced_url(&String::from_utf8_lossy(new)))
    })?;
    let access = Access::read(&root.join(KUBECONFIG), Some("base"))
        .context("read the kubeconfig that the server wrote")?;
    // On all addresses at once it is reached by the name that it gives itself.
    let everywhere = url.starts_with("https://0.0.0.0:") || url.starts_with("https://[::]:");
    let url = if everywhere { access.server.clone() } else { url };
    let access = Access { server: url.clone(), ..access };
    https::until_ready(&mut process, &access)?;
    Ok((process, url, watch.elapsed()))
}

/// The first `https://ADDRESS:PORT` in a finished line of the log.
fn announced_url(log: &str) -> Option<String> {
    let (finished, _partial) = log.rsplit_once('\n')?;
    let (_, rest) = finished.split_once("https://")?;
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "[]:.-".contains(c)));
    let address = rest.get(..end.unwrap_or(rest.len()))?.trim_end_matches(['.', ':']);
    Some(format!("https://{address}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(log: &str, expect: Option<&str>) {
        assert_eq!(announced_url(log).as_deref(), expect, "{log:?}");
    }

    #[test]
    fn finds_the_address_in_a_finished_line() {
        check("", None);
        check("listening on https://127.0.0.1:64", None);
        check("listening on https://127.0.0.1:6443\n", Some("https://127.0.0.1:6443"));
        check("up\n at=\"https://[::1]:6443\" x\n", Some("https://[::1]:6443"));
    }
}
