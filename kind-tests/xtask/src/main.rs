//! `cargo xtask`: the only task runner of this repository.
#![allow(clippy::print_stdout, reason = "a program that talks to a person at a terminal")]

mod bench;
mod demo;
mod envtest;
mod image;
mod interrupt;
mod setup;
mod steps;
mod suites;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use kind_tests::Provider;
use kind_tests::progress::say;

/// Sets up, tests, shows and measures kcp-rs.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Installs and builds what tests and demo need and is missing.
    Setup(SetupArguments),
    /// Sets up what is missing, then runs every test.
    Test,
    /// Starts a hub and two physical clusters, runs an application on them, and leaves all of it
    /// running until Ctrl-C.
    Demo(DemoArguments),
    /// Writes the image of a program to a file, for `docker load`, `ctr images import` or `kind load
    /// image-archive`. The program is linked statically.
    Image(ImageArguments),
    /// Compares our server with kube-apiserver and etcd under the same load.
    Bench(BenchArguments),
    /// Runs suites of controller-runtime against our server, in place of its API server.
    Envtest {
        /// Which, separated by commas.
        #[arg(long, value_delimiter = ',', default_value = "client")]
        suites: Vec<String>,
    },
    /// Everything that has to pass before a change goes in: formatting, lints, tests, docs.
    Ci,
}

#[derive(Debug, Args)]
struct SetupArguments {
    /// Also build the programs that no committed test needs yet.
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
struct DemoArguments {
    /// Check what the commands say, clean up, and exit 0 or 1.
    #[arg(long)]
    check: bool,
    /// Build our programs as tests do: sooner, but slower to run.
    #[arg(long)]
    dev: bool,
    /// Who makes physical clusters: native or kind.
    #[arg(long, default_value = "native")]
    provider: Provider,
}

#[derive(Debug, Args)]
struct ImageArguments {
    /// Which program.
    #[arg(long, default_value = "kcp-agent")]
    program: image::Program,
    /// The image's name with its tag; by default `<program>:<version>`.
    #[arg(long)]
    name: Option<String>,
    /// The file; by default `<program>.tar`.
    #[arg(long)]
    output: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct BenchArguments {
    /// What to measure instead of the comparison.
    #[command(subcommand)]
    what: Option<BenchWhat>,
    /// Objects in each row.
    #[arg(long, default_value_t = 5000)]
    objects: u32,
    /// Concurrent clients.
    #[arg(long, default_value_t = 16)]
    workers: u32,
}

#[derive(Debug, Subcommand)]
enum BenchWhat {
    /// Many logical clusters on one server: memory, creation rate, restart time.
    Scale {
        /// How many.
        #[arg(long, default_value_t = 10_000)]
        clusters: u32,
    },
    /// Many logical clusters that are deleted while a tenant works: what it notices, memory.
    Gc {
        /// Logical clusters that are deleted.
        #[arg(long, default_value_t = 1_000)]
        clusters: usize,
        /// Objects in each.
        #[arg(long, default_value_t = 100)]
        objects: usize,
    },
    /// One tenant that asks without end, beside many quiet ones: what these notice.
    Abuse {
        /// Quiet tenants, each in a logical cluster of its own.
        #[arg(long, default_value_t = 100)]
        tenants: usize,
        /// Seconds of each measurement.
        #[arg(long, default_value_t = 20)]
        seconds: u64,
    },
    /// One agent between two API servers: latencies, rate, CPU, memory, and what it does when idle.
    Sync {
        /// Which API stands for the physical cluster's.
        #[arg(long, value_enum, default_value = "stand-in")]
        physical: bench::Physical,
        /// Objects that are synced.
        #[arg(long, default_value_t = 2_000)]
        synced: usize,
        /// Changes a second while latencies are measured.
        #[arg(long, default_value_t = 100)]
        rate: u32,
        /// Seconds of each measurement.
        #[arg(long, default_value_t = 20)]
        seconds: u64,
    },
    /// Many agents at one hub, each with a physical cluster: memory, CPU, latencies.
    Agents {
        /// How many.
        #[arg(long, default_value_t = 200)]
        agents: usize,
        /// Objects that are synced, over all of them.
        #[arg(long, default_value_t = 2_000)]
        synced: usize,
        /// Changes a second while latencies are measured, over all of them.
        #[arg(long, default_value_t = 100)]
        rate: u32,
        /// Seconds of each measurement.
        #[arg(long, default_value_t = 20)]
        seconds: u64,
    },
    /// Many custom types, the same ones in many logical clusters: memory, time, CPU.
    Types {
        /// Different definitions.
        #[arg(long, default_value_t = 500)]
        definitions: usize,
        /// Logical clusters that have all of them.
        #[arg(long, default_value_t = 20)]
        clusters: usize,
    },
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            interrupt::stay_if_ending();
            say(format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    interrupt::end_children_on_signal()?;
    match &arguments.task {
        Task::Setup(setup) => setup::run(setup.all),
        Task::Test => suites::test(),
        Task::Demo(demo) => demo::run(demo),
        Task::Bench(bench) => match bench.what {
            None => bench::compare(bench.objects, bench.workers),
            Some(BenchWhat::Scale { clusters }) => bench::scale(clusters, bench.workers),
            Some(BenchWhat::Gc { clusters, objects }) => {
                bench::garbage(clusters, objects, bench.workers)
            }
            Some(BenchWhat::Abuse { tenants, seconds }) => {
                bench::abuse(tenants, seconds, bench.workers)
            }
            Some(BenchWhat::Sync { physical, synced, rate, seconds }) => {
                let workers = usize::try_from(bench.workers)?;
                bench::sync(physical, bench::SyncLoad { objects: synced, rate, seconds, workers })
            }
            Some(BenchWhat::Agents { agents, synced, rate, seconds }) => {
                let workers = usize::try_from(bench.workers)?;
                let load = bench::SyncLoad { objects: synced, rate, seconds, workers };
                bench::agents(agents, load)
            }
            Some(BenchWhat::Types { definitions, clusters }) => {
                bench::types(definitions, clusters, bench.workers)
            }
        },
        Task::Envtest { suites } => envtest::run(suites),
        Task::Image(arguments) => image::write(arguments),
        Task::Ci => suites::ci(),
    }
}
