//! One tenant that asks without end, beside many quiet ones: what these notice of it.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use kind_tests::hub::{self, Hub};
use kind_tests::{Run, Tool, cargo, tools};

use crate::setup;
use crate::steps::step;

use super::lines;

/// How many times longer the quiet ones' p99 may be beside the abuser.
const MOST: f64 = 3.0;

/// Below this many milliseconds a p99 is that of a machine with nothing to do.
const FLOOR: f64 = 1.0;

/// Measures `tenants` quiet tenants alone, and then beside an abuser with `workers` writers and as many
/// readers of everything, for so many seconds each.
pub(crate) fn abuse(tenants: usize, seconds: u64, workers: u32) -> Result<()> {
    setup::install_packages()?;
    setup::build(&[Tool::Loadgen])?;
    let program = step("build the server", || hub::PROGRAM.path(cargo::Profile::Release))?;
    let run = Run::open("bench-abuse")?;
    let tokens = run.subfolder("tokens")?.join("tokens.csv");
    std::fs::write(&tokens, "token-of-quiet,quiet,1\ntoken-of-abuser,abuser,2\n")?;
    let mut options = hub::Options::new(program);
    options.arguments.push(format!("--token-auth-file={}", tokens.display()));
    let mut hub = Hub::with(&run, "hub", options)?;
    let kubeconfig = hub.kubeconfig();
    let loadgen = tools::path(Tool::Loadgen)?;
    let part = |mut command: Command, name: &str, part: &str| {
        command
            .arg(format!("-kubeconfig={}", kubeconfig.display()))
            .arg(format!("-name={name}"))
            .arg(format!("-part={part}"))
            .arg(format!("-tenants={tenants}"))
            .arg(format!("-c={workers}"))
            .arg(format!("-duration={seconds}s"))
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        command
    };
    let load = |name: &str, of: &str| lines(&mut part(Command::new(&loadgen), name, of));
    step(&format!("{tenants} quiet tenants and an abuser"), || load("", "setup"))?;
    let alone = step("the quiet ones alone", || load("alone", "quiet"))?;
    let (beside, abuser) = step("the quiet ones beside the abuser", || {
        // The abuser's own program shares the machine, which is not what is measured: it has what others
        // leave, and makes way at once. In a session of its own, or merely of another priority, it would
        // keep a core for milliseconds from whoever is woken; and it keeps one core at most.
        let mut yielding = Command::new("chrt");
        yielding.args(["--idle", "0"]).arg(&loadgen).env("GOMAXPROCS", "1");
        let abuser = part(yielding, "abuser", "abuser").stdout(Stdio::piped()).spawn()?;
        let beside = load("beside", "quiet");
        let abuser = abuser.wait_with_output()?;
        ensure!(abuser.status.success(), "the abuser ended with {}", abuser.status);
        Ok((beside?, String::from_utf8(abuser.stdout)?))
    })?;
    let memory = hub.memory()?;
    hub.terminate()?;
    println!("{}{}{}", alone, beside, abuser);
    let p99 = |line: &str| figures(line).get("p99-ms").copied().context("no p99");
    let (alone, beside) = (p99(&alone)?, p99(&beside)?);
    let times = beside / alone.max(FLOOR);
    println!("the quiet ones' p99: {alone:.2} ms alone, {beside:.2} ms beside: {times:.2} times");
    println!("the server's memory: {} MB at most", memory.peak >> 20);
    ensure!(times <= MOST, "that is more than {MOST} times");
    Ok(())
}

/// The figures of a line: names and numbers in turn, after its label.
fn figures(line: &str) -> BTreeMap<&str, f64> {
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    let pairs = words.chunks_exact(2).filter_map(|pair| match pair {
        [name, value] => Some((*name, value.parse().ok()?)),
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_figures() {
        let found = figures("alone read-p99-ms 1.50 p99-ms 2.25 requests 30\n");
        assert_eq!(found.get("p99-ms"), Some(&2.25));
        assert_eq!(found.get("requests"), Some(&30.0));
        assert!(figures("").is_empty());
    }
}
