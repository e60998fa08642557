//! The test suites, and what else has to pass before a change goes in.

use anyhow::Result;
use kind_tests::fleet::Programs;
use kind_tests::progress::say;
use kind_tests::run::clean_leftovers;
use kind_tests::{Etcd, Run, cargo, etcd};

use crate::demo;
use crate::setup;
use crate::steps::{execute, step};

/// Sets up what is missing and runs every test: first those of the crates, then those over real
/// programs, and last the demo.
pub(crate) fn test() -> Result<()> {
    setup::run(false)?;
    let crates = step("tests of the crates", || {
        execute(cargo::command().args([
            "test",
            "--workspace",
            "--exclude",
            "kind-tests",
            "--no-fail-fast",
        ]))
    });
    let programs = step("build the programs", || Programs::build(cargo::Profile::Dev))?;
    let clusters = step("tests over real programs", || {
        let mut tests = cargo::command();
        // A test that needs a program finds it, or fails: setup has built them all.
        tests.args(["test", "--package", "kind-tests", "--no-fail-fast"]);
        tests.env("KCP_APISERVER", &programs.apiserver);
        execute(&mut tests)
    });
    let replicas = step("the server's tests, as two servers over etcd", server_over_etcd);
    crates.and(clusters).and(replicas)?;
    // After a failure the folders of the failed runs stay, for a look; the next run removes them.
    let left = clean_leftovers()?;
    if left > 0 {
        say(format!("cleaned up after {left} test program(s) that ended badly"));
    }
    step("the demo", || demo::check(&programs))
}

/// The server's own tests once more: each server is two, over a real etcd.
fn server_over_etcd() -> Result<()> {
    let run = Run::open("server_over_etcd")?;
    let etcd = Etcd::start(&run, "etcd", etcd::Options::default())?;
    let mut tests = cargo::command();
    tests.args(["test", "--package", "apiserver", "--test", "it", "--no-fail-fast"]);
    tests.env("KCP_TEST_ETCD", etcd.urls().join(","));
    execute(&mut tests)?;
    etcd.stop()
}

/// Formatting, lints, tests, documentation.
pub(crate) fn ci() -> Result<()> {
    // To look at the crates takes what builds them.
    step("packages", setup::install_packages)?;
    step("formatting", || execute(cargo::command().args(["fmt", "--all", "--check"])))?;
    step("lints", || {
        let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        execute(cargo::command().args(lints))
    })?;
    test()?;
    step("documentation", || {
        let mut doc = cargo::command();
        doc.args(["doc", "--workspace", "--no-deps"]);
        execute(doc.env("RUSTDOCFLAGS", "-D rustdoc::broken_intra_doc_links"))
    })
}
