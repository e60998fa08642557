//! A physical cluster joins: what is installed there, what is refused, and what is followed.

use agent::manifest::Kind;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::yard::{Side, TARGETS, Yard, installed_in};

fn path(kind: &str, uid: &str, name: &str) -> String {
    Kind::named(kind).unwrap().path(&installed_in(uid), name)
}

fn tokens(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().into_iter().flatten();
    let names = items.filter_map(|item| item["metadata"]["name"].as_str());
    names.filter(|name| name.starts_with("bootstrap-token-")).collect()
}

#[tokio::test]
async fn an_agent_is_installed_and_kept() {
    let yard = Yard::new().await;
    let uid = yard.east().await;
    let installed = yard.says("east", "Installed", "True", "Installed").await;
    assert!(installed["message"].as_str().unwrap().contains(&installed_in(&uid)), "{installed}");
    yard.says("east", "Ready", "False", "AgentNotConnected").await;

    // All of it is there, with a token that the agent comes with.
    let deployment = path("Deployment", &uid, "kcp-agent");
    let found = yard.east.get(&deployment).await;
    let container = &found["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "agent:test");
    let args: Vec<&str> =
        container["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    assert!(args.contains(&"--cluster=infra") && args.contains(&"--sync-target=east"), "{args:?}");
    let role = path("ClusterRole", &uid, &installed_in(&uid));
    assert!(!yard.east.get(&role).await.is_null());
    let hub = yard.east.get(&path("Secret", &uid, "kcp-agent-hub")).await;
    let token = STANDARD.decode(hub["data"]["token"].as_str().unwrap()).unwrap();
    let token = String::from_utf8(token).unwrap();
    let (id, _) = token.split_once('.').unwrap();
    let secrets = "/clusters/infra/api/v1/namespaces/kube-system/secrets";
    let list = yard.hub.get(secrets).await;
    assert_eq!(tokens(&list), [format!("bootstrap-token-{id}")]);

    // It comes: the target is ready, and the token is gone on both sides.
    yard.beat(&uid, "2026-01-01T00:00:00.000000Z").await;
    yard.says("east", "Ready", "False", "TypesNotImported").await;
    yard.accept("east", &[("", "configmaps")]).await;
    yard.says("east", "Ready", "True", "Ready").await;
    yard.hub.eventually(secrets, |list| tokens(list).is_empty()).await;
    let secret = path("Secret", &uid, "kcp-agent-hub");
    yard.east.eventually(&secret, |found| found["data"].get("token").is_none()).await;
    assert!(yard.east.get(&secret).await["data"].get("ca.crt").is_some());
    let event = yard.hub.event("infra", "default", "east", "Ready").await;
    assert_eq!(event["type"], "Normal");

    // What it may do follows what it syncs.
    yard.accept("east", &[("", "configmaps"), ("apps", "deployments")]).await;
    let rules = |found: &Value| found["rules"].to_string();
    yard.east.eventually(&role, |found| rules(found).contains("configmaps")).await;
    yard.accept("east", &[("apps", "deployments")]).await;
    yard.east
        .eventually(&role, |found| {
            !rules(found).contains("configmaps") && rules(found).contains("deployments")
        })
        .await;

    // What vanishes comes back.
    let before = yard.east.get(&deployment).await["metadata"]["uid"].clone();
    yard.east.delete(&deployment).await;
    yard.east
        .eventually(&deployment, |found| !found.is_null() && found["metadata"]["uid"] != before)
        .await;
    // What somebody changes is put right, though the digest is as it was; but for scaling, which is
    // on purpose as long as the agent lives.
    let image = |found: &Value| {
        found["spec"]["template"]["spec"]["containers"][0]["image"].as_str().map(str::to_owned)
    };
    let mut spoilt = yard.east.get(&deployment).await["spec"].clone();
    spoilt["template"]["spec"]["containers"][0]["image"] = "of-somebody".into();
    spoilt["replicas"] = 3.into();
    yard.beat(&uid, "2026-01-01T00:00:10.000000Z").await;
    yard.east.patch(&deployment, &json!({"spec": spoilt})).await;
    yard.east.eventually(&deployment, |found| image(found).as_deref() == Some("agent:test")).await;
    yard.shutdown().await;
}

/// What is mended is noticed, however often it has failed before: a Secret that changes, a spec, and a
/// cluster that is back.
#[tokio::test]
async fn what_is_mended_is_noticed_soon() {
    let yard = Yard::new().await;
    let config = json!({
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    });
    let spec = yard.secret("east", &config.to_string()).await;
    yard.target("east", &spec).await;
    yard.target("west", &json!({"kubeconfig": config.to_string()})).await;
    for name in ["east", "west"] {
        yard.says(name, "Installed", "False", "Unreachable").await;
    }
    let data = json!({"kubeconfig": STANDARD.encode(yard.east.kubeconfig())});
    let secret = "/clusters/infra/api/v1/namespaces/default/secrets/east";
    yard.hub.patch(secret, &json!({"data": data})).await;
    let target = format!("/clusters/infra{TARGETS}/west");
    yard.hub.patch(&target, &json!({"spec": {"kubeconfig": yard.east.kubeconfig()}})).await;
    for name in ["east", "west"] {
        yard.says(name, "Installed", "True", "Installed").await;
    }
    // A Secret that goes is noticed, too.
    yard.hub.delete(secret).await;
    yard.says("east", "Installed", "False", "SecretNotFound").await;
    yard.shutdown().await;
}

#[tokio::test]
async fn what_cannot_be_used_is_told() {
    let yard = Yard::new().await;
    // As in an example that was not filled in.
    let placeholders = "clusters: [{name: c, cluster: {server: '...'}}]\n\
                        users: [{name: u, user: {token: '...'}}]\n";
    yard.target("blank", &json!({"kubeconfig": placeholders})).await;
    let told = yard.says("blank", "Ready", "False", "InvalidKubeconfig").await;
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("its server is a placeholder"), "{message}");
    assert!(message.contains("its token is a placeholder"), "{message}");
    yard.says("blank", "InlineKubeconfig", "True", "UseSecret").await;
    yard.hub.event("infra", "default", "blank", "InvalidKubeconfig").await;

    // Nobody listens at this port, by its number.
    let config = |server: &str| {
        json!({
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        })
        .to_string()
    };
    yard.target("nobody", &json!({"kubeconfig": config("https://127.0.0.1:1")})).await;
    yard.says("nobody", "Ready", "False", "Unreachable").await;
    // An address that is special and was not allowed.
    yard.target("metadata", &json!({"kubeconfig": config("https://169.254.169.254")})).await;
    let told = yard.says("metadata", "Ready", "False", "AddressNotAllowed").await;
    assert!(!told["message"].as_str().unwrap().is_empty());
    // Someone whom the cluster does not know.
    let stranger: Value = {
        let lines = yard.east.kubeconfig().lines();
        let field = |name: &str| {
            let mut lines = lines.clone();
            let line = lines.find_map(|line| line.trim().strip_prefix(name).map(str::to_owned));
            line.unwrap()
        };
        let cluster = json!({
            "server": field("server: "),
            "certificate-authority-data": field("certificate-authority-data: "),
        });
        json!({
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "unknown"}}],
        })
    };
    yard.target("stranger", &json!({"kubeconfig": stranger.to_string()})).await;
    yard.says("stranger", "Ready", "False", "Unauthorized").await;

    // A Secret that isn't there yet, and then is.
    let spec = json!({"kubeconfigSecretRef": {"namespace": "default", "name": "late"}});
    yard.target("late", &spec).await;
    yard.says("late", "Ready", "False", "SecretNotFound").await;
    yard.secret("late", yard.east.kubeconfig()).await;
    yard.says("late", "Installed", "True", "Installed").await;

    // Who needs no operator is told how to join.
    yard.target("joined", &json!({})).await;
    yard.says("joined", "Ready", "False", "NoKubeconfig").await;
    yard.target("none", &json!({"mode": "None", "kubeconfig": yard.east.kubeconfig()})).await;
    yard.says("none", "Installed", "False", "NotNeeded").await;
    yard.shutdown().await;
}

