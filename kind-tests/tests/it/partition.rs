//! Random schedules of faults over real processes: a hub, an operator, an agent, a physical API, and
//! the connections between them, while somebody goes on changing objects.
//!
//! Whatever happens, no copy is deleted whose object nobody has deleted or taken away, no change that
//! was acknowledged is lost, and when all is well again both sides agree. A schedule follows from its
//! seed, which is printed: `PARTITION_SEED` repeats one, `PARTITION_RUNS` says how many there are.

mod check;
mod model;
mod play;
mod schedule;
mod writer;

use anyhow::{Context, Result};
use kind_tests::clock::Stopwatch;
use kind_tests::progress::say;
use kind_tests::{Run, scenario};

use self::play::Stage;
use self::schedule::Schedule;
use crate::site::{self, Kind, Site};

/// The first seed, and how many schedules there are, if nobody says so.
const SEED: u64 = 1;
const RUNS: u64 = 6;

/// What is synced: two types are as good as many.
const RESOURCES: [&str; 2] = ["configmaps", "deployments.apps"];

fn number(variable: &str, otherwise: u64) -> Result<u64> {
    match std::env::var(variable) {
        Ok(text) => text.parse().with_context(|| format!("{variable} is no number: {text}")),
        Err(_absent) => Ok(otherwise),
    }
}

fn schedules(run: &Run) -> Result<()> {
    let (first, runs) = (number("PARTITION_SEED", SEED)?, number("PARTITION_RUNS", RUNS)?);
    let mut stage =
        Stage::new(Site::start(run, Kind { resources: &RESOURCES, ..Kind::default() })?)?;
    for seed in first..first.saturating_add(runs) {
        let schedule = Schedule::of(seed);
        say(format!("PARTITION_SEED={seed}: {schedule}"));
        let watch = Stopwatch::start();
        let told = stage.play(&schedule).with_context(|| format!("PARTITION_SEED={seed}"))?;
        say(format!("seed {seed}: {told}, {:.1} s", watch.elapsed().as_secs_f64()));
    }
    stage.end()
}

#[test]
fn random_schedules_of_faults() {
    scenario("partition", &site::NEEDS, schedules);
}
