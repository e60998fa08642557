//! A real control plane starts, works and stops, on loopback and in a network namespace.

use anyhow::{Result, ensure};
use kind_tests::control_plane::Options;
use kind_tests::scenario::Need;
use kind_tests::{Kubectl, Provider, Run, Tool, scenario};

use crate::support::check_contains;

const NEEDS: [Need; 3] =
    [Need::Tool(Tool::Etcd), Need::Tool(Tool::KubeApiserver), Need::Tool(Tool::Kubectl)];

fn round_trip(run: &Run, options: Options) -> Result<()> {
    let plane = Provider::Native.control_plane(run, "plane", options)?;
    let kubectl = Kubectl::new(run, Tool::Kubectl, plane.kubeconfig())?;
    let version = kubectl.ok(&["version"])?;
    let expected = format!("Server Version: {}", Tool::KubeApiserver.version()?);
    check_contains(&version, &[&expected])?;
    let created = kubectl.ok(&["create", "configmap", "c", "--from-literal=k=v"])?;
    ensure!(created == "configmap/c created\n", "{created}");
    ensure!(kubectl.ok(&["get", "configmap", "c", "--output=jsonpath={.data.k}"])? == "v");
    let ids: Vec<_> = plane.processes().map(|process| process.id().clone()).into();
    plane.stop()?;
    ensure!(ids.iter().all(|id| !id.is_running()), "something still runs: {ids:?}");
    Ok(())
}

#[test]
fn works_on_loopback() {
    scenario("works_on_loopback", &NEEDS, |run| round_trip(run, Options::default()));
}

#[test]
fn works_in_a_network_namespace() {
    let mut needs = NEEDS.to_vec();
    needs.push(Need::Namespaces);
    scenario("works_in_a_network_namespace", &needs, |run| {
        round_trip(run, Options { namespace: true, ..Options::default() })
    });
}

#[test]
fn the_other_provider_says_that_it_is_not_there_yet() {
    scenario("the_other_provider", &[], |run| {
        let error = Provider::Kind.control_plane(run, "plane", Options::default());
        check_contains(&format!("{:#}", error.unwrap_err()), &["not supported yet"])
    });
}
