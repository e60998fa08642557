//! A plain Kubernetes API server upstream: it allocates itself what clusters below allocate, too.

use anyhow::{Context, Result, ensure};
use kind_tests::control_plane::Options;
use kind_tests::{Agent, ControlPlane, Kubectl, Run, Tool, eventually, scenario};
use serde_json::{Value, json};

use crate::site::{NEEDS, apply};
use crate::support::json as parse;

fn service(name: &str, labels: &Value, port: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": labels},
        "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]},
    })
}

fn node_port(kubectl: &Kubectl, name: &str) -> Result<i64> {
    let service = parse(&kubectl.ok(&["get", "service", name, "--output=json"])?)?;
    service.pointer("/spec/ports/0/nodePort").and_then(Value::as_i64).context("no port")
}

/// A port that the API server upstream has allocated is no wish: below it may be taken.
fn allocated_upstream(run: &Run) -> Result<()> {
    let above = ControlPlane::start(run, "above", Options::default())?;
    let below = ControlPlane::start(run, "below", Options::default())?;
    let [up, down] =
        [&above, &below].map(|plane| Kubectl::new(run, Tool::Kubectl, plane.kubeconfig()));
    let (up, down) = (up?, down?);
    let synced = json!({"sync.workloads.kcp.io/local.below": "Sync"});
    apply(&up, &[service("web", &json!({}), &Value::Null)])?;
    let port = node_port(&up, "web")?;
    apply(&down, &[service("neighbour", &json!({}), &port.into())])?;
    let flags = [
        format!("--from-kubeconfig={}", above.kubeconfig().display()),
        format!("--to-kubeconfig={}", below.kubeconfig().display()),
        "--sync-target=below".to_owned(),
    ];
    let mut agent = Agent::by_hand(run, "agent", &flags)?;
    up.ok(&["label", "service/web", "sync.workloads.kcp.io/local.below=Sync"])?;
    let other = eventually("the copy", || node_port(&down, "web"))?;
    ensure!(other != port, "both have {port}");
    // A port that a person names is kept, and who has it already is told of.
    apply(&up, &[service("named", &synced, &json!(31_500))])?;
    eventually("the copy", || {
        let is = node_port(&down, "named")?;
        ensure!(is == 31_500, "it is {is}");
        Ok(())
    })?;
    // An update leaves both ports as they are.
    up.ok(&["annotate", "service/web", "note=changed"])?;
    eventually("the change", || {
        let path = "--output=jsonpath={.metadata.annotations.note}";
        let note = down.ok(&["get", "service/web", path])?;
        ensure!(note == "changed", "{note}");
        Ok(())
    })?;
    ensure!(node_port(&down, "web")? == other && node_port(&up, "web")? == port);
    up.ok(&["delete", "service/web", "--timeout=60s"])?;
    down.fails(&["get", "service/web"])?;
    agent.process().check_running()
}

#[test]
fn node_ports_of_a_plain_api_server() {
    scenario("plain_api_server", &NEEDS, allocated_upstream);
}
