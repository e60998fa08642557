//! What agents may make of objects that are born in their physical cluster: what their SyncTarget lets
//! go up, marked as its own, where it serves, and nothing else.

use http::Method;
use serde_json::{Value, json};

use crate::agents::{secrets, yard};
use crate::client::{Answer, Ask};
use crate::yard::{TARGETS, Target, Yard};

const LABEL: &str = "workloads.kcp.io/synctarget";

fn things(cluster: &str) -> String {
    format!("/clusters/{cluster}/apis/x.io/v1/namespaces/default/things")
}

/// An object that has come up from the physical cluster of a SyncTarget.
fn mirror(name: &str, east: &Target) -> Value {
    json!({
        "apiVersion": "x.io/v1", "kind": "Thing",
        "metadata": {"name": name, "labels": {LABEL: east.uid}},
        "spec": {"size": 1},
    })
}

fn names(answer: &Answer) -> Vec<String> {
    let list = answer.json();
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    list["items"].as_array().unwrap_or_else(|| panic!("{list}")).iter().map(name).collect()
}

async fn let_go_up(yard: &Yard, east: &Target, resources: &[&str]) {
    let upsync: Vec<Value> = resources.iter().map(|one| json!({"resource": one})).collect();
    yard.change(&east.path(), &json!({"spec": {"upsync": upsync}})).await;
}

#[tokio::test]
async fn only_what_the_sync_target_lets_go_up() {
    let (yard, east, agent) = yard().await;
    let path = things("infra");
    let made = yard.send(&agent, Method::POST, &path, &mirror("a", &east)).await;
    made.fails(403, "Forbidden");
    let_go_up(&yard, &east, &["others.x.io", "things.y.io"]).await;
    yard.send(&agent, Method::POST, &path, &mirror("a", &east)).await.fails(403, "Forbidden");

    let_go_up(&yard, &east, &["things.x.io"]).await;
    for cluster in ["infra", "app"] {
        let path = things(cluster);
        let made = yard.send(&agent, Method::POST, &path, &mirror("a", &east)).await;
        assert_eq!(made.status, 201, "{made:?}");
        let apply = Ask::new(Method::PATCH, &format!("{path}/b?fieldManager=a&force=true"));
        let apply = apply.header("content-type", "application/apply-patch+yaml");
        let applied = yard.ask(&agent, apply.body(mirror("b", &east).to_string())).await;
        assert_eq!(applied.status, 201, "{applied:?}");
        let changed = json!({"spec": {"size": 2}});
        assert_eq!(yard.patch(&agent, &format!("{path}/a"), &changed).await.status, 200);
        let status = json!({"status": {"ready": 1}});
        let told = yard.patch(&agent, &format!("{path}/a/status"), &status).await;
        assert_eq!(told.json()["status"]["ready"], 1);
        // It sees them by its label, and no others.
        yard.admin(Method::POST, &path, &json!({"metadata": {"name": "plain"}})).await;
        let own = format!("{path}?labelSelector={LABEL}%3D{}", east.uid);
        assert_eq!(names(&yard.get(&agent, &own).await), ["a", "b"]);
        for selector in ["", "?labelSelector=workloads.kcp.io/synctarget", "?labelSelector=a%3Db"] {
            yard.get(&agent, &format!("{path}{selector}")).await.fails(403, "Forbidden");
        }
        assert_eq!(yard.get(&agent, &format!("{path}/a")).await.status, 200);
        yard.get(&agent, &format!("{path}/plain")).await.fails(403, "Forbidden");
        yard.get(&agent, &format!("{path}/missing")).await.fails(404, "NotFound");
        // What isn't its own it doesn't change, nor delete.
        yard.patch(&agent, &format!("{path}/plain"), &changed).await.fails(403, "Forbidden");
        let take = json!({"metadata": {"labels": {LABEL: east.uid}}});
        yard.patch(&agent, &format!("{path}/plain"), &take).await.fails(403, "Forbidden");
        let gone = yard.send(&agent, Method::DELETE, &format!("{path}/plain"), &json!({})).await;
        gone.fails(403, "Forbidden");
        let gone = yard.send(&agent, Method::DELETE, &path, &json!({})).await;
        gone.fails(403, "Forbidden");
        let gone = yard.send(&agent, Method::DELETE, &format!("{path}/b"), &json!({})).await;
        assert_eq!(gone.status, 200, "{gone:?}");
    }
    let wild = format!("/clusters/*/apis/x.io/v1/things?labelSelector={LABEL}%3D{}", east.uid);
    assert_eq!(names(&yard.get(&agent, &wild).await), ["a", "a"]);
    // Logical clusters that it doesn't serve, and types beside.
    let other = yard.send(&agent, Method::POST, &things("other"), &mirror("a", &east)).await;
    other.fails(403, "Forbidden");
    let map = json!({"metadata": {"name": "m", "labels": {LABEL: east.uid}}});
    let maps = "/clusters/infra/api/v1/namespaces/default/configmaps";
    yard.send(&agent, Method::POST, maps, &map).await.fails(403, "Forbidden");

    // What no longer goes up is no longer its business.
    let_go_up(&yard, &east, &[]).await;
    let path = format!("{}/a", things("infra"));
    yard.get(&agent, &path).await.fails(403, "Forbidden");
    let gone = yard.send(&agent, Method::DELETE, &path, &json!({})).await;
    gone.fails(403, "Forbidden");
    yard.hub.shutdown().await;
}

