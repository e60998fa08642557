//! Who says how many replicas there are.

use anyhow::{Context, Result, ensure};
use kind_tests::eventually;
use serde_json::json;

use super::row::{Row, deployment, is};
use crate::support::json as parse;

const REPLICAS: &str = "/spec/replicas";

/// Where the hub leaves it to the cluster, what is set there goes up, and is not put back.
pub(super) fn replicas_go_up_by_opt_in(row: &Row<'_>) -> Result<()> {
    let mut web = deployment("web", 2);
    web["metadata"]["annotations"][contract::YIELD] = contract::YIELD_REPLICAS.into();
    row.apply(web)?;
    row.copied("deployment/web", |copy| is(copy, REPLICAS, &json!(2)))?;
    row.down.ok(&["scale", "deployment/web", "--replicas=5"])?;
    row.told("deployment/web", |object| is(object, REPLICAS, &json!(5)))?;
    // Other changes at the hub leave it alone.
    row.up.ok(&["set", "env", "deployment/web", "EXTRA=1"])?;
    let copy = row.copied("deployment/web", |copy| {
        is(copy, "/spec/template/spec/containers/0/env/0/name", &json!("EXTRA"))
    })?;
    is(&copy, REPLICAS, &json!(5))?;
    is(&row.object("deployment/web")?, REPLICAS, &json!(5))
}

/// An autoscaler that is synced has its Deployment's replicas: what it sets stays, and a hand-over
/// never resets them.
pub(super) fn replicas_of_an_autoscaler(row: &Row<'_>) -> Result<()> {
    row.apply(deployment("web", 2))?;
    row.copied("deployment/web", |copy| is(copy, REPLICAS, &json!(2)))?;
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    row.apply(json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 9, "metrics": [{
            "type": "Resource",
            "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50},
            },
        }]},
    }))?;
    row.copied("horizontalpodautoscaler/web", |_| Ok(()))?;
    // What its controller does by way of the scale subresource.
    row.down.ok(&["scale", "deployment/web", "--replicas=6"])?;
    row.up.ok(&["set", "env", "deployment/web", "EXTRA=1"])?;
    let copy = row.copied("deployment/web", |copy| {
        is(copy, "/spec/template/spec/containers/0/env/0/name", &json!("EXTRA"))
    })?;
    is(&copy, REPLICAS, &json!(6))?;
    row.settle("after-the-autoscaler")?;
    is(&row.copy("deployment/web")?, REPLICAS, &json!(6))?;
    // The hub has not been asked to take it over.
    is(&row.object("deployment/web")?, REPLICAS, &json!(2))?;
    // Its controller goes on telling that there are no metrics here.
    row.up.ok(&["delete", "horizontalpodautoscaler/web", "--timeout=60s"]).map(drop)
}

/// Else the hub decides: another number is put back, and that is told.
pub(super) fn replicas_without_opt_in(row: &Row<'_>) -> Result<()> {
    row.apply(deployment("web", 2))?;
    row.copied("deployment/web", |copy| is(copy, REPLICAS, &json!(2)))?;
    row.down.ok(&["scale", "deployment/web", "--replicas=7"])?;
    let copy = row.copied("deployment/web", |copy| is(copy, REPLICAS, &json!(2)))?;
    let generation = copy["metadata"]["generation"].as_i64().unwrap_or_default();
    ensure!(generation >= 3, "nobody has put it back: {generation}");
    is(&row.object("deployment/web")?, REPLICAS, &json!(2))?;
    eventually("the drift to be told", || {
        let events = parse(&row.up.ok(&["get", "events", "--output=json"])?)?;
        let events = events["items"].as_array().context("a list")?;
        ensure!(events.iter().any(|event| event["reason"] == "Drifted"), "{events:?}");
        Ok(())
    })
}
