//! What people want of their objects becomes what agents see.

use serde_json::{Value, json};

use crate::yard::{TARGETS, Yard};

const EAST: &str = "infra.east";

fn maps(cluster: &str) -> String {
    format!("/clusters/{cluster}/api/v1/namespaces/default/configmaps")
}

fn state(object: &Value) -> &str {
    object["metadata"]["labels"][format!("sync.workloads.kcp.io/{EAST}")].as_str().unwrap_or("")
}

fn is_held(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    finalizers.into_iter().any(|name| *name == format!("workloads.kcp.io/{EAST}"))
}

fn is_assigned(object: &Value) -> bool {
    state(object) == "Sync" && is_held(object)
}

fn map(name: &str, intent: Option<&str>) -> Value {
    let mut metadata = json!({"name": name});
    if let Some(intent) = intent {
        metadata["labels"] = json!({"workloads.kcp.io/cluster": intent});
    }
    json!({"metadata": metadata, "data": {"a": "b"}})
}

fn label(intent: impl Into<Value>) -> Value {
    let intent = intent.into();
    json!({"metadata": {"labels": {"workloads.kcp.io/cluster": intent}}})
}

/// A hub whose SyncTarget `infra.east` serves the logical cluster `team`, too.
async fn yard() -> Yard {
    let yard = Yard::new().await;
    yard.target("east", &spec()).await;
    yard.accept("east", &[("", "configmaps"), ("", "serviceaccounts")]).await;
    yard
}

fn spec() -> Value {
    json!({
        "mode": "None", "namespaceMapping": "Hashed", "allowedClusters": {"names": ["team"]},
    })
}

#[tokio::test]
async fn objects_follow_their_labels() {
    let yard = yard().await;
    for (cluster, intent) in [("infra", "east"), ("team", EAST)] {
        let path = maps(cluster);
        yard.hub.post(&path, &map("web", Some(intent))).await;
        yard.hub.post(&path, &map("plain", None)).await;
        let web = format!("{path}/web");
        let found = yard.hub.eventually(&web, is_assigned).await;
        assert_eq!(found["data"], json!({"a": "b"}));
        yard.hub.event(cluster, "default", "web", "Assigned").await;
        yard.hub.event(cluster, "default", "web", "TargetNotReady").await;
        // Taken back: the finalizer stays until the agent has removed the copy.
        yard.hub.patch(&web, &label(Value::Null)).await;
        let found = yard.hub.eventually(&web, |found| state(found) == "Remove").await;
        assert!(is_held(&found));
        yard.hub.patch(&web, &label(intent)).await;
        yard.hub.eventually(&web, is_assigned).await;
        let plain = yard.hub.get(&format!("{path}/plain")).await;
        assert_eq!((state(&plain), is_held(&plain)), ("", false));
    }
    yard.shutdown().await;
}

#[tokio::test]
async fn a_namespace_takes_everything_along_that_is_meant() {
    let yard = yard().await;
    let path = maps("team");
    yard.hub.post(&path, &map("before", None)).await;
    yard.hub.post(&path, &map("nowhere", Some(""))).await;
    let namespace = "/clusters/team/api/v1/namespaces/default";
    yard.hub.patch(namespace, &label(EAST)).await;
    yard.hub.eventually(&format!("{path}/before"), is_assigned).await;
    yard.hub.post(&path, &map("after", None)).await;
    yard.hub.eventually(&format!("{path}/after"), is_assigned).await;
    for own in [
        format!("{path}/nowhere"),
        format!("{path}/kube-root-ca.crt"),
        format!("{namespace}/serviceaccounts/default"),
    ] {
        let found = yard.hub.get(&own).await;
        assert_eq!((state(&found), is_held(&found)), ("", false), "{own}");
    }
    // A type that the target doesn't sync stays, too.
    let secrets = format!("{namespace}/secrets");
    yard.hub.post(&secrets, &json!({"metadata": {"name": "s"}})).await;
    yard.hub.patch(namespace, &label(Value::Null)).await;
    for name in ["before", "after"] {
        let found =
            yard.hub.eventually(&format!("{path}/{name}"), |found| state(found) == "Remove").await;
        assert!(is_held(&found), "{name}");
    }
    assert_eq!(state(&yard.hub.get(&format!("{secrets}/s")).await), "");
    yard.shutdown().await;
}

