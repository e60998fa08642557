//! The Kubernetes conformance suite's own specs, by name.

use std::path::Path;

use anyhow::{Result, ensure};
use kind_tests::conformance::{check_passed, list, run as run_suite};
use kind_tests::progress::say;
use kind_tests::scenario::Need;
use kind_tests::{Hub, Run, Tool, scenario};

const NEEDS: [Need; 2] = [Need::Tool(Tool::E2eTest), Need::Tool(Tool::Kubectl)];

/// The specs that our server passes, of those that need nothing but an API server.
const FIRST_PART: &str = "api-server-first-part.txt";

fn all_pass(run: &Run, kubeconfig: &Path, specs: &str, count: usize) -> Result<()> {
    let names = list(specs)?;
    let ran = run_suite(run, kubeconfig, &names)?;
    check_passed(&ran)?;
    ensure!(ran.len() == count, "{} specs ran, not {count}", ran.len());
    say(format!("{count} conformance specs passed"));
    Ok(())
}

#[test]
fn our_server_passes_the_first_part() {
    scenario("our_server_passes_the_first_part", &NEEDS, |run| {
        let mut hub = Hub::start(run, "hub")?;
        all_pass(run, &hub.kubeconfig(), FIRST_PART, 34)?;
        hub.terminate()
    });
}
