//! Many logical clusters on one physical cluster, by one SyncTarget and one agent: each sees its own
//! objects alone, and those without objects there cost nothing.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use kind_tests::client::{Client, Session};
use kind_tests::control_plane::Options;
use kind_tests::{Agent, ControlPlane, Hub, Kubectl, Operator, Tool, eventually, scenario};
use serde_json::{Value, json};

use crate::site::{NEEDS, installed};
use crate::support::json as parse;

/// Logical clusters whose objects run there.
const TENANTS: usize = 100;

/// Logical clusters that might have objects there, and have none.
const IDLE: usize = 200;

/// What an idle logical cluster may cost the agent. Its memory also moves by itself: this is what 300
/// bytes for each would be, and what an allocator takes at a time.
const ALLOWANCE: u64 = 1 << 20;

#[test]
fn a_hundred_logical_clusters_share_a_physical_cluster() {
    scenario("tenants", &NEEDS, |run| {
        let plane = ControlPlane::start(run, "east", Options::default())?;
        let mut hub = Hub::start(run, "hub")?;
        let mut operator = Operator::start(run, "operator", &hub, &["--allow-local-hub"])?;
        let real = Kubectl::new(run, Tool::Kubectl, plane.kubeconfig())?;
        let root = Kubectl::new(run, Tool::Kubectl, &hub.kubeconfig())?;
        let infra = root.server(&hub.cluster_url("infra"));
        eventually("the type of SyncTargets", || root.ok(&["get", "synctargets"]))?;
        let target = json!({
            "apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
            "metadata": {"name": "east"},
            "spec": {
                "kubeconfig": std::fs::read_to_string(plane.kubeconfig())?,
                "resources": ["configmaps", "services"],
                "allowedClusters": {"selector": {}},
                "namespaceMapping": "Hashed",
            },
        });
        infra.ok_with_input(&["create", "--filename=-"], &target.to_string())?;
        infra.ok(&["wait", "synctarget/east", "--for=condition=Installed", "--timeout=60s"])?;
        let namespace = installed(&real, "east")?;
        let mut agent = Agent::start(run, "agent", &real, plane.kubeconfig(), &namespace)?;
        infra.ok(&["wait", "synctarget/east", "--for=condition=Ready", "--timeout=60s"])?;

        // A namesake in each.
        let client = Client::new(&hub.kubeconfig(), "")?;
        let mut session = client.session();
        for tenant in 0..TENANTS {
            let map = map("settings", &format!("team-{tenant}"), Some("infra.east"));
            post(&mut session, &format!("team-{tenant}"), &map)?;
        }
        let copies = eventually("all copies to be there", || {
            let copies = copies(&real)?;
            ensure!(copies.len() == TENANTS, "{} copies", copies.len());
            Ok(copies)
        })?;
        let places: BTreeSet<_> = copies.values().map(namespace_of).collect();
        ensure!(places.len() == TENANTS, "each in a namespace of its own: {places:?}");
        for (team, copy) in &copies {
            ensure!(copy["data"]["team"] == **team, "{team} got {copy}");
        }

        // What one changes or deletes is its own.
        let one = root.server(&hub.cluster_url("team-7"));
        let other = root.server(&hub.cluster_url("team-8"));
        let patch = r#"{"data":{"team":"team-7","more":"yes"}}"#;
        one.ok(&["patch", "configmap", "settings", "--type=merge", "--patch", patch])?;
        other.ok(&["delete", "configmap", "settings", "--timeout=30s"])?;
        let mut expected = copies;
        eventually("the change and the deletion to be there", || {
            let now = self::copies(&real)?;
            ensure!(now.len() == TENANTS - 1, "{} copies", now.len());
            ensure!(now["team-7"]["data"]["more"] == "yes", "{}", now["team-7"]);
            Ok(())
        })?;
        expected.retain(|team, _| !["team-7", "team-8"].contains(&&**team));
        let now = self::copies(&real)?;
        for (team, before) in &expected {
            let version = |copy: &Value| copy["metadata"]["resourceVersion"].clone();
            ensure!(version(&now[team]) == version(before), "{team}'s copy was written");
        }
        let seen = one.ok(&["get", "configmaps", "--all-namespaces", "--output=name"])?;
        let own = seen.lines().filter(|line| *line == "configmap/settings").count();
        ensure!(own == 1, "one sees its own alone: {seen}");

        // Those that have nothing there cost nothing.
        let watches = agent.sum("kcp_sync_watches")?;
        let memory = settled(&mut agent)?;
        for tenant in 0..IDLE {
            post(&mut session, &format!("idle-{tenant}"), &map("settings", "none", None))?;
        }
        let requests = agent.sum(contract::SYNC_REQUESTS)?;
        let after = settled(&mut agent)?;
        println!("{watches} watches, {memory} bytes before, {after} with {IDLE} idle ones");
        ensure!(agent.sum("kcp_sync_watches")? <= watches, "watches of idle logical clusters");
        ensure!(agent.sum(contract::SYNC_REQUESTS)? <= requests, "requests for idle ones");
        ensure!(after <= memory + ALLOWANCE, "{memory} bytes, then {after}");
        ensure!(self::copies(&real)?.len() == TENANTS - 1, "copies of what is not assigned");

        agent.terminate()?;
        operator.terminate()?;
        hub.terminate()?;
        plane.stop()
    });
}

/// The agent's memory, once it does nothing.
fn settled(agent: &mut Agent) -> Result<u64> {
    let mut last = 0;
    eventually("the agent to rest", || {
        let now = agent.process().id().memory()?.resident;
        let pending = agent.sum(&format!("{}{{state=\"pending\"}}", contract::SYNC_OBJECTS))?;
        let calm = now == last && pending < 1.0;
        last = now;
        ensure!(calm, "{pending} objects wait");
        Ok(now)
    })
}

/// All copies of ConfigMaps, by the logical cluster that their annotation names.
fn copies(real: &Kubectl) -> Result<BTreeMap<String, Value>> {
    let selector = format!("--selector={}", contract::SYNC_TARGET_LABEL);
    let list = real.ok(&["get", "configmaps", "-A", &selector, "--output=json"])?;
    let list = parse(&list)?;
    let items = list["items"].as_array().context("a list")?;
    let copies = items.iter().map(|copy| {
        let upstream = &copy["metadata"]["annotations"]["workloads.kcp.io/upstream"];
        let upstream = parse(upstream.as_str().context("a copy says where it is from")?)?;
        let cluster = upstream["cluster"].as_str().with_context(|| format!("{upstream}"))?;
        Ok((cluster.to_owned(), copy.clone()))
    });
    copies.collect()
}

fn namespace_of(copy: &Value) -> &str {
    copy["metadata"]["namespace"].as_str().unwrap_or_default()
}

fn map(name: &str, team: &str, target: Option<&str>) -> Value {
    let labels: BTreeMap<_, _> =
        target.into_iter().map(|target| ("workloads.kcp.io/cluster", target)).collect();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels}, "data": {"team": team},
    })
}

fn post(session: &mut Session<'_>, cluster: &str, object: &Value) -> Result<()> {
    let path = format!("/clusters/{cluster}/api/v1/namespaces/default/configmaps");
    let (status, answer) = session.json("POST", &path, Some(object))?;
    ensure!(status == 201, "{path}: {answer}");
    Ok(())
}
