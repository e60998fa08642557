//! Jobs: what their controller generates is each cluster's own, and what has ended has ended.

use anyhow::{Context, Result, ensure};
use kind_tests::eventually;
use serde_json::{Value, json};

use super::row::{Row, container, is};
use crate::site::condition;
use crate::support::json as parse;

fn job(name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {
            "backoffLimit": 0,
            "template": {"spec": {
                "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
                "containers": [container()],
            }},
        },
    })
}

/// The names of the pods of a Job in the physical cluster.
fn pods(row: &Row<'_>, job: &str) -> Result<Vec<String>> {
    let selector = format!("--selector=batch.kubernetes.io/job-name={job}");
    let list = parse(&row.down.ok(&["get", "pods", &selector, "--output=json"])?)?;
    let items = list["items"].as_array().context("a list")?;
    let names = items.iter().filter_map(|pod| pod["metadata"]["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}

/// Waits for the pod of a Job.
fn pod(row: &Row<'_>, job: &str) -> Result<String> {
    eventually("the Job's pod", || pods(row, job)?.pop().context("no pod yet"))
}

/// Does what a kubelet does when the pod has ended well: no node runs it here.
fn end_pod(row: &Row<'_>, job: &str) -> Result<()> {
    let pod = format!("pod/{}", pod(row, job)?);
    let state = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
    let status = json!({"status": {
        "phase": "Succeeded",
        "containerStatuses": [{
            "name": "main", "image": "sample:dev", "imageID": "", "ready": false,
            "restartCount": 0, "state": state,
        }],
    }});
    let status = status.to_string();
    row.down
        .ok(&["patch", &pod, "--subresource=status", "--type=merge", "--patch", &status])
        .map(drop)
}

fn is_complete(job: &Value) -> Result<()> {
    let complete = condition(job, "Complete")?;
    ensure!(complete["status"] == "True", "{complete}");
    Ok(())
}

/// The selector and the labels that the controller generates stay in their cluster, and a change at
/// the hub is taken beside them.
pub(super) fn generated_labels(row: &Row<'_>) -> Result<()> {
    row.apply(job("sums"))?;
    let first = row.copied("job/sums", |copy| {
        is(copy, "/status/active", &json!(1))?;
        ensure!(copy.pointer("/spec/selector/matchLabels").is_some(), "{copy}");
        Ok(())
    })?;
    row.patch("job/sums", &json!({"spec": {"backoffLimit": 3}}))?;
    let then = row.copied("job/sums", |copy| is(copy, "/spec/backoffLimit", &json!(3)))?;
    for path in ["/spec/selector", "/spec/template/metadata/labels"] {
        is(&then, path, first.pointer(path).unwrap_or(&Value::Null))?;
    }
    let object = row.told("job/sums", |object| is(object, "/status/active", &json!(1)))?;
    is(&object, "/spec/selector", &Value::Null)?;
    // A manifest that was read from another cluster, with what was generated there.
    let mut copied = job("copied");
    let labels = json!({"batch.kubernetes.io/controller-uid": "elsewhere", "controller-uid": "elsewhere",
        "batch.kubernetes.io/job-name": "copied", "job-name": "copied"});
    copied["spec"]["selector"] =
        json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "elsewhere"}});
    copied["spec"]["template"]["metadata"]["labels"] = labels;
    row.apply(copied)?;
    row.copied("job/copied", |copy| is(copy, "/status/active", &json!(1)))?;
    row.is_well("Job", "copied")
}

/// Pods of a deleted Job go with it.
pub(super) fn deletion_takes_its_pods(row: &Row<'_>) -> Result<()> {
    row.apply(job("short"))?;
    pod(row, "short")?;
    row.up.ok(&["delete", "job", "short", "--timeout=60s"])?;
    eventually("the pods to go", || {
        let left = pods(row, "short")?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })?;
    row.down.fails(&["get", "job", "short"]).map(drop)
}

/// A Job that has ended says so for good: a copy that is cleared away is not made, and run, again.
pub(super) fn ended_is_not_run_again(row: &Row<'_>) -> Result<()> {
    row.apply(job("once"))?;
    end_pod(row, "once")?;
    row.copied("job/once", is_complete)?;
    row.told("job/once", is_complete)?;
    row.down.ok(&["delete", "job", "once", "--timeout=60s"])?;
    row.settle("after-the-job")?;
    row.down.fails(&["get", "job", "once"])?;
    let object = row.object("job/once")?;
    is_complete(&object)?;
    is(&object, "/status/succeeded", &json!(1))?;
    row.up.ok(&["delete", "job", "once", "--timeout=60s"]).map(drop)
}
