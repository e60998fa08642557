//! SyncTargets go: drained, uninstalled, released, and nothing else is touched.

use std::time::Duration;

use agent::manifest::Kind;
use serde_json::{Value, json};

use crate::pod::Pod;
use crate::yard::{TARGETS, Yard, condition, installed_in};

const MAPS: &str = "/clusters/infra/api/v1/namespaces/default/configmaps";

fn target(name: &str) -> String {
    format!("/clusters/infra{TARGETS}/{name}")
}

fn state<'v>(object: &'v Value, global: &str) -> Option<&'v str> {
    object["metadata"]["labels"][format!("sync.workloads.kcp.io/{global}")].as_str()
}

/// An object that `infra.east` holds, whether a label or only a finalizer says so.
async fn held(yard: &Yard, name: &str, labelled: bool) {
    let mut metadata =
        json!({"name": name, "finalizers": ["a.io/other", "workloads.kcp.io/infra.east"]});
    if labelled {
        metadata["labels"] = json!({"sync.workloads.kcp.io/infra.east": "Sync"});
    }
    yard.hub.post(MAPS, &json!({"metadata": metadata})).await;
}

#[tokio::test]
async fn a_target_is_drained_and_uninstalled() {
    let yard = Yard::new().await;
    let uid = yard.east().await;
    yard.says("east", "Installed", "True", "Installed").await;
    yard.beat(&uid, "2026-01-01T00:00:00.000000Z").await;
    yard.says("east", "Heartbeat", "True", "LeaseRenewed").await;
    held(&yard, "held", true).await;
    // Somebody else's, beside what was installed.
    let namespace = installed_in(&uid);
    let other = format!("/api/v1/namespaces/{namespace}/configmaps");
    yard.east.post(&other, &json!({"metadata": {"name": "mine"}})).await;
    yard.hub.delete(&target("east")).await;

    // The agent is asked, and until it has answered nothing goes.
    let object = format!("{MAPS}/held");
    yard.hub.eventually(&object, |found| state(found, "infra.east") == Some("Remove")).await;
    let waits = yard.says("east", "Ready", "False", "Draining").await;
    assert!(
        waits["message"].as_str().unwrap().contains("configmaps infra/default/held"),
        "{waits}"
    );
    let deployment = Kind::named("Deployment").unwrap().path(&namespace, "kcp-agent");
    assert!(!yard.east.get(&deployment).await.is_null());
    let done = json!({"metadata": {
        "labels": {"sync.workloads.kcp.io/infra.east": null}, "finalizers": ["a.io/other"],
    }});
    yard.hub.patch(&object, &done).await;

    yard.hub.eventually(&target("east"), Value::is_null).await;
    for (kind, name) in [
        ("Deployment", "kcp-agent"),
        ("Secret", "kcp-agent-hub"),
        ("Secret", "kcp-agent-identity"),
        ("ServiceAccount", "kcp-agent"),
        ("Role", "kcp-agent"),
        ("RoleBinding", "kcp-agent"),
        ("ClusterRole", namespace.as_str()),
        ("ClusterRoleBinding", namespace.as_str()),
    ] {
        let path = Kind::named(kind).unwrap().path(&namespace, name);
        yard.east.eventually(&path, Value::is_null).await;
    }
    // What isn't ours stays, and that is said; the object stays, too.
    assert!(!yard.east.get(&format!("{other}/mine")).await.is_null());
    let event = yard.hub.event("infra", "default", "east", "LeftBehind").await;
    assert!(event["message"].as_str().unwrap().contains("configmaps mine"), "{event}");
    let kept = yard.hub.get(&object).await;
    assert_eq!(kept["metadata"]["finalizers"], json!(["a.io/other"]));

    // Made again, it is another one: nothing that was revives.
    let again = yard.target("east", &json!({"mode": "None"})).await;
    assert_ne!(again, uid);
    yard.says("east", "Installed", "False", "NotNeeded").await;
    assert_eq!(state(&yard.hub.get(&object).await, "infra.east"), None);
    yard.shutdown().await;
}

#[tokio::test]
async fn a_namespace_that_holds_nothing_else_goes_too() {
    let yard = Yard::new().await;
    let uid = yard.east().await;
    yard.says("east", "Installed", "True", "Installed").await;
    yard.hub.delete(&target("east")).await;
    // No agent has ever come, but something was installed: it may have begun.
    let annotations = json!({"workload.kcp.io/abandon": "true"});
    yard.hub.patch(&target("east"), &json!({"metadata": {"annotations": annotations}})).await;
    yard.hub.eventually(&target("east"), Value::is_null).await;
    let namespace = format!("/api/v1/namespaces/{}", installed_in(&uid));
    yard.east.eventually(&namespace, Value::is_null).await;
    yard.shutdown().await;
}

