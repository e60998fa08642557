//! Secrets that hold the token of a ServiceAccount.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use crate::client::{Ask, Hub, Who};
use crate::deeds::{self, change, eventually};

const CORE: &str = "/clusters/one/api/v1/namespaces/default";

async fn post(hub: &Hub, plural: &str, object: &Value) -> crate::client::Answer {
    hub.admin(Ask::new(Method::POST, &format!("{CORE}/{plural}")).json(object)).await
}

async fn create(hub: &Hub, plural: &str, object: &Value) -> Value {
    deeds::create(hub, &format!("{CORE}/{plural}"), object).await
}

fn secret(name: &str, account: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "annotations": {"kubernetes.io/service-account.name": account},
        },
        "type": "kubernetes.io/service-account-token",
    })
}

fn entry(secret: &Value, name: &str) -> String {
    let text = secret["data"][name].as_str().unwrap_or_default();
    String::from_utf8(STANDARD.decode(text).unwrap()).unwrap()
}

/// A Secret once it holds a token.
async fn filled(hub: &Hub, name: &str) -> Value {
    let path = format!("{CORE}/secrets/{name}");
    eventually(hub, &path, |_, secret| !secret["data"]["token"].is_null()).await
}

async fn gone(hub: &Hub, name: &str) {
    deeds::gone(hub, &format!("{CORE}/secrets/{name}")).await;
}

async fn delete(hub: &Hub, path: &str) {
    let answer = hub.admin(Ask::new(Method::DELETE, &format!("{CORE}/{path}"))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

async fn code(hub: &Hub, path: &str, token: &str) -> u16 {
    let ask = Ask::get(path).header("authorization", &format!("Bearer {token}"));
    hub.ask(Who::Anonymous, ask).await.status.as_u16()
}

#[tokio::test]
async fn a_secret_is_filled_and_goes_with_its_account() {
    let hub = Hub::start().await;
    let account = create(&hub, "serviceaccounts", &json!({"metadata": {"name": "app"}})).await;
    create(&hub, "secrets", &secret("of-app", "app")).await;
    let made = filled(&hub, "of-app").await;
    assert_eq!(entry(&made, "namespace"), "default");
    let ca = hub.get(&format!("{CORE}/configmaps/kube-root-ca.crt")).await.json();
    assert_eq!(entry(&made, "ca.crt"), ca["data"]["ca.crt"].as_str().unwrap());
    let annotations = &made["metadata"]["annotations"];
    assert_eq!(annotations["kubernetes.io/service-account.uid"], account["metadata"]["uid"]);
    let token = entry(&made, "token");
    assert_eq!(code(&hub, "/clusters/one/healthz", &token).await, 200);
    assert_eq!(code(&hub, "/clusters/root/healthz", &token).await, 401, "foreign");
    // Of the default account, which has no byte in the store, too.
    create(&hub, "secrets", &secret("of-default", "default")).await;
    let of_default = entry(&filled(&hub, "of-default").await, "token");
    assert_eq!(code(&hub, "/clusters/one/healthz", &of_default).await, 200);
    // A token that is taken out is put in again; other types are left alone.
    let patch = json!([{"op": "remove", "path": "/data/token"}]).to_string();
    let ask = Ask::new(Method::PATCH, &format!("{CORE}/secrets/of-app")).body(patch);
    let ask = ask.header("content-type", "application/json-patch+json");
    assert_eq!(hub.admin(ask).await.status, 200);
    filled(&hub, "of-app").await;
    let mut plain = secret("plain", "app");
    plain["type"] = json!("Opaque");
    create(&hub, "secrets", &plain).await;

    delete(&hub, "serviceaccounts/app").await;
    gone(&hub, "of-app").await;
    assert_eq!(code(&hub, "/clusters/one/healthz", &token).await, 401);
    let plain = hub.get(&format!("{CORE}/secrets/plain")).await.json();
    assert_eq!(plain["data"], Value::Null);
    assert_eq!(hub.get(&format!("{CORE}/secrets/of-default")).await.status, 200);
    // The default account comes again as another one.
    delete(&hub, "serviceaccounts/default").await;
    gone(&hub, "of-default").await;
    hub.shutdown().await;
}

#[tokio::test]
async fn a_secret_of_nobody_goes_and_one_without_a_name_is_refused() {
    let hub = Hub::start().await;
    let account = create(&hub, "serviceaccounts", &json!({"metadata": {"name": "app"}})).await;
    create(&hub, "secrets", &secret("of-nobody", "nobody")).await;
    gone(&hub, "of-nobody").await;
    let mut other = secret("of-another", "app");
    other["metadata"]["annotations"]["kubernetes.io/service-account.uid"] = json!("another");
    create(&hub, "secrets", &other).await;
    gone(&hub, "of-another").await;
    let why = "Secret \"nameless\" is invalid: \
               metadata.annotations[kubernetes.io/service-account.name]: Required value";
    let answer = post(&hub, "secrets", &secret("nameless", "")).await;
    assert_eq!(answer.fails(422, "Invalid"), why);
    // An account forgets a Secret that has gone.
    create(&hub, "secrets", &secret("listed", "app")).await;
    filled(&hub, "listed").await;
    let path = format!("{CORE}/serviceaccounts/app");
    let mut account = account;
    account["secrets"] = json!([{"name": "listed"}, {"name": "kept"}]);
    account["metadata"]["resourceVersion"] = Value::Null;
    let put = hub.admin(Ask::new(Method::PUT, &path).json(&account)).await;
    assert_eq!(put.status, 200, "{put:?}");
    delete(&hub, "secrets/listed").await;
    let kept = json!([{"name": "kept"}]);
    eventually(&hub, &path, |_, account| account["secrets"] == kept).await;
    hub.shutdown().await;
}

#[tokio::test]
async fn a_namespace_takes_its_tokens_with_it() {
    let hub = Hub::start().await;
    let namespaces = "/clusters/one/api/v1/namespaces";
    let made = json!({"metadata": {"name": "short"}});
    deeds::create(&hub, namespaces, made).await;
    let path = format!("{namespaces}/short/secrets");
    let held = {
        let mut held = secret("held", "default");
        held["metadata"]["finalizers"] = json!(["example.com/hold"]);
        held
    };
    deeds::create(&hub, &path, held).await;
    let held = format!("{path}/held");
    eventually(&hub, &held, |_, secret| !secret["data"]["token"].is_null()).await;
    let namespace = format!("{namespaces}/short");
    assert_eq!(hub.admin(Ask::new(Method::DELETE, &namespace)).await.status, 200);
    eventually(&hub, &held, |_, secret| secret["metadata"]["deletionTimestamp"].is_string()).await;
    change(&hub, &held, json!({"metadata": {"finalizers": null}})).await;
    deeds::gone(&hub, &namespace).await;
    hub.shutdown().await;
}
