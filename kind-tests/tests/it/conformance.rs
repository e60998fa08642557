//! The Kubernetes conformance suite's own specs, by name.

use std::path::Path;
use std::thread;

use anyhow::{Result, anyhow, ensure};
use kind_tests::conformance::{Elsewhere, check_passed, elsewhere, list, run as run_suite};
use kind_tests::progress::say;
use kind_tests::scenario::Need;
use kind_tests::{ControlPlane, Hub, Kubectl, Run, Tool, control_plane, scenario};
use serde_json::json;

const NEEDS: [Need; 2] = [Need::Tool(Tool::E2eTest), Need::Tool(Tool::Kubectl)];

/// The specs of conformance that need nothing but an API server.
const ALL: &str = "conformance-api-only.txt";

/// Those of them about kinds that every API server has.
const FIRST_PART: &str = "api-server-first-part.txt";

/// Specs outside of conformance.
const EXTRA: &str = "conformance-extra.txt";

fn all_pass(run: &Run, name: &str, kubeconfig: &Path, specs: &str, count: usize) -> Result<()> {
    let names = list(specs)?;
    let ran = run_suite(run, name, kubeconfig, &names)?;
    check_passed(&ran)?;
    ensure!(ran.len() == count, "{} specs ran, not {count}", ran.len());
    say(format!("{count} conformance specs passed"));
    Ok(())
}

/// Two clients that know nothing of each other, and take a logical cluster each for a whole one.
#[test]
fn our_server_passes_conformance_in_two_logical_clusters_at_once() {
    scenario("our_server_passes_conformance", &NEEDS, |run| {
        let mut hub = Hub::start(run, "hub")?;
        let kubectl = Kubectl::new(run, Tool::Kubectl, &hub.kubeconfig())?;
        for name in ["a", "b"] {
            // The suite reads before it writes.
            let cluster = json!({
                "apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster",
                "metadata": {"name": name},
            });
            kubectl.ok_with_input(&["create", "--filename=-"], &cluster.to_string())?;
        }
        thread::scope(|scope| {
            let suites = ["a", "b"].map(|cluster| {
                let kubeconfig = hub.kubeconfig_of(cluster);
                scope.spawn(move || all_pass(run, cluster, &kubeconfig?, ALL, 68))
            });
            suites
                .into_iter()
                .try_for_each(|suite| suite.join().map_err(|_| anyhow!("a suite panicked"))?)
        })?;
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
        let ran = run_suite(run, "conformance", &hub.kubeconfig(), &names)?;
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
        all_pass(run, "conformance", plane.kubeconfig(), FIRST_PART, 39)?;
        plane.stop()
    });
}
