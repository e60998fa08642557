//! Garbage collection: what goes with its owners, what stays, and what never counts as an owner.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};
use store::{EmbeddedOptions, EmbeddedStore, Store};

use crate::client::{Ask, Hub, TOKEN};
use crate::deeds::{change, create, eventually, gone};

const CORE: &str = "/clusters/one/api/v1";

fn maps(namespace: &str) -> String {
    format!("{CORE}/namespaces/{namespace}/configmaps")
}

fn map(name: &str) -> String {
    format!("{}/{name}", maps("default"))
}

/// A ConfigMap that names these as its owners.
async fn dependent(hub: &Hub, path: &str, name: &str, owners: &[Value]) -> Value {
    create(hub, path, json!({"metadata": {"name": name, "ownerReferences": owners}})).await
}

fn owner(object: &Value) -> Value {
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"],
        "name": object["metadata"]["name"], "uid": object["metadata"]["uid"],
        "blockOwnerDeletion": true,
    })
}

async fn delete(hub: &Hub, path: &str, policy: &str) -> Value {
    let ask = Ask::new(Method::DELETE, path).json(&json!({"propagationPolicy": policy}));
    let answer = hub.admin(ask).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Waits until the collector has seen to everything that was written before: it takes changes in
/// order, and a dependent without its owner goes at last.
async fn settled(hub: &Hub) {
    let nobody = json!({"apiVersion": "v1", "kind": "Secret", "name": "nobody", "uid": "nobody"});
    let path = maps("kube-public");
    dependent(hub, &path, "settled", &[nobody]).await;
    gone(hub, &format!("{path}/settled")).await;
}

#[tokio::test]
async fn dependents_go_after_their_owner() {
    let hub = Hub::start().await;
    let root = create(&hub, &maps("default"), json!({"metadata": {"name": "root"}})).await;
    let child = dependent(&hub, &maps("default"), "child", &[owner(&root)]).await;
    let secrets = format!("{CORE}/namespaces/default/secrets");
    dependent(&hub, &secrets, "grandchild", &[owner(&child)]).await;
    create(&hub, &maps("default"), json!({"metadata": {"name": "other"}})).await;
    settled(&hub).await;
    assert_eq!(hub.get(&map("child")).await.status, 200);
    delete(&hub, &map("root"), "Background").await;
    gone(&hub, &map("child")).await;
    gone(&hub, &format!("{secrets}/grandchild")).await;
    assert_eq!(hub.get(&map("other")).await.status, 200);
    hub.shutdown().await;
}

#[tokio::test]
async fn foreground_waits_for_what_blocks() {
    let hub = Hub::start().await;
    let root = create(&hub, &maps("default"), json!({"metadata": {"name": "root"}})).await;
    let held = json!({"metadata": {
        "name": "held", "ownerReferences": [owner(&root)], "finalizers": ["example.com/hold"],
    }});
    create(&hub, &maps("default"), held).await;
    dependent(&hub, &maps("default"), "free", &[owner(&root)]).await;
    let marked = delete(&hub, &map("root"), "Foreground").await;
    assert_eq!(marked["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    gone(&hub, &map("free")).await;
    eventually(&hub, &map("held"), |_, held| held["metadata"]["deletionTimestamp"].is_string())
        .await;
    settled(&hub).await;
    assert_eq!(hub.get(&map("root")).await.status, 200, "its dependent is held");
    change(&hub, &map("held"), json!({"metadata": {"finalizers": null}})).await;
    gone(&hub, &map("root")).await;
    // One that doesn't block is not waited for.
    let root = create(&hub, &maps("default"), json!({"metadata": {"name": "root"}})).await;
    let mut loose = owner(&root);
    loose["blockOwnerDeletion"] = json!(false);
    let held = json!({"metadata": {
        "name": "held", "ownerReferences": [loose], "finalizers": ["example.com/hold"],
    }});
    create(&hub, &maps("default"), held).await;
    delete(&hub, &map("root"), "Foreground").await;
    gone(&hub, &map("root")).await;
    let held = hub.get(&map("held")).await.json();
    assert!(held["metadata"]["deletionTimestamp"].is_string(), "{held}");
    hub.shutdown().await;
}

#[tokio::test]
async fn orphans_lose_their_owner_and_stay() {
    let hub = Hub::start().await;
    let root = create(&hub, &maps("default"), json!({"metadata": {"name": "root"}})).await;
    let second = create(&hub, &maps("default"), json!({"metadata": {"name": "second"}})).await;
    for n in 0..40 {
        let owners = [owner(&root), owner(&second)];
        let path = maps("default");
        dependent(&hub, &path, &format!("child-{n}"), &owners[..1 + n % 2]).await;
    }
    // At once, so that what the collector has not seen yet would be lost.
    let marked = delete(&hub, &map("root"), "Orphan").await;
    assert_eq!(marked["metadata"]["finalizers"], json!(["orphan"]));
    gone(&hub, &map("root")).await;
    settled(&hub).await;
    for n in 0..40 {
        let child = hub.get(&map(&format!("child-{n}"))).await.json();
        let left = child["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len);
        assert_eq!(left, n % 2, "{child}");
    }
    // By collection, and by the old option.
    let ask = Ask::new(
        Method::DELETE,
        &format!("{}?fieldSelector=metadata.name=second", maps("default")),
    );
    let answer = hub.admin(ask.json(&json!({"orphanDependents": true}))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    gone(&hub, &map("second")).await;
    settled(&hub).await;
    assert_eq!(hub.get(&map("child-1")).await.json()["metadata"].get("ownerReferences"), None);
    hub.shutdown().await;
}

#[tokio::test]
async fn one_solid_owner_keeps_an_object() {
    let hub = Hub::start().await;
    let a = create(&hub, &maps("default"), json!({"metadata": {"name": "a"}})).await;
    let b = create(&hub, &maps("default"), json!({"metadata": {"name": "b"}})).await;
    dependent(&hub, &maps("default"), "child", &[owner(&a), owner(&b)]).await;
    delete(&hub, &map("a"), "Background").await;
    let one = |_, child: &Value| {
        child["metadata"]["ownerReferences"].as_array().is_some_and(|left| left.len() == 1)
    };
    let left = eventually(&hub, &map("child"), one).await;
    assert_eq!(left["metadata"]["ownerReferences"][0]["name"], "b");
    // A foreground deletion doesn't wait for what has another owner.
    let c = create(&hub, &maps("default"), json!({"metadata": {"name": "c"}})).await;
    let both = json!({"metadata": {"ownerReferences": [owner(&b), owner(&c)]}});
    change(&hub, &map("child"), both).await;
    delete(&hub, &map("b"), "Foreground").await;
    gone(&hub, &map("b")).await;
    let child = hub.get(&map("child")).await.json();
    assert_eq!(child["metadata"]["ownerReferences"].as_array().unwrap().len(), 1, "{child}");
    assert_eq!(child["metadata"].get("deletionTimestamp"), None);
    hub.shutdown().await;
}

#[tokio::test]
async fn circles_end() {
    let hub = Hub::start().await;
    let mut all = Vec::new();
    for name in ["a", "b", "c"] {
        all.push(create(&hub, &maps("default"), json!({"metadata": {"name": name}})).await);
    }
    for (n, object) in all.iter().enumerate() {
        let owners = json!({"metadata": {"ownerReferences": [owner(&all[(n + 1) % 3])]}});
        change(&hub, &map(object["metadata"]["name"].as_str().unwrap()), owners).await;
    }
    delete(&hub, &map("a"), "Foreground").await;
    for name in ["a", "b", "c"] {
        gone(&hub, &map(name)).await;
    }
    hub.shutdown().await;
}

#[tokio::test]
async fn another_place_is_no_owner() {
    let hub = Hub::start().await;
    let root = create(&hub, &maps("kube-system"), json!({"metadata": {"name": "root"}})).await;
    dependent(&hub, &maps("default"), "stranger", &[owner(&root)]).await;
    dependent(&hub, &maps("kube-system"), "child", &[owner(&root)]).await;
    let namespaces = format!("{CORE}/namespaces");
    dependent(&hub, &namespaces, "wide", &[owner(&root)]).await;
    let about = |name: &str| format!("{CORE}/events?fieldSelector=involvedObject.name={name}");
    for name in ["stranger", "wide"] {
        let told = eventually(&hub, &about(name), |_, list| list["items"][0].is_object()).await;
        let event = &told["items"][0];
        assert_eq!(event["reason"], "OwnerRefInvalidNamespace", "{event}");
        let text = event["message"].as_str().unwrap();
        assert!(text.starts_with("ownerRef [v1/ConfigMap, namespace: "), "{text}");
    }
    // Nor is one of another logical cluster, whatever its UID: here it is nobody's.
    let other = "/clusters/two/api/v1/namespaces/kube-system/configmaps";
    let same = create(&hub, other, json!({"metadata": {"name": "root"}})).await;
    dependent(&hub, other, "child", &[owner(&same)]).await;
    delete(&hub, &format!("{}/root", maps("kube-system")), "Foreground").await;
    gone(&hub, &format!("{}/root", maps("kube-system"))).await;
    gone(&hub, &format!("{}/child", maps("kube-system"))).await;
    settled(&hub).await;
    assert_eq!(hub.get(&map("stranger")).await.status, 200);
    assert_eq!(hub.get(&format!("{namespaces}/wide")).await.status, 200);
    assert_eq!(hub.get(&format!("{other}/child")).await.status, 200);
    hub.shutdown().await;
}

#[tokio::test]
async fn what_is_not_served_is_not_absent() {
    let hub = Hub::start().await;
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "of-a-widget",
    });
    dependent(&hub, &maps("default"), "child", std::slice::from_ref(&widget)).await;
    let mut unknown = widget.clone();
    unknown["apiVersion"] = json!("example.com/v9");
    dependent(&hub, &maps("default"), "later", &[unknown]).await;
    settled(&hub).await;
    assert_eq!(hub.get(&map("child")).await.status, 200);
    let crds = "/clusters/one/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    create(&hub, crds, widgets()).await;
    gone(&hub, &map("child")).await;
    assert_eq!(hub.get(&map("later")).await.status, 200);
    // One whose type goes with it has gone all the same.
    let path = "/clusters/one/apis/example.com/v1/namespaces/default/widgets";
    let made = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    let made = create(&hub, path, made).await;
    dependent(&hub, &maps("default"), "child", &[owner(&made)]).await;
    settled(&hub).await;
    assert_eq!(hub.get(&map("child")).await.status, 200);
    delete(&hub, &format!("{crds}/widgets.example.com"), "Background").await;
    gone(&hub, &map("child")).await;
    settled(&hub).await;
    assert_eq!(hub.get(&map("later")).await.status, 200);
    hub.shutdown().await;
}

fn widgets() -> Value {
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    })
}

#[tokio::test]
async fn virtual_objects_own() {
    let hub = Hub::start().await;
    create(&hub, &maps("default"), json!({"metadata": {"name": "first"}})).await;
    let account = hub.get(&format!("{CORE}/namespaces/default/serviceaccounts/default")).await;
    let account = account.json();
    let owner = json!({"apiVersion": "v1", "kind": "ServiceAccount", "name": "default", "uid": account["metadata"]["uid"]});
    dependent(&hub, &maps("default"), "child", &[owner]).await;
    settled(&hub).await;
    assert_eq!(hub.get(&map("child")).await.status, 200);
    let path = format!("{CORE}/namespaces/default/serviceaccounts/default");
    delete(&hub, &path, "Background").await;
    gone(&hub, &map("child")).await;
    hub.shutdown().await;
}

#[tokio::test]
async fn a_restart_finds_what_dangles() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store");
    let open = || EmbeddedStore::open(&file, EmbeddedOptions::default()).unwrap();
    let start = |store: Arc<EmbeddedStore>| async {
        let server = apiserver::Server::builder(store).admin_token(TOKEN);
        Hub::of(server.start().await.unwrap())
    };
    let hub = start(open()).await;
    let root = create(&hub, &maps("default"), json!({"metadata": {"name": "root"}})).await;
    hub.shutdown().await;
    let store = open();
    let put = |name: &str, owner: Value| {
        let key = format!("core/configmaps/one/default/{name}");
        let key = store::Key::parse(key).unwrap();
        let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": name, "namespace": "default", "uid": name, "ownerReferences": [owner],
        }});
        let ops = vec![store::Op::Put { key, value: store::object::encode(&value) }];
        store.commit(store::Txn { ops, ..store::Txn::default() })
    };
    put("kept", owner(&root)).await.unwrap();
    let mut nobody = owner(&root);
    nobody["uid"] = json!("nobody");
    put("lost", nobody).await.unwrap();
    let hub = start(store).await;
    gone(&hub, &map("lost")).await;
    assert_eq!(hub.get(&map("kept")).await.status, 200);
    hub.shutdown().await;
}

