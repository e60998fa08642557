//! Who callers are: tokens of ServiceAccounts, static and bootstrap tokens, front proxies, and
//! those who act as others.

use apiserver::{AuthOptions, FrontProxies};
use http::Method;
use serde_json::{Value, json};
use std::net::SocketAddr;

use crate::authority::{Authority, Pair};
use crate::client::{Answer, Ask, Hub, TOKEN, Who, ask_over, connect_by, pem};
use crate::deeds::{create, gone};

const REVIEWS: &str = "apis/authentication.k8s.io/v1/tokenreviews";
const SELF: &str = "apis/authentication.k8s.io/v1/selfsubjectreviews";

fn accounts(cluster: &str, namespace: &str) -> String {
    format!("/clusters/{cluster}/api/v1/namespaces/{namespace}/serviceaccounts")
}

async fn post(hub: &Hub, path: &str, object: &Value) -> Answer {
    hub.admin(Ask::new(Method::POST, path).json(object)).await
}

/// Makes a logical cluster with something in it.
async fn begin(hub: &Hub, cluster: &str) {
    let path = format!("/clusters/{cluster}/api/v1/namespaces/default/configmaps");
    create(hub, &path, &json!({"metadata": {"name": "first"}})).await;
}

/// A token of the ServiceAccount `default` in the namespace `default`.
async fn token(hub: &Hub, cluster: &str) -> String {
    let path = accounts(cluster, "default") + "/default/token";
    let made = create(hub, &path, &json!({})).await;
    made["status"]["token"].as_str().unwrap().to_owned()
}

fn bearing(ask: Ask, token: &str) -> Ask {
    ask.header("authorization", &format!("Bearer {token}"))
}

/// The code of a GET with a token and without a certificate.
async fn code(hub: &Hub, path: &str, token: &str) -> u16 {
    hub.ask(Who::Anonymous, bearing(Ask::get(path), token)).await.status.as_u16()
}

/// Whom the administrator is told that a token is, in a logical cluster.
async fn review(hub: &Hub, cluster: &str, spec: Value) -> Value {
    let review = json!({"spec": spec});
    create(hub, &format!("/clusters/{cluster}/{REVIEWS}"), &review).await["status"].take()
}

#[tokio::test]
async fn a_service_account_is_known_in_its_own_logical_cluster() {
    let hub = Hub::start().await;
    for cluster in ["a", "b"] {
        begin(&hub, cluster).await;
    }
    let of_a = token(&hub, "a").await;
    // Where anybody may look, a foreign token may not.
    assert_eq!(code(&hub, "/clusters/a/healthz", &of_a).await, 200);
    assert_eq!(code(&hub, "/healthz", &of_a).await, 200);
    for path in ["/clusters/b/healthz", "/clusters/root/healthz", "/clusters/*/healthz"] {
        assert_eq!(code(&hub, path, &of_a).await, 401, "{path}");
    }
    assert_eq!(code(&hub, "/clusters/new/healthz", &of_a).await, 401);

    let known = review(&hub, "a", json!({"token": of_a})).await;
    assert_eq!(known["authenticated"], true, "{known}");
    assert_eq!(known["user"]["username"], "system:serviceaccount:default:default");
    let account = hub.get(&(accounts("a", "default") + "/default")).await.json();
    assert_eq!(known["user"]["uid"], account["metadata"]["uid"]);
    let extra = &known["user"]["extra"]["authentication.kubernetes.io/credential-id"][0];
    assert!(extra.as_str().unwrap().starts_with("JTI="), "{known}");
    assert_eq!(known["audiences"], json!(["https://kubernetes.default.svc/clusters/a"]));
    for cluster in ["b", "root"] {
        let unknown = review(&hub, cluster, json!({"token": of_a})).await;
        assert_eq!(unknown, json!({"user": {}, "error": "invalid bearer token"}), "{cluster}");
    }
    let answer = post(&hub, &format!("/clusters/a/{REVIEWS}"), &json!({"spec": {}})).await;
    let why = "token is required for TokenReview in authentication";
    assert_eq!(answer.fails(400, "BadRequest"), why);
    hub.shutdown().await;
}

