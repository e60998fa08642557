//! The demo: a hub, two physical clusters with real pods, and an application that runs on them.

mod job;
mod shell;
mod tour;

use anyhow::Result;
use kind_tests::control_plane::Release;
use kind_tests::fleet::{Plan, Programs};
use kind_tests::{Fleet, Kubectl, Provider, Run, Tool, cargo, cluster};

use crate::setup;
use crate::steps::step;
use crate::{DemoArguments, interrupt};

/// Starts everything, shows the job, and leaves it running, unless told to check only.
pub(crate) fn run(arguments: &DemoArguments) -> Result<()> {
    anyhow::ensure!(
        arguments.provider == Provider::Native,
        "the provider `kind` is not supported yet: use `native`"
    );
    setup::install_packages()?;
    setup::build(&cluster::tools())?;
    let profile = if arguments.dev { cargo::Profile::Dev } else { cargo::Profile::Quick };
    let programs = step("build the programs", || Programs::build(profile))?;
    in_a_run(&programs, arguments.check)
}

/// Shows the job with these programs, checks it, and cleans up.
pub(crate) fn check(programs: &Programs) -> Result<()> {
    in_a_run(programs, true)
}

fn in_a_run(programs: &Programs, check: bool) -> Result<()> {
    let run = Run::open("demo")?;
    show(&run, programs, check).inspect_err(|_| run.failed())
}

fn show(run: &Run, programs: &Programs, check: bool) -> Result<()> {
    let clusters = job::CLUSTERS.map(|name| (name, Release::Current));
    let plan = Plan { clusters: &clusters, operator: &[] };
    let start = || Fleet::start(run, programs, &plan);
    let mut fleet = step("start the hub, the operator and two physical clusters", start)?;
    println!("The hub listens on {}.\n", fleet.hub().url());
    let kubectl = Kubectl::new(run, Tool::Kubectl, &fleet.hub().kubeconfig())?;
    tour::give(fleet.hub(), &kubectl)?;
    job::show(run, &mut fleet)?;
    if check {
        fleet.hub().terminate()?;
        println!("The demo works.");
        return Ok(());
    }
    println!("All of it goes on running until Ctrl-C. To reach it from another terminal:\n");
    println!("  export KUBECONFIG={}", fleet.hub().kubeconfig().display());
    println!("  alias kubectl={}", kubectl.program().display());
    let url = fleet.hub().cluster_url(job::LOGICAL_CLUSTER);
    println!("  kubectl --server={url} get deployments");
    // A signal ends this program, and all of it with it; a hub that ends by itself is an error.
    let status = fleet.hub().process().wait()?;
    interrupt::stay_if_ending();
    anyhow::bail!("the hub ended by itself: {status}")
}
