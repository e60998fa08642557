//! A hub, physical clusters and an operator, and a client that sees all of them.

use std::path::Path;
use std::time::Duration;

use apiserver::{Running, Server};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::{Link, Settings};
use http::{Method, Request};
use machinery::kubeconfig::Access;
use machinery::network::{Network, Reachable};
use operator::{AgentOptions, DefaultMode, Operator, Options};
use serde_json::{Value, json};

/// The longest that anything here may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// How agents would reach the hub.
pub(crate) const HUB_URL: &str = "https://hub.example:6443";

pub(crate) const TARGETS: &str = "/apis/workload.kcp.io/v1alpha1/synctargets";

/// An API server, and its administrator.
pub(crate) struct Side {
    running: Running,
    link: Link,
    client: kube::Client,
}

/// Everything together.
pub(crate) struct Yard {
    pub(crate) hub: Side,
    pub(crate) east: Side,
    operator: Operator,
}

/// Everything while no operator runs.
pub(crate) struct Quiet {
    pub(crate) hub: Side,
    pub(crate) east: Side,
}

// === impl Side ===

impl Side {
    pub(crate) async fn start() -> Self {
        let store = store::MemoryStore::new(store::memory::Options::default());
        let running = Server::builder(store).start().await.unwrap();
        let access = Access::parse(running.kubeconfig().as_bytes(), None).unwrap();
        let settings = Settings::of_access(access, Path::new(""), "test/0").unwrap();
        let link = Link::new(settings).unwrap();
        let client = link.client_at("");
        Self { running, link, client }
    }

