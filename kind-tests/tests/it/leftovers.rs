//! A harness that is killed leaves processes; the next one ends them, and nothing else.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use kind_tests::process::ProcessId;
use kind_tests::run::clean_leftovers;
use kind_tests::scenario::Need;
use kind_tests::{Process, Run, eventually, scenario};

/// Set in the environment of the harness that is going to be killed: the file that it writes
/// the id of its child to.
const VICTIM: &str = "KIND_TESTS_VICTIM";

/// The namespace is best effort: without root there is none to clean.
fn crash_after_starting(report: &str) -> Result<()> {
    let run = Run::open("victim")?;
    let mut command = Command::new("sleep");
    command.arg("600");
    let child = Process::spawn(&run, "sleeper", command)?;
    let namespace = match Need::Namespaces.check() {
        Ok(()) => Some(kind_tests::namespace::Namespace::create(&run)?),
        Err(_) => None,
    };
    let namespace_name = namespace.as_ref().map_or("", |n| n.name());
    let text = format!("{}\n{namespace_name}\n{}", child.id(), run.folder().display());
    fs::write(format!("{report}.part"), text)?;
    fs::rename(format!("{report}.part"), report)?;
    eventually("to be killed", || -> Result<()> { anyhow::bail!("still alive") })
}

#[test]
fn the_next_run_cleans_up_after_a_killed_one() {
    const NAME: &str = "the_next_run_cleans_up_after_a_killed_one";
    if let Ok(report) = std::env::var(VICTIM) {
        return crash_after_starting(&report).unwrap();
    }
    scenario(NAME, &[], |run| {
        let report = run.folder().join("report");
        let mut victim = Command::new(std::env::current_exe()?)
            .args(["--exact", &format!("leftovers::{NAME}")])
            .env(VICTIM, &report)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let text = eventually("the victim to have started", || Ok(fs::read_to_string(&report)?));
        victim.kill()?;
        victim.wait()?;
        let text = text?;
        let mut lines = text.lines();
        let child: ProcessId = lines.next().context("no process")?.parse()?;
        let namespace = lines.next().context("no line for the namespace")?;
        let namespace = format!("/var/run/netns/{namespace}");
        let folder = lines.next().context("no folder")?;

        ensure!(child.is_running(), "the child should outlive its harness");
        let mut own = Process::spawn(run, "own", {
            let mut command = Command::new("sleep");
            command.arg("600");
            command
        })?;
        clean_leftovers()?;
        ensure!(!child.is_running(), "the child of the killed harness still runs");
        ensure!(!fs::exists(folder)?, "its folder is still there");
        ensure!(namespace.ends_with('/') || !fs::exists(&namespace)?, "{namespace} is still there");
        own.check_running().context("a process of a live harness must not be touched")
    });
}
