//! Who may say where objects run: people, the operator, and whom a SyncTarget serves.

use contract::{OPERATOR, OPERATORS};
use http::Method;
use serde_json::{Value, json};

use crate::authority::Pair;
use crate::deeds::allow;
use crate::yard::{TARGETS, Yard};

fn maps(cluster: &str) -> String {
    format!("/clusters/{cluster}/api/v1/namespaces/default/configmaps")
}

/// Lets a user edit ConfigMaps, and do `verbs` with SyncTargets of these names.
async fn editor(yard: &Yard, cluster: &str, user: &str, verbs: &[&str], names: &[&str]) -> Pair {
    let mut rules = vec![
        json!({"verbs": ["*"], "apiGroups": [""], "resources": ["configmaps", "namespaces"]}),
        json!({"verbs": ["patch", "update"], "apiGroups": ["workload.kcp.io"], "resources": ["synctargets"]}),
    ];
    if !verbs.is_empty() {
        let mut rule =
            json!({"verbs": verbs, "apiGroups": ["workload.kcp.io"], "resources": ["synctargets"]});
        if !names.is_empty() {
            rule["resourceNames"] = json!(names);
        }
        rules.push(rule);
    }
    allow(&yard.hub, cluster, user, json!(rules)).await;
    yard.person(user, &[])
}

fn labelled(name: &str, key: &str, value: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {key: value}}})
}

#[tokio::test]
async fn marks_need_rights_on_the_target() {
    const INTENT: &str = "workloads.kcp.io/cluster";
    let yard = Yard::new().await;
    yard.begin("a").await;
    let uses = editor(&yard, "a", "uses", &["use"], &["east", "infra.west"]).await;
    let syncs = editor(&yard, "a", "syncs", &["sync"], &["east"]).await;
    let path = maps("a");
    let create = async |who: &Pair, body: Value| yard.send(who, Method::POST, &path, &body).await;
    for (name, target) in [("m1", "east"), ("m2", "a.east"), ("m3", "infra.west")] {
        assert_eq!(create(&uses, labelled(name, INTENT, target)).await.status, 201, "{target}");
    }
    for target in ["west", "infra.east", "a.west", "other.east"] {
        let why = create(&uses, labelled("m4", INTENT, target)).await.fails(403, "Forbidden");
        let name = target.strip_prefix("a.").unwrap_or(target);
        let text = format!("the verb \"use\" on the SyncTarget \"{name}\"");
        assert!(why.contains(&text), "{why}");
    }
    create(&syncs, labelled("m4", INTENT, "east")).await.fails(403, "Forbidden");
    let (state, other) = ("sync.workloads.kcp.io/a.east", "sync.workloads.kcp.io/a.west");
    create(&uses, labelled("m4", state, "Sync")).await.fails(403, "Forbidden");
    create(&syncs, labelled("m4", other, "Sync")).await.fails(403, "Forbidden");
    assert_eq!(create(&syncs, labelled("m4", state, "Sync")).await.status, 201);

    // Changes and removals alike; everything else of the object is not concerned.
    let of = |name: &str| format!("{path}/{name}");
    let patch = |labels: Value| json!({"metadata": {"labels": labels}});
    for (who, name, labels, code) in [
        (&syncs, "m1", json!({INTENT: null}), 403),
        (&syncs, "m1", json!({INTENT: "west"}), 403),
        (&uses, "m1", json!({INTENT: "west"}), 403),
        (&uses, "m1", json!({INTENT: "infra.west"}), 200),
        (&syncs, "m1", json!({"a": "b"}), 200),
        (&uses, "m1", json!({INTENT: null}), 200),
        (&uses, "m4", json!({state: "Remove"}), 403),
        (&uses, "m4", json!({state: null}), 403),
        (&syncs, "m4", json!({state: "Remove"}), 200),
    ] {
        let answer = yard.patch(who, &of(name), &patch(labels.clone())).await;
        assert_eq!(answer.status, code, "{name} {labels}: {answer:?}");
    }
    let held = |finalizer: &str| json!({"metadata": {"finalizers": [finalizer]}});
    let own = held("workloads.kcp.io/a.east");
    yard.patch(&uses, &of("m4"), &own).await.fails(403, "Forbidden");
    yard.patch(&syncs, &of("m4"), &held("workloads.kcp.io/a.west")).await.fails(403, "Forbidden");
    assert_eq!(yard.patch(&syncs, &of("m4"), &own).await.status, 200);
    let freed = json!({"metadata": {"finalizers": null}});
    yard.patch(&uses, &of("m4"), &freed).await.fails(403, "Forbidden");
    assert_eq!(yard.patch(&syncs, &of("m4"), &freed).await.status, 200);
    // A namespace says it for all that is in it.
    let namespaces = "/clusters/a/api/v1/namespaces";
    let pinned = labelled("n", INTENT, "west");
    yard.send(&uses, Method::POST, namespaces, &pinned).await.fails(403, "Forbidden");
    yard.hub.shutdown().await;
}

