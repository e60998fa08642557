//! What rows share.

use anyhow::{Context, Result, ensure};
use kind_tests::{Kubectl, eventually};
use serde_json::{Value, json};

use crate::site::{Site, TARGET, apply, condition};
use crate::support::json as parse;

/// One row: a namespace, and kubectl for it on both sides.
pub(super) struct Row<'s> {
    pub(super) site: &'s Site,
    pub(super) namespace: &'static str,
    pub(super) up: Kubectl,
    pub(super) down: Kubectl,
}

// === impl Row ===

impl<'s> Row<'s> {
    /// Makes the namespace at the hub.
    pub(super) fn new(site: &'s Site, name: &'static str) -> Result<Self> {
        site.up.ok(&["create", "namespace", name])?;
        let flag = format!("--namespace={name}");
        let (up, down) = (site.up.with(&flag), site.down.with(&flag));
        Ok(Self { site, namespace: name, up, down })
    }

    /// Applies an object at the hub, for the cluster.
    pub(super) fn apply(&self, mut object: Value) -> Result<()> {
        object["metadata"]["labels"][contract::INTENT_LABEL] = TARGET.into();
        apply(&self.up, &[object])
    }

    /// Patches an object at the hub by a merge patch.
    pub(super) fn patch(&self, what: &str, patch: &Value) -> Result<()> {
        self.up.ok(&["patch", what, "--type=merge", "--patch", &patch.to_string()]).map(drop)
    }

    /// The copy as it is.
    pub(super) fn copy(&self, what: &str) -> Result<Value> {
        parse(&self.down.ok(&["get", what, "--output=json"])?)
    }

    /// The object at the hub as it is.
    pub(super) fn object(&self, what: &str) -> Result<Value> {
        parse(&self.up.ok(&["get", what, "--output=json"])?)
    }

    /// Waits until the copy is as `check` wants it.
    pub(super) fn copied(&self, what: &str, check: impl Fn(&Value) -> Result<()>) -> Result<Value> {
        eventually(&format!("the copy of {what}"), || {
            let copy = self.copy(what)?;
            check(&copy).map(|()| copy)
        })
    }

    /// Waits until the object at the hub is as `check` wants it.
    pub(super) fn told(&self, what: &str, check: impl Fn(&Value) -> Result<()>) -> Result<Value> {
        eventually(&format!("{what} at the hub"), || {
            let object = self.object(what)?;
            check(&object).map(|()| object)
        })
    }

    /// Waits until a marker that is applied now has come down, and so what was applied before it has
    /// been looked at, too.
    pub(super) fn settle(&self, marker: &str) -> Result<()> {
        self.apply(config(marker, &json!({"marker": marker})))?;
        self.copied(&format!("configmap/{marker}"), |_| Ok(())).map(drop)
    }

    /// Waits until the ObjectSync of an object says that it is not applied, for a reason; gives the
    /// message.
    pub(super) fn is_refused(&self, kind: &str, name: &str, reason: &str) -> Result<String> {
        eventually(&format!("{kind} {name} to be {reason}"), || {
            let record = self.record(kind, name)?.context("no ObjectSync")?;
            let applied = condition(&record, "Applied")?;
            ensure!(applied["status"] == "False" && applied["reason"] == reason, "{applied}");
            Ok(applied["message"].as_str().unwrap_or_default().to_owned())
        })
    }

    /// Waits until nothing is said against an object any more.
    pub(super) fn is_well(&self, kind: &str, name: &str) -> Result<()> {
        eventually(&format!("{kind} {name} to be well"), || {
            let record = self.record(kind, name)?;
            ensure!(record.is_none(), "{record:?}");
            Ok(())
        })
    }

    /// The ObjectSync that an object owns, if there is one.
    fn record(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        let all = parse(&self.up.ok(&["get", "objectsyncs", "--output=json"])?)?;
        let is_owner = |owner: &Value| owner["kind"] == kind && owner["name"] == name;
        let is_its = |one: &&Value| {
            let owners = one["metadata"]["ownerReferences"].as_array();
            owners.is_some_and(|owners| owners.iter().any(is_owner))
        };
        Ok(all["items"].as_array().context("a list")?.iter().find(is_its).cloned())
    }
}

/// A ConfigMap.
pub(super) fn config(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// A Deployment of one container.
pub(super) fn deployment(name: &str, replicas: u32) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container()]}},
        },
    })
}

/// A container that is never run here.
pub(super) fn container() -> Value {
    json!({"name": "main", "image": "sample:dev"})
}

/// Fails unless a field is what it is to be.
pub(super) fn is(object: &Value, path: &str, expect: &Value) -> Result<()> {
    let found = object.pointer(path).unwrap_or(&Value::Null);
    ensure!(found == expect, "{path} is {found}, not {expect}");
    Ok(())
}