#[tokio::test]
async fn what_cannot_be_is_told_and_heals() {
    let yard = Yard::new().await;
    // A target that keeps the type watched, and that serves nobody else.
    yard.target("west", &json!({"mode": "None"})).await;
    yard.accept("west", &[("", "configmaps")]).await;
    let path = maps("team");
    yard.hub.post(&path, &map("web", Some(EAST))).await;
    yard.hub.post(&path, &map("foreign", Some("infra.west"))).await;
    yard.hub.event("team", "default", "web", "TargetNotFound").await;
    yard.hub.event("team", "default", "foreign", "TargetNotAllowed").await;
    yard.target("east", &spec()).await;
    yard.hub.event("team", "default", "web", "TypeNotSynced").await;
    yard.accept("east", &[("", "configmaps")]).await;
    yard.hub.eventually(&format!("{path}/web"), is_assigned).await;
    // A namespace in which there is nothing is told, too.
    let namespaces = "/clusters/team/api/v1/namespaces";
    yard.hub.post(namespaces, &json!({"metadata": {"name": "empty"}})).await;
    yard.hub.patch(&format!("{namespaces}/empty"), &label("infra.esat")).await;
    let told = yard.hub.event("team", "default", "empty", "TargetNotFound").await;
    assert_eq!(told["involvedObject"]["kind"], "Namespace");
    // A slip of the pen takes nothing back.
    yard.hub.patch(&format!("{path}/web"), &label("infra.esat")).await;
    let is_slip = |event: &Value| {
        event["reason"] == "TargetNotFound" && event["message"].as_str().unwrap().contains("esat")
    };
    let events = "/clusters/team/api/v1/namespaces/default/events";
    yard.hub.eventually(events, |list| list["items"].as_array().unwrap().iter().any(is_slip)).await;
    assert!(is_assigned(&yard.hub.get(&format!("{path}/web")).await));
    // A target that no longer serves the logical cluster lets go, and removes nothing.
    yard.hub.patch(&format!("{path}/web"), &label(EAST)).await;
    let target = format!("/clusters/infra{TARGETS}/east");
    yard.hub.patch(&target, &json!({"spec": {"allowedClusters": null}})).await;
    let web = format!("{path}/web");
    yard.hub.eventually(&web, |found| state(found).is_empty() && !is_held(found)).await;
    yard.hub.event("team", "default", "web", "Released").await;
    yard.shutdown().await;
}

/// Who assigns an object that nobody takes is told at the object, whoever syncs its type: nobody does,
/// a type of one's own that comes later included. When somebody does, it is assigned.
#[tokio::test]
async fn types_that_nobody_syncs_are_told() {
    let yard = Yard::new().await;
    yard.target("east", &spec()).await;
    let path = maps("infra");
    yard.hub.post(&path, &map("web", Some("east"))).await;
    yard.hub.post(&path, &map("lost", Some("esat"))).await;
    yard.hub.post(&path, &map("plain", None)).await;
    yard.hub.event("infra", "default", "web", "TypeNotSynced").await;
    yard.hub.event("infra", "default", "lost", "TargetNotFound").await;
    let definitions = "/clusters/team/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    yard.hub
        .post(
            definitions,
            &json!({
                "metadata": {"name": "things.example.org"},
                "spec": {
                    "group": "example.org", "scope": "Namespaced",
                    "names": {"plural": "things", "kind": "Thing"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                        "openAPIV3Schema": {"type": "object"},
                    }}],
                },
            }),
        )
        .await;
    let things = "/clusters/team/apis/example.org/v1/namespaces/default/things";
    yard.hub.eventually(things, |list| list["items"].is_array()).await;
    let thing = json!({
        "apiVersion": "example.org/v1", "kind": "Thing",
        "metadata": {"name": "one", "labels": {"workloads.kcp.io/cluster": EAST}},
    });
    yard.hub.post(things, &thing).await;
    yard.hub.event("team", "default", "one", "TypeNotSynced").await;
    // Neither has marks, nor has what nobody has assigned an Event.
    for own in [format!("{path}/web"), format!("{path}/lost"), format!("{things}/one")] {
        let found = yard.hub.get(&own).await;
        assert_eq!((state(&found), is_held(&found)), ("", false), "{own}");
    }
    let events = "/clusters/infra/api/v1/namespaces/default/events";
    let told = yard.hub.get(events).await;
    let is_of_plain = |event: &Value| event["involvedObject"]["name"] == "plain";
    assert!(!told["items"].as_array().unwrap().iter().any(is_of_plain), "{told}");
    yard.accept("east", &[("", "configmaps"), ("example.org", "things")]).await;
    yard.hub.eventually(&format!("{path}/web"), is_assigned).await;
    yard.hub.eventually(&format!("{things}/one"), is_assigned).await;
    yard.hub.event("team", "default", "one", "Assigned").await;
    // And back: nobody is asked to remove it, and it is told once more.
    let count = |list: &Value, reason: &str| {
        let of =
            |event: &&Value| event["involvedObject"]["name"] == "web" && event["reason"] == reason;
        list["items"].as_array().unwrap().iter().filter(of).count()
    };
    yard.accept("east", &[]).await;
    yard.hub.eventually(events, |list| count(list, "TypeNotSynced") == 2).await;
    assert!(is_assigned(&yard.hub.get(&format!("{path}/web")).await));
    // An operator that begins knows types that were there before.
    let yard = yard.restart(|_| ()).await;
    let thing = json!({
        "apiVersion": "example.org/v1", "kind": "Thing",
        "metadata": {"name": "two", "labels": {"workloads.kcp.io/cluster": EAST}},
    });
    yard.hub.post(things, &thing).await;
    yard.hub.event("team", "default", "two", "TypeNotSynced").await;
    yard.shutdown().await;
}

