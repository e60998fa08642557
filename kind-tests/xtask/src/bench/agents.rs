//! Many agents at one hub: what the hub, the operator and the agents take while nothing happens, and
//! how fast changes get through while some do.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use contract::SYNC_WRITES;
use kind_tests::agent::sum_at;
use kind_tests::clock::Stopwatch;
use kind_tests::hub::{self, Hub};
use kind_tests::{Operator, Process, Run, agent, cargo, operator, ports};

use crate::setup;
use crate::steps::step;

use super::figures::megabytes;
use super::sync::Load;
use super::{rest, settle};

/// How long everything is watched doing nothing.
const IDLE: Duration = Duration::from_secs(60);

/// Measures `agents` agents. A second server of ours stands for all physical clusters: each is a
/// logical cluster of it.
pub(crate) fn agents(agents: usize, load: Load) -> Result<()> {
    setup::install_packages()?;
    let program = step("build the server", || hub::PROGRAM.path(cargo::Profile::Release))?;
    let operator = step("build the operator", || operator::PROGRAM.path(cargo::Profile::Release))?;
    let agent = step("build the agent", || agent::PROGRAM.path(cargo::Profile::Release))?;
    let load_program = step("build the load", || {
        cargo::build_example("agent", "sync_load", cargo::Profile::Release)
    })?;
    let run = Run::open("bench-agents")?;
    let mut hub = Hub::with(&run, "hub", hub::Options::new(program.clone()))?;
    let mut other = Hub::with(&run, "physical", hub::Options::new(program))?;
    let flags = ["--allow-local-hub"];
    let kubeconfig = Operator::kubeconfig(&hub);
    let mut operator = Operator::of(&operator, &run, "operator", &kubeconfig, &flags)?;
    let folder = run.subfolder("agents")?;
    let part = Part { program: load_program, hub: hub.kubeconfig(), other: other.kubeconfig() };
    let part = |name: &str| part.run(name, agents, load, &folder);

    step(&format!("{agents} SyncTargets"), || part("define"))?;
    let before = settle(&[hub.process()])?;
    let watch = Stopwatch::start();
    let fleet = start(&run, &agent, &hub, &folder, agents)?;
    step("all are ready", || part("ready"))?;
    let ready = watch.elapsed();
    let watch = Stopwatch::start();
    step(&format!("{} objects", load.objects), || part("create"))?;
    let first = watch.elapsed();

    step("nothing to do", || settle_all(&fleet))?;
    let writes = || -> Result<f64> { fleet.iter().map(|one| sum_at(one.port, SYNC_WRITES)).sum() };
    let cpu = |hub: &Hub, operator: &mut Operator| -> Result<[Duration; 3]> {
        let all: Duration = fleet.iter().map(|one| one.process.id().cpu()).sum::<Result<_>>()?;
        Ok([hub.cpu()?, operator.process().id().cpu()?, all])
    };
    let (written, used) = (writes()?, cpu(&hub, &mut operator)?);
    let watch = Stopwatch::start();
    rest(IDLE);
    let idle = watch.elapsed().as_secs_f64();
    let (written, now) = (writes()? - written, cpu(&hub, &mut operator)?);
    let mut memory = fleet.iter().map(|one| Ok(one.process.id().memory()?.resident));
    let mut memory = memory.by_ref().collect::<Result<Vec<u64>>>()?;
    memory.sort_unstable();
    let hub_memory = hub.memory()?;
    let operator_memory = operator.process().id().memory()?;

    let down = step(&format!("{} changes/s", load.rate), || part("down"))?;
    let up = step(&format!("{} statuses/s", load.rate), || part("up"))?;
    drop(fleet);
    operator.terminate()?;
    hub.terminate()?;
    other.terminate()?;

    let share = |index: usize| {
        let (then, now) = (used.get(index).copied(), now.get(index).copied());
        let spent = now.unwrap_or_default().saturating_sub(then.unwrap_or_default());
        spent.as_secs_f64() / idle * 100.0
    };
    println!("{agents} agents, {} objects, one hub", load.objects);
    println!("all ready           {:>8.1} s after the first was started", ready.as_secs_f64());
    println!("first sync          {:>8.1} s", first.as_secs_f64());
    println!("idle for {idle:.0} s       {written:>8.0} writes of objects");
    println!(
        "  of one core       {:>8.2} % hub, {:.2} % operator, {:.2} % all agents",
        share(0),
        share(1),
        share(2)
    );
    println!(
        "memory              {:>8} hub ({} before them), {} operator",
        megabytes(hub_memory.resident),
        megabytes(before.resident),
        megabytes(operator_memory.resident)
    );
    let middle = memory.get(memory.len() / 2).copied().unwrap_or_default();
    let most = memory.last().copied().unwrap_or_default();
    println!(
        "  an agent          {:>8} in the middle, {} at most",
        megabytes(middle),
        megabytes(most)
    );
    println!("down at {}/s       {down}", load.rate);
    println!("up at {}/s         {up}", load.rate);
    Ok(())
}

/// The program that makes load, and the servers that it is made on.
struct Part {
    program: PathBuf,
    hub: PathBuf,
    other: PathBuf,
}

/// One agent.
struct One {
    process: Process,
    port: u16,
}

// === impl Part ===

impl Part {
    /// Does one part; what it printed.
    fn run(&self, name: &str, agents: usize, load: Load, folder: &Path) -> Result<String> {
        let output = Command::new(&self.program)
            .arg(name)
            .arg(format!("--from={}", self.hub.display()))
            .arg(format!("--to={}", self.other.display()))
            .arg(format!("--agents={agents}"))
            .arg(format!("--folder={}", folder.display()))
            .args(load.flags())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("run the load")?;
        if !output.status.success() {
            bail!("the load ended with {}", output.status);
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

/// Starts all agents, as their pods would.
fn start(run: &Run, program: &Path, hub: &Hub, folder: &Path, agents: usize) -> Result<Vec<One>> {
    let ports = ports::free_sets::<1>(agents)?;
    let start = |(number, [port]): (usize, [u16; 1])| {
        let file = |end: &str| folder.join(format!("{number}.{end}"));
        let uid = std::fs::read_to_string(file("uid"))?;
        let mut command = Command::new(program);
        command
            .arg(format!("--hub={}", hub.url()))
            .arg(format!("--hub-ca-file={}", hub.root().join("pki/ca.crt").display()))
            .arg(format!("--bootstrap-token-file={}", file("token").display()))
            .args(["--cluster=root", &format!("--sync-target=bench-{number}")])
            .arg(format!("--sync-target-uid={uid}"))
            .arg("--namespace=kcp-agent")
            .arg(format!("--to-kubeconfig={}", file("kubeconfig").display()))
            .arg(format!("--listen=127.0.0.1:{port}"));
        let process = Process::spawn(run, &format!("agent-{number}"), command)?;
        Ok(One { process, port })
    };
    ports.into_iter().enumerate().map(start).collect()
}

/// Waits until no agent has anything to do.
fn settle_all(fleet: &[One]) -> Result<()> {
    fleet.iter().try_for_each(|one| super::sync::Pages::new(one.port).settle())
}
