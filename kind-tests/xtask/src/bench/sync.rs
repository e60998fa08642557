//! One agent between a hub and a physical cluster's API: how fast changes and statuses get through,
//! what it takes, and that nothing is written when nothing changes.

mod load;
mod side;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kind_tests::clock::Stopwatch;
use kind_tests::hub::{self, Hub};
use kind_tests::{ControlPlane, Process, Run, Tool, cargo, control_plane};

use crate::setup;
use crate::steps::step;

use self::load::{Latencies, quantile};
use self::side::Side;
use super::figures::megabytes;

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

/// How long the agent is watched doing nothing.
const IDLE: Duration = Duration::from_secs(20);

/// Measures one agent.
pub(crate) fn sync(physical: Physical, load: Load) -> Result<()> {
    setup::install_packages()?;
    if physical == Physical::Kubernetes {
        setup::build(&[Tool::Etcd, Tool::KubeApiserver])?;
    }
    let program = step("build the server", || hub::program(cargo::Profile::Release))?;
    let agent =
        step("build the agent", || cargo::build("agent", "kcp-agent", cargo::Profile::Release))?;
    let run = Run::open("bench-sync")?;
    let mut hub = Hub::with(&run, "hub", hub::Options::new(program.clone()))?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match physical {
        Physical::StandIn => {
            let mut other = Hub::with(&run, "physical", hub::Options::new(program))?;
            let kubeconfig = other.kubeconfig();
            measure(&run, &runtime, &mut hub, &[other.process()], &kubeconfig, &agent, load)?;
            other.terminate()?;
        }
        Physical::Kubernetes => {
            let options = control_plane::Options { durable: true, ..Default::default() };
            let plane = ControlPlane::start(&run, "physical", options)?;
            let kubeconfig = plane.kubeconfig().to_owned();
            measure(&run, &runtime, &mut hub, &plane.processes(), &kubeconfig, &agent, load)?;
            plane.stop()?;
        }
    }
    hub.terminate()?;
    Ok(())
}

fn measure(
    run: &Run,
    runtime: &tokio::runtime::Runtime,
    hub: &mut Hub,
    physical: &[&Process],
    to: &std::path::Path,
    program: &std::path::Path,
    load: Load,
) -> Result<()> {
    let from = hub.kubeconfig();
    let upstream = Side::open(&from, "/clusters/root")?;
    let downstream = Side::open(to, "")?;
    runtime.block_on(async {
        upstream.define().await?;
        upstream.make_target().await?;
        downstream.define().await
    })?;
    let mut command = Command::new(program);
    let (port, listen) = side::free_port()?;
    command
        .arg(format!("--from-kubeconfig={}", from.display()))
        .arg(format!("--to-kubeconfig={}", to.display()))
        .args(["--sync-target=bench", "--cluster=root"])
        .arg("--resource=things.bench.io")
        .arg(format!("--listen={listen}"));
    let agent = Process::spawn(run, "agent", command)?;
    let cpu = || agent.id().cpu();
    let hub = hub.process();
    let servers = || -> Result<Duration> {
        let other: Duration = physical.iter().map(|p| p.id().cpu()).sum::<Result<_>>()?;
        Ok(other + hub.id().cpu()?)
    };

    let begun = (Stopwatch::start(), cpu()?, servers()?);
    step(&format!("{} objects", load.objects), || {
        runtime.block_on(load::create(&upstream, load))?;
        runtime.block_on(load::until_all(&downstream, load.objects))
    })?;
    let first = (begun.0.elapsed(), cpu()? - begun.1, servers()? - begun.2);

    let pages = side::Pages::new(port);
    step("nothing to do", || pages.settle())?;
    let (writes, requests, idle_cpu) = (pages.writes()?, pages.requests()?, cpu()?);
    let watch = Stopwatch::start();
    load::rest(IDLE);
    let idle = (watch.elapsed(), pages.writes()? - writes, pages.requests()? - requests);
    let idle_cpu = cpu()? - idle_cpu;
    let memory = agent.id().memory()?;

    let down = step(&format!("{} changes/s", load.rate), || {
        runtime.block_on(load::propagate(&upstream, &downstream, "spec", load))
    })?;
    let up = step(&format!("{} statuses/s", load.rate), || {
        runtime.block_on(load::propagate(&downstream, &upstream, "status", load))
    })?;

    pages.settle()?;
    let before = (cpu()?, servers()?, pages.applies()?);
    let watch = Stopwatch::start();
    step("as fast as it goes", || runtime.block_on(load::saturate(&upstream, &downstream, load)))?;
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
    print("changes down", &down, load.rate);
    print("statuses up", &up, load.rate);
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

fn print(what: &str, taken: &Latencies, rate: u32) {
    let ms = |share: f64| quantile(&taken.0, share).as_secs_f64() * 1e3;
    println!(
        "{what:<20}{:>8} at {rate}/s: p50 {:.1} ms, p99 {:.1} ms, worst {:.1} ms",
        taken.0.len(),
        ms(0.5),
        ms(0.99),
        ms(1.0)
    );
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
