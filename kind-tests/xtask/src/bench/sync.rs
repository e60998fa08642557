//! One agent between a hub and a physical cluster's API: how fast changes and statuses get through,
//! what it takes, and that nothing is written when nothing changes.

mod pages;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kind_tests::clock::Stopwatch;
use kind_tests::hub::{self, Hub};
use kind_tests::{ControlPlane, Process, Run, Tool, agent, cargo, control_plane, ports};

use crate::setup;
use crate::steps::step;

pub(super) use self::pages::Pages;
use super::figures::megabytes;
use super::rest;

/// Which API stands for the physical cluster's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Physical {
    /// Our own server: what the agent itself can do.
    StandIn,
    /// kube-apiserver with etcd.
    Kubernetes,
}

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Objects that are synced.
    pub(crate) objects: usize,
    /// Changes a second while latencies are measured.
    pub(crate) rate: u32,
    /// Seconds of each measurement.
    pub(crate) seconds: u64,
    /// Writers while the agent is saturated.
    pub(crate) workers: usize,
}

// === impl Load ===

impl Load {
    /// As the program that makes it is told.
    pub(super) fn flags(self) -> [String; 4] {
        [
            format!("--objects={}", self.objects),
            format!("--rate={}", self.rate),
            format!("--seconds={}", self.seconds),
            format!("--workers={}", self.workers),
        ]
    }
}

/// How long the agent is watched doing nothing.
const IDLE: Duration = Duration::from_secs(20);

/// Measures one agent.
pub(crate) fn sync(physical: Physical, load: Load) -> Result<()> {
    setup::install_packages()?;
    if physical == Physical::Kubernetes {
        setup::build(&[Tool::Etcd, Tool::KubeApiserver])?;
    }
    let program = step("build the server", || hub::PROGRAM.path(cargo::Profile::Release))?;
    let agent = step("build the agent", || agent::PROGRAM.path(cargo::Profile::Release))?;
    let load_program = step("build the load", || {
        cargo::build_example("agent", "sync_load", cargo::Profile::Release)
    })?;
    let programs = Programs { agent, load: load_program };
    let run = Run::open("bench-sync")?;
    let mut hub = Hub::with(&run, "hub", hub::Options::new(program.clone()))?;
    match physical {
        Physical::StandIn => {
            let mut other = Hub::with(&run, "physical", hub::Options::new(program))?;
            let kubeconfig = other.kubeconfig();
            measure(&run, &mut hub, &[other.process()], &kubeconfig, &programs, load)?;
            other.terminate()?;
        }
        Physical::Kubernetes => {
            let options = control_plane::Options { durable: true, ..Default::default() };
            let plane = ControlPlane::start(&run, "physical", options)?;
            let kubeconfig = plane.kubeconfig().to_owned();
            measure(&run, &mut hub, &plane.processes(), &kubeconfig, &programs, load)?;
            plane.stop()?;
        }
    }
    hub.terminate()?;
    Ok(())
}

/// The programs that are run.
#[derive(Debug)]
struct Programs {
    agent: PathBuf,
    load: PathBuf,
}

fn measure(
    run: &Run,
    hub: &mut Hub,
    physical: &[&Process],
    to: &Path,
    programs: &Programs,
    load: Load,
) -> Result<()> {
    let from = hub.kubeconfig();
    let part = |name: &str| -> Result<String> {
        let output = Command::new(&programs.load)
            .arg(name)
            .arg(format!("--from={}", from.display()))
            .arg(format!("--to={}", to.display()))
            .args(load.flags())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("run the load")?;
        if !output.status.success() {
            bail!("the load ended with {}", output.status);
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    step("define a type on both sides", || part("define"))?;
    let [port] = ports::free()?;
    let mut command = Command::new(&programs.agent);
    command
        .arg(format!("--from-kubeconfig={}", from.display()))
        .arg(format!("--to-kubeconfig={}", to.display()))
        .args(["--sync-target=bench", "--cluster=root", "--resource=things.bench.io"])
        .arg(format!("--listen=127.0.0.1:{port}"));
    let agent = Process::spawn(run, "agent", command)?;
    let cpu = || agent.id().cpu();
    let hub = hub.process();
    let servers = || -> Result<Duration> {
        let other: Duration = physical.iter().map(|p| p.id().cpu()).sum::<Result<_>>()?;
        Ok(other + hub.id().cpu()?)
    };

    let begun = (Stopwatch::start(), cpu()?, servers()?);
    step(&format!("{} objects", load.objects), || part("create"))?;
    let first = (begun.0.elapsed(), cpu()? - begun.1, servers()? - begun.2);

    let pages = Pages::new(port);
    step("nothing to do", || pages.settle())?;
    let (writes, requests, idle_cpu) = (pages.writes()?, pages.requests()?, cpu()?);
    let watch = Stopwatch::start();
    rest(IDLE);
    let idle = (watch.elapsed(), pages.writes()? - writes, pages.requests()? - requests);
    let idle_cpu = cpu()? - idle_cpu;
    let memory = agent.id().memory()?;

    let down = step(&format!("{} changes/s", load.rate), || part("down"))?;
    let up = step(&format!("{} statuses/s", load.rate), || part("up"))?;

    pages.settle()?;
    let before = (cpu()?, servers()?, pages.applies()?);
    let watch = Stopwatch::start();
    step("as fast as it goes", || part("saturate"))?;
    let took = watch.elapsed();
    let (spent, theirs) = (cpu()? - before.0, servers()? - before.1);
    let applied = pages.applies()? - before.2;
    let end = agent.id().memory()?;
    ensure!(applied > 0.0, "the agent applied nothing");
    drop(agent);

    println!("{} objects, one agent", load.objects);
    println!(
        "first sync          {:>8.1} s  {:>7.0} objects/s",
        first.0.as_secs_f64(),
        per_second(load.objects, first.0)
    );
    println!(
        "  agent's CPU       {:>8.3} ms for each object; the servers' {:.3} ms",
        each(first.1, load.objects),
        each(first.2, load.objects)
    );
    println!("down at {}/s       {down}", load.rate);
    println!("up at {}/s         {up}", load.rate);
    println!("saturated           {:>8.0} syncs/s", applied / took.as_secs_f64());
    println!(
        "  agent's CPU       {:>8.3} ms a sync; the servers' {:.3} ms",
        spent.as_secs_f64() * 1e3 / applied,
        theirs.as_secs_f64() * 1e3 / applied
    );
    println!(
        "  of {:.1} s the agent used {:.1} s, the servers {:.1} s",
        took.as_secs_f64(),
        spent.as_secs_f64(),
        theirs.as_secs_f64()
    );
    println!(
        "idle for {:.0} s       {:>8.0} writes, {:.0} requests of the engine, {:.2} s CPU",
        idle.0.as_secs_f64(),
        idle.1,
        idle.2,
        idle_cpu.as_secs_f64()
    );
    println!(
        "agent's memory      {:>8} idle with all objects, {} at the end, {} at most",
        megabytes(memory.resident),
        megabytes(end.resident),
        megabytes(end.peak)
    );
    Ok(())
}

fn each(time: Duration, objects: usize) -> f64 {
    time.as_secs_f64() * 1e3 / count(objects)
}

fn per_second(objects: usize, time: Duration) -> f64 {
    count(objects) / time.as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "counts of objects")]
fn count(objects: usize) -> f64 {
    objects as f64
}