#[tokio::test]
async fn tokens_end_with_what_they_are_of() {
    let hub = Hub::start().await;
    begin(&hub, "a").await;
    let path = accounts("a", "default");
    create(&hub, &path, &json!({"metadata": {"name": "app"}})).await;
    let secrets = "/clusters/a/api/v1/namespaces/default/secrets";
    create(&hub, secrets, &json!({"metadata": {"name": "held"}})).await;
    let request = json!({
        "spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "held"}},
    });
    let bound = create(&hub, &format!("{path}/app/token"), &request).await;
    let bound = bound["status"]["token"].as_str().unwrap();
    let free = create(&hub, &format!("{path}/app/token"), &json!({})).await;
    let free = free["status"]["token"].as_str().unwrap();
    let health = "/clusters/a/healthz";
    assert_eq!((code(&hub, health, bound).await, code(&hub, health, free).await), (200, 200));
    let gone = hub.admin(Ask::new(Method::DELETE, &format!("{secrets}/held"))).await;
    assert_eq!(gone.status, 200);
    assert_eq!((code(&hub, health, bound).await, code(&hub, health, free).await), (401, 200));
    create(&hub, secrets, &json!({"metadata": {"name": "held"}})).await;
    assert_eq!(code(&hub, health, bound).await, 401, "another of the same name");
    let gone = hub.admin(Ask::new(Method::DELETE, &format!("{path}/app"))).await;
    assert_eq!(gone.status, 200);
    assert_eq!(code(&hub, health, free).await, 401);
    create(&hub, &path, &json!({"metadata": {"name": "app"}})).await;
    assert_eq!(code(&hub, health, free).await, 401, "another of the same name");
    let why = review(&hub, "a", json!({"token": free})).await;
    assert!(why["error"].as_str().unwrap().contains("does not match claim"), "{why}");
    hub.shutdown().await;
}

#[tokio::test]
async fn a_logical_cluster_that_is_made_again_knows_no_token_of_the_one_before() {
    let hub = Hub::start().await;
    begin(&hub, "a").await;
    let of_default = token(&hub, "a").await;
    assert_eq!(code(&hub, "/clusters/a/healthz", &of_default).await, 200);
    let cluster = "/clusters/root/apis/core.kcp.io/v1alpha1/logicalclusters/a";
    hub.admin(Ask::new(Method::DELETE, cluster)).await;
    gone(&hub, cluster).await;
    assert_eq!(code(&hub, "/clusters/a/healthz", &of_default).await, 401);
    begin(&hub, "a").await;
    assert_eq!(code(&hub, "/clusters/a/healthz", &of_default).await, 401);
    assert_eq!(code(&hub, "/clusters/a/healthz", &token(&hub, "a").await).await, 200);
    hub.shutdown().await;
}

