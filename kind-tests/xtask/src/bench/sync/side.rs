//! The two API servers as the benchmark sees them, and the agent's pages.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use client::{Ask, JSON, Link, Settings};
use http::Method;
use kind_tests::eventually;
use machinery::kubeconfig::Access;
use serde_json::{Value, json};

/// The objects that are synced.
pub(super) const THINGS: &str = "/apis/bench.io/v1/namespaces/default/things";

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TARGETS: &str = "/apis/workload.kcp.io/v1alpha1/synctargets";

/// The CRD of SyncTargets, as it is committed.
const SYNC_TARGETS: &str = include_str!("../../../../../crds/synctargets.workload.kcp.io.yaml");
const OBJECT_SYNCS: &str = include_str!("../../../../../crds/objectsyncs.workload.kcp.io.yaml");

/// One API server.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) link: Link,
    pub(super) base: &'static str,
}

/// The agent's own pages.
pub(super) struct Pages {
    port: u16,
}

// === impl Side ===

impl Side {
    pub(super) fn open(kubeconfig: &Path, base: &'static str) -> Result<Self> {
        let access = Access::parse(&std::fs::read(kubeconfig)?, None)?;
        let mut settings = Settings::of_access(access, Path::new(""), "bench/0")?;
        settings.server = settings.server.with_path("");
        Ok(Self { link: Link::new(settings)?, base })
    }

    /// A type with a status.
    pub(super) async fn define(&self) -> Result<()> {
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
        let definitions = format!("{}{DEFINITIONS}", self.base);
        self.send(Method::POST, &definitions, JSON, definition.to_string()).await?;
        self.until_served(THINGS).await
    }

    /// The SyncTarget `bench`, and its type.
    pub(super) async fn make_target(&self) -> Result<()> {
        for definition in [SYNC_TARGETS, OBJECT_SYNCS] {
            let path = format!("/clusters/system:crds{DEFINITIONS}");
            let yaml = "application/yaml";
            self.send(Method::POST, &path, yaml, definition.to_owned()).await?;
        }
        self.until_served(TARGETS).await?;
        let target = json!({
            "apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
            "metadata": {"name": "bench"}, "spec": {},
        });
        let path = format!("{}{TARGETS}", self.base);
        self.send(Method::POST, &path, JSON, target.to_string()).await.map(drop)
    }

    async fn until_served(&self, path: &str) -> Result<()> {
        let path = format!("{}{path}", self.base);
        for _ in 0..1000 {
            if self.link.ask(Ask::get(&path)).await?.status.is_success() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        anyhow::bail!("{path} is not served")
    }

    /// A request with success.
    pub(super) async fn send(
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

/// A port that was free a moment ago, and the address of it.
pub(super) fn free_port() -> Result<(u16, SocketAddr)> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    Ok((address.port(), address))
}

// === impl Pages ===

impl Pages {
    pub(super) fn new(port: u16) -> Self {
        Self { port }
    }

    /// Waits until nothing is under way.
    pub(super) fn settle(&self) -> Result<()> {
        let mut last = f64::NAN;
        eventually("the agent to have nothing to do", || {
            let now = self.sum("kcp_sync_requests_total")?;
            let calm = (now - last).abs() < f64::EPSILON;
            last = now;
            let pending = self.sum("kcp_sync_objects{state=\"pending\"}")?;
            ensure!(calm && pending < 1.0, "{pending} objects wait");
            Ok(())
        })
    }

    /// Writes so far, on both sides.
    pub(super) fn writes(&self) -> Result<f64> {
        self.sum("kcp_sync_writes_total")
    }

    /// Requests of the engine so far.
    pub(super) fn requests(&self) -> Result<f64> {
        self.sum("kcp_sync_requests_total")
    }

    /// Copies that were applied so far.
    pub(super) fn applies(&self) -> Result<f64> {
        self.sum("kcp_sync_requests_total{kind=\"apply\",outcome=\"ok\"}")
    }

    /// The sum of all series that begin so.
    fn sum(&self, prefix: &str) -> Result<f64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        ensure!(text.starts_with("HTTP/1.1 200"), "the agent's metrics can't be read");
        let values = text.lines().filter(|line| line.starts_with(prefix));
        Ok(values.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }
}
