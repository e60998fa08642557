//! Load on agents, for `cargo xtask bench sync` and `cargo xtask bench agents`: changes on one side,
//! and when they are seen on the other. One part at a time; what was measured is printed.
//!
//! One agent is run by hand, between the hub and a server. Of several each has a SyncTarget, and a
//! logical cluster of the other server for its physical cluster.
#![allow(clippy::print_stdout, reason = "figures are what is asked for")]

mod fleet;
mod load;
mod side;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use load::{Latencies, quantile};
use side::Side;

#[derive(Debug, Parser)]
struct Args {
    /// What to do.
    #[arg(value_enum)]
    part: Part,
    /// The hub's kubeconfig.
    #[arg(long)]
    from: PathBuf,
    /// The physical cluster's kubeconfig.
    #[arg(long)]
    to: PathBuf,
    /// Objects that are synced.
    #[arg(long)]
    objects: usize,
    /// Changes a second.
    #[arg(long, default_value_t = 100)]
    rate: u32,
    /// Seconds of changes.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Writers at a time.
    #[arg(long, default_value_t = 16)]
    workers: usize,
    /// Agents, if there are several.
    #[arg(long)]
    agents: Option<usize>,
    /// Where the files are put that several agents are started with.
    #[arg(long, requires = "agents")]
    folder: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Define the type on both sides, and the SyncTargets.
    Define,
    /// Wait until all SyncTargets are ready.
    Ready,
    /// Create the objects, and wait until all are on the other side.
    Create,
    /// Change objects in the hub at a steady rate.
    Down,
    /// Change statuses in the physical cluster at a steady rate.
    Up,
    /// Change everything as fast as it goes.
    Saturate,
}

/// How much of it.
#[derive(Clone, Copy, Debug)]
struct Load {
    objects: usize,
    rate: u32,
    seconds: u64,
    workers: usize,
    agents: Option<usize>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Args { part, from, to, objects, rate, seconds, workers, agents, folder } = Args::parse();
    let upstream = Side::open(&from, "/clusters/root")?;
    let downstream = Side::open(&to, if agents.is_some() { "/clusters/*" } else { "" })?;
    let load = Load { objects, rate, seconds, workers, agents };
    match part {
        Part::Define => match (agents, folder) {
            (Some(agents), Some(folder)) => {
                fleet::define(&upstream, &downstream, &to, agents, &folder).await
            }
            _ => {
                upstream.define().await?;
                upstream.make_target().await?;
                downstream.define().await
            }
        },
        Part::Ready => fleet::until_ready(&upstream, agents.unwrap_or(1)).await,
        Part::Create => {
            load::create(&upstream, load).await?;
            load::until_all(&downstream, objects).await
        }
        Part::Down => {
            print(&load::propagate(&upstream, &downstream, "spec", load).await?);
            Ok(())
        }
        Part::Up => {
            print(&load::propagate(&downstream, &upstream, "status", load).await?);
            Ok(())
        }
        Part::Saturate => load::saturate(&upstream, &downstream, load).await,
    }
}

fn print(taken: &Latencies) {
    let ms = |share: f64| quantile(&taken.0, share).as_secs_f64() * 1e3;
    let (p50, p99, worst) = (ms(0.5), ms(0.99), ms(1.0));
    println!("{} changes: p50 {p50:.1} ms, p99 {p99:.1} ms, worst {worst:.1} ms", taken.0.len());
}
