//! The audit log, as the operator reads it.

use apiserver::{AuditOptions, AuthOptions};
use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{Ask, Hub, PATIENCE, TOKEN, Who};

const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitManagedFields: true\nrules:\n\
    - {level: None, nonResourceURLs: [/metrics, '/readyz*']}\n\
    - {level: None, verbs: [get], namespaces: [kube-system]}\n\
    - {level: RequestResponse, omitStages: [RequestReceived]}\n";

/// The events of a server that has ended, those of its own start left out.
async fn events(hub: Hub, log: &std::path::Path) -> Vec<Value> {
    hub.shutdown().await;
    let text = std::fs::read_to_string(log).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn what_is_told_and_what_never_is() {
    let folder = tempfile::tempdir().unwrap();
    let (policy, log) = (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
    let tokens = folder.path().join("tokens");
    std::fs::write(&policy, POLICY).unwrap();
    std::fs::write(&tokens, "token-of-ann,ann,7\n").unwrap();
    let hub = Hub::start_with(|server| {
        server
            .audit(AuditOptions {
                policy: policy.clone(),
                log: log.clone(),
                max_megabytes: 0,
                max_backups: 0,
                max_days: 0,
            })
            .auth(AuthOptions {
                admin_token: Some(TOKEN.into()),
                token_file: Some(tokens.clone()),
                ..AuthOptions::default()
            })
    })
    .await;
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": "hush-hush"}});
    let base = "/clusters/a/api/v1/namespaces/default";
    let post =
        |what: &str, object: &Value| Ask::new(Method::POST, &format!("{base}/{what}")).json(object);
    assert_eq!(hub.admin(post("secrets", &secret)).await.status, 201);
    let made = hub
        .admin(post("limitranges", &json!({"metadata": {"name": "l"}, "spec": {"limits": []}})))
        .await;
    assert_eq!(made.status, 201, "{made:?}");
    let token = hub.admin(post("serviceaccounts/default/token", &json!({"spec": {}}))).await;
    assert_eq!(token.status, 201, "{token:?}");
    let token = token.json()["status"]["token"].as_str().unwrap().to_owned();
    assert_eq!(hub.get("/metrics").await.status, 200);
    assert_eq!(hub.get("/clusters/a/api/v1/namespaces/kube-system/configmaps/x").await.status, 404);
    let refused = Ask::get(&format!("{base}/limitranges/l"))
        .header("authorization", "Bearer token-of-ann")
        .header("x-forwarded-for", "192.0.2.1")
        .header("user-agent", "a-program/1");
    assert_eq!(hub.ask(Who::Anonymous, refused).await.status, 403);
    let wrong = Ask::get("/api").header("authorization", "Bearer wrong");
    assert_eq!(hub.ask(Who::Anonymous, wrong).await.status, 401);
    let acts = Ask::get(&format!("{base}/limitranges/none"))
        .header("impersonate-user", "bob")
        .header("impersonate-group", "system:masters");
    assert_eq!(hub.admin(acts).await.status, 404);
    // What a client is told in protobuf is told here as well.
    let binary = Ask::get(&format!("{base}/limitranges/binary"))
        .header("accept", "application/vnd.kubernetes.protobuf");
    assert_eq!(hub.admin(binary).await.status, 404);
    // A watch is told of when it begins and when it ends.
    let mut stream = hub.connect(Who::Admin, b"http/1.1").await;
    let watch = format!("GET {base}/limitranges?watch=1 HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(watch.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut head)).await.unwrap().unwrap();
    drop(stream);

    let events = events(hub, &log).await;
    let all = json!(events).to_string();
    assert!(!all.contains("hush-hush") && !all.contains(&token), "{all}");
    assert!(!all.contains("managedFields") && !all.contains("/metrics"), "{all}");
    assert!(!all.contains("kube-system"), "{all}");
    assert!(events.iter().all(|event| event["stage"] != "RequestReceived"));
    let find = |what: &dyn Fn(&Value) -> bool| {
        events.iter().find(|event| what(event)).unwrap_or_else(|| panic!("{all}"))
    };
    let made = find(&|e| e["objectRef"]["resource"] == "secrets");
    assert_eq!((&made["level"], &made["verb"]), (&json!("Metadata"), &json!("create")));
    assert_eq!(made["responseStatus"], json!({"metadata": {}, "code": 201}));
    let made = find(&|e| e["objectRef"]["resource"] == "limitranges" && e["verb"] == "create");
    assert_eq!(made["requestObject"]["metadata"]["name"], "l");
    assert_eq!(made["responseObject"]["metadata"]["namespace"], "default");
    assert_eq!(made["annotations"]["kcp.io/cluster"], "a");
    assert_eq!(made["annotations"]["authorization.k8s.io/decision"], "allow");
    assert_eq!(made["requestURI"], format!("{base}/limitranges"));
    assert_eq!(made["user"]["username"], "kcp-admin");
    let token = find(&|e| e["objectRef"]["subresource"] == "token");
    assert_eq!((&token["level"], token.get("responseObject")), (&json!("Metadata"), None));
    let refused = find(&|e| e["user"]["username"] == "ann");
    assert_eq!(refused["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(refused["sourceIPs"], json!(["192.0.2.1", "127.0.0.1"]));
    assert_eq!(refused["userAgent"], "a-program/1");
    assert_eq!(refused["responseStatus"]["reason"], "Forbidden");
    assert_eq!(refused["objectRef"]["name"], "l");
    let unknown = find(&|e| e["responseStatus"]["code"] == 401);
    assert_eq!(unknown["user"], json!({}));
    let binary = find(&|e| e["objectRef"]["name"] == "binary");
    assert_eq!(binary["responseStatus"]["reason"], "NotFound");
    assert_eq!(binary["responseStatus"]["message"], "limitranges \"binary\" not found");
    let acts = find(&|e| e["responseStatus"]["code"] == 404);
    assert_eq!(acts["impersonatedUser"]["username"], "bob");
    assert_eq!(acts["user"]["username"], "kcp-admin");
    let watch: Vec<&Value> = events.iter().filter(|event| event["verb"] == "watch").collect();
    let stages: Vec<&Value> = watch.iter().map(|event| &event["stage"]).collect();
    assert_eq!(stages, ["ResponseStarted", "ResponseComplete"]);
}

#[tokio::test]
async fn a_policy_that_is_none_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    std::fs::write(&policy, "kind: Policy\n").unwrap();
    let store = store::MemoryStore::new(store::memory::Options::default());
    let log = folder.path().join("audit.log");
    let options = AuditOptions { policy, log, max_megabytes: 0, max_backups: 0, max_days: 0 };
    let error = apiserver::Server::builder(store).audit(options).start().await.unwrap_err();
    assert_eq!(error.to_string(), "set up the audit log");
}
