//! Claims and accounts: what controllers of the cluster add to an object stays in it.

use anyhow::{Result, ensure};
use kind_tests::eventually;
use serde_json::{Value, json};

use super::row::{Row, is};
use crate::site::apply;
use crate::support::first_column;

/// A claim is bound in its cluster, which is told; it may grow, and nothing else.
pub(super) fn claim_is_bound_and_grows(row: &Row<'_>) -> Result<()> {
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "by-hand"},
        "provisioner": "kubernetes.io/no-provisioner", "allowVolumeExpansion": true,
    });
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "by-hand"},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "storageClassName": "by-hand", "hostPath": {"path": "/var/empty"},
        },
    });
    apply(&row.down, &[class, volume])?;
    let claim = |size: &str| {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
            "spec": {
                "storageClassName": "by-hand", "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": size}},
            },
        })
    };
    let what = "persistentvolumeclaim/data";
    row.apply(claim("1Gi"))?;
    row.copied(what, |copy| is(copy, "/spec/volumeName", &json!("by-hand")))?;
    let told = row.told(what, |object| is(object, "/status/phase", &json!("Bound")))?;
    is(&told, "/status/capacity/storage", &json!("1Gi"))?;
    is(&told, "/spec/volumeName", &Value::Null)?;
    let size = "/spec/resources/requests/storage";
    row.apply(claim("2Gi"))?;
    let grown = row.copied(what, |copy| is(copy, size, &json!("2Gi")))?;
    is(&grown, "/spec/volumeName", &json!("by-hand"))?;
    // Less is refused by the cluster, told, and changes nothing.
    row.apply(claim("512Mi"))?;
    let told = row.is_refused("PersistentVolumeClaim", "data", "ApplyInvalid")?;
    ensure!(told.contains("less than"), "{told}");
    let kept = row.copy(what)?;
    is(&kept, size, &json!("2Gi"))?;
    is(&kept, "/spec/volumeName", &json!("by-hand"))?;
    row.apply(claim("2Gi"))?;
    row.is_well("PersistentVolumeClaim", "data")
}

/// Secrets that the cluster gives an account stay beside those that people name, and no new ones
/// come because of syncing.
pub(super) fn account_secrets_are_merged(row: &Row<'_>) -> Result<()> {
    let account = |note: &str, secrets: &[&str]| {
        let secrets: Vec<Value> = secrets.iter().map(|name| json!({"name": name})).collect();
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "robot", "annotations": {"note": note}}, "secrets": secrets,
        })
    };
    row.apply(account("one", &["of-the-user"]))?;
    let what = "serviceaccount/robot";
    row.copied(what, |copy| is(copy, "/secrets", &json!([{"name": "of-the-user"}])))?;
    // What a controller of the cluster does, as some distributions have it.
    let token = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {
            "name": "robot-token-x",
            "annotations": {"kubernetes.io/service-account.name": "robot"},
        },
    });
    apply(&row.down, &[token])?;
    let local = json!({
        "secrets": [{"name": "of-the-user"}, {"name": "robot-token-x"}],
        "imagePullSecrets": [{"name": "robot-dockercfg-x"}],
    });
    let local = local.to_string();
    row.down.ok(&["patch", what, "--type=merge", "--patch", &local])?;
    let before = secrets(row)?;
    row.apply(account("two", &["of-the-user", "second"]))?;
    let copy = row.copied(what, |copy| is(copy, "/metadata/annotations/note", &json!("two")))?;
    let names = |field: &str| -> Vec<&str> {
        let all = copy[field].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut names: Vec<&str> = all.iter().filter_map(|one| one["name"].as_str()).collect();
        names.sort_unstable();
        names
    };
    ensure!(names("secrets") == ["of-the-user", "robot-token-x", "second"], "{copy}");
    ensure!(names("imagePullSecrets") == ["robot-dockercfg-x"], "{copy}");
    row.settle("after-the-account")?;
    let after = secrets(row)?;
    ensure!(before == after, "{before:?} became {after:?}");
    let object = row.object(what)?;
    ensure!(!object.to_string().contains("robot-token-x"), "{object}");
    row.is_well("ServiceAccount", "robot")
}

/// Pull secrets are one value to server-side apply. Those that the cluster has given an account stay
/// beside the hub's, also in the account that each namespace has by itself, and when they come while
/// ours change.
pub(super) fn account_pull_secrets_are_merged(row: &Row<'_>) -> Result<()> {
    let named =
        |pulls: &[&str]| pulls.iter().map(|name| json!({"name": name})).collect::<Vec<Value>>();
    let account = |name: &str, note: &str, pulls: &[&str]| {
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "annotations": {"note": note}},
            "imagePullSecrets": named(pulls),
        })
    };
    let local = |name: &str, pulls: &[&str]| {
        let patch = json!({"imagePullSecrets": named(pulls)}).to_string();
        let what = format!("serviceaccount/{name}");
        row.down.ok(&["patch", &what, "--type=merge", "--patch", &patch])
    };
    let pulls = |copy: &Value| -> Vec<String> {
        let all = copy["imagePullSecrets"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut names: Vec<_> =
            all.iter().filter_map(|one| Some(one["name"].as_str()?.to_owned())).collect();
        names.sort_unstable();
        names
    };
    let has = |what: &str, expect: &[&str]| {
        row.copied(what, |copy| {
            let found = pulls(copy);
            ensure!(found == expect, "{found:?} instead of {expect:?}: {copy}");
            Ok(())
        })
    };
    // The namespace has to be there before its own account is.
    row.apply(account("robot", "one", &["ours"]))?;
    has("serviceaccount/robot", &["ours"])?;
    eventually("the namespace's own account", || row.down.ok(&["get", "serviceaccount/default"]))?;
    for name in ["default", "robot"] {
        let what = &format!("serviceaccount/{name}");
        let there: &[&str] =
            if name == "default" { &["of-the-cluster"] } else { &["ours", "of-the-cluster"] };
        local(name, there)?;
        row.apply(account(name, "two", &["ours"]))?;
        has(what, &["of-the-cluster", "ours"])?;
        row.apply(account(name, "three", &["second"]))?;
        has(what, &["of-the-cluster", "second"])?;
        // Ours is taken out there, and others come.
        local(name, &["of-the-cluster", "another"])?;
        has(what, &["another", "of-the-cluster", "second"])?;
        row.settle(&format!("after-pull-secrets-of-{name}"))?;
        let version = |copy: &Value| copy["metadata"]["resourceVersion"].clone();
        let before = version(&row.copy(what)?);
        row.settle(&format!("and-nothing-more-of-{name}"))?;
        ensure!(version(&row.copy(what)?) == before, "{name} was written while nothing changed");
        row.apply(account(name, "four", &[]))?;
        has(what, &["another", "of-the-cluster"])?;
        row.apply(account(name, "five", &["another", "last"]))?;
        has(what, &["another", "last", "of-the-cluster"])?;
        row.is_well("ServiceAccount", name)?;
    }
    // The namespace's own account stays when the hub's goes, with what is the cluster's.
    let uid = row.copy("serviceaccount/default")?["metadata"]["uid"].clone();
    row.up.ok(&["label", "serviceaccount/default", "workloads.kcp.io/cluster-"])?;
    has("serviceaccount/default", &["another", "of-the-cluster"])?;
    ensure!(row.copy("serviceaccount/default")?["metadata"]["uid"] == uid);
    Ok(())
}

fn secrets(row: &Row<'_>) -> Result<Vec<String>> {
    let table = row.down.ok(&["get", "secrets"])?;
    Ok(first_column(&table).into_iter().map(str::to_owned).collect())
}
