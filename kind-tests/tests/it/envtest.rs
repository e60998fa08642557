//! controller-runtime's own suites against our server: programs that embed an API server for their
//! tests, with clients and controllers in the same process, find ours where they look for one.

use anyhow::ensure;
use kind_tests::envtest::{Assets, counts};
use kind_tests::progress::say;
use kind_tests::scenario::Need;
use kind_tests::{Tool, scenario};

/// Names the suites to run, as `client,manager`; see [`kind_tests::envtest::SUITES`].
const SUITES_VARIABLE: &str = "KCP_ENVTEST_SUITES";

/// How many of the 296 specs of the suite `client` pass at least. Of the others, some ask for RBAC,
/// tokens and approvals, some for pods' evictions and bindings, some for rules of built-in kinds that
/// no schema publishes; and some finish namespaces by hand, which our server does by itself.
const CLIENT_SPECS: usize = 260;

#[test]
fn suites_of_controller_runtime_pass() {
    let needs = [Tool::Etcd, Tool::KubeApiserver, Tool::Kubectl].map(Need::Tool);
    scenario("suites_of_controller_runtime_pass", &needs, |run| {
        let assets = Assets::prepare(run)?;
        let chosen = std::env::var(SUITES_VARIABLE).unwrap_or_else(|_| "client".to_owned());
        for suite in chosen.split(',') {
            let specs = assets.run_suite(suite)?;
            let counts = counts(&specs);
            say(format!("controller-runtime's suite {suite}: {counts:?}"));
            for spec in specs.iter().filter(|spec| spec.state == "failed") {
                let reason = spec.message.lines().next().unwrap_or_default();
                say(format!("  failed: {}: {reason}", spec.name));
            }
            let least = if suite == "client" { CLIENT_SPECS } else { 1 };
            let passed = counts.get("passed").copied().unwrap_or_default();
            ensure!(passed >= least, "only {passed} specs pass in {suite}, not {least}");
        }
        Ok(())
    });
}
