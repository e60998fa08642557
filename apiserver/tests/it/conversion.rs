//! Custom resources whose versions a webhook converts.

use http::{Method, Response};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::client::{Answer, Ask, Hub};
use crate::deeds::{change, create, eventually, gone};
use crate::hook::Hook;
use crate::types::{CRDS, is};

/// `v1` has `spec.size`, `v2` (which is stored) has `spec.width`.
fn definition(client: &Value) -> Value {
    let version = |name: &str, field: &str, storage: bool| {
        let spec = json!({"type": "object", "properties": {field: {"type": "integer"}}});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": schema},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1", "size", false), version("v2", "width", true)],
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": client, "conversionReviewVersions": ["v1"],
            }},
        },
    })
}

/// Renames the one field, and labels what it has seen.
fn convert(review: &Value) -> Value {
    let wanted = review["request"]["desiredAPIVersion"].clone();
    let objects = review["request"]["objects"].as_array().unwrap().iter().map(|object| {
        let mut object = object.clone();
        let (from, to) =
            if wanted == "example.com/v1" { ("width", "size") } else { ("size", "width") };
        let value = object["spec"].as_object_mut().unwrap().remove(from);
        object["spec"][to] = value.unwrap_or_default();
        object["apiVersion"] = wanted.clone();
        object["metadata"]["labels"] = json!({"converted": "yes"});
        object["metadata"]["generation"] = json!(77);
        object
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {
            "uid": review["request"]["uid"], "result": {"status": "Success"},
            "convertedObjects": objects.collect::<Vec<_>>(),
        },
    })
}

fn widgets(cluster: &str, version: &str) -> String {
    format!("/clusters/{cluster}/apis/example.com/{version}/namespaces/default/widgets")
}

fn widget(version: &str, name: &str, field: &str) -> Value {
    json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Widget",
        "metadata": {"name": name}, "spec": {field: 3},
    })
}

async fn established(hub: &Hub, cluster: &str, client: &Value) {
    create(hub, &format!("/clusters/{cluster}/{CRDS}"), &definition(client)).await;
    let path = format!("/clusters/{cluster}/{CRDS}/widgets.example.com");
    eventually(hub, &path, is("Established")).await;
}

#[tokio::test]
async fn versions_are_converted_by_the_webhook_and_once_each() {
    let hub = Hub::start().await;
    let hook = Hook::start(convert).await;
    let client = json!({"url": hook.url("/convert"), "caBundle": hook.ca()});
    established(&hub, "a", &client).await;

    let made = create(&hub, &widgets("a", "v1"), &widget("v1", "one", "size")).await;
    assert_eq!(made["spec"], json!({"size": 3}), "{made}");
    assert_eq!(made["metadata"]["labels"], json!({"converted": "yes"}));
    assert_eq!(made["metadata"]["generation"], 1, "only labels and annotations are taken");
    assert_eq!(hook.take_seen().len(), 2, "to the stored version and back");
    let stored = hub.get(&format!("{}/one", widgets("a", "v2"))).await.json();
    assert_eq!(stored["spec"], json!({"width": 3}));
    assert_eq!(hook.seen().len(), 0, "the stored version is as it is");

    let path = format!("{}/one", widgets("a", "v1"));
    let first = hub.get(&path).await.json();
    assert_eq!(first["spec"], json!({"size": 3}));
    assert_eq!(first, hub.get(&path).await.json());
    let each = hub.servers();
    assert_eq!(hook.take_seen().len(), each, "what it said is kept with the object");

    for name in ["two", "three", "four"] {
        create(&hub, &widgets("a", "v2"), &widget("v2", name, "width")).await;
    }
    assert_eq!(hook.seen().len(), 0);
    let list = hub.get(&widgets("a", "v1")).await.json();
    let sizes: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|item| item["spec"]["size"].clone()).collect();
    assert_eq!(sizes, [json!(3), json!(3), json!(3), json!(3)]);
    let seen = hook.take_seen();
    assert_eq!(seen.len(), 1, "one question for the list");
    assert_eq!(seen[0]["request"]["objects"].as_array().unwrap().len(), 3, "the known one is not");
    for _ in 1..hub.servers() {
        hub.get(&widgets("a", "v1")).await;
        assert_eq!(hook.take_seen().len(), 1, "each server asks once");
    }
    hub.get(&widgets("a", "v1")).await;
    assert_eq!(hook.seen().len(), 0);

    // An update in the other version, and a patch.
    let mut new = first.clone();
    new["spec"]["size"] = json!(4);
    let put = hub.admin(Ask::new(Method::PUT, &path).json(&new)).await;
    assert_eq!(put.json()["spec"], json!({"size": 4}), "{put:?}");
    let patch = Ask::new(Method::PATCH, &path).body(r#"{"spec":{"size":5}}"#);
    let patched = hub.admin(patch.header("content-type", "application/merge-patch+json")).await;
    assert_eq!(patched.json()["spec"], json!({"size": 5}), "{patched:?}");
    let stored = hub.get(&format!("{}/one", widgets("a", "v2"))).await.json();
    assert_eq!(stored["spec"], json!({"width": 5}));
    hub.shutdown().await;
}

