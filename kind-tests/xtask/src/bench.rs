//! Our server and kube-apiserver with etcd, under the same load on the same machine.

mod abuse;
mod agents;
mod figures;
mod garbage;
mod report;
mod spread;
mod sync;
mod types;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kind_tests::clock::Stopwatch;
use kind_tests::hub::{self, Hub};
use kind_tests::process::Memory;
use kind_tests::progress::say;
use kind_tests::{ControlPlane, Process, Run, Tool, cargo, control_plane, eventually, tools};

use crate::setup;
use crate::steps::step;

use self::figures::{Figures, megabytes};

pub(crate) use self::abuse::abuse;
pub(crate) use self::agents::agents;
pub(crate) use self::garbage::garbage;
pub(crate) use self::sync::{Load as SyncLoad, Physical, sync};
pub(crate) use self::types::types;

/// A server is idle when over this long
const WINDOW: Duration = Duration::from_secs(5);

/// it has used at most this share of one core.
const IDLE: f64 = 0.2;

/// Runs the load against both, in turn, and prints one table.
pub(crate) fn compare(objects: u32, workers: u32) -> Result<()> {
    setup::install_packages()?;
    setup::build(&[Tool::Etcd, Tool::KubeApiserver, Tool::Loadgen])?;
    let program = step("build the server", || hub::PROGRAM.path(cargo::Profile::Release))?;
    let run = Run::open("bench")?;
    let load = Load { objects, workers };

    let ours = step("load on our server", || {
        let mut hub = Hub::with(&run, "hub", hub::Options::new(program))?;
        let figures = load.put(&hub.kubeconfig(), "ours", &[hub.process()])?;
        hub.terminate()?;
        Ok(figures)
    })?;
    let theirs = step("load on kube-apiserver with etcd", || {
        let options = control_plane::Options { durable: true, ..Default::default() };
        let plane = ControlPlane::start(&run, "theirs", options)?;
        let figures = load.put(plane.kubeconfig(), "theirs", &plane.processes())?;
        plane.stop()?;
        Ok(figures)
    })?;
    println!("{}", report::table(&ours, &theirs, objects, workers));
    Ok(())
}

/// Writes one object into each of many logical clusters, and restarts the server.
pub(crate) fn scale(clusters: u32, workers: u32) -> Result<()> {
    setup::install_packages()?;
    setup::build(&[Tool::Loadgen])?;
    let program = step("build the server", || hub::PROGRAM.path(cargo::Profile::Release))?;
    let run = Run::open("bench-scale")?;
    let mut hub = Hub::with(&run, "hub", hub::Options::new(program))?;
    let before = hub.memory()?;
    let lines = step(&format!("one object into each of {clusters} logical clusters"), || {
        let arguments = [format!("-clusters={clusters}"), format!("-c={workers}")];
        load_generator(&hub.kubeconfig(), "ours", &[hub.process()], &arguments)
    })?;
    let after = settle(&[hub.process()])?;
    hub.restart()?;
    let (clean, after_restart) = (hub.ready_after(), hub.memory()?);
    hub.kill()?;
    hub.restart()?;
    let killed = hub.ready_after();
    hub.terminate()?;
    let each = after.resident.saturating_sub(before.resident) / u64::from(clusters.max(1));
    println!("{lines}");
    println!("resident memory before            {:>10}", megabytes(before.resident));
    println!("resident memory after             {:>10}", megabytes(after.resident));
    println!("  for each logical cluster        {each:>10} bytes");
    println!("  at most                         {:>10}", megabytes(after.peak));
    println!("  after a restart                 {:>10}", megabytes(after_restart.resident));
    println!("ready after a restart             {:>7} ms", clean.as_millis());
    println!("ready after SIGKILL and a restart {:>7} ms", killed.as_millis());
    Ok(())
}

/// How much load.
#[derive(Clone, Copy, Debug)]
struct Load {
    objects: u32,
    workers: u32,
}

// === impl Load ===

impl Load {
    fn put(self, kubeconfig: &Path, name: &str, servers: &[&Process]) -> Result<Figures> {
        let arguments = [format!("-n={}", self.objects), format!("-c={}", self.workers)];
        let lines = load_generator(kubeconfig, name, servers, &arguments)?;
        let memory = settle(servers)?;
        Figures::parse(&lines, memory)
    }
}

/// Runs the load generator and returns what it printed.
fn load_generator(
    kubeconfig: &Path,
    name: &str,
    servers: &[&Process],
    arguments: &[String],
) -> Result<String> {
    let pids: Vec<String> = servers.iter().map(|p| p.id().pid().to_string()).collect();
    let mut command = Command::new(tools::path(Tool::Loadgen)?);
    command
        .arg(format!("-kubeconfig={}", kubeconfig.display()))
        .arg(format!("-name={name}"))
        .arg(format!("-pids={}", pids.join(",")))
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    lines(&mut command)
}

/// What a load generator printed, once it has ended.
fn lines(command: &mut Command) -> Result<String> {
    let output = command.output().context("run loadgen")?;
    let lines = String::from_utf8(output.stdout)?;
    say(&lines);
    if !output.status.success() {
        bail!("loadgen ended with {}", output.status);
    }
    Ok(lines)
}

/// Does nothing for a time, which is part of what is measured.
#[expect(clippy::disallowed_methods, reason = "no condition is waited for")]
fn rest(time: Duration) {
    std::thread::sleep(time);
}

/// The memory of all servers together, once they use little processor time: the load ends with
/// the deletion of its namespace, which goes on after it.
fn settle(servers: &[&Process]) -> Result<Memory> {
    let cpu = || -> Result<Duration> { servers.iter().map(|server| server.id().cpu()).sum() };
    let (mut used, mut watch) = (cpu()?, Stopwatch::start());
    eventually("the servers to become idle", || {
        ensure!(watch.elapsed() >= WINDOW, "not yet known");
        let now = cpu()?;
        let calm = now - used <= WINDOW.mul_f64(IDLE);
        (used, watch) = (now, Stopwatch::start());
        ensure!(calm, "they still work");
        Ok(())
    })?;
    let mut total = Memory::default();
    for server in servers {
        let memory = server.id().memory()?;
        total.resident += memory.resident;
        total.peak += memory.peak;
    }
    Ok(total)
}
