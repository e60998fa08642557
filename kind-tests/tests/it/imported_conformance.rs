//! The specs of the Kubernetes conformance suite that need the types of a real cluster, but no nodes:
//! they run against our server after an import.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use kind_tests::conformance::{check_passed, elsewhere, list, run as run_suite};
use kind_tests::imported::import_types;
use kind_tests::progress::say;
use kind_tests::scenario::Need;
use kind_tests::{ControlPlane, Hub, Kubectl, Run, Tool, control_plane, eventually, scenario};
use serde_json::json;

use crate::support::json as parse;

const SPECS: &str = "conformance-imported-types.txt";

/// Those that don't pass yet, each after the reason.
const NOT_YET: &str = include_str!("../../specs/imported-types-not-yet.txt");

#[test]
fn our_server_passes_the_specs_of_imported_types() {
    let needs = [Tool::E2eTest, Tool::Kubectl, Tool::Etcd, Tool::KubeApiserver].map(Need::Tool);
    scenario("our_server_passes_the_specs_of_imported_types", &needs, |run| {
        let not_yet = not_yet()?;
        let mut names = list(SPECS)?;
        ensure!(names.len() == 30, "{} specs, not 30", names.len());
        ensure!(not_yet.is_subset(&names), "{not_yet:?} are not all in {SPECS}");
        names.retain(|name| !not_yet.contains(name));
        let extra = with_imported_types()?;
        ensure!(extra.len() == 7, "{extra:?}");

        let plane = ControlPlane::start(run, "plane", control_plane::Options::default())?;
        let mut hub = Hub::start(run, "hub")?;
        import_types(&hub, plane.kubeconfig(), "root", &[])?;
        copy_default_range(run, &plane, &hub)?;
        plane.stop()?;
        let all = names.union(&extra).cloned().collect();
        let ran = run_suite(run, "conformance", &hub.kubeconfig(), &all)?;
        check_passed(&ran)?;
        ensure!(ran.len() == all.len(), "{} specs ran, not {}", ran.len(), all.len());
        say(format!("{} of 30 specs of imported types passed, and 7 beyond", names.len()));
        hub.terminate()
    });
}

/// A real API server makes an object of its own range of addresses, which a spec looks for; to ours it is
/// an object as any.
fn copy_default_range(run: &Run, plane: &ControlPlane, hub: &Hub) -> Result<()> {
    let real = Kubectl::new(run, Tool::Kubectl, plane.kubeconfig())?;
    let get = ["get", "servicecidr", "kubernetes", "--output=json"];
    let range = eventually("the range of addresses", || real.ok(&get))?;
    let ours = Kubectl::new(run, Tool::Kubectl, &hub.kubeconfig())?;
    let spec = parse(&range)?["spec"].clone();
    let range = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"},
        "spec": spec,
    });
    ours.ok_with_input(&["create", "--filename=-"], &range.to_string()).map(|_| ())
}

/// Specs outside of conformance that need imported types.
fn with_imported_types() -> Result<BTreeSet<String>> {
    let here = elsewhere()?.into_iter().filter(|entry| entry.reason.contains("imported types"));
    Ok(here.map(|entry| entry.spec).collect())
}

fn not_yet() -> Result<BTreeSet<String>> {
    let lines = NOT_YET.lines().filter(|line| !line.is_empty());
    let name = |line: &str| {
        let (reason, name) = line.split_once(": [").context("a reason, and a name")?;
        ensure!(!reason.is_empty(), "no reason in {line:?}");
        Ok(format!("[{name}"))
    };
    lines.map(name).collect()
}