#[tokio::test]
async fn requests_for_tokens() {
    let hub = Hub::start_with(|server| {
        let mut options = AuthOptions { admin_token: Some(TOKEN.into()), ..Default::default() };
        options.service_accounts.max_seconds = Some(7200);
        options.service_accounts.audiences = vec!["api".into()];
        server.auth(options)
    })
    .await;
    begin(&hub, "a").await;
    let path = accounts("a", "default") + "/default/token";
    let made = create(&hub, &path, &json!({})).await;
    assert_eq!(
        (&made["kind"], &made["metadata"]["name"]),
        (&"TokenRequest".into(), &"default".into())
    );
    let spec = json!({"audiences": ["api"], "expirationSeconds": 3600, "boundObjectRef": null});
    assert_eq!(made["spec"], spec);
    let long = post(&hub, &path, &json!({"spec": {"expirationSeconds": 7201}})).await;
    let warning = "requested expiration of 7201 seconds shortened to 7200 seconds";
    assert_eq!(long.header("warning"), format!("299 - \"{warning}\""));
    assert_eq!(long.json()["spec"]["expirationSeconds"], 7200);
    let vault = create(&hub, &path, &json!({"spec": {"audiences": ["vault"]}})).await;
    let vault = vault["status"]["token"].as_str().unwrap();
    assert_eq!(code(&hub, "/clusters/a/healthz", vault).await, 401, "it is for others");
    let known = review(&hub, "a", json!({"token": vault, "audiences": ["vault", "x"]})).await;
    assert_eq!((&known["authenticated"], &known["audiences"]), (&json!(true), &json!(["vault"])));
    let fixed = review(&hub, "a", json!({"token": TOKEN, "audiences": ["vault"]})).await;
    assert_eq!(fixed, json!({"user": {}, "error": "invalid bearer token"}));

    let bind = |kind: &str, name: &str, uid: &str| {
        let reference = json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": uid});
        json!({"spec": {"boundObjectRef": reference}})
    };
    let invalid = "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: \
                   Invalid value: ";
    let secrets = "/clusters/a/api/v1/namespaces/default/secrets";
    let secret = create(&hub, secrets, &json!({"metadata": {"name": "held"}})).await;
    let uid = secret["metadata"]["uid"].as_str().unwrap();
    for (body, code, reason, message) in [
        (
            json!({"spec": {"expirationSeconds": 599}}),
            422,
            "Invalid",
            format!("{invalid}599: may not specify a duration less than 10 minutes"),
        ),
        (
            json!({"spec": {"expirationSeconds": 4_294_967_297_i64}}),
            422,
            "Invalid",
            format!("{invalid}4294967297: may not specify a duration larger than 2^32 seconds"),
        ),
        (
            json!({"metadata": {"name": "other"}}),
            422,
            "Invalid",
            "TokenRequest.authentication.k8s.io \"default\" is invalid: metadata.name: Invalid \
             value: \"other\": must match the service account name if specified"
                .into(),
        ),
        (
            json!({"metadata": {"namespace": "other"}}),
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request"
                .into(),
        ),
        (
            bind("ConfigMap", "first", ""),
            400,
            "BadRequest",
            "cannot bind token to object of type /v1, Kind=ConfigMap".into(),
        ),
        (bind("Secret", "none", ""), 404, "NotFound", "secrets \"none\" not found".into()),
        (bind("Pod", "none", ""), 404, "NotFound", "pods \"none\" not found".into()),
        (bind("Node", "none", ""), 404, "NotFound", "nodes \"none\" not found".into()),
        (
            bind("Secret", "held", "x"),
            409,
            "Conflict",
            "Operation cannot be fulfilled on Secret \"held\": the UID in the bound object reference \
             (x) does not match the UID in record. The object might have been deleted and then \
             recreated"
                .into(),
        ),
    ] {
        let answer = post(&hub, &path, &body).await;
        assert_eq!(answer.fails(code, reason), message, "{body}");
    }
    create(&hub, &path, &bind("Secret", "held", uid)).await;
    let wrong = post(&hub, &path, &json!({"metadata": {"uid": "x"}})).await;
    let message = wrong.fails(409, "Conflict");
    assert!(message.contains("the UID in the token request (x) does not match"), "{message}");
    let missing = accounts("a", "default") + "/nobody/token";
    let answer = post(&hub, &missing, &json!({})).await;
    assert_eq!(answer.fails(404, "NotFound"), "serviceaccounts \"nobody\" not found");
    hub.get(&path).await.fails(405, "MethodNotAllowed");
    hub.shutdown().await;
}

#[tokio::test]
async fn bootstrap_tokens_are_known_in_their_logical_cluster() {
    let hub = Hub::start().await;
    for cluster in ["a", "b"] {
        begin(&hub, cluster).await;
    }
    let secret = json!({
        "metadata": {"name": "bootstrap-token-abcdef"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": "abcdef",
            "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:agents",
        },
    });
    create(&hub, "/clusters/a/api/v1/namespaces/kube-system/secrets", &secret).await;
    let token = "abcdef.0123456789abcdef";
    assert_eq!(code(&hub, "/clusters/a/healthz", token).await, 200);
    for path in ["/healthz", "/clusters/b/healthz", "/clusters/*/healthz"] {
        assert_eq!(code(&hub, path, token).await, 401, "{path}");
    }
    let known = review(&hub, "a", json!({"token": token})).await;
    let groups = ["system:bootstrappers", "system:bootstrappers:agents", "system:authenticated"];
    let expect = json!({"username": "system:bootstrap:abcdef", "groups": groups});
    assert_eq!(known["user"], expect);
    hub.shutdown().await;
}