#[tokio::test]
async fn watches_are_converted_in_order() {
    let hub = Hub::start().await;
    let hook = Hook::start(convert).await;
    let client = json!({"url": hook.url("/convert"), "caBundle": hook.ca()});
    established(&hub, "a", &client).await;
    for name in ["a", "b"] {
        create(&hub, &widgets("a", "v2"), &widget("v2", name, "width")).await;
    }
    let path = format!("{}?watch=true&timeoutSeconds=2&resourceVersion=0", widgets("a", "v1"));
    let (one, two, _) = tokio::join!(hub.get(&path), hub.get(&path), async {
        for name in ["c", "d", "e"] {
            create(&hub, &widgets("a", "v2"), &widget("v2", name, "width")).await;
        }
        let path = format!("{}/a", widgets("a", "v2"));
        assert_eq!(hub.admin(Ask::new(Method::DELETE, &path)).await.status, 200);
    });
    for answer in [one, two] {
        let events: Vec<Value> =
            answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let seen = events.iter().map(|event| {
            let object = &event["object"];
            assert_eq!(object["spec"], json!({"size": 3}), "{event}");
            format!("{} {}", event["type"], object["metadata"]["name"]).replace('"', "")
        });
        let expected = ["ADDED a", "ADDED b", "ADDED c", "ADDED d", "ADDED e", "DELETED a"];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
    }
    let asked = hook.seen().iter().map(|review| review["request"]["objects"].clone()).fold(
        std::collections::BTreeMap::<String, usize>::new(),
        |mut counts, objects| {
            for object in objects.as_array().unwrap() {
                let metadata = &object["metadata"];
                let key = format!("{} {}", metadata["name"], metadata["resourceVersion"]);
                *counts.entry(key).or_default() += 1;
            }
            counts
        },
    );
    let later = asked.iter().filter(|(key, _)| !key.starts_with("\"a") && !key.starts_with("\"b"));
    assert!(
        { later }.all(|(_, times)| *times <= hub.servers()),
        "both watches share answers: {asked:?}"
    );
    hub.shutdown().await;
}

#[tokio::test]
async fn each_logical_cluster_asks_its_own() {
    let hub = Hub::start().await;
    let (a, b) = (Hook::start(convert).await, Hook::start(convert).await);
    for (cluster, hook) in [("a", &a), ("b", &b)] {
        let client = json!({"url": hook.url("/convert"), "caBundle": hook.ca()});
        established(&hub, cluster, &client).await;
        create(&hub, &widgets(cluster, "v2"), &widget("v2", cluster, "width")).await;
    }
    let list = hub.get("/clusters/*/apis/example.com/v1/widgets").await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 2, "{list}");
    for (name, hook) in [("a", &a), ("b", &b)] {
        let seen = hook.seen();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0]["request"]["objects"][0]["metadata"]["name"], name);
        assert_eq!(seen[0]["request"]["objects"].as_array().unwrap().len(), 1);
    }
    hub.shutdown().await;
}

/// The message of a failure that has no reason.
#[track_caller]
fn told(answer: &Answer) -> String {
    let status = answer.json();
    assert_eq!((answer.status.as_u16(), &status["reason"]), (500, &Value::Null), "{status}");
    status["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn failures_are_told_without_what_came_back() {
    let hub = Hub::start().await;
    let hook = Hook::start_raw(|_| {
        let mut response = Response::new(Full::from("a secret of the network"));
        *response.status_mut() = http::StatusCode::IM_A_TEAPOT;
        response
    })
    .await;
    let client = json!({"url": hook.url("/convert"), "caBundle": hook.ca()});
    established(&hub, "a", &client).await;
    let service = json!({"service": {"name": "s", "namespace": "n", "path": "/c"}});
    established(&hub, "b", &service).await;
    let untrusted = json!({"url": hook.url("/convert")});
    established(&hub, "c", &untrusted).await;
    let check = async |cluster: &str, expect: &str| {
        let body = widget("v1", "w", "size");
        let refused = hub.admin(Ask::new(Method::POST, &widgets(cluster, "v1")).json(&body)).await;
        let prefix = "conversion webhook for example.com/v1, Kind=Widget failed: ";
        assert_eq!(told(&refused), format!("{prefix}{expect}"));
    };
    check("a", "the server responded with the status code 418 but did not return more information")
        .await;
    check(
        "b",
        "Post \"https://s.n.svc:443/c?timeout=30s\": services can't be reached from a logical \
         cluster, which has no network: give the webhook a url",
    )
    .await;
    let url = hook.url("/convert?timeout=30s");
    let why = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    check("c", &format!("Post \"{url}\": {why}")).await;
    hub.shutdown().await;

    let closed = Hub::start_with(|server| server).await;
    established(&closed, "a", &client).await;
    let body = widget("v1", "w", "size");
    let refused = closed.admin(Ask::new(Method::POST, &widgets("a", "v1")).json(&body)).await;
    let told = told(&refused);
    assert!(told.ends_with("127.0.0.1: the address is not one that this server calls"), "{told}");
    closed.shutdown().await;
}

#[tokio::test]
async fn a_dead_webhook_keeps_no_namespace() {
    let hub = Hub::start().await;
    // Nobody listens there.
    let client = json!({"url": "https://127.0.0.1:1/convert"});
    established(&hub, "one", &client).await;
    let namespaces = "/clusters/one/api/v1/namespaces";
    create(&hub, namespaces, &json!({"metadata": {"name": "n"}})).await;
    let within = |version: &str| widgets("one", version).replace("/default/", "/n/");
    create(&hub, &within("v2"), &widget("v2", "old", "width")).await;
    // What is stored is of a version that is not the stored one any more.
    let mut other = definition(&client);
    for (index, storage) in [true, false].into_iter().enumerate() {
        other["spec"]["versions"][index]["storage"] = json!(storage);
    }
    let patch = json!({"spec": {"versions": other["spec"]["versions"]}});
    change(&hub, &format!("/clusters/one/{CRDS}/widgets.example.com"), patch).await;
    assert_eq!(hub.get(&format!("{}/old", within("v1"))).await.status, 500, "it can't be shown");
    let path = format!("{namespaces}/n");
    assert_eq!(hub.admin(Ask::new(Method::DELETE, &path)).await.status, 200);
    gone(&hub, &path).await;
    hub.shutdown().await;
}