    /// One that has Deployments, as physical clusters do.
    pub(crate) async fn physical() -> Self {
        let side = Self::start().await;
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": "deployments.apps",
                "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
            },
            "spec": {
                "group": "apps",
                "scope": "Namespaced",
                "names": {
                    "plural": "deployments", "singular": "deployment", "kind": "Deployment",
                    "listKind": "DeploymentList",
                },
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    }},
                }],
            },
        });
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        side.send(Method::POST, path, &definition).await.unwrap();
        side.eventually(&format!("{path}/deployments.apps"), |found| {
            found["status"]["conditions"].as_array().is_some_and(|all| {
                all.iter().any(|one| one["type"] == "Established" && one["status"] == "True")
            })
        })
        .await;
        side
    }

    /// A link to what stands before `/clusters/…`, as its administrator.
    pub(crate) fn whole(&self) -> Link {
        let access = Access::parse(self.kubeconfig().as_bytes(), None).unwrap();
        let settings = Settings::of_access(access, Path::new(""), "test/0").unwrap();
        let server = settings.server.with_path("");
        Link::new(Settings { server, ..settings }).unwrap()
    }

    /// A link to its logical cluster `root`, which is all that a client of it sees.
    pub(crate) fn link(&self) -> Link {
        self.link.clone()
    }

    pub(crate) fn kubeconfig(&self) -> &str {
        self.running.kubeconfig()
    }

    /// A client of its administrator, in its logical cluster `root`.
    pub(crate) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// What stands before `/clusters/…`.
    pub(crate) fn root_url(&self) -> String {
        self.access().server.split("/clusters/").next().unwrap().to_owned()
    }

    /// The certificates that vouch for it, as PEM.
    pub(crate) fn authority(&self) -> String {
        String::from_utf8(self.access().authority.unwrap()).unwrap()
    }

    fn access(&self) -> Access {
        Access::parse(self.kubeconfig().as_bytes(), None).unwrap()
    }

    async fn ask(&self, request: Request<Vec<u8>>) -> Result<Value, kube::Error> {
        tokio::time::timeout(PATIENCE, self.client.request(request)).await.expect("it answers")
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Value, kube::Error> {
        let kind = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        self.ask(request.body(body.to_string().into_bytes()).unwrap()).await
    }

    /// An object, or null when it isn't there.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let request = Request::builder().uri(path).body(Vec::new()).unwrap();
        match self.ask(request).await {
            Ok(value) => value,
            Err(kube::Error::Api(status)) if status.code == 404 => Value::Null,
            Err(error) => panic!("{path}: {error}"),
        }
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        self.send(Method::POST, path, body).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Value {
        self.send(Method::PATCH, path, body).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.send(Method::DELETE, path, &json!({}))
            .await
            .unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Waits until an object is as it should be; null stands for one that isn't there.
    #[track_caller]
    pub(crate) fn eventually<'s>(
        &'s self,
        path: &'s str,
        done: impl Fn(&Value) -> bool + 's,
    ) -> impl Future<Output = Value> + 's {
        let place = std::panic::Location::caller();
        async move {
            let begin = tokio::time::Instant::now();
            loop {
                let found = self.get(path).await;
                if done(&found) {
                    return found;
                }
                assert!(begin.elapsed() < PATIENCE, "{place}: {path}: {found:#}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// How many lists of a resource it has answered.
    pub(crate) async fn lists(&self, resource: &str) -> u64 {
        let told = self.whole().ask(client::Ask::get("/metrics")).await.unwrap();
        let text = String::from_utf8(told.body.to_vec()).unwrap();
        let lines = text.lines().filter(|line| {
            line.starts_with("apiserver_request_total{")
                && line.contains("verb=\"LIST\"")
                && line.contains(&format!("resource=\"{resource}\""))
        });
        lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
    }

    /// The reasons of Events about an object in a namespace.
    pub(crate) async fn event(
        &self,
        cluster: &str,
        namespace: &str,
        name: &str,
        reason: &str,
    ) -> Value {
        let path = format!("/clusters/{cluster}/api/v1/namespaces/{namespace}/events");
        let is_it =
            |event: &Value| event["involvedObject"]["name"] == name && event["reason"] == reason;
        let list = self
            .eventually(&path, |list| {
                list["items"].as_array().is_some_and(|items| items.iter().any(is_it))
            })
            .await;
        list["items"].as_array().unwrap().iter().find(|event| is_it(event)).unwrap().clone()
    }

    pub(crate) async fn shutdown(self) {
        drop(self.link);
        self.running.shutdown().await;
    }
}

// === impl Yard ===

/// What an operator here is told.
pub(crate) fn options(hub: &Side) -> Options {
    let access = Access::parse(hub.running.operator_kubeconfig().as_bytes(), None).unwrap();
    Options {
        hub: Settings::of_access(access, Path::new(""), "test-operator/0").unwrap(),
        kubeconfig: None,
        agents: AgentOptions {
            hub: HUB_URL.into(),
            authority: Some(hub.authority()),
            image: "agent:test".into(),
            pull_secret: None,
        },
        default_mode: DefaultMode::Pull,
        reachable: Reachable::new(Network::loopback().to_vec()),
        listen: None,
        drain_timeout: Duration::from_secs(300),
        check_interval: Duration::from_secs(1),
    }
}

impl Yard {
    pub(crate) async fn new() -> Self {
        Self::with(|_| ()).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let (hub, east) = tokio::join!(Side::start(), Side::physical());
        let mut options = options(&hub);
        change(&mut options);
        let operator = Operator::start(options).await.unwrap();
        Self { hub, east, operator }
    }

    /// The operator ends, and another one begins, with other flags.
    pub(crate) async fn restart(self, change: impl FnOnce(&mut Options)) -> Self {
        let Self { hub, east, operator } = self;
        operator.shutdown(Duration::from_secs(20)).await;
        let mut options = options(&hub);
        change(&mut options);
        let operator = Operator::start(options).await.unwrap();
        Self { hub, east, operator }
    }

    /// The operator ends, something happens that it doesn't see, and another one begins.
    pub(crate) async fn restart_after(self, unseen: impl AsyncFnOnce(&Quiet)) -> Self {
        let Self { hub, east, operator } = self;
        operator.shutdown(Duration::from_secs(20)).await;
        let quiet = Quiet { hub, east };
        unseen(&quiet).await;
        let Quiet { hub, east } = quiet;
        let operator = Operator::start(options(&hub)).await.unwrap();
        Self { hub, east, operator }
    }

    /// Makes a SyncTarget in the logical cluster `infra`, and gives its UID.
    pub(crate) async fn target(&self, name: &str, spec: &Value) -> String {
        let path = format!("/clusters/infra{TARGETS}");
        let body = json!({
            "apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
            "metadata": {"name": name}, "spec": spec,
        });
        let made = self.hub.post(&path, &body).await;
        made["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    /// Puts a kubeconfig into a Secret of `infra`, and gives the spec that names it.
    pub(crate) async fn secret(&self, name: &str, kubeconfig: &str) -> Value {
        let path = "/clusters/infra/api/v1/namespaces/default/secrets";
        let data = json!({"kubeconfig": STANDARD.encode(kubeconfig)});
        let body = json!({"metadata": {"name": name}, "data": data});
        self.hub.post(path, &body).await;
        json!({"kubeconfigSecretRef": {"namespace": "default", "name": name}})
    }

    /// A SyncTarget that leads to the physical cluster `east`.
    pub(crate) async fn east(&self) -> String {
        let spec = self.secret("east", self.east.kubeconfig()).await;
        self.target("east", &spec).await
    }

    /// Waits until a condition of a SyncTarget has a reason.
    #[track_caller]
    pub(crate) fn says<'y>(
        &'y self,
        name: &'y str,
        kind: &'y str,
        status: &'y str,
        reason: &'y str,
    ) -> impl Future<Output = Value> + 'y {
        let place = std::panic::Location::caller();
        async move {
            let path = format!("/clusters/infra{TARGETS}/{name}");
            let begin = tokio::time::Instant::now();
            loop {
                let found = self.hub.get(&path).await;
                let condition = condition(&found, kind);
                if condition["status"] == status && condition["reason"] == reason {
                    return condition;
                }
                assert!(begin.elapsed() < PATIENCE, "{place}: {kind}={status} {reason}: {found:#}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// Renews the Lease of an agent, as the agent does.
    pub(crate) async fn beat(&self, uid: &str, time: &str) {
        let base = "/clusters/infra/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        let path = format!("{base}/synctarget-{uid}");
        let spec = json!({"holderIdentity": "agent", "renewTime": time});
        if self.hub.get(&path).await.is_null() {
            let body = json!({"metadata": {"name": format!("synctarget-{uid}")}, "spec": spec});
            self.hub.post(base, &body).await;
        } else {
            self.hub.patch(&path, &json!({"spec": spec})).await;
        }
    }

    /// Says which resources a SyncTarget syncs, as the controller of types does.
    pub(crate) async fn accept(&self, name: &str, resources: &[(&str, &str)]) {
        let synced: Vec<Value> = resources
            .iter()
            .map(|(group, resource)| {
                json!({"group": group, "resource": resource, "versions": ["v1"], "state": "Accepted"})
            })
            .collect();
        let imported = json!({
            "type": "TypesImported", "status": "True", "reason": "Imported", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let body = json!({
            "apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
            "metadata": {"name": name},
            "status": {"syncedResources": synced, "conditions": [imported]},
        });
        let path =
            format!("/clusters/infra{TARGETS}/{name}/status?fieldManager=kcp-types&force=true");
        let request = Request::builder().method(Method::PATCH).uri(&path);
        let request = request.header("content-type", "application/apply-patch+yaml");
        self.hub.ask(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap();
    }

    pub(crate) async fn shutdown(self) {
        self.operator.shutdown(Duration::from_secs(20)).await;
        self.hub.shutdown().await;
        self.east.shutdown().await;
    }
}

/// A condition of an object, or null.
pub(crate) fn condition(object: &Value, kind: &str) -> Value {
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|one| one["type"] == kind).cloned().unwrap_or_default()
}

/// Where the agent of a SyncTarget is installed.
pub(crate) fn installed_in(uid: &str) -> String {
    agent::manifest::namespace(HUB_URL, uid)
}