#[tokio::test]
async fn another_cluster_has_to_be_confirmed() {
    let yard = Yard::new().await;
    let west = Side::physical().await;
    let uid = yard.east().await;
    yard.says("east", "Installed", "True", "Installed").await;
    let secret = "/clusters/infra/api/v1/namespaces/default/secrets/east";
    let data = json!({"kubeconfig": STANDARD.encode(west.kubeconfig())});
    yard.hub.patch(secret, &json!({"data": data})).await;
    let told = yard.says("east", "Ready", "False", "ClusterIdentityChanged").await;
    let namespace = format!("/api/v1/namespaces/{}", installed_in(&uid));
    assert!(west.get(&namespace).await.is_null(), "nothing is written there");
    // The message says how.
    let system = west.get("/api/v1/namespaces/kube-system").await;
    let new = system["metadata"]["uid"].as_str().unwrap();
    assert!(
        told["message"].as_str().unwrap().contains(&format!("workload.kcp.io/cluster-uid={new}"))
    );
    let annotations = json!({"workload.kcp.io/cluster-uid": new});
    let path = format!("/clusters/infra{TARGETS}/east");
    yard.hub.patch(&path, &json!({"metadata": {"annotations": annotations}})).await;
    west.eventually(&namespace, |found| !found.is_null()).await;
    yard.says("east", "Installed", "True", "Installed").await;
    yard.shutdown().await;
    west.shutdown().await;
}

/// Two targets, of one hub, in one physical cluster; and somebody's namespace of the same name.
#[tokio::test]
async fn targets_share_a_cluster_and_overwrite_nothing() {
    let yard = Yard::new().await;
    let spec = yard.secret("both", yard.east.kubeconfig()).await;
    let (one, other) = (yard.target("one", &spec).await, yard.target("other", &spec).await);
    yard.says("one", "Installed", "True", "Installed").await;
    yard.says("other", "Installed", "True", "Installed").await;
    assert_ne!(installed_in(&one), installed_in(&other));
    for uid in [&one, &other] {
        assert!(!yard.east.get(&path("Deployment", uid, "kcp-agent")).await.is_null());
    }
    // Held back until its kubeconfig is there, so that its namespace can be taken before.
    let late = yard
        .target("taken", &json!({"kubeconfigSecretRef": {"namespace": "default", "name": "later"}}))
        .await;
    let body = json!({"metadata": {"name": installed_in(&late), "labels": {"mine": "yes"}}});
    yard.east.post("/api/v1/namespaces", &body).await;
    yard.secret("later", yard.east.kubeconfig()).await;
    yard.says("taken", "Ready", "False", "NameTaken").await;
    let kept = yard.east.get(&format!("/api/v1/namespaces/{}", installed_in(&late))).await;
    assert_eq!(kept["metadata"]["labels"].get("workloads.kcp.io/synctarget"), None, "{kept}");
    yard.shutdown().await;
}
