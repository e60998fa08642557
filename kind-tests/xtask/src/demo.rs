//! The tour of a hub with two logical clusters.

mod tour;

use std::path::PathBuf;

use anyhow::Result;
use kind_tests::hub::{self, Hub};
use kind_tests::{Kubectl, Provider, Run, Tool, cargo};

use crate::setup;
use crate::steps::step;
use crate::{DemoArguments, interrupt};

use self::tour::Tour;

/// What the demo needs beside the server.
const TOOLS: [Tool; 1] = [Tool::Kubectl];

/// Starts the hub, gives the tour, and leaves the hub running, unless told to check only.
pub(crate) fn run(arguments: &DemoArguments) -> Result<()> {
    anyhow::ensure!(
        arguments.provider == Provider::Native,
        "the provider `kind` is not supported yet: use `native`"
    );
    setup::install_packages()?;
    setup::build(&TOOLS)?;
    let program = step("build the server", || hub::program(cargo::Profile::Release))?;
    let root = arguments.root_directory.as_deref().map(std::path::absolute).transpose()?;
    let options = hub::Options { root, port: arguments.secure_port, ..hub::Options::new(program) };
    in_a_run(options, arguments.check)
}

/// Gives the tour of a fresh hub that runs `program`, checks it, and cleans up.
pub(crate) fn check(program: PathBuf) -> Result<()> {
    in_a_run(hub::Options::new(program), true)
}

fn in_a_run(options: hub::Options, check: bool) -> Result<()> {
    let run = Run::open("demo")?;
    show(&run, options, check).inspect_err(|_| run.failed())
}

fn show(run: &Run, options: hub::Options, check: bool) -> Result<()> {
    let mut hub = Hub::with(run, "hub", options)?;
    println!("The hub listens on {} and keeps its data in {}.", hub.url(), hub.root().display());
    println!("It was ready after {} ms.\n", hub.ready_after().as_millis());
    let kubectl = Kubectl::new(run, Tool::Kubectl, &hub.kubeconfig())?;
    Tour::new(&hub, &kubectl).give()?;
    if check {
        hub.terminate()?;
        println!("The demo works.");
        return Ok(());
    }
    println!("The hub goes on running until Ctrl-C. To reach it from another terminal:\n");
    println!("  export KUBECONFIG={}", hub.kubeconfig().display());
    println!("  alias kubectl={}", kubectl.program().display());
    println!("  kubectl --server={} get configmaps", hub.cluster_url("one"));
    // A signal ends this program, and the hub with it; a hub that ends by itself is an error.
    wait_for_end(&mut hub)
}

fn wait_for_end(hub: &mut Hub) -> Result<()> {
    let status = hub.process().wait()?;
    interrupt::stay_if_ending();
    anyhow::bail!("the hub ended by itself: {status}")
}
