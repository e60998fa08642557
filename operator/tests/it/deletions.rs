//! What people delete as a whole needs no approval; what is deleted one by one does.

use http::Method;
use serde_json::{Value, json};

use crate::yard::{TARGETS, Yard, condition};

/// More than may go at a time without approval.
const MANY: usize = 60;

const TOLD: &str = "workloads.kcp.io/deleting";

fn target() -> String {
    format!("/clusters/infra{TARGETS}/east")
}

fn maps(cluster: &str, namespace: &str) -> String {
    format!("/clusters/{cluster}/api/v1/namespaces/{namespace}/configmaps")
}

/// A target that the operator itself syncs, and that serves the logical cluster `team`, too.
async fn pushed() -> Yard {
    let yard = Yard::new().await;
    let mut spec = yard.secret("east", yard.east.kubeconfig()).await;
    spec["mode"] = "Push".into();
    spec["resources"] = json!(["configmaps"]);
    spec["namespaceMapping"] = "Hashed".into();
    spec["allowedClusters"] = json!({"names": ["team"]});
    yard.target("east", &spec).await;
    yard.says("east", "Ready", "True", "Ready").await;
    yard
}

/// So many objects in a namespace, and as many copies.
async fn filled(yard: &Yard, cluster: &str, namespace: &str) {
    // A logical cluster begins with what is written first.
    let first = json!({"metadata": {"name": "first"}});
    yard.hub.post(&maps(cluster, "default"), &first).await;
    let body = json!({"metadata": {"name": namespace}});
    yard.hub.post(&format!("/clusters/{cluster}/api/v1/namespaces"), &body).await;
    let labels = json!({"workloads.kcp.io/cluster": "infra.east"});
    for index in 0..MANY {
        let body = json!({"metadata": {"name": format!("a{index}"), "labels": labels}});
        yard.hub.post(&maps(cluster, namespace), &body).await;
    }
    yard.east.eventually(&copies(), |list| count(list) == MANY).await;
    yard.hub.eventually(&target(), |found| found["status"]["syncedObjects"] == MANY).await;
}

fn copies() -> String {
    "/api/v1/configmaps?labelSelector=workloads.kcp.io%2Fsynctarget".to_owned()
}

fn count(list: &Value) -> usize {
    list["items"].as_array().map_or(0, Vec::len)
}

fn told(target: &Value) -> Option<&str> {
    target["metadata"]["annotations"][TOLD].as_str()
}

/// Everything has gone, nobody was asked, and nothing is told any more.
async fn went_by_itself(yard: &Yard, before: &Value) {
    yard.east.eventually(&copies(), |list| count(list) == 0).await;
    let after = yard.hub.eventually(&target(), |found| told(found).is_none()).await;
    // The same since before: it was never paused.
    assert_eq!(condition(&after, "DeletionPaused"), condition(before, "DeletionPaused"));
    assert_eq!(condition(before, "DeletionPaused")["status"], "False");
}

#[tokio::test]
async fn a_namespace_goes_with_all_that_is_in_it() {
    let yard = pushed().await;
    filled(&yard, "infra", "shop").await;
    let before = yard.hub.get(&target()).await;
    let namespace = "/clusters/infra/api/v1/namespaces/shop";
    yard.hub.delete(namespace).await;
    yard.hub.eventually(&target(), |found| told(found) == Some("infra/shop")).await;
    yard.hub.eventually(namespace, Value::is_null).await;
    went_by_itself(&yard, &before).await;
    yard.shutdown().await;
}

#[tokio::test]
async fn a_logical_cluster_goes_with_all_that_is_in_it() {
    let yard = pushed().await;
    filled(&yard, "team", "shop").await;
    let before = yard.hub.get(&target()).await;
    let cluster = "/clusters/root/apis/core.kcp.io/v1alpha1/logicalclusters/team";
    yard.hub.delete(cluster).await;
    yard.hub.eventually(&target(), |found| told(found) == Some("team")).await;
    yard.hub.eventually(cluster, Value::is_null).await;
    went_by_itself(&yard, &before).await;
    yard.shutdown().await;
}

#[tokio::test]
async fn a_target_goes_with_all_that_is_on_it() {
    let yard = pushed().await;
    filled(&yard, "team", "shop").await;
    yard.hub.delete(&target()).await;
    yard.hub.eventually(&target(), Value::is_null).await;
    yard.east.eventually(&copies(), |list| count(list) == 0).await;
    // The objects stay, without marks.
    let left = yard.hub.get(&maps("team", "shop")).await;
    let marks = |object: &&Value| object["metadata"].get("finalizers").is_some();
    assert_eq!(left["items"].as_array().unwrap().iter().filter(marks).count(), 0);
    yard.shutdown().await;
}

/// A controller runs away, or a namespace loses its label: a person is asked; and a person who then
/// deletes the namespace has answered.
#[tokio::test]
async fn objects_that_go_one_by_one_wait_for_a_person() {
    let yard = pushed().await;
    let path = maps("infra", "shop");
    for (round, answer) in ["approve", "delete"].into_iter().enumerate() {
        if round == 0 {
            filled(&yard, "infra", "shop").await;
        } else {
            let labels = json!({"workloads.kcp.io/cluster": "infra.east"});
            for index in 0..MANY {
                let body = json!({"metadata": {"name": format!("b{index}"), "labels": labels}});
                yard.hub.post(&path, &body).await;
            }
            yard.east.eventually(&copies(), |list| count(list) == MANY).await;
        }
        yard.hub.send(Method::DELETE, &path, &json!({})).await.unwrap();
        let paused = yard.says("east", "DeletionPaused", "True", "TooManyDeletes").await;
        let target = target();
        assert_eq!(told(&yard.hub.get(&target).await), None, "nobody deletes the whole");
        let left = count(&yard.east.get(&copies()).await);
        assert!(left >= MANY - 20, "{left}");
        if answer == "approve" {
            let message = paused["message"].as_str().unwrap();
            let (_, number) = message.rsplit_once("approve-deletions=").unwrap();
            let number: String = number.chars().take_while(char::is_ascii_digit).collect();
            let annotations = json!({"workloads.kcp.io/approve-deletions": number});
            let patch = json!({"metadata": {"annotations": annotations}});
            yard.hub.patch(&target, &patch).await;
        } else {
            let namespace = "/clusters/infra/api/v1/namespaces/shop";
            yard.hub.delete(namespace).await;
            yard.hub.eventually(namespace, Value::is_null).await;
        }
        yard.east.eventually(&copies(), |list| count(list) == 0).await;
        yard.says("east", "DeletionPaused", "False", "NoWave").await;
    }
    yard.shutdown().await;
}
