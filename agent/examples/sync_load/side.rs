//! An API server as the load sees it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use client::{Ask, JSON, Link, Settings};
use http::Method;
use machinery::kubeconfig::Access;
use serde_json::{Value, json};
use tokio::time::Instant;

/// How long everything may take to get through.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// The objects that are synced.
pub(crate) const THINGS: &str = "/apis/bench.io/v1/namespaces/default/things";

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const TARGETS: &str = "/apis/workload.kcp.io/v1alpha1/synctargets";

/// The CRD of SyncTargets, as it is committed.
const SYNC_TARGETS: &str = include_str!("../../../crds/synctargets.workload.kcp.io.yaml");
const OBJECT_SYNCS: &str = include_str!("../../../crds/objectsyncs.workload.kcp.io.yaml");

/// One API server.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) link: Link,
    pub(crate) base: &'static str,
}

// === impl Side ===

impl Side {
    pub(crate) fn open(kubeconfig: &Path, base: &'static str) -> Result<Self> {
        let access = Access::parse(&std::fs::read(kubeconfig)?, None)?;
        let mut settings = Settings::of_access(access, Path::new(""), "bench/0")?;
        settings.server = settings.server.with_path("");
        Ok(Self { link: Link::new(settings)?, base })
    }

    /// A type with a status.
    pub(crate) async fn define(&self) -> Result<()> {
        self.define_in(self.base).await?;
        self.until_served(self.base, THINGS).await
    }

    /// A type with a status, in one logical cluster.
    pub(crate) async fn define_in(&self, base: &str) -> Result<()> {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.bench.io"},
            "spec": {
                "group": "bench.io",
                "scope": "Namespaced",
                "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "properties": {"spec": open, "status": open},
                    }},
                    "subresources": {"status": {}},
                }],
            },
        });
        let definitions = format!("{base}{DEFINITIONS}");
        self.send(Method::POST, &definitions, JSON, definition.to_string()).await.map(drop)
    }

    /// The SyncTarget `bench`, and its type.
    pub(crate) async fn make_target(&self) -> Result<()> {
        for definition in [SYNC_TARGETS, OBJECT_SYNCS] {
            let path = format!("/clusters/system:crds{DEFINITIONS}");
            let yaml = "application/yaml";
            self.send(Method::POST, &path, yaml, definition.to_owned()).await?;
        }
        self.until_served(self.base, TARGETS).await?;
        let target = json!({
            "apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
            "metadata": {"name": "bench"}, "spec": {},
        });
        let path = format!("{}{TARGETS}", self.base);
        self.send(Method::POST, &path, JSON, target.to_string()).await.map(drop)
    }

    pub(crate) async fn until_served(&self, base: &str, path: &str) -> Result<()> {
        let path = format!("{base}{path}");
        for _ in 0..1000 {
            if self.link.ask(Ask::get(&path)).await?.status.is_success() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        anyhow::bail!("{path} is not served")
    }

    /// Waits until so many objects of a collection are as wanted.
    pub(crate) async fn until(
        &self,
        collection: &str,
        count: usize,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<()> {
        let path = format!("{}{collection}", self.base);
        let begun = Instant::now();
        loop {
            let told = self.link.ask(Ask::get(&path)).await?;
            let list: Value = serde_json::from_slice(&told.body)?;
            let there = list["items"].as_array().into_iter().flatten();
            let there = there.filter(|item| wanted(item)).count();
            if there >= count {
                return Ok(());
            }
            ensure!(begun.elapsed() <= PATIENCE, "{there} of {count} {what}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// A request with success.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: String,
    ) -> Result<Value> {
        let told = self.link.ask(Ask::with(method, path, kind, body.into_bytes())).await?;
        let text = String::from_utf8_lossy(&told.body);
        ensure!(told.status.is_success(), "{path}: {} {text}", told.status);
        Ok(serde_json::from_slice(&told.body)?)
    }
}
