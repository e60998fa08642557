//! A server with two logical clusters, and everybody who may ask it something.

use apiserver::{Network, ProfilingOptions};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use runtime::Tasks;
use serde_json::{Value, json};
use tokio::time::timeout;
use tracing::info_span;

use crate::authority::{Authority, Pair};
use crate::client::{Answer, Ask, Hub, PATIENCE, connect_by, multiplex, pem};

pub(super) const RBAC: &str = "apis/rbac.authorization.k8s.io/v1";
pub(super) const CLUSTERS: &str = "/clusters/root/apis/core.kcp.io/v1alpha1/logicalclusters";
pub(super) const WHOAMI: &str = "apis/authentication.k8s.io/v1/selfsubjectreviews";

/// What stands in objects of `b`, and must never be seen by anybody else.
pub(super) const TREASURE: &str = "dHJlYXN1cmUtb2YtYg==";

/// Who asks. The letters are those of `data/routes.txt`.
pub(super) const EVERYBODY: &str = "MOAPRSNFX";

/// The server and everybody.
pub(super) struct World {
    pub(super) hub: Hub,
    callers: Vec<(char, Caller)>,
    people: Authority,
    tasks: Tasks,
    _folder: tempfile::TempDir,
}

/// Somebody with a connection of their own.
pub(super) struct Caller {
    sender: SendRequest<Full<Bytes>>,
    pub(super) token: Option<String>,
}

impl World {
    /// In `a`: O owns it, A is an administrator by RBAC, P is a ServiceAccount that is one, R reads,
    /// S is a ServiceAccount without rights. In `b`: F is a ServiceAccount that is an administrator.
    /// M is a master, N is known and has no rights, X is nobody.
    pub(super) async fn new() -> Self {
        let (people, folder) = (Authority::new(), tempfile::tempdir().unwrap());
        let options = people.trusted(folder.path());
        let hub = Hub::start_with(|server| {
            let server = server.allow_outbound(Network::loopback()).auth(options.clone());
            server.profiling(ProfilingOptions::default())
        })
        .await;
        let (tasks, callers) = (Tasks::new(), Vec::new());
        let mut world = Self { hub, callers, people, tasks, _folder: folder };
        world.settle().await;
        world
    }

    async fn settle(&mut self) {
        let people = [('A', "ann"), ('O', "olga"), ('R', "rita"), ('N', "ned")];
        for (letter, name) in people {
            let caller = self.person(name, &[]).await;
            self.callers.push((letter, caller));
        }
        let master = self.person("master", &["system:masters"]).await;
        let nobody = self.caller(None, None).await;
        self.callers.extend([('M', master), ('X', nobody)]);
        // Olga may create logical clusters, for this once.
        let rules = json!([{
            "verbs": ["create"], "apiGroups": ["core.kcp.io"], "resources": ["logicalclusters"],
        }]);
        let roles = format!("/clusters/root/{RBAC}/clusterroles");
        self.make(&roles, &json!({"metadata": {"name": "maker"}, "rules": rules})).await;
        self.bind("root", "maker", "maker", &json!({"kind": "User", "name": "olga"})).await;
        let body = json!({"metadata": {"name": "a"}});
        let made = self.by('O').ask(Ask::new(Method::POST, CLUSTERS).json(&body)).await;
        assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
        let gone = format!("/clusters/root/{RBAC}/clusterrolebindings/maker");
        assert_eq!(self.by('M').ask(Ask::new(Method::DELETE, &gone)).await.status, 200);
        self.make(CLUSTERS, &json!({"metadata": {"name": "b"}})).await;
        self.bind("a", "ann", "cluster-admin", &json!({"kind": "User", "name": "ann"})).await;
        self.bind("a", "rita", "view", &json!({"kind": "User", "name": "rita"})).await;
        self.bind("b", "bob", "cluster-admin", &json!({"kind": "User", "name": "bob"})).await;
        for (letter, cluster, name, admin) in
            [('P', "a", "pod", true), ('S', "a", "idle", false), ('F', "b", "far", true)]
        {
            let accounts = format!("/clusters/{cluster}/api/v1/namespaces/default/serviceaccounts");
            self.make(&accounts, &json!({"metadata": {"name": name}})).await;
            if admin {
                let subject =
                    json!({"kind": "ServiceAccount", "namespace": "default", "name": name});
                self.bind(cluster, name, "cluster-admin", &subject).await;
            }
            let token = self.make(&format!("{accounts}/{name}/token"), &json!({})).await;
            let token = token["status"]["token"].as_str().unwrap().to_owned();
            let caller = self.caller(None, Some(token)).await;
            self.callers.push((letter, caller));
        }
        self.fill("b").await;
    }

    /// Puts something of several kinds into a logical cluster, each called `treasure`.
    async fn fill(&self, cluster: &str) {
        let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
        for (path, body) in [
            ("api/v1/namespaces", json!({})),
            ("api/v1/namespaces/default/configmaps", json!({"data": {"k": TREASURE}})),
            ("api/v1/namespaces/default/secrets", json!({"data": {"k": TREASURE}})),
            ("api/v1/namespaces/default/serviceaccounts", json!({})),
            ("apis/coordination.k8s.io/v1/namespaces/default/leases", json!({"spec": {}})),
            (&*format!("{RBAC}/clusterroles"), json!({"rules": rules})),
            (&*format!("{RBAC}/namespaces/default/roles"), json!({"rules": rules})),
        ] {
            let mut body = body;
            body["metadata"] = json!({"name": "treasure", "annotations": {"note": TREASURE}});
            self.make(&format!("/clusters/{cluster}/{path}"), &body).await;
        }
    }

