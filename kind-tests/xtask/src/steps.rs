//! Steps of a longer task, each with its time.

use std::process::Command;

use anyhow::{Context, Result, bail};
use kind_tests::clock::Stopwatch;
use kind_tests::progress::say;

use crate::interrupt;

/// Runs one step, and says what it is and how long it took.
pub(crate) fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    say(format!("=== {name}"));
    let watch = Stopwatch::start();
    let outcome = work();
    if outcome.is_err() {
        interrupt::stay_if_ending();
    }
    let seconds = watch.elapsed().as_secs_f64();
    match &outcome {
        Ok(_) => say(format!("=== {name}: done in {seconds:.1} s")),
        Err(_) => say(format!("=== {name}: FAILED after {seconds:.1} s")),
    }
    outcome.with_context(|| name.to_owned())
}

/// Runs a program to its end, with its output where ours goes.
pub(crate) fn execute(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_owned();
    let status = command.status().with_context(|| format!("run {}", program.display()))?;
    if !status.success() {
        bail!("{} ended with {status}", program.display());
    }
    Ok(())
}