#[tokio::test]
async fn only_with_its_own_mark() {
    let (yard, east, agent) = yard().await;
    let_go_up(&yard, &east, &["things.x.io"]).await;
    let path = things("infra");
    let with = |patch: Value| {
        let mut object = mirror("bad", &east);
        for (key, value) in patch.as_object().unwrap() {
            object["metadata"][key] = value.clone();
        }
        object
    };
    let owner = json!([{"apiVersion": "v1", "kind": "Secret", "name": "plain", "uid": "u"}]);
    for bad in [
        with(json!({"labels": {}})),
        with(json!({"labels": {LABEL: "another"}})),
        with(json!({"labels": {LABEL: east.uid, "workloads.kcp.io/cluster": "east"}})),
        with(json!({"labels": {LABEL: east.uid, "sync.workloads.kcp.io/infra.east": "Sync"}})),
        with(json!({"labels": {LABEL: east.uid, "sync.workloads.kcp.io/infra.west": "Sync"}})),
        with(json!({"finalizers": ["a.io/b"]})),
        with(json!({"finalizers": ["workloads.kcp.io/infra.east"]})),
        with(json!({"ownerReferences": owner})),
    ] {
        yard.send(&agent, Method::POST, &path, &bad).await.fails(403, "Forbidden");
    }
    yard.send(&agent, Method::POST, &path, &mirror("good", &east)).await;
    let good = format!("{path}/good");
    for bad in [
        json!({"metadata": {"labels": {LABEL: null}}}),
        json!({"metadata": {"labels": {LABEL: "another"}}}),
        json!({"metadata": {"labels": {"workloads.kcp.io/cluster": "east"}}}),
        json!({"metadata": {"labels": {"sync.workloads.kcp.io/infra.east": "Sync"}, "annotations": {"a": "b"}}}),
        json!({"metadata": {"finalizers": ["a.io/b"]}}),
        json!({"metadata": {"ownerReferences": owner}}),
    ] {
        yard.patch(&agent, &good, &bad).await.fails(403, "Forbidden");
    }
    assert_eq!(yard.hub.get(&good).await.json()["spec"]["size"], 1);
    yard.hub.shutdown().await;
}

/// Whatever gives rights or credentials never goes up.
#[tokio::test]
async fn what_never_goes_up() {
    let (yard, east, agent) = yard().await;
    for resource in [
        "secrets",
        "secrets.core",
        "serviceaccounts",
        "namespaces",
        "roles.rbac.authorization.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "synctargets.workload.kcp.io",
        "*",
        "*.x.io",
    ] {
        let patch = json!({"spec": {"upsync": [{"resource": resource}]}});
        let ask = Ask::new(Method::PATCH, &east.path());
        let ask = ask.header("content-type", "application/merge-patch+json");
        let answer = yard.hub.admin(ask.body(patch.to_string())).await;
        assert_eq!(answer.status, 422, "{resource}: {answer:?}");
    }
    // Not even if somebody has made a type of its own of SyncTargets that lets it.
    let token = json!({
        "metadata": {"name": "t", "labels": {LABEL: east.uid},
            "annotations": {"kubernetes.io/service-account.name": "default"}},
        "type": "kubernetes.io/service-account-token",
    });
    yard.send(&agent, Method::POST, &secrets("infra"), &token).await.fails(403, "Forbidden");
    let list = yard.hub.get(&format!("/clusters/infra/{TARGETS}")).await.json();
    assert_eq!(list["items"][0]["spec"].get("upsync"), None);
    yard.hub.shutdown().await;
}
