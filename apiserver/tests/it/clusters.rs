//! Logical clusters: how they begin, what each has, that they don't see each other, how they end.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};

use crate::client::{Ask, Hub, Who};
use crate::deeds::{change, create, eventually, gone};

const CLUSTERS: &str = "/clusters/root/apis/core.kcp.io/v1alpha1/logicalclusters";

fn maps(cluster: &str, namespace: &str) -> String {
    format!("/clusters/{cluster}/api/v1/namespaces/{namespace}/configmaps")
}

async fn delete(hub: &Hub, path: &str) -> Value {
    let answer = hub.admin(Ask::new(Method::DELETE, path)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn names(list: &Value) -> BTreeSet<&str> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_first_write_makes_one_with_what_every_cluster_has() {
    let hub = Hub::start().await;
    assert_eq!(hub.get("/clusters/one/apis").await.status, 200);
    hub.get(&maps("one", "default")).await.fails(404, "NotFound");
    let made = create(&hub, &maps("one", "default"), json!({"metadata": {"name": "a"}})).await;
    let cluster = hub.get(&format!("{CLUSTERS}/one")).await.json();
    assert_eq!(cluster["status"]["phase"], "Ready");
    let version = &made["metadata"]["resourceVersion"];
    assert_eq!(&cluster["metadata"]["resourceVersion"], version, "one commit");
    let namespaces = hub.get("/clusters/one/api/v1/namespaces").await.json();
    let expected = ["default", "kube-node-lease", "kube-public", "kube-system"];
    assert_eq!(names(&namespaces), BTreeSet::from(expected));
    for item in namespaces["items"].as_array().unwrap() {
        assert_eq!(&item["metadata"]["resourceVersion"], version);
        assert_eq!(item["status"]["phase"], "Active");
    }
    let listed = hub.get("/clusters/one/api/v1/namespaces/kube-system/configmaps").await.json();
    assert_eq!(names(&listed), BTreeSet::from(["kube-root-ca.crt"]));
    let accounts = hub.get("/clusters/one/api/v1/serviceaccounts").await.json();
    assert_eq!(accounts["items"].as_array().unwrap().len(), 4);
    let service = "/clusters/one/api/v1/namespaces/default/services/kubernetes";
    assert_eq!(hub.get(service).await.json()["spec"]["ports"][0]["name"], "https");
    // Another one has other identities.
    create(&hub, &maps("two", "default"), json!({"metadata": {"name": "b"}})).await;
    let uid = |list: &Value| list["items"][0]["metadata"]["uid"].as_str().unwrap().to_owned();
    let others = hub.get("/clusters/two/api/v1/namespaces").await.json();
    assert_ne!(uid(&others), uid(&namespaces));
    assert_eq!(uid(&hub.get("/clusters/one/api/v1/namespaces").await.json()), uid(&namespaces));
    hub.get(&format!("{}/a", maps("two", "default"))).await.fails(404, "NotFound");
    hub.shutdown().await;
}

#[tokio::test]
async fn names_and_places_that_are_refused() {
    let hub = Hub::start().await;
    for name in ["Upper", "a_b", "-a", "system:mine"] {
        let body = json!({"metadata": {"name": name}});
        let answer = hub.admin(Ask::new(Method::POST, CLUSTERS).json(&body)).await;
        answer.fails(422, "Invalid");
    }
    let ask = Ask::new(Method::POST, &maps("system:mine", "default"));
    let answer = hub.admin(ask.json(&json!({"metadata": {"name": "a"}}))).await;
    assert!(matches!(answer.status.as_u16(), 403 | 404), "{answer:?}");
    let nested = hub.get("/clusters/a/clusters/b/api/v1/namespaces").await;
    assert_eq!((nested.status.as_u16(), nested.text().trim()), (404, "404 page not found"));
    for root in ["root"] {
        let path = format!("{CLUSTERS}/{root}");
        hub.admin(Ask::new(Method::DELETE, &path)).await.fails(403, "Forbidden");
    }
    let elsewhere = hub.get("/clusters/one/apis/core.kcp.io/v1alpha1/logicalclusters").await;
    assert_eq!(elsewhere.status, 404);
    let ask = Ask::new(Method::POST, "/clusters/*/api/v1/namespaces/default/configmaps");
    let answer = hub.admin(ask.json(&json!({"metadata": {"name": "a"}}))).await;
    answer.fails(405, "MethodNotAllowed");
    hub.shutdown().await;
}

#[tokio::test]
async fn a_default_object_changes_and_comes_back() {
    let hub = Hub::start().await;
    create(&hub, &maps("one", "default"), json!({"metadata": {"name": "a"}})).await;
    let path = format!("{}/kube-root-ca.crt", maps("one", "kube-public"));
    let first = hub.get(&path).await.json();
    let changed = change(&hub, &path, json!({"metadata": {"labels": {"x": "y"}}})).await;
    assert_eq!(changed["metadata"]["uid"], first["metadata"]["uid"], "it is the same object");
    assert_ne!(changed["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    delete(&hub, &path).await;
    let again = eventually(&hub, &path, |status, _| status == 200).await;
    assert_ne!(again["metadata"]["uid"], first["metadata"]["uid"]);
    assert_eq!(again["data"], first["data"]);
    assert_eq!(again["metadata"]["labels"], Value::Null);
    hub.shutdown().await;
}

#[tokio::test]
async fn what_is_in_a_default_namespace_stays_when_that_is_changed() {
    let hub = Hub::start().await;
    create(&hub, &maps("one", "default"), json!({"metadata": {"name": "a"}})).await;
    let path = format!("{}/kube-root-ca.crt", maps("one", "default"));
    let first = hub.get(&path).await.json();
    let changed = change(
        &hub,
        "/clusters/one/api/v1/namespaces/default",
        json!({"metadata": {"labels": {"x": "y"}}}),
    )
    .await;
    assert_eq!(changed["metadata"]["labels"]["x"], "y");
    assert_eq!(hub.get(&path).await.json(), first);
    hub.shutdown().await;
}

#[tokio::test]
async fn wildcard_reads_show_all_and_name_the_cluster() {
    let hub = Hub::start().await;
    let first = create(&hub, &maps("one", "default"), json!({"metadata": {"name": "a"}})).await;
    create(&hub, &maps("two", "default"), json!({"metadata": {"name": "a"}})).await;
    let listed = hub.get("/clusters/*/api/v1/configmaps").await.json();
    let of = |item: &Value| item["metadata"]["annotations"]["kcp.io/cluster"].clone();
    let clusters = listed["items"].as_array().unwrap().iter().map(of).collect::<Vec<_>>();
    assert_eq!(clusters, ["one", "two"], "only what is stored");
    let namespaces = hub.get("/clusters/*/api/v1/namespaces").await.json();
    assert_eq!(
        namespaces["items"].as_array().unwrap().len(),
        16,
        "of root, system:crds, one and two"
    );
    // The mark is never stored, also when a client sends it back.
    let mut item = listed["items"][0].clone();
    item["data"] = json!({"k": "v"});
    let path = format!("{}/a", maps("one", "default"));
    let updated = hub.admin(Ask::new(Method::PUT, &path).json(&item)).await.json();
    assert_eq!(updated["metadata"]["annotations"], Value::Null, "{updated}");
    let version = first["metadata"]["resourceVersion"].as_str().unwrap();
    let query = format!("watch=true&timeoutSeconds=1&resourceVersion={version}");
    let events = hub.get(&format!("/clusters/*/api/v1/namespaces?{query}")).await;
    let events = events.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let begun = events.filter(|event| of(&event["object"]) == "two").collect::<Vec<_>>();
    assert_eq!(begun.len(), 4, "a new cluster begins with its namespaces: {begun:?}");
    hub.shutdown().await;
}

#[tokio::test]
async fn a_namespace_goes_with_its_content_and_not_before_it() {
    let hub = Hub::start().await;
    let namespace = json!({"metadata": {"name": "n"}});
    create(&hub, "/clusters/one/api/v1/namespaces", namespace.clone()).await;
    create(&hub, &maps("one", "n"), json!({"metadata": {"name": "plain"}})).await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    create(&hub, &maps("one", "n"), held).await;
    create(&hub, &maps("two", "default"), json!({"metadata": {"name": "stranger"}})).await;
    let going = delete(&hub, "/clusters/one/api/v1/namespaces/n").await;
    assert_eq!(going["status"]["phase"], "Terminating");
    let late = hub.admin(Ask::new(Method::POST, &maps("one", "n")).json(&namespace)).await;
    assert!(late.fails(403, "Forbidden").contains("because it is being terminated"), "{late:?}");
    assert_eq!(late.json()["details"]["causes"][0]["reason"], "NamespaceTerminating");
    let path = "/clusters/one/api/v1/namespaces/n";
    let remaining = |_: u16, value: &Value| {
        value["status"]["conditions"].as_array().is_some_and(|conditions| {
            conditions.iter().any(|condition| {
                condition["type"] == "NamespaceFinalizersRemaining" && condition["status"] == "True"
            })
        })
    };
    let told = eventually(&hub, path, remaining).await;
    let told = told["status"]["conditions"].as_array().unwrap();
    let told = told.iter().map(|condition| condition["message"].as_str().unwrap());
    let expected = [
        "All resources successfully discovered",
        "All legacy kube types successfully parsed",
        "All content successfully deleted, may be waiting on finalization",
        "Some resources are remaining: configmaps. has 1 resource instances",
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource \
         instances",
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let listed = hub.get(&maps("one", "n")).await.json();
    assert_eq!(names(&listed), BTreeSet::from(["held"]));
    change(&hub, &format!("{}/held", maps("one", "n")), json!({"metadata": {"finalizers": null}}))
        .await;
    gone(&hub, path).await;
    assert_eq!(hub.get(&format!("{}/stranger", maps("two", "default"))).await.status, 200);
    hub.shutdown().await;
}

#[tokio::test]
async fn deleting_a_logical_cluster_deletes_it_alone_and_waits_for_finalizers() {
    let hub = Hub::start().await;
    for cluster in ["one", "two"] {
        create(&hub, &maps(cluster, "default"), json!({"metadata": {"name": "a"}})).await;
        let path = format!("/clusters/{cluster}/api/v1/namespaces");
        create(&hub, &path, json!({"metadata": {"name": "n"}})).await;
        let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
        create(&hub, &maps(cluster, "n"), held).await;
    }
    let before = hub.get(&maps("two", "n")).await.json()["items"].clone();
    let path = format!("{CLUSTERS}/one");
    delete(&hub, &path).await;
    let refused = Ask::new(Method::POST, &maps("one", "default"));
    let refused = hub.admin(refused.json(&json!({"metadata": {"name": "b"}}))).await;
    refused.fails(403, "Forbidden");
    let named = |_: u16, value: &Value| {
        let message = value["status"]["conditions"][0]["message"].as_str().unwrap_or_default();
        message.contains("configmaps has 1 resource instances")
            && message.contains("example.com/hold in 1 resource instances")
    };
    eventually(&hub, &path, named).await;
    change(&hub, &format!("{}/held", maps("one", "n")), json!({"metadata": {"finalizers": null}}))
        .await;
    gone(&hub, &path).await;
    hub.get(&maps("one", "default")).await.fails(404, "NotFound");
    assert_eq!(hub.get(&maps("two", "n")).await.json()["items"], before, "nothing of two changed");
    // The same name again is another logical cluster, and an empty one.
    create(&hub, &maps("one", "default"), json!({"metadata": {"name": "new"}})).await;
    let listed = hub.get("/clusters/one/api/v1/configmaps").await.json();
    assert!(!names(&listed).contains("a") && names(&listed).contains("new"));
    hub.shutdown().await;
}

#[tokio::test]
async fn force_lets_a_logical_cluster_go_although_it_is_held() {
    let hub = Hub::start().await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    create(&hub, &maps("one", "default"), held).await;
    let path = format!("{CLUSTERS}/one");
    delete(&hub, &path).await;
    change(&hub, &path, json!({"metadata": {"annotations": {"core.kcp.io/force-delete": "true"}}}))
        .await;
    gone(&hub, &path).await;
    assert_eq!(hub.ask(Who::Admin, Ask::get(&maps("one", "default"))).await.status, 404);
    hub.shutdown().await;
}

#[tokio::test]
async fn the_root_ca_is_in_every_namespace_whatever_is_done_to_it() {
    let hub = Hub::start().await;
    create(&hub, &maps("one", "default"), json!({"metadata": {"name": "a"}})).await;
    let path = format!("{}/kube-root-ca.crt", maps("one", "default"));
    let right = hub.get(&path).await.json()["data"].clone();
    assert!(right["ca.crt"].as_str().is_some_and(|ca| ca.contains("BEGIN CERTIFICATE")));
    for round in 0..2 {
        let wrong = json!({"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": ""}});
        let changed = hub.admin(Ask::new(Method::PUT, &path).json(&wrong)).await;
        assert_eq!(changed.status, 200, "{round}: {changed:?}");
        eventually(&hub, &path, |_, map| map["data"] == right).await;
        delete(&hub, &path).await;
        eventually(&hub, &path, |_, map| map["data"] == right).await;
    }
    hub.shutdown().await;
}