#[tokio::test]
async fn nothing_goes_after_an_owner_elsewhere_not_even_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store");
    let start = || async {
        let store = EmbeddedStore::open(&file, EmbeddedOptions::default()).unwrap();
        let server = apiserver::Server::builder(store).admin_token(TOKEN);
        Hub::of(server.start().await.unwrap())
    };
    let hub = start().await;
    let elsewhere = maps("kube-system");
    let [root, lives] = ["root", "lives"].map(|name| json!({"metadata": {"name": name}}));
    let root = create(&hub, &elsewhere, root).await;
    let lives = create(&hub, &elsewhere, lives).await;
    let foreign = [owner(&root), owner(&lives)];
    dependent(&hub, &maps("default"), "stranger", &foreign[..1]).await;
    dependent(&hub, &maps("default"), "other", &foreign[1..]).await;
    let noted = |map: &Value| map["metadata"]["annotations"]["core.kcp.io/foreign-owners"].clone();
    for (name, foreign) in [("stranger", &root), ("other", &lives)] {
        let uid = &foreign["metadata"]["uid"];
        eventually(&hub, &map(name), |_, map| noted(map) == *uid).await;
    }
    delete(&hub, &format!("{elsewhere}/root"), "Background").await;
    settled(&hub).await;
    assert_eq!(hub.get(&map("stranger")).await.status, 200);
    hub.shutdown().await;
    let hub = start().await;
    settled(&hub).await;
    assert_eq!(hub.get(&map("stranger")).await.status, 200);
    assert_eq!(hub.get(&map("other")).await.status, 200);
    // One that has never been anywhere is still absent.
    let mut nobody = owner(&root);
    nobody["uid"] = json!("nobody");
    dependent(&hub, &maps("default"), "lost", &[nobody]).await;
    gone(&hub, &map("lost")).await;
    hub.shutdown().await;
}