/// What lets deletes go on without approval is the operator's word: who may change a SyncTarget may
/// not give it.
#[tokio::test]
async fn what_exempts_deletes_needs_the_right_to_sync() {
    let yard = Yard::new().await;
    yard.begin("infra").await;
    let east = yard.target("infra", "east", &json!({}), "aaaaaa").await;
    let agent = yard.agent(&east).await;
    let owns = editor(&yard, "infra", "owns", &["create", "use"], &[]).await;
    let syncs = editor(&yard, "infra", "syncs", &["sync"], &["east"]).await;
    let operator = yard.person(OPERATOR, &[OPERATORS]);
    let told =
        |value: Value| json!({"metadata": {"annotations": {"workloads.kcp.io/deleting": value}}});
    let path = east.path();
    for (who, value, code) in [
        (&owns, json!("infra"), 403),
        (&agent, json!("infra"), 403),
        (&syncs, json!("infra"), 200),
        (&owns, json!("infra/shop"), 403),
        (&owns, Value::Null, 403),
        (&operator, json!("infra/shop"), 200),
    ] {
        let answer = yard.patch(who, &path, &told(value.clone())).await;
        assert_eq!(answer.status, code, "{value}: {answer:?}");
    }
    let unrelated = json!({"spec": {"unschedulable": true}});
    assert_eq!(yard.patch(&owns, &path, &unrelated).await.status, 200);
    // A status has no annotations to give.
    let mut status = told(json!("infra"));
    status["status"] = json!({"agentVersion": "1"});
    assert_eq!(yard.patch(&agent, &format!("{path}/status"), &status).await.status, 200);
    let found = yard.hub.get(&path).await.json();
    assert_eq!(found["metadata"]["annotations"]["workloads.kcp.io/deleting"], "infra/shop");
    // Nor is it there when one is made.
    let mut body = told(json!("infra"));
    body["apiVersion"] = json!("workload.kcp.io/v1alpha1");
    body["kind"] = json!("SyncTarget");
    body["metadata"]["name"] = json!("west");
    body["spec"] = json!({});
    let targets = format!("/clusters/infra/{TARGETS}");
    let why = yard.send(&owns, Method::POST, &targets, &body).await.fails(403, "Forbidden");
    assert!(why.contains("the verb \"sync\" on the SyncTarget \"west\""), "{why}");
    yard.hub.shutdown().await;
}