/// A target that was removed by force leaves marks that nobody would answer.
#[tokio::test]
async fn marks_of_a_target_that_is_gone_are_released() {
    let yard = yard().await;
    yard.target("other", &json!({"mode": "None"})).await;
    yard.accept("other", &[("", "configmaps")]).await;
    let path = maps("infra");
    yard.hub.post(&path, &map("web", Some("east"))).await;
    let web = format!("{path}/web");
    yard.hub.eventually(&web, is_assigned).await;
    let target = format!("/clusters/infra{TARGETS}/east");
    yard.hub.delete(&target).await;
    // No agent ever came, so nobody is waited for; and made again it starts anew.
    yard.hub.eventually(&target, Value::is_null).await;
    yard.hub.eventually(&web, |found| state(found).is_empty() && !is_held(found)).await;
    yard.hub.event("infra", "default", "web", "TargetNotFound").await;
    yard.shutdown().await;
}

/// Which logical clusters a target selects isn't known at once: nothing is released meanwhile.
#[tokio::test]
async fn an_operator_that_begins_releases_nothing() {
    let yard = Yard::new().await;
    let path = maps("team");
    yard.hub.post(&path, &map("first", None)).await;
    let cluster = "/clusters/root/apis/core.kcp.io/v1alpha1/logicalclusters/team";
    yard.hub.patch(cluster, &json!({"metadata": {"labels": {"tier": "gold"}}})).await;
    let spec = json!({
        "mode": "None", "namespaceMapping": "Hashed",
        "allowedClusters": {"selector": {"matchLabels": {"tier": "gold"}}},
    });
    yard.target("east", &spec).await;
    yard.accept("east", &[("", "configmaps")]).await;
    for name in ["a", "b", "c"] {
        yard.hub.post(&path, &map(name, Some(EAST))).await;
        yard.hub.eventually(&format!("{path}/{name}"), is_assigned).await;
    }
    let before = yard.hub.get(&format!("{path}/a")).await;
    let yard = yard.restart(|_| ()).await;
    yard.hub.post(&path, &map("later", Some(EAST))).await;
    yard.hub.eventually(&format!("{path}/later"), is_assigned).await;
    assert_eq!(yard.hub.get(&format!("{path}/a")).await, before);
    // Who loses the label is let go.
    yard.hub.patch(cluster, &json!({"metadata": {"labels": {"tier": null}}})).await;
    let released = |found: &Value| state(found).is_empty() && !is_held(found);
    yard.hub.eventually(&format!("{path}/a"), released).await;
    yard.shutdown().await;
}
