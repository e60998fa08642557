//! Definitions of types go down where a SyncTarget asks for them, with all that follows from it.

use agent::manifest::Kind;
use serde_json::{Value, json};

use crate::pod::{Pod, account};
use crate::yard::{Side, TARGETS, Yard, installed_in};

const NAME: &str = "customresourcedefinitions.apiextensions.k8s.io";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/x.io/v1/namespaces/default/widgets";

fn at_hub(path: &str) -> String {
    format!("/clusters/infra{path}")
}

fn intent() -> Value {
    json!({"workloads.kcp.io/cluster": "east"})
}

fn widgets() -> Value {
    let fields = |fields: Value| json!({"type": "object", "properties": fields});
    let schema = json!({"type": "object", "properties": {
        "spec": fields(json!({"size": {"type": "integer"}})),
        "status": fields(json!({"phase": {"type": "string"}})),
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.x.io", "labels": intent()},
        "spec": {
            "group": "x.io", "scope": "Namespaced",
            "names": {
                "plural": "widgets", "singular": "widget", "kind": "Widget",
                "listKind": "WidgetList",
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

fn role(uid: &str) -> String {
    let own = installed_in(uid);
    Kind::named("ClusterRole").unwrap().path("", &own)
}

/// What a ClusterRole lets do with a resource, sorted.
fn verbs(role: &Value, resource: &str) -> Vec<String> {
    let has = |rule: &&Value| {
        rule["resources"].as_array().is_some_and(|all| all.iter().any(|one| one == resource))
    };
    let rules = role["rules"].as_array().into_iter().flatten().filter(has);
    let verbs = rules.flat_map(|rule| rule["verbs"].as_array().unwrap());
    let mut verbs: Vec<String> = verbs.map(|verb| verb.as_str().unwrap().to_owned()).collect();
    verbs.sort();
    verbs
}

const READ: [&str; 3] = ["get", "list", "watch"];
const DEFINE: [&str; 6] = ["create", "get", "list", "patch", "update", "watch"];

fn synced(target: &Value) -> Vec<&str> {
    let all = target["status"]["syncedResources"].as_array().into_iter().flatten();
    let accepted = all.filter(|one| one["state"] == "Accepted");
    accepted.map(|one| one["resource"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_definition_and_an_object_of_it_go_down() {
    let yard = Yard::new().await;
    let mut spec = yard.secret("east", yard.east.kubeconfig()).await;
    // There is nothing of it yet: definitions are synced all the same.
    spec["resources"] = json!([NAME, "*.x.io"]);
    let uid = yard.target("east", &spec).await;
    let pod = Pod::of_deployment(&yard.east, &installed_in(&uid), &yard.hub).await;
    yard.says("east", "Ready", "True", "Ready").await;
    let role = role(&uid);
    let found = yard.east.get(&role).await;
    assert_eq!(verbs(&found, "customresourcedefinitions"), DEFINE, "never delete");
    assert!(verbs(&found, "widgets").is_empty(), "{found}");

    // The definition comes down; its type is imported and accepted as any other, and the agent gets
    // rights for it, all without a restart.
    yard.hub.post(&at_hub(CRDS), &widgets()).await;
    let copy = format!("{CRDS}/widgets.x.io");
    let found = yard.east.eventually(&copy, |found| !found.is_null()).await;
    assert_eq!(found["metadata"]["labels"]["workloads.kcp.io/synctarget"], uid.as_str());
    let first = json!({"metadata": {"name": "one", "labels": intent()}, "spec": {"size": 1}});
    yard.hub.post(&at_hub(WIDGETS), &first).await;
    let one = format!("{WIDGETS}/one");
    yard.east.eventually(&one, |found| found["spec"]["size"] == 1).await;
    assert!(verbs(&yard.east.get(&role).await, "widgets").contains(&"delete".to_owned()));
    let target = format!("/clusters/infra{TARGETS}/east");
    assert_eq!(synced(&yard.hub.get(&target).await), ["customresourcedefinitions", "widgets"]);
    let status = json!({"status": {"phase": "Good"}});
    yard.east.patch(&format!("{one}/status"), &status).await;
    yard.hub.eventually(&at_hub(&one), |found| found["status"]["phase"] == "Good").await;

    // No longer assigned, it stays in the cluster, and so do its objects, which go on.
    let none = json!({"metadata": {"labels": {"workloads.kcp.io/cluster": ""}}});
    yard.hub.patch(&at_hub(&copy), &none).await;
    let released = |found: &Value| {
        let metadata = &found["metadata"];
        let held = metadata["finalizers"].to_string().contains("workloads.kcp.io/infra.east");
        !held && metadata["labels"].get("sync.workloads.kcp.io/infra.east").is_none()
    };
    yard.hub.eventually(&at_hub(&copy), released).await;
    let left = yard.east.get(&copy).await;
    assert!(left["metadata"]["labels"].get("workloads.kcp.io/synctarget").is_none(), "{left}");
    assert!(left["metadata"].get("deletionTimestamp").is_none(), "{left}");
    yard.hub.patch(&at_hub(&one), &json!({"spec": {"size": 2}})).await;
    yard.east.eventually(&one, |found| found["spec"]["size"] == 2).await;

    // When nobody asks for definitions any more, the rights go.
    yard.hub.patch(&target, &json!({"spec": {"resources": ["*.x.io"]}})).await;
    yard.east.eventually(&role, |found| verbs(found, "customresourcedefinitions") == READ).await;
    yard.hub.eventually(&target, |found| synced(found) == ["widgets"]).await;
    yard.hub.patch(&at_hub(&one), &json!({"spec": {"size": 3}})).await;
    yard.east.eventually(&one, |found| found["spec"]["size"] == 3).await;
    assert!(!yard.east.get(&copy).await.is_null());
    pod.stop().await;
    yard.shutdown().await;
}

/// In mode `Push` the kubeconfig's rights are those of the agent.
#[tokio::test]
async fn a_definition_goes_down_from_the_operator() {
    let yard = Yard::new().await;
    let mut spec = yard.secret("east", yard.east.kubeconfig()).await;
    spec["mode"] = "Push".into();
    // Beside all that is synced anyway.
    spec["resources"] = json!([NAME]);
    yard.target("east", &spec).await;
    yard.says("east", "Ready", "True", "Ready").await;
    yard.hub.post(&at_hub(CRDS), &widgets()).await;
    yard.east.eventually(&format!("{CRDS}/widgets.x.io"), |found| !found.is_null()).await;
    let first = json!({"metadata": {"name": "one", "labels": intent()}, "spec": {"size": 1}});
    yard.hub.post(&at_hub(WIDGETS), &first).await;
    yard.east.eventually(&format!("{WIDGETS}/one"), |found| found["spec"]["size"] == 1).await;
    yard.shutdown().await;
}

/// A kubeconfig of somebody who may do this in a cluster, and nothing else.
async fn installer(cluster: &Side, rules: Value) -> String {
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    cluster.post(accounts, &json!({"metadata": {"name": "installer"}})).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let metadata = json!({"name": "installer"});
    let role = json!({"metadata": metadata, "rules": rules});
    cluster.post(&format!("{rbac}/clusterroles"), &role).await;
    let binding = json!({
        "metadata": metadata,
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "installer",
        },
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "installer"}],
    });
    cluster.post(&format!("{rbac}/clusterrolebindings"), &binding).await;
    account(cluster, "default", "installer").await
}

/// Who gives a right must hold it: what is missing is named before anything is tried, and only where
/// it is needed.
#[tokio::test]
async fn the_kubeconfig_must_hold_what_it_gives() {
    let yard = Yard::new().await;
    let groups = ["", "apps", "coordination.k8s.io", "events.k8s.io", "rbac.authorization.k8s.io"];
    let of_definitions = |verbs: &[&str]| {
        let (groups, resources) = (["apiextensions.k8s.io"], ["customresourcedefinitions"]);
        json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
    };
    let rules = |define: &[&str]| {
        json!([
            {"apiGroups": groups, "resources": ["*"], "verbs": ["*"]},
            of_definitions(define),
            {"nonResourceURLs": ["*"], "verbs": ["get"]},
        ])
    };
    let kubeconfig = installer(&yard.east, rules(&READ)).await;
    let mut spec = yard.secret("east", &kubeconfig).await;
    spec["resources"] = json!(["configmaps"]);
    let uid = yard.target("east", &spec).await;
    yard.says("east", "Installed", "True", "Installed").await;

    let target = format!("/clusters/infra{TARGETS}/east");
    yard.hub.patch(&target, &json!({"spec": {"resources": ["configmaps", NAME]}})).await;
    let told = yard.says("east", "Installed", "False", "MissingRights").await;
    let message = told["message"].as_str().unwrap();
    for verb in ["create", "patch", "update"] {
        assert!(message.contains(&format!("{verb} {NAME}")), "{message}");
    }
    assert!(!message.contains("delete"), "{message}");
    assert_eq!(verbs(&yard.east.get(&role(&uid)).await, "customresourcedefinitions"), READ);

    let held = json!({"rules": rules(&DEFINE)});
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/installer";
    yard.east.patch(path, &held).await;
    yard.says("east", "Installed", "True", "Installed").await;
    yard.east
        .eventually(&role(&uid), |found| verbs(found, "customresourcedefinitions") == DEFINE)
        .await;
    yard.shutdown().await;
}