    /// Makes something as a master.
    pub(super) async fn make(&self, path: &str, body: &Value) -> Value {
        let answer = self.by('M').ask(Ask::new(Method::POST, path).json(body)).await;
        assert_eq!(answer.status, 201, "{path}: {answer:?}");
        answer.json()
    }

    /// Gives a ClusterRole to a subject.
    pub(super) async fn bind(&self, cluster: &str, name: &str, role: &str, subject: &Value) {
        let path = format!("/clusters/{cluster}/{RBAC}/clusterrolebindings");
        let role = json!({"kind": "ClusterRole", "name": role});
        let body = json!({"metadata": {"name": name}, "roleRef": role, "subjects": [subject]});
        self.make(&path, &body).await;
    }

    /// GET as a master.
    pub(super) async fn get(&self, path: &str) -> Value {
        let answer = self.by('M').ask(Ask::get(path)).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    /// One of those whom the letters name.
    pub(super) fn by(&self, letter: char) -> &Caller {
        let found = self.callers.iter().find(|(known, _)| *known == letter);
        &found.unwrap_or_else(|| panic!("nobody is {letter}")).1
    }

    /// Somebody with a certificate.
    pub(super) async fn person(&self, name: &str, groups: &[&str]) -> Caller {
        self.caller(Some(self.people.person(name, groups)), None).await
    }

    /// Somebody with a certificate, a token, or neither.
    pub(super) async fn caller(&self, pair: Option<Pair>, token: Option<String>) -> Caller {
        let ca = pem(self.hub.kubeconfig(), "certificate-authority-data");
        let stream = connect_by(self.hub.address(), &ca, pair.as_ref(), b"h2").await;
        let (sender, connection) = multiplex(stream).await;
        drop(self.tasks.spawn(info_span!("client"), async move {
            // It ends with its caller or with the server.
            connection.await.ok();
        }));
        Caller { sender, token }
    }

    /// All that `b` and `root` hold, with versions: equal as long as nothing was written.
    pub(super) async fn state(&self) -> Vec<String> {
        let mut state = Vec::new();
        for resource in schema::Types::builtin().resources() {
            if !resource.allows(schema::resource::Verb::List) {
                continue;
            }
            let version = &resource.versions[0].name;
            let path = match &*resource.group {
                "" => format!("api/{version}/{}", resource.plural),
                group => format!("apis/{group}/{version}/{}", resource.plural),
            };
            for cluster in ["b", "root", "system:crds"] {
                let answer = self.by('M').ask(Ask::get(&format!("/clusters/{cluster}/{path}")));
                let answer = answer.await;
                if answer.status == StatusCode::NOT_FOUND {
                    continue;
                }
                for item in answer.json()["items"].as_array().unwrap() {
                    let metadata = &item["metadata"];
                    let (name, uid) = (&metadata["name"], &metadata["uid"]);
                    let version = &metadata["resourceVersion"];
                    state.push(format!("{cluster} {path} {name} {uid} {version}"));
                }
            }
        }
        assert!(state.iter().any(|line| line.contains("secrets \"treasure\"")), "{state:?}");
        state
    }

    pub(super) async fn end(self) {
        self.tasks.cancel();
        self.hub.shutdown().await;
    }
}

impl Caller {
    /// What an answer begins with; its body is still to come.
    pub(super) async fn send(&self, ask: Ask) -> Response<Incoming> {
        let ask = match &self.token {
            Some(token) => ask.header("authorization", &format!("Bearer {token}")),
            None => ask,
        };
        let mut sender = self.sender.clone();
        let sent = sender.send_request(ask.request("https://localhost"));
        timeout(PATIENCE, sent).await.expect("the server answers in time").unwrap()
    }

    /// A whole answer.
    pub(super) async fn ask(&self, ask: Ask) -> Answer {
        let answer = timeout(PATIENCE, Answer::whole(self.send(ask).await)).await;
        answer.expect("it ends").expect("it is whole")
    }

    /// The code of an answer, and its text where that is a failure.
    pub(super) async fn code(&self, ask: Ask) -> (u16, String) {
        let (parts, body) = self.send(ask).await.into_parts();
        let code = parts.status.as_u16();
        if code < 400 {
            return (code, String::new());
        }
        let body = body.collect().await.unwrap().to_bytes();
        (code, String::from_utf8_lossy(&body).into_owned())
    }
}

/// That an answer tells nothing of `b`.
#[track_caller]
pub(super) fn tells_nothing(what: &str, answer: &Answer) {
    let plain = String::from_utf8(STANDARD.decode(TREASURE).unwrap()).unwrap();
    let text = String::from_utf8_lossy(&answer.body);
    let headers = format!("{:?}", answer.headers);
    for hidden in [TREASURE, &plain] {
        assert!(!text.contains(hidden) && !headers.contains(hidden), "{what}: {answer:?}");
    }
}
