//! In the steady state an agent writes nothing.

use anyhow::{Result, ensure};
use kind_tests::{Webhook, eventually};
use serde_json::{Value, json};

use super::row::{Row, deployment, is};
use crate::site::{apply, condition};

/// How many renewals of the agent's Lease a silence lasts: there is one every few seconds.
const RENEWALS: f64 = 2.0;

/// Waits for the agent to have nothing left to do, and sees that it writes nothing for a while.
fn nothing_is_written(row: &Row<'_>) -> Result<()> {
    let agent = &row.site.agent;
    eventually("nothing to be pending", || {
        let pending = agent.sum(&format!("{}{{state=\"pending\"}}", contract::SYNC_OBJECTS))?;
        let under_way = agent.sum("kcp_sync_requests_in_flight")?;
        ensure!(pending == 0.0 && under_way == 0.0, "{pending} pending, {under_way} under way");
        Ok(())
    })?;
    let writes = || agent.sum(contract::SYNC_WRITES);
    let renewals = || agent.sum("kcp_agent_heartbeats_total{outcome=\"ok\"}");
    let (before, requests, begun) =
        (writes()?, agent.series(contract::SYNC_REQUESTS)?, renewals()?);
    eventually("the Lease to be renewed", || {
        let renewed = renewals()? - begun;
        ensure!(renewed >= RENEWALS, "{renewed} times");
        Ok(())
    })?;
    let written = writes()? - before;
    let mut more = agent.series(contract::SYNC_REQUESTS)?;
    more.retain(|series, count| requests.get(series) != Some(count));
    ensure!(written == 0.0, "{written} writes while nothing happened: {requests:?}, then {more:?}");
    Ok(())
}

/// Waits until the cluster's controllers have nothing more to tell of the Deployment, and the hub
/// knows.
fn is_rolled_out(row: &Row<'_>) -> Result<()> {
    row.told("deployment/web", |object| {
        is(object, "/status/observedGeneration", &object["metadata"]["generation"])?;
        let progressing = condition(object, "Progressing")?;
        ensure!(progressing["reason"] == "NewReplicaSetAvailable", "{progressing}");
        Ok(())
    })
    .map(drop)
}

/// A webhook puts a sidecar, a label and a default of its own into each Deployment: nobody takes
/// them out, and nobody writes because of them.
pub(super) fn sidecar_of_a_webhook(row: &Row<'_>) -> Result<()> {
    let containers = "/spec/template/spec/containers";
    let webhook = Webhook::start(move |object| {
        let all = object.pointer(containers).and_then(Value::as_array);
        let present = all.is_some_and(|all| all.iter().any(|one| one["name"] == "sidecar"));
        let add = |path: &str, value| json!({"op": "add", "path": path, "value": value});
        let sidecar = json!({"name": "sidecar", "image": "proxy:1"});
        let grace = "/spec/template/spec/terminationGracePeriodSeconds";
        let mut patch = vec![
            add("/metadata/labels/injected", "yes".into()),
            // What others have decided, it decides again.
            add(grace, json!(7)),
        ];
        if !present {
            patch.push(add("/spec/template/spec/containers/-", sidecar));
        }
        patch
    })?;
    let rules = json!([{
        "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
        "resources": ["deployments"],
    }]);
    let mut hook = webhook.configuration("sidecars", &rules);
    let name = json!({"kubernetes.io/metadata.name": row.namespace});
    hook["webhooks"][0]["namespaceSelector"] = json!({"matchLabels": name});
    apply(&row.site.down, &[hook])?;
    // It counts some time after it was made.
    eventually("the webhook to be asked", || {
        let mut probe = deployment("probe", 0);
        probe["metadata"]["labels"] = json!({"probe": "yes"});
        let flags = ["create", "--filename=-", "--dry-run=server"];
        row.site.down.run_with_input(&["create", "namespace", row.namespace], "")?;
        row.down.ok_with_input(&flags, &probe.to_string())?;
        ensure!(webhook.asked() > 0, "not yet");
        Ok(())
    })?;
    let injected = |copy: &Value| {
        is(copy, "/metadata/labels/injected", &json!("yes"))?;
        is(copy, "/spec/template/spec/containers/1/name", &json!("sidecar"))
    };
    row.apply(deployment("web", 0))?;
    row.copied("deployment/web", injected)?;
    is_rolled_out(row)?;
    nothing_is_written(row)?;
    // A change comes through, and the sidecar stays.
    row.up.ok(&["set", "env", "deployment/web", "--containers=main", "EXTRA=1"])?;
    row.copied("deployment/web", |copy| {
        is(copy, "/spec/template/spec/containers/0/env/0/name", &json!("EXTRA"))?;
        injected(copy)
    })?;
    is_rolled_out(row)?;
    nothing_is_written(row)?;
    let asked = webhook.asked();
    nothing_is_written(row)?;
    ensure!(webhook.asked() == asked, "the webhook was asked while nothing happened");
    row.is_well("Deployment", "web")?;
    row.site.down.ok(&["delete", "mutatingwebhookconfiguration", "sidecars"]).map(drop)
}

/// With everything that the rows have left, problems included.
pub(super) fn nothing_is_written_when_idle(row: &Row<'_>) -> Result<()> {
    row.settle("last")?;
    nothing_is_written(row)
}
