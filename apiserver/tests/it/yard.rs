//! A server with SyncTargets, their agents, and people: what tests of them begin with.

use apiserver::ProfilingOptions;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use rcgen::{CertificateParams, Issuer, KeyPair, SanType};
use serde_json::{Value, json};

use crate::authority::{Authority, Pair, params};
use crate::client::{Answer, Ask, Hub, Who, ask_over};
use crate::deeds::{eventually, merge, until};
use crate::types::{CRDS, is};

pub(crate) const TARGETS: &str = "apis/workload.kcp.io/v1alpha1/synctargets";
pub(crate) const REQUESTS: &str = "apis/certificates.k8s.io/v1/certificatesigningrequests";

/// The server, and the authority of people's certificates.
pub(crate) struct Yard {
    pub(crate) hub: Hub,
    people: Authority,
    root: tempfile::TempDir,
}

/// A SyncTarget, and what an agent of it introduces itself with.
pub(crate) struct Target {
    pub(crate) cluster: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) token: String,
}

pub(crate) fn uri(text: &str) -> SanType {
    SanType::URI(text.try_into().unwrap())
}

/// A request for a certificate, and the key of it.
pub(crate) fn request(params: &CertificateParams, signer: &str) -> (Value, String) {
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    let spec = json!({
        "request": STANDARD.encode(pem),
        "signerName": signer,
        "usages": ["client auth", "digital signature"],
    });
    (json!({"metadata": {"generateName": "r-"}, "spec": spec}), key.serialize_pem())
}

impl Yard {
    pub(crate) async fn new() -> Self {
        let (people, root) = (Authority::new(), tempfile::tempdir().unwrap());
        let options = people.trusted(root.path());
        let hub = Hub::start_with(|server| {
            let server = server.root_directory(root.path()).auth(options.clone());
            server.profiling(ProfilingOptions::default())
        })
        .await;
        let yard = Self { hub, people, root };
        let path = format!("/clusters/system:crds/{CRDS}");
        let definition = include_str!("../../../crds/synctargets.workload.kcp.io.yaml");
        let ask = Ask::new(Method::POST, &path).header("content-type", "application/yaml");
        let made = yard.hub.admin(ask.body(definition)).await;
        assert_eq!(made.status, 201, "{made:?}");
        let path = format!("{path}/synctargets.workload.kcp.io");
        eventually(&yard.hub, &path, |status, value| {
            status == 200 && is("Established")(status, value)
        })
        .await;
        yard
    }

    /// The certificate of a person, by an authority that is not the server's.
    pub(crate) fn person(&self, name: &str, groups: &[&str]) -> Pair {
        self.by_people(&params(name, groups))
    }

    /// A certificate by the authority of people.
    pub(crate) fn by_people(&self, params: &CertificateParams) -> Pair {
        self.people.certify(params)
    }