#[tokio::test]
async fn whom_a_target_serves_is_for_those_to_say_who_could_make_one_there() {
    let yard = Yard::new().await;
    for cluster in ["infra", "app", "other"] {
        yard.begin(cluster).await;
    }
    yard.target("infra", "east", &json!({}), "aaaaaa").await;
    let ann = editor(&yard, "infra", "ann", &["create"], &[]).await;
    editor(&yard, "app", "ann", &["create"], &[]).await;
    editor(&yard, "other", "ann", &[], &[]).await;
    let targets = format!("/clusters/infra/{TARGETS}");
    let spec = |allowed: Value| json!({"spec": {"allowedClusters": allowed, "namespaceMapping": "Hashed"}});
    for (allowed, code) in [
        (json!({"names": ["app"]}), 200),
        (json!({"names": ["app", "infra"]}), 200),
        (json!({"names": ["app", "other"]}), 403),
        (json!({"names": ["nowhere"]}), 403),
        (json!({"names": ["app"], "selector": {}}), 403),
        (json!({"names": ["app"], "selector": {"matchLabels": {"a": "b"}}}), 403),
    ] {
        let answer = yard.patch(&ann, &format!("{targets}/east"), &spec(allowed.clone())).await;
        assert_eq!(answer.status, code, "{allowed}: {answer:?}");
    }
    yard.change(&format!("{targets}/east"), &spec(json!({"names": ["app", "other"]}))).await;
    // What others have allowed stays, and may be taken back.
    let unrelated = json!({"spec": {"unschedulable": true}});
    assert_eq!(yard.patch(&ann, &format!("{targets}/east"), &unrelated).await.status, 200);
    let less = spec(json!({"names": ["app"]}));
    assert_eq!(yard.patch(&ann, &format!("{targets}/east"), &less).await.status, 200);
    let mut body = spec(json!({"names": ["other"]}));
    body["apiVersion"] = json!("workload.kcp.io/v1alpha1");
    body["kind"] = json!("SyncTarget");
    body["metadata"] = json!({"name": "west"});
    yard.send(&ann, Method::POST, &targets, &body).await.fails(403, "Forbidden");

    // Its rules, those that no schema knows included.
    for cluster in ["a", "longer"] {
        yard.begin(cluster).await;
    }
    let create = async |cluster: &str, name: &str, spec: Value| {
        let targets = format!("/clusters/{cluster}/{TARGETS}");
        let mut body = body.clone();
        body["metadata"]["name"] = json!(name);
        body["spec"] = spec;
        let ask = crate::client::Ask::new(Method::POST, &targets).json(&body);
        yard.hub.admin(ask).await
    };
    let long = "a".repeat(50);
    assert_eq!(create("infra", &long, json!({})).await.status, 201);
    let why = create("longer", &long, json!({})).await.fails(422, "Invalid");
    assert!(why.contains("it must be no more than 56 bytes"), "{why}");
    for (name, spec, why) in [
        (&*"a".repeat(51), json!({}), "at most 50 characters"),
        ("a.b", json!({}), "must be a DNS label"),
        ("b", json!({"mode": "Push"}), "mode Push needs kubeconfig or kubeconfigSecretRef"),
        ("b", json!({"mode": "Pull it"}), "Unsupported value"),
        (
            "b",
            json!({"kubeconfig": "x", "kubeconfigSecretRef": {"namespace": "a", "name": "b"}}),
            "exclude each other",
        ),
        ("b", json!({"allowedClusters": {"names": ["app"]}}), "needs namespaceMapping Hashed"),
        (
            "b",
            json!({"allowedClusters": {}, "namespaceMapping": "Hashed"}),
            "names or a selector are needed",
        ),
        ("b", json!({"evictAfter": "soon"}), "evictAfter"),
        ("b", json!({"capacity": {"cpu": "many"}}), "capacity"),
    ] {
        let answer = create("a", name, spec.clone()).await.fails(422, "Invalid");
        assert!(answer.contains(why), "{name} {spec}: {answer}");
    }
    let full = json!({
        "mode": "Push", "kubeconfigSecretRef": {"namespace": "a", "name": "b"},
        "resources": ["deployments.apps"], "capacity": {"cpu": 4, "memory": "16Gi"},
        "taints": [{"key": "a", "effect": "NoSchedule"}], "evictAfter": "1h30m",
    });
    let made = create("a", "full", full).await.json();
    assert_eq!(made["spec"]["kubeconfigSecretRef"]["key"], "kubeconfig", "{made}");
    assert_eq!(made["spec"]["adoption"], "Never");
    yard.hub.shutdown().await;
}

#[tokio::test]
async fn the_operator_marks_everybody_s_objects_and_changes_nothing_else_of_them() {
    let yard = Yard::new().await;
    yard.begin("a").await;
    let operator = yard.person(OPERATOR, &[OPERATORS]);
    let list = yard.get(&operator, "/clusters/*/api/v1/configmaps").await;
    assert_eq!(list.status, 200);
    let map = format!("{}/first", maps("a"));
    let mark = json!({"metadata": {
        "labels": {"sync.workloads.kcp.io/infra.east": "Sync"},
        "finalizers": ["workloads.kcp.io/infra.east"],
    }});
    let answer = yard.patch(&operator, &map, &mark).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    for patch in [
        json!({"data": {"a": "b"}}),
        json!({"metadata": {"labels": {"a": "b"}}}),
        json!({"metadata": {"labels": {"workloads.kcp.io/cluster": "east"}}}),
        json!({"metadata": {"finalizers": ["a.io/b"]}}),
    ] {
        yard.patch(&operator, &map, &patch).await.fails(403, "Forbidden");
    }
    let body = json!({"metadata": {"name": "new"}});
    yard.send(&operator, Method::POST, &maps("a"), &body).await.fails(403, "Forbidden");
    yard.send(&operator, Method::DELETE, &map, &json!({})).await.fails(403, "Forbidden");
    for eve in [yard.person(OPERATOR, &["dev"]), yard.person("eve", &[OPERATORS])] {
        yard.get(&eve, "/clusters/*/api/v1/configmaps").await.fails(403, "Forbidden");
    }
    yard.hub.shutdown().await;
}