#[tokio::test]
async fn tokens_of_a_file_and_nobody_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.csv");
    std::fs::write(&file, "secret-of-ann,ann,7,\"system:masters,dev\"\n").unwrap();
    let hub = Hub::start_with(|server| {
        server.auth(AuthOptions {
            token_file: Some(file.clone()),
            refuse_anonymous: true,
            ..AuthOptions::default()
        })
    })
    .await;
    let whoami = Ask::new(Method::POST, &format!("/clusters/root/{SELF}")).json(&json!({}));
    let answer = hub.ask(Who::Anonymous, bearing(whoami, "secret-of-ann")).await;
    let user = &answer.json()["status"]["userInfo"];
    let groups = ["system:masters", "dev", "system:authenticated"];
    assert_eq!(*user, json!({"username": "ann", "uid": "7", "groups": groups}));
    let answer = hub.ask(Who::Anonymous, Ask::get("/healthz")).await;
    assert_eq!(answer.fails(401, "Unauthorized"), "Unauthorized");
    hub.shutdown().await;
}

#[tokio::test]
async fn a_front_proxy_says_who_the_caller_is_and_nobody_else_does() {
    let (proxies, clients) = (Authority::new(), Authority::new());
    let folder = tempfile::tempdir().unwrap();
    let (of_proxies, of_clients) = (folder.path().join("proxy"), folder.path().join("client"));
    std::fs::write(&of_proxies, proxies.pem()).unwrap();
    std::fs::write(&of_clients, clients.pem()).unwrap();
    let hub = Hub::start_with(|server| {
        server.auth(AuthOptions {
            client_authorities: Some(of_clients.clone()),
            front_proxies: Some(FrontProxies {
                authorities: of_proxies.clone(),
                names: vec!["proxy".into()],
            }),
            admin_token: Some(TOKEN.into()),
            ..AuthOptions::default()
        })
    })
    .await;
    let ca = pem(hub.kubeconfig(), "certificate-authority-data");
    let whoami = |named: bool| {
        let path = format!("/clusters/root/{SELF}");
        let ask = Ask::new(Method::POST, &path).json(&json!({}));
        if !named {
            return ask;
        }
        ask.header("x-remote-user", "ann")
            .header("x-remote-uid", "7")
            .header("x-remote-group", "system:masters")
            .header("x-remote-extra-scopes", "one")
    };
    let answer = async |pair: &Pair, ask: Ask| {
        let stream = connect_by(hub.address(), &ca, Some(pair), b"h2").await;
        ask_over(stream, &ask).await
    };
    let proxy = proxies.person("proxy", &[]);
    let user = answer(&proxy, whoami(true)).await.json()["status"]["userInfo"].take();
    let groups = ["system:masters", "system:authenticated"];
    let expect =
        json!({"username": "ann", "uid": "7", "groups": groups, "extra": {"scopes": ["one"]}});
    assert_eq!(user, expect);
    // Without a name it is a certificate of nobody.
    answer(&proxy, whoami(false)).await.fails(401, "Unauthorized");
    // Another certificate of the same authority is no proxy, and a client's says whose it is alone.
    answer(&proxies.person("eve", &[]), whoami(true)).await.fails(401, "Unauthorized");
    for name in ["eve", "proxy"] {
        let user = answer(&clients.person(name, &[]), whoami(true)).await.json()["status"].take();
        let expect = json!({"username": name, "groups": ["system:authenticated"]});
        assert_eq!(user["userInfo"], expect);
    }
    // Nor do the headers say anything without a certificate, or beside a token.
    let message = hub.ask(Who::Anonymous, whoami(true)).await.fails(403, "Forbidden");
    assert!(message.contains("User \"system:anonymous\" cannot create"), "{message}");
    let admin = hub.ask(Who::Anonymous, bearing(whoami(true), TOKEN)).await.json();
    assert_eq!(admin["status"]["userInfo"]["username"], "kcp-admin");
    hub.shutdown().await;
}

