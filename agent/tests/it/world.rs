//! A hub with a SyncTarget, a physical cluster, and agents between them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::args::Args;
use apiserver::{Running, Server};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Parser;
use client::{Ask, JSON, Link, Settings};
use http::Method;
use machinery::kubeconfig::Access;
use runtime::Tasks;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The longest that anything here may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The agent's namespace in the physical cluster.
pub(crate) const NAMESPACE: &str = "kcp-agent-0123456789";

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const TARGETS: &str = "/clusters/infra/apis/workload.kcp.io/v1alpha1/synctargets";

/// An API server in this process, on disk, so that it can be restarted.
pub(crate) struct Api {
    root: PathBuf,
    running: Option<Running>,
    port: u16,
    pub(crate) link: Link,
}

/// Everything.
pub(crate) struct World {
    pub(crate) hub: Api,
    pub(crate) physical: Api,
    pub(crate) uid: String,
    pub(crate) directory: tempfile::TempDir,
    tasks: Tasks,
}

/// An agent that runs in this process.
pub(crate) struct Agent {
    stop: CancellationToken,
    ended: JoinHandle<anyhow::Result<()>>,
    pub(crate) port: u16,
}

// === impl Api ===

impl Api {
    async fn start(root: &Path) -> Self {
        std::fs::create_dir_all(root).unwrap();
        let running = serve(root, 0).await;
        let port = running.address().port();
        let link = Link::new(admin(&running, "")).unwrap();
        Self { root: root.to_owned(), running: Some(running), port, link }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn kubeconfig(&self) -> &str {
        self.running.as_ref().unwrap().kubeconfig()
    }

    /// Ends the server; it can come back.
    pub(crate) async fn stop(&mut self) {
        self.running.take().unwrap().shutdown().await;
    }

    /// The same server again, at the same address.
    pub(crate) async fn resume(&mut self) {
        self.running = Some(serve(&self.root, self.port).await);
    }

    /// The file of the store. Only while the server is stopped is it whole.
    pub(crate) fn store(&self) -> PathBuf {
        self.root.join("store")
    }

    /// Copies the store's file, and tells what is in it as a stream for [`Api::import`]; the server has
    /// to be stopped.
    pub(crate) async fn back_up(&self, file: &Path) -> Vec<u8> {
        let store = open(&self.store()).await;
        // Nobody writes.
        std::fs::copy(self.store(), file).unwrap();
        let mut stream = Vec::new();
        store::transfer::export(&*store, &mut stream).await.unwrap();
        stream
    }

    /// Replaces the store by a copy of an earlier file; the server has to be stopped.
    pub(crate) async fn put_back(&self, file: &Path) {
        // Not before the one that is there is closed.
        drop(open(&self.store()).await);
        std::fs::remove_file(self.store()).unwrap();
        std::fs::copy(file, self.store()).unwrap();
    }

    /// Replaces the store by one that is made of a stream; the server has to be stopped.
    pub(crate) async fn import(&self, stream: &[u8]) {
        drop(open(&self.store()).await);
        std::fs::remove_file(self.store()).unwrap();
        store::transfer::import(&self.store(), stream).unwrap();
    }

    /// A request with success.
    pub(crate) async fn send(&self, method: Method, path: &str, kind: &str, body: &Value) -> Value {
        let ask = Ask::with(method, path, kind, body.to_string().into_bytes());
        let told = self.link.ask(ask).await.unwrap();
        let text = String::from_utf8_lossy(&told.body).into_owned();
        assert!(told.status.is_success(), "{path}: {} {text}", told.status);
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) async fn create(&self, path: &str, body: &Value) -> Value {
        self.send(Method::POST, path, JSON, body).await
    }

    pub(crate) async fn merge(&self, path: &str, body: &Value) -> Value {
        self.send(Method::PATCH, path, "application/merge-patch+json", body).await
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.send(Method::DELETE, path, JSON, &json!({})).await;
    }

    /// What is there, if it is.
    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        let told = self.link.ask(Ask::get(path)).await.unwrap();
        match told.status.as_u16() {
            200 => Some(serde_json::from_slice(&told.body).unwrap()),
            404 => None,
            status => panic!("{path}: {status}"),
        }
    }

