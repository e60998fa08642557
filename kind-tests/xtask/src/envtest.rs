//! controller-runtime's own suites against our server: programs that embed an API server for their
//! tests, with clients and controllers in the same process, find ours where they look for one.

use anyhow::{Result, ensure};
use kind_tests::envtest::{Assets, counts};
use kind_tests::progress::say;
use kind_tests::{Run, Tool};

use crate::setup;
use crate::steps::step;

/// How many of the 296 specs of the suite `client` pass at least. Of the others, some ask for RBAC,
/// tokens and approvals, some for pods' evictions and bindings, some for rules of built-in kinds that
/// no schema publishes; and some finish namespaces by hand, which our server does by itself.
const CLIENT_SPECS: usize = 260;

/// Runs these suites, as `client,manager`, and says which specs fail and why.
///
/// Their programs wait only seconds for a server, so this is not among the tests that have to pass on
/// a busy machine.
pub(crate) fn run(suites: &[String]) -> Result<()> {
    setup::install_packages()?;
    setup::build(&[Tool::Etcd, Tool::KubeApiserver, Tool::Kubectl])?;
    let run = Run::open("envtest")?;
    let assets = step("build the server and the suites", || Assets::prepare(&run))?;
    for suite in suites {
        let specs = step(&format!("suite {suite}"), || assets.run_suite(suite))?;
        let counts = counts(&specs);
        println!("controller-runtime's suite {suite}: {counts:?}");
        for spec in specs.iter().filter(|spec| spec.state == "failed") {
            let reason = spec.message.lines().next().unwrap_or_default();
            say(format!("  failed: {}: {reason}", spec.name));
        }
        let least = if suite == "client" { CLIENT_SPECS } else { 1 };
        let passed = counts.get("passed").copied().unwrap_or_default();
        ensure!(passed >= least, "only {passed} specs pass in {suite}, not {least}");
    }
    Ok(())
}