    /// A certificate by the server's own authority, whatever it says.
    pub(crate) fn by_server(&self, params: &CertificateParams) -> Pair {
        let read = |name: &str| std::fs::read_to_string(self.root.path().join(name)).unwrap();
        let key = KeyPair::from_pem(&read("pki/ca.key")).unwrap();
        let issuer = Issuer::from_ca_cert_pem(&read("pki/ca.crt"), key).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    pub(crate) async fn ask(&self, who: &Pair, ask: Ask) -> Answer {
        ask_over(self.hub.connect_as(Some(who)).await, &ask).await
    }

    pub(crate) async fn get(&self, who: &Pair, path: &str) -> Answer {
        self.ask(who, Ask::get(path)).await
    }

    pub(crate) async fn send(
        &self,
        who: &Pair,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Answer {
        self.ask(who, Ask::new(method, path).json(body)).await
    }

    /// A JSON merge patch.
    pub(crate) async fn patch(&self, who: &Pair, path: &str, patch: &Value) -> Answer {
        self.ask(who, merge(path, patch)).await
    }

    /// As the administrator, with success.
    pub(crate) async fn admin(&self, method: Method, path: &str, body: &Value) -> Value {
        let answer = self.hub.admin(Ask::new(method, path).json(body)).await;
        assert!(answer.status.is_success(), "{path}: {answer:?}");
        answer.json()
    }

    /// A merge patch as the administrator, with success.
    pub(crate) async fn change(&self, path: &str, patch: &Value) -> Value {
        let answer = self.hub.admin(merge(path, patch)).await;
        assert!(answer.status.is_success(), "{path}: {answer:?}");
        answer.json()
    }

    /// Makes a logical cluster with something in it.
    pub(crate) async fn begin(&self, cluster: &str) {
        let path = format!("/clusters/{cluster}/api/v1/namespaces/default/configmaps");
        self.admin(Method::POST, &path, &json!({"metadata": {"name": "first"}})).await;
    }

    /// Makes a SyncTarget and a bootstrap token for it, whose id has six characters.
    pub(crate) async fn target(&self, cluster: &str, name: &str, spec: &Value, id: &str) -> Target {
        let path = format!("/clusters/{cluster}/{TARGETS}");
        let body = json!({
            "apiVersion": "workload.kcp.io/v1alpha1",
            "kind": "SyncTarget",
            "metadata": {"name": name},
            "spec": spec,
        });
        let made = self.admin(Method::POST, &path, &body).await;
        let uid = made["metadata"]["uid"].as_str().unwrap().to_owned();
        let secret = json!({
            "metadata": {"name": format!("bootstrap-token-{id}")},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": {
                "token-id": id,
                "token-secret": "0123456789abcdef",
                "usage-bootstrap-authentication": "true",
                "expiration": "2100-01-01T00:00:00Z",
                "synctarget-name": name,
                "synctarget-uid": uid,
            },
        });
        let path = format!("/clusters/{cluster}/api/v1/namespaces/kube-system/secrets");
        self.admin(Method::POST, &path, &secret).await;
        let token = format!("{id}.0123456789abcdef");
        Target { cluster: cluster.to_owned(), name: name.to_owned(), uid, token }
    }

    /// Asks with a token and no certificate.
    pub(crate) async fn by_token(&self, token: &str, ask: Ask) -> Answer {
        let ask = ask.header("authorization", &format!("Bearer {token}"));
        self.hub.ask(Who::Anonymous, ask).await
    }

    /// The certificate that the bootstrap token of a SyncTarget leads to.
    pub(crate) async fn agent(&self, target: &Target) -> Pair {
        let (body, key) = request(&target.params(), "kcp.io/syncer");
        let path = format!("/clusters/{}/{REQUESTS}", target.cluster);
        let made = self.by_token(&target.token, Ask::new(Method::POST, &path).json(&body)).await;
        assert_eq!(made.status, 201, "{made:?}");
        let path = format!("{path}/{}", made.json()["metadata"]["name"].as_str().unwrap());
        (self.issued(async || self.by_token(&target.token, Ask::get(&path)).await).await, key)
    }

    /// The certificate in the status of a request, once it is there.
    pub(crate) async fn issued(&self, get: impl AsyncFn() -> Answer) -> String {
        let signed = |code: u16, request: &Value| {
            assert_eq!(code, 200, "{request}");
            request["status"]["certificate"].is_string()
        };
        let request = until(get, signed).await;
        let pem = STANDARD.decode(request["status"]["certificate"].as_str().unwrap()).unwrap();
        String::from_utf8(pem).unwrap()
    }
}

impl Target {
    /// What the certificate of an agent is to say.
    pub(crate) fn params(&self) -> CertificateParams {
        params(&format!("system:syncer:{}", self.uid), &["system:syncers"])
    }

    /// The URI in it.
    pub(crate) fn uri(&self) -> String {
        format!("kcp://clusters/{}/synctargets/{}", self.cluster, self.name)
    }

    pub(crate) fn path(&self) -> String {
        format!("/clusters/{}/{TARGETS}/{}", self.cluster, self.name)
    }

    /// The query that selects what is assigned to it.
    pub(crate) fn query(&self) -> String {
        format!("labelSelector=sync.workloads.kcp.io/{}.{}", self.cluster, self.name)
    }
}
