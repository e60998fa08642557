//! Fields that can't change: the refusal is told, once, and healed where the change is taken back.

use anyhow::{Result, ensure};
use kind_tests::eventually;
use serde_json::{Value, json};

use super::row::{Row, config, container, deployment, is};

/// The most refusals while a few other objects come through, of all rows that run at that time:
/// each is tried a few times, with pauses that grow. A hot loop has hundreds.
const MOST_REFUSALS: f64 = 60.0;

/// Waits until the change is refused, sees that it is not tried without end, takes it back and waits
/// until all is well.
fn refused_and_healed(row: &Row<'_>, good: &Value, bad: Value) -> Result<()> {
    let kind = good["kind"].as_str().unwrap_or_default().to_owned();
    let name = good["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    row.apply(bad)?;
    row.is_refused(&kind, &name, "ApplyImmutable")?;
    let what = format!("{kind}/{name}");
    let before = row.copy(&what)?;
    is_not_tried_without_end(row)?;
    let after = row.copy(&what)?;
    is(&after, "/metadata/generation", &before["metadata"]["generation"])?;
    is(&after, "/metadata/uid", &before["metadata"]["uid"])?;
    row.apply(good.clone())?;
    row.is_well(&kind, &name)
}

fn is_not_tried_without_end(row: &Row<'_>) -> Result<()> {
    let series = format!("{}{{kind=\"apply\",outcome=\"refused\"}}", contract::SYNC_REQUESTS);
    let refusals = || row.site.agent.sum(&series);
    let before = refusals()?;
    for marker in ["one", "two", "three"] {
        row.settle(&format!("beside-{marker}"))?;
    }
    let refused = refusals()? - before;
    ensure!(refused <= MOST_REFUSALS, "{refused} applies were refused");
    Ok(())
}

/// The selector of a Deployment; by opt-in the copy is made again.
pub(super) fn deployment_selector(row: &Row<'_>) -> Result<()> {
    let good = deployment("web", 1);
    row.apply(good.clone())?;
    let first = row.copied("deployment/web", |_| Ok(()))?;
    let mut bad = good.clone();
    let labels = json!({"app": "web", "tier": "front"});
    bad["spec"]["selector"]["matchLabels"] = labels.clone();
    bad["spec"]["template"]["metadata"]["labels"] = labels;
    refused_and_healed(row, &good, bad.clone())?;
    bad["metadata"]["annotations"][contract::ON_IMMUTABLE] = contract::RECREATE.into();
    row.apply(bad)?;
    let again = row.copied("deployment/web", |copy| {
        is(copy, "/spec/selector/matchLabels/tier", &json!("front"))
    })?;
    ensure!(again["metadata"]["uid"] != first["metadata"]["uid"], "{again}");
    row.is_well("Deployment", "web")
}

/// The templates of a StatefulSet's claims.
pub(super) fn claim_templates(row: &Row<'_>) -> Result<()> {
    let set = |size: &str| {
        let labels = json!({"app": "db"});
        json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
            "spec": {
                "serviceName": "db", "replicas": 1, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container()]}},
                "volumeClaimTemplates": [{
                    "metadata": {"name": "data"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": size}},
                    },
                }],
            },
        })
    };
    row.apply(set("1Gi"))?;
    row.copied("statefulset/db", |_| Ok(()))?;
    refused_and_healed(row, &set("1Gi"), set("2Gi"))
}

/// The template of a Job.
pub(super) fn job_template(row: &Row<'_>) -> Result<()> {
    let job = |image: &str| {
        let container = json!({"name": "main", "image": image});
        let spec = json!({"restartPolicy": "Never", "containers": [container]});
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sums"},
            "spec": {"suspend": false, "template": {"spec": spec}},
        })
    };
    row.apply(job("sample:dev"))?;
    row.copied("job/sums", |copy| is(copy, "/status/active", &json!(1)))?;
    refused_and_healed(row, &job("sample:dev"), job("sample:next"))
}

/// Secrets and ConfigMaps that are immutable downstream alone, as an administrator there may have
/// made them. At the hub the change is allowed.
pub(super) fn secret_and_config(row: &Row<'_>) -> Result<()> {
    let secret = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fixed"},
            "stringData": {"key": value},
        })
    };
    let fixed = |value: &str| config("fixed", &json!({"key": value}));
    row.apply(secret("one"))?;
    row.apply(fixed("one"))?;
    for what in ["secret/fixed", "configmap/fixed"] {
        row.copied(what, |_| Ok(()))?;
        row.down.ok(&["patch", what, "--type=merge", "--patch", "{\"immutable\":true}"])?;
    }
    row.apply(secret("two"))?;
    row.apply(fixed("two"))?;
    let told = row.is_refused("Secret", "fixed", "ApplyImmutable")?;
    ensure!(!told.contains("two") && !told.contains("dHdv"), "a Secret's content is told: {told}");
    row.is_refused("ConfigMap", "fixed", "ApplyImmutable")?;
    is_not_tried_without_end(row)?;
    // At the hub itself an immutable one is refused to the person who tries.
    row.up.ok(&["patch", "configmap/fixed", "--type=merge", "--patch", "{\"immutable\":true}"])?;
    let refused = eventually("the hub's refusal", || {
        row.up.fails(&[
            "patch",
            "configmap/fixed",
            "--type=merge",
            "--patch",
            "{\"data\":{\"key\":\"x\"}}",
        ])
    })?;
    ensure!(refused.contains("immutable"), "{refused}");
    row.apply(secret("one"))?;
    row.is_well("Secret", "fixed")?;
    row.up.ok(&["delete", "secret/fixed", "configmap/fixed", "--timeout=60s"]).map(drop)
}
