//! controller-runtime's own test suites, run against our server.
//!
//! Those suites start a kube-apiserver for themselves. Here they find our server under that name,
//! `tools/envtest/kube-apiserver`, which maps its flags; each server begins with the types of a real
//! cluster in `root`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::cargo::Profile;
use crate::conformance::{Spec, read_report};
use crate::control_plane::{ControlPlane, Options};
use crate::eventually::within;
use crate::hub::{self, Hub};
use crate::imported::import_types;
use crate::process::{Process, tail};
use crate::run::{Run, cache_folder};
use crate::tools::{self, Tool};

/// The module whose packages the suites are.
const MODULE: &str = "sigs.k8s.io/controller-runtime";

/// The suites that start an API server, by their packages below `pkg/`.
pub const SUITES: [&str; 14] = [
    "builder",
    "cache",
    "client",
    "client/apiutil",
    "cluster",
    "controller",
    "controller/controllerutil",
    "envtest",
    "handler",
    "internal/controller",
    "internal/recorder",
    "manager",
    "source",
    "webhook",
];

/// Past this a suite hangs.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// What the suites find where they look for programs.
#[derive(Debug)]
pub struct Assets {
    run: Run,
    folder: PathBuf,
    template: PathBuf,
}

// === impl Assets ===

impl Assets {
    /// Makes a root directory that holds the types of a real cluster, and the folder of programs.
    ///
    /// # Errors
    /// When something does not start, or a program is missing.
    pub fn prepare(run: &Run) -> Result<Self> {
        let plane = ControlPlane::start(run, "plane", Options::default())?;
        let mut hub = Hub::start(run, "template")?;
        import_types(&hub, plane.kubeconfig(), "root", &[])?;
        hub.terminate()?;
        plane.stop()?;
        let folder = run.subfolder("assets")?;
        symlink(module_folder().join("kube-apiserver"), folder.join("kube-apiserver"))?;
        for tool in [Tool::Etcd, Tool::Kubectl] {
            symlink(tools::path(tool)?, folder.join(tool.program()))?;
        }
        Ok(Self { run: run.clone(), folder, template: hub.root().to_owned() })
    }

    /// Runs a program that starts an API server for itself, and fails unless it ends well.
    ///
    /// # Errors
    /// As said, with the end of its log.
    pub fn run_program(&self, tool: Tool) -> Result<()> {
        let name = tool.program();
        let command = self.command(&tools::path(tool)?, name)?;
        let mut program = Process::spawn(&self.run, name, command)?;
        let status = within(LONGEST, name, || program.exited())?;
        ensure!(status.success(), "{name} ended with {status}:\n{}", tail(program.log(), 20));
        Ok(())
    }

    /// A program that looks for API servers here.
    fn command(&self, program: &Path, name: &str) -> Result<Command> {
        let mut command = Command::new(program);
        command
            .env("KUBEBUILDER_ASSETS", &self.folder)
            .env("KUBEBUILDER_CONTROLPLANE_START_TIMEOUT", "60s")
            .env("KCP_APISERVER", hub::PROGRAM.path(Profile::Dev)?)
            .env("KCP_TEMPLATE", &self.template)
            // Where the servers' folders are.
            .env("TMPDIR", self.run.subfolder(&format!("{name}-servers"))?);
        Ok(command)
    }

    /// Runs a suite and returns its specs.
    ///
    /// # Errors
    /// When it does not build, or does not run to its end. Specs that fail are no error.
    pub fn run_suite(&self, package: &str) -> Result<Vec<Spec>> {
        let name = package.replace('/', "-");
        let program = build(package, &name)?;
        let report = self.run.folder().join(format!("{name}.json"));
        let mut suite = self.command(&program, &name)?;
        suite
            .current_dir(source_folder()?.join("pkg").join(package))
            .arg(format!("-ginkgo.json-report={}", report.display()))
            .args(["-ginkgo.no-color", "-ginkgo.timeout=14m"]);
        let mut suite = Process::spawn(&self.run, &name, suite)?;
        let status = within(LONGEST, &name, || suite.exited())?;
        read_report(&report).with_context(|| format!("the suite {package} ended with {status}"))
    }
}

/// How many specs ended in each way.
pub fn counts(specs: &[Spec]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for spec in specs {
        *counts.entry(spec.state.as_str()).or_default() += 1;
    }
    counts
}

fn module_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/envtest")
}

/// The suites' programs are built into the cache; go knows what has changed.
fn build(package: &str, name: &str) -> Result<PathBuf> {
    let folder = cache_folder()?.join("envtest");
    fs::create_dir_all(&folder)?;
    let program = folder.join(format!("{name}.test"));
    let status = go()
        .args(["test", "-c", "-vet=off", "-trimpath", "-mod=readonly", "-o"])
        .arg(&program)
        .arg(format!("{MODULE}/pkg/{package}"))
        .env("CGO_ENABLED", "0")
        .status()
        .context("start go: Go 1.26 must be installed")?;
    ensure!(status.success(), "the suite {package} does not build");
    Ok(program)
}

/// Where go keeps the module's files, which the suites read.
fn source_folder() -> Result<PathBuf> {
    let output = go().args(["list", "-m", "-f", "{{.Dir}}", MODULE]).output()?;
    let folder = String::from_utf8(output.stdout)?.trim().to_owned();
    ensure!(
        !folder.is_empty(),
        "no files of {MODULE}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(PathBuf::from(folder))
}

fn go() -> Command {
    let mut go = Command::new("go");
    go.current_dir(module_folder()).env("GOTOOLCHAIN", "local").env("GOWORK", "off");
    go
}