/// karmada#1847, #3740, #4431: a cluster that is offline can be removed.
#[tokio::test]
async fn a_cluster_that_is_gone_is_given_up_after_a_time() {
    let yard = Yard::with(|options| options.drain_timeout = Duration::from_secs(3)).await;
    let uid = yard.east().await;
    yard.says("east", "Installed", "True", "Installed").await;
    held(&yard, "held", true).await;
    held(&yard, "unlabelled", false).await;
    // From now on the kubeconfig leads nowhere.
    let secret = "/clusters/infra/api/v1/namespaces/default/secrets/east";
    yard.hub.delete(secret).await;
    yard.hub.delete(&target("east")).await;
    yard.hub.eventually(&target("east"), Value::is_null).await;
    for name in ["held", "unlabelled"] {
        let found = yard.hub.get(&format!("{MAPS}/{name}")).await;
        assert_eq!(found["metadata"]["finalizers"], json!(["a.io/other"]), "{name}");
        assert_eq!(state(&found, "infra.east"), None, "{name}");
    }
    let path = "/clusters/infra/api/v1/namespaces/default/events";
    let events = yard.hub.get(path).await;
    let notes: Vec<&str> = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["reason"] == "LeftBehind")
        .map(|event| event["message"].as_str().unwrap())
        .collect();
    assert!(notes.iter().any(|note| note.contains("configmaps infra/default/held")), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains(&installed_in(&uid))), "{notes:?}");
    // Nothing was deleted anywhere.
    assert!(!yard.east.get(&format!("/api/v1/namespaces/{}", installed_in(&uid))).await.is_null());
    yard.shutdown().await;
}

/// While an agent removes copies, the hub isn't searched again and again for them.
#[tokio::test]
async fn waiting_costs_the_hub_no_lists() {
    let yard = Yard::new().await;
    let uid = yard.east().await;
    yard.says("east", "Installed", "True", "Installed").await;
    yard.beat(&uid, "2026-01-01T00:00:00.000000Z").await;
    yard.says("east", "Heartbeat", "True", "LeaseRenewed").await;
    yard.accept("east", &[("", "configmaps")]).await;
    let labels = json!({"workloads.kcp.io/cluster": "east"});
    for name in ["a", "b"] {
        yard.hub.post(MAPS, &json!({"metadata": {"name": name, "labels": labels}})).await;
        let path = format!("{MAPS}/{name}");
        yard.hub.eventually(&path, |found| state(found, "infra.east") == Some("Sync")).await;
    }
    yard.hub.delete(&target("east")).await;
    let done = json!({"metadata": {
        "labels": {"sync.workloads.kcp.io/infra.east": null}, "finalizers": null,
    }});
    for (name, left) in [("a", "2 objects"), ("b", "1 objects")] {
        let says = |found: &Value| {
            let message =
                condition(found, "Ready")["message"].as_str().unwrap_or_default().to_owned();
            message.contains(&format!("remove {left}"))
        };
        yard.hub.eventually(&target("east"), says).await;
        if left.starts_with('1') {
            // It has said so by what the watches show, and goes on so for three more looks.
            let before = yard.hub.lists("configmaps").await;
            tokio::time::sleep(Duration::from_secs(7)).await;
            assert_eq!(yard.hub.lists("configmaps").await, before);
        }
        yard.hub.patch(&format!("{MAPS}/{name}"), &done).await;
    }
    // The last one is the sign to look for what is left.
    yard.hub.eventually(&target("east"), Value::is_null).await;
    yard.shutdown().await;
}

/// Many objects of another logical cluster, released one after the other by a quick agent: none is
/// taken for held once it was seen to be released.
#[tokio::test]
async fn many_objects_of_another_logical_cluster_are_released_at_once() {
    const MANY: usize = 60;
    let yard = Yard::new().await;
    let maps = "/clusters/app/api/v1/namespaces/default/configmaps";
    yard.hub.post(maps, &json!({"metadata": {"name": "first"}})).await;
    let mut spec = yard.secret("east", yard.east.kubeconfig()).await;
    spec["resources"] = json!(["configmaps"]);
    spec["namespaceMapping"] = "Hashed".into();
    spec["allowedClusters"] = json!({"names": ["app"]});
    let uid = yard.target("east", &spec).await;
    let pod = Pod::of_deployment(&yard.east, &installed_in(&uid), &yard.hub).await;
    yard.says("east", "Ready", "True", "Ready").await;
    let labels = json!({"workloads.kcp.io/cluster": "infra.east"});
    for number in 0..MANY {
        let metadata = json!({"name": format!("map-{number}"), "labels": labels});
        yard.hub.post(maps, &json!({"metadata": metadata})).await;
    }
    let copies = format!("/api/v1/configmaps?labelSelector=workloads.kcp.io/synctarget={uid}");
    let count = |list: &Value| list["items"].as_array().map_or(0, Vec::len);
    yard.east.eventually(&copies, |list| count(list) == MANY).await;
    let begin = tokio::time::Instant::now();
    yard.hub.delete(&target("east")).await;
    yard.hub.eventually(&target("east"), Value::is_null).await;
    assert!(begin.elapsed() < Duration::from_secs(40), "{:?}", begin.elapsed());
    assert_eq!(count(&yard.east.get(&copies).await), 0);
    assert_eq!(
        count(&yard.hub.get(maps).await),
        MANY + 2,
        "theirs, the first, and the authorities"
    );
    pod.stop().await;
    yard.shutdown().await;
}