#[tokio::test]
async fn what_those_are_told_who_trust_the_issuer() {
    let hub = Hub::start().await;
    begin(&hub, "a").await;
    for (place, issuer) in [
        ("", "https://kubernetes.default.svc"),
        ("/clusters/root", "https://kubernetes.default.svc"),
        ("/clusters/a", "https://kubernetes.default.svc/clusters/a"),
    ] {
        let answer = hub.get(&format!("{place}/.well-known/openid-configuration")).await;
        assert_eq!(answer.header("content-type"), "application/json");
        let expect = |address: SocketAddr| {
            json!({
                "issuer": issuer,
                "jwks_uri": format!("https://localhost:{}{place}/openid/v1/jwks", address.port()),
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["ES256"],
            })
        };
        // Each of several servers names itself.
        let told = answer.json();
        assert!(hub.addresses().any(|address| told == expect(address)), "{told}");
        let answer = hub.get(&format!("{place}/openid/v1/jwks")).await;
        assert_eq!(answer.header("content-type"), "application/jwk-set+json");
        let keys = answer.json();
        assert_eq!(
            (&keys["keys"][0]["kty"], &keys["keys"][0]["alg"]),
            (&"EC".into(), &"ES256".into())
        );
        assert!(keys["keys"][0].get("d").is_none(), "no private part");
    }
    for path in ["/.well-known/openid-configuration", "/openid/v1/jwks"] {
        hub.ask(Who::Anonymous, Ask::get(path)).await.fails(403, "Forbidden");
        assert_eq!(hub.get(&format!("/clusters/*{path}")).await.status, 404);
    }
    hub.shutdown().await;
}

#[tokio::test]
async fn acting_as_another() {
    let hub = Hub::start().await;
    begin(&hub, "a").await;
    let whoami = |cluster: &str| {
        Ask::new(Method::POST, &format!("/clusters/{cluster}/{SELF}")).json(&json!({}))
    };
    let as_master = whoami("a")
        .header("impersonate-user", "ann")
        .header("impersonate-group", "system:masters")
        .header("impersonate-extra-team", "blue");
    let user = hub.admin(as_master).await.json()["status"]["userInfo"].take();
    let expect = json!({
        "username": "ann",
        "groups": ["system:masters", "system:authenticated"],
        "extra": {"team": ["blue"]},
    });
    assert_eq!(user, expect);
    let secrets = |cluster: &str| {
        let path = format!("/clusters/{cluster}/api/v1/namespaces/default/secrets");
        Ask::get(&path).header("impersonate-user", "ann")
    };
    let message = hub.admin(secrets("a")).await.fails(403, "Forbidden");
    assert!(message.contains("User \"ann\" cannot list resource \"secrets\""), "{message}");
    let unnamed = whoami("a").header("impersonate-group", "g");
    let message = hub.admin(unnamed).await.fails(400, "BadRequest");
    assert_eq!(message, "requested [{Group  g    }] without impersonating a user name");
    // Who may not is told what.
    let message = hub.ask(Who::Anonymous, secrets("a")).await.fails(403, "Forbidden");
    let expect = "users \"ann\" is forbidden: User \"system:anonymous\" cannot impersonate resource \
                  \"users\" in API group \"\" at the cluster scope";
    assert_eq!(message, expect);
    let of_a = token(&hub, "a").await;
    let masters = secrets("a").header("impersonate-group", "system:masters");
    hub.ask(Who::Anonymous, bearing(masters, &of_a)).await.fails(403, "Forbidden");
    // A ServiceAccount is known in one place, whoever acts as it.
    let account = "system:serviceaccount:default:default";
    let everywhere = Ask::get("/clusters/*/api/v1/namespaces").header("impersonate-user", account);
    hub.admin(everywhere).await.fails(403, "Forbidden");
    hub.shutdown().await;
}
