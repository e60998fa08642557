//! The Kubernetes conformance suite's own specs, by name.

use std::path::Path;

use anyhow::{Result, ensure};
use kind_tests::conformance::{Elsewhere, check_passed, elsewhere, list, run as run_suite};
use kind_tests::progress::say;
use kind_tests::scenario::Need;
use kind_tests::{ControlPlane, Hub, Run, Tool, control_plane, scenario};

const NEEDS: [Need; 2] = [Need::Tool(Tool::E2eTest), Need::Tool(Tool::Kubectl)];

/// The specs that our server passes, of those that need nothing but an API server: kinds of its own.
const FIRST_PART: &str = "api-server-first-part.txt";

/// Those about custom types.
const TYPES: &str = "api-server-types.txt";

/// Those about what controllers do elsewhere: quotas, and what every namespace has.
const HOUSEKEEPING: &str = "api-server-housekeeping.txt";

/// Specs outside of conformance.
const EXTRA: &str = "conformance-extra.txt";

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
        all_pass(run, &hub.kubeconfig(), FIRST_PART, 39)?;
        hub.terminate()
    });
}

#[test]
fn our_server_passes_what_is_about_types() {
    scenario("our_server_passes_what_is_about_types", &NEEDS, |run| {
        let mut hub = Hub::start(run, "hub")?;
        all_pass(run, &hub.kubeconfig(), TYPES, 22)?;
        hub.terminate()
    });
}

#[test]
fn our_server_passes_what_is_about_housekeeping() {
    scenario("our_server_passes_what_is_about_housekeeping", &NEEDS, |run| {
        let mut hub = Hub::start(run, "hub")?;
        all_pass(run, &hub.kubeconfig(), HOUSEKEEPING, 7)?;
        hub.terminate()
    });
}

#[test]
fn our_server_passes_what_is_beyond_conformance() {
    scenario("our_server_passes_what_is_beyond_conformance", &NEEDS, |run| {
        let mut names = list(EXTRA)?;
        for Elsewhere { spec, reason } in elsewhere()? {
            ensure!(names.remove(&spec), "{spec} is not in {EXTRA}");
            ensure!(!reason.is_empty(), "{spec} has no reason");
        }
        let mut hub = Hub::start(run, "hub")?;
        let ran = run_suite(run, &hub.kubeconfig(), &names)?;
        check_passed(&ran)?;
        ensure!(ran.len() == names.len(), "{} specs ran, not {}", ran.len(), names.len());
        say(format!("{} specs outside of conformance passed", ran.len()));
        hub.terminate()
    });
}

/// The list itself is sound: what our server must pass, a real one passes in the same way.
#[test]
fn a_real_kube_apiserver_passes_the_first_part() {
    let mut needs = NEEDS.to_vec();
    needs.extend([Tool::Etcd, Tool::KubeApiserver].map(Need::Tool));
    scenario("a_real_kube_apiserver_passes_the_first_part", &needs, |run| {
        let plane = ControlPlane::start(run, "plane", control_plane::Options::default())?;
        all_pass(run, plane.kubeconfig(), FIRST_PART, 39)?;
        plane.stop()
    });
}