    /// Waits until what is there is as wanted; gives it.
    pub(crate) async fn until(
        &self,
        path: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut last = Value::Null;
        let all = async {
            loop {
                // A server that is just coming back answers a little later.
                if let Ok(told) = self.link.ask(Ask::get(path)).await {
                    last = serde_json::from_slice(&told.body).unwrap_or_default();
                    if told.status == 200 && wanted(&last) {
                        return;
                    }
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            panic!("{path} is never {what}: {last}");
        }
        last
    }

    /// Waits until it is not there.
    pub(crate) async fn until_gone(&self, path: &str) {
        let all = async {
            while self.get(path).await.is_some() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            panic!("{path} stays: {:?}", self.get(path).await);
        }
    }

    /// Defines types, and waits until they are served.
    pub(crate) async fn define(&self, base: &str, definition: &Value) {
        let path = format!("{base}{DEFINITIONS}");
        let made = self.create(&path, definition).await;
        let name = made["metadata"]["name"].as_str().unwrap();
        self.until(&format!("{path}/{name}"), "established", |definition| {
            let conditions = definition["status"]["conditions"].as_array();
            let is = |c: &Value| c["type"] == "Established" && c["status"] == "True";
            conditions.is_some_and(|conditions| conditions.iter().any(is))
        })
        .await;
    }
}

/// Opens a store, as soon as who had it open before has let go of it.
async fn open(path: &Path) -> std::sync::Arc<store::EmbeddedStore> {
    let begun = tokio::time::Instant::now();
    loop {
        match store::EmbeddedStore::open(path, store::EmbeddedOptions::default()) {
            Ok(store) => return store,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn serve(root: &Path, port: u16) -> Running {
    let store = open(&root.join("store")).await;
    let mut patience = 100;
    loop {
        let server = Server::builder(store.clone()).root_directory(root).port(port);
        match server.start().await {
            Ok(running) => return running,
            // The address may still be in use by connections that end.
            Err(_) if patience > 0 => patience -= 1,
            Err(error) => panic!("{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The administrator's settings, with another path.
fn admin(running: &Running, path: &str) -> Settings {
    let access = Access::parse(running.kubeconfig().as_bytes(), None).unwrap();
    let mut settings = Settings::of_access(access, Path::new(""), "test/0").unwrap();
    settings.server = settings.server.with_path(path);
    settings
}

/// The condition of a type of an object; null if it has none.
pub(crate) fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array();
    let mut found = conditions.into_iter().flatten().filter(|one| one["type"] == kind);
    found.next().cloned().unwrap_or_default()
}

/// A type with status and scale.
pub(crate) fn definition(plural: &str) -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": open, "status": open}});
    let kind = format!("Kind{plural}");
    json!({
        "metadata": {"name": format!("{plural}.x.io")},
        "spec": {
            "group": "x.io",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": format!("{plural}one"), "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                }},
            }],
        },
    })
}

// === impl World ===

impl World {
    /// A hub with the SyncTarget `infra.east`, both sides serving `things.x.io`.
    pub(crate) async fn new() -> Self {
        Self::with(&json!({})).await
    }

    /// The same, with a spec of the SyncTarget.
    pub(crate) async fn with(spec: &Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let hub = Api::start(&directory.path().join("hub")).await;
        let physical = Api::start(&directory.path().join("physical")).await;
        for definition in crds::definitions() {
            let mut definition = serde_json::to_value(&definition).unwrap();
            definition.as_object_mut().unwrap().remove("status");
            hub.define("/clusters/system:crds", &definition).await;
        }
        hub.define("/clusters/infra", &definition("things")).await;
        physical.define("", &definition("things")).await;
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        physical.create("/api/v1/namespaces", &namespace).await;
        let secret = json!({"metadata": {"name": "kcp-agent-identity"}, "type": "Opaque"});
        physical.create(&format!("/api/v1/namespaces/{NAMESPACE}/secrets"), &secret).await;
        let mut world = Self { hub, physical, uid: String::new(), directory, tasks: Tasks::new() };
        world.make_target(spec).await;
        world.write_files();
        world
    }

    async fn make_target(&mut self, spec: &Value) {
        let target = json!({
            "apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
            "metadata": {"name": "east"}, "spec": spec,
        });
        let made = self.hub.create(TARGETS, &target).await;
        self.uid = made["metadata"]["uid"].as_str().unwrap().to_owned();
        self.make_token("abcdef").await;
    }

    /// A bootstrap token in the file that agents read.
    pub(crate) async fn make_token(&self, id: &str) {
        let secret = json!({
            "metadata": {"name": format!("bootstrap-token-{id}")},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": {
                "token-id": id,
                "token-secret": "0123456789abcdef",
                "usage-bootstrap-authentication": "true",
                "expiration": "2100-01-01T00:00:00Z",
                "synctarget-name": "east",
                "synctarget-uid": self.uid,
            },
        });
        let path = "/clusters/infra/api/v1/namespaces/kube-system/secrets";
        self.hub.create(path, &secret).await;
        std::fs::write(self.file("token"), format!("{id}.0123456789abcdef\n")).unwrap();
    }

    fn write_files(&self) {
        let access = Access::parse(self.hub.kubeconfig().as_bytes(), None).unwrap();
        std::fs::write(self.file("ca.crt"), access.authority.unwrap()).unwrap();
        std::fs::write(self.file("physical.kubeconfig"), self.physical.kubeconfig()).unwrap();
        std::fs::write(self.file("hub.kubeconfig"), self.hub.kubeconfig()).unwrap();
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// An agent as its pod runs it, that syncs `things.x.io` and ConfigMaps.
    pub(crate) fn agent(&self) -> Agent {
        self.agent_of(&["things.x.io", "configmaps"])
    }

    pub(crate) fn agent_of(&self, resources: &[&str]) -> Agent {
        self.agent_at(&self.hub.url(), &self.file("ca.crt"), resources)
    }

    /// One that reaches the hub at an address that an authority vouches for.
    pub(crate) fn agent_at(&self, hub: &str, authority: &Path, resources: &[&str]) -> Agent {
        self.run(self.flags(hub, authority, resources))
    }

    /// One that has a single request under way at a time.
    pub(crate) fn narrow_agent(&self, resources: &[&str]) -> Agent {
        let mut flags = self.flags(&self.hub.url(), &self.file("ca.crt"), resources);
        flags.push("--parallel=1".to_owned());
        self.run(flags)
    }

    fn flags(&self, hub: &str, authority: &Path, resources: &[&str]) -> Vec<String> {
        let mut flags = vec![
            format!("--hub={hub}"),
            format!("--hub-ca-file={}", authority.display()),
            format!("--bootstrap-token-file={}", self.file("token").display()),
            "--cluster=infra".to_owned(),
            "--sync-target=east".to_owned(),
            format!("--sync-target-uid={}", self.uid),
            format!("--namespace={NAMESPACE}"),
            format!("--to-kubeconfig={}", self.file("physical.kubeconfig").display()),
        ];
        flags.extend(resources.iter().map(|resource| format!("--resource={resource}")));
        flags
    }

    /// The program with these flags.
    pub(crate) fn run(&self, mut flags: Vec<String>) -> Agent {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        flags.insert(0, "kcp-agent".to_owned());
        flags.push(format!("--listen=127.0.0.1:{port}"));
        let args = Args::try_parse_from(flags).unwrap();
        // For whoever looks for the cause of a failure.
        if std::env::var_os("KCP_LOG").is_some() {
            args.logs.install().ok();
        }
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let running = agent::program::run(args, async move { stopped.cancelled().await });
        let ended = self.tasks.spawn(tracing::Span::none(), Box::pin(running));
        Agent { stop, ended, port }
    }

    /// Ends both servers.
    pub(crate) async fn end(self) {
        for api in [self.hub, self.physical] {
            if let Some(running) = api.running {
                running.shutdown().await;
            }
        }
    }

    pub(crate) fn target(&self) -> String {
        format!("{TARGETS}/east")
    }

    /// Creates an object in the hub that is to be on the target, as the operator marks it.
    pub(crate) async fn assign(&self, cluster: &str, resource: &str, name: &str, spec: &Value) {
        let mut object = json!({
            "metadata": {
                "name": name,
                "labels": {"sync.workloads.kcp.io/infra.east": "Sync"},
                "finalizers": ["workloads.kcp.io/infra.east"],
            },
        });
        for (field, value) in spec.as_object().unwrap() {
            object[field] = value.clone();
        }
        self.hub.create(&format!("/clusters/{cluster}{resource}"), &object).await;
    }
}

// === impl Agent ===

impl Agent {
    /// Ends it in good order.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.ended).await.unwrap().unwrap().unwrap();
    }

    /// Ends it as a crash does: nothing is given back.
    pub(crate) async fn kill(self) {
        self.ended.abort();
        assert!(self.ended.await.unwrap_err().is_cancelled());
    }

    /// One of its pages: the status code and the text.
    pub(crate) async fn page(&self, path: &str) -> (u16, String) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let Ok(mut stream) = tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await else {
            return (0, String::new());
        };
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let code = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        (code, text)
    }

    /// The value of a metric, without or with its labels as they are shown; 0 if it isn't there.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let (_, text) = self.page("/metrics").await;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.trim().parse().unwrap())
    }

    /// Waits until it is ready.
    pub(crate) async fn ready(&self) {
        self.until("/readyz", 200).await;
    }

    pub(crate) async fn until(&self, path: &str, code: u16) {
        let mut last = (0, String::new());
        let all = async {
            while last.0 != code {
                last = self.page(path).await;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let outcome = tokio::time::timeout(PATIENCE, all).await;
        assert!(outcome.is_ok(), "{path} never answers {code}: {last:?}");
    }
}

/// Waits for a condition.
pub(crate) async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    let all = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// What a Secret holds under a name.
pub(crate) fn entry(secret: &Value, name: &str) -> Option<String> {
    let text = secret["data"][name].as_str()?;
    Some(String::from_utf8(STANDARD.decode(text).unwrap()).unwrap())
}
