//! What is installed follows the operator's flags.

use agent::manifest::{Kind, namespace};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::pod::Pod;
use crate::yard::{Yard, installed_in};

/// The hub has another address by now.
const NEXT_URL: &str = "https://next.example:6443/hub";

fn path(kind: &str, namespace: &str, name: &str) -> String {
    Kind::named(kind).unwrap().path(namespace, name)
}

fn decoded(secret: &Value, name: &str) -> Option<String> {
    let text = secret["data"][name].as_str()?;
    Some(String::from_utf8(STANDARD.decode(text).unwrap()).unwrap())
}

/// The agent moves with the hub's address, and what it has synced stays where it is.
#[tokio::test]
async fn the_hub_gets_another_address() {
    let yard = Yard::new().await;
    let uid = yard.east().await;
    let (old, new) = (installed_in(&uid), namespace(NEXT_URL, &uid));
    let pod = Pod::of_deployment(&yard.east, &old, &yard.hub).await;
    yard.says("east", "Ready", "True", "Ready").await;
    let maps = "/clusters/infra/api/v1/namespaces/default/configmaps";
    let labels = json!({"workloads.kcp.io/cluster": "east"});
    let body = json!({"metadata": {"name": "web", "labels": labels}, "data": {"a": "1"}});
    yard.hub.post(maps, &body).await;
    let copy = "/api/v1/namespaces/default/configmaps/web";
    let before = yard.east.eventually(copy, |found| found["data"]["a"] == "1").await;

    let yard = yard.restart(|options| options.agents.hub = NEXT_URL.into()).await;
    let deployment = path("Deployment", &new, "kcp-agent");
    let found = yard.east.eventually(&deployment, |found| !found.is_null()).await;
    let args = found["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
    assert!(args.contains(&format!("--hub={NEXT_URL}")), "{args}");
    for (kind, name) in
        [("Deployment", "kcp-agent"), ("ClusterRole", &old), ("Secret", "kcp-agent-identity")]
    {
        yard.east.eventually(&path(kind, &old, name), Value::is_null).await;
    }
    // Its pod ends, and the next one comes, which has no certificate: the Lease of the one before is
    // no reason to leave it without a token.
    pod.stop().await;
    let secret = path("Secret", &new, "kcp-agent-hub");
    yard.east.eventually(&secret, |found| decoded(found, "token").is_some()).await;
    let pod = Pod::of_deployment(&yard.east, &new, &yard.hub).await;
    yard.hub.patch(&format!("{maps}/web"), &json!({"data": {"a": "2"}})).await;
    let after = yard.east.eventually(copy, |found| found["data"]["a"] == "2").await;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    yard.says("east", "Ready", "True", "Ready").await;
    pod.stop().await;
    yard.shutdown().await;
}

/// While an authority is replaced, both are there; agents follow without being restarted.
#[tokio::test]
async fn authorities_change_with_overlap() {
    let yard = Yard::new().await;
    let uid = yard.east().await;
    let own = installed_in(&uid);
    let secret = path("Secret", &own, "kcp-agent-hub");
    let authority = yard.hub.authority();
    let found = yard.east.eventually(&secret, |found| !found.is_null()).await;
    assert_eq!(decoded(&found, "ca.crt"), Some(authority.clone()));
    let pod = Pod::of_deployment(&yard.east, &own, &yard.hub).await;
    yard.says("east", "Ready", "True", "Ready").await;
    let deployment = path("Deployment", &own, "kcp-agent");
    let template = |found: &Value| found["spec"]["template"].clone();
    let before = template(&yard.east.get(&deployment).await);

    let next = rcgen::generate_simple_self_signed(["next".to_owned()]).unwrap().cert.pem();
    let both = format!("{authority}{next}");
    let told = both.clone();
    let yard = yard.restart(|options| options.agents.authority = Some(told)).await;
    yard.east.eventually(&secret, |found| decoded(found, "ca.crt") == Some(both.clone())).await;
    assert_eq!(template(&yard.east.get(&deployment).await), before, "no pod is restarted");
    // The agent's next connections are made with both.
    let maps = "/clusters/infra/api/v1/namespaces/default/configmaps";
    let labels = json!({"workloads.kcp.io/cluster": "east"});
    yard.hub.post(maps, &json!({"metadata": {"name": "web", "labels": labels}})).await;
    let copy = "/api/v1/namespaces/default/configmaps/web";
    yard.east.eventually(copy, |found| !found.is_null()).await;
    yard.says("east", "Ready", "True", "Ready").await;
    pod.stop().await;
    yard.shutdown().await;
}

#[tokio::test]
async fn image_and_pull_secret_follow_the_flags() {
    let yard = Yard::new().await;
    let uid = yard.east().await;
    let own = installed_in(&uid);
    let deployment = path("Deployment", &own, "kcp-agent");
    let pull = path("Secret", &own, "kcp-agent-pull");
    let image = |found: &Value| {
        found["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()
    };
    let with = |found: &Value| found["spec"]["template"]["spec"].get("imagePullSecrets").cloned();
    let found = yard.east.eventually(&deployment, |found| !found.is_null()).await;
    assert_eq!((&*image(&found), with(&found)), ("agent:test", None));

    let content = r#"{"auths":{"registry.example":{"auth":"YTpi"}}}"#;
    let yard = yard
        .restart(|options| {
            options.agents.image = "registry.example/agent:next".into();
            options.agents.pull_secret = Some(content.into());
        })
        .await;
    let next = |found: &Value| image(found) == "registry.example/agent:next";
    let found = yard.east.eventually(&deployment, next).await;
    assert_eq!(with(&found), Some(json!([{"name": "kcp-agent-pull"}])));
    let secret = yard.east.get(&pull).await;
    assert_eq!(secret["type"], "kubernetes.io/dockerconfigjson");
    assert_eq!(decoded(&secret, ".dockerconfigjson").as_deref(), Some(content));
    yard.says("east", "Installed", "True", "Installed").await;

    // Without the flags it is as before, and nothing is left.
    let yard = yard.restart(|_| ()).await;
    let found = yard.east.eventually(&deployment, |found| image(found) == "agent:test").await;
    assert_eq!(with(&found), None);
    yard.east.eventually(&pull, Value::is_null).await;
    yard.shutdown().await;
}
