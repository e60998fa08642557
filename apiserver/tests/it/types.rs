//! Custom types: served as long as their definition is established, and gone with it.

use http::Method;
use serde_json::{Value, json};

use crate::client::{Ask, Hub};
use crate::deeds::{create, eventually, gone};

pub(crate) const CRDS: &str = "apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) fn definition(versions: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": versions,
        },
    })
}

pub(crate) fn version(name: &str, storage: bool) -> Value {
    let size = json!({"type": "integer", "minimum": 1, "default": 1});
    let spec = json!({"type": "object", "properties": {"size": size}});
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": spec, "status": status},
        }},
    })
}

pub(crate) fn is(condition: &'static str) -> impl Fn(u16, &Value) -> bool {
    move |_, crd| schema::crd::is_condition_true(crd, condition)
}

#[tokio::test]
async fn a_type_lives_and_dies_with_its_definition() {
    let hub = Hub::start().await;
    let crds = format!("/clusters/a/{CRDS}");
    let crd = format!("{crds}/widgets.example.com");
    let widgets = "/clusters/a/apis/example.com/v1/namespaces/default/widgets";
    assert_eq!(hub.get(widgets).await.status, 404);
    for _ in 0..2 {
        let made = create(&hub, &crds, &definition(&json!([version("v1", true)]))).await;
        assert_eq!(made["status"]["storedVersions"], json!(["v1"]), "{made}");
        eventually(&hub, &crd, is("Established")).await;
        // From the moment that it says so, it is served, and in no other logical cluster.
        let listed = hub.get(widgets).await.json();
        assert_eq!((&listed["kind"], &listed["items"]), (&json!("WidgetList"), &json!([])));
        let elsewhere = "/clusters/b/apis/example.com/v1/namespaces/default/widgets";
        assert_eq!(hub.get(elsewhere).await.status, 404);
        let held = json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w", "finalizers": ["example.com/hold"]},
            "spec": {}, "status": {"x": 1},
        });
        let made = create(&hub, widgets, &held).await;
        assert_eq!(made["spec"], json!({"size": 1}), "defaults");
        assert_eq!(made["status"], Value::Null, "a status is written by its own path");
        let bad = json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "bad"},
            "spec": {"size": 0},
        });
        let refused = hub.admin(Ask::new(Method::POST, widgets).json(&bad)).await;
        assert_eq!(refused.status, 422, "{refused:?}");
        let wrong = refused.json()["message"].to_string();
        let why = "spec.size in body should be greater than or equal to 1";
        assert!(wrong.contains(why), "{wrong}");

        let going = hub.admin(Ask::new(Method::DELETE, &crd)).await;
        assert_eq!(going.status, 200);
        let late = hub.admin(Ask::new(Method::POST, widgets).json(&held)).await;
        assert_eq!(late.status, 403, "{late:?}");
        let object = format!("{widgets}/w");
        let marked = |_: u16, widget: &Value| !widget["metadata"]["deletionTimestamp"].is_null();
        eventually(&hub, &object, marked).await;
        assert_eq!(hub.get(&crd).await.status, 200, "held by the object's finalizer");
        let release = json!({"metadata": {"finalizers": null}});
        let patch = Ask::new(Method::PATCH, &object).body(release.to_string());
        let patch = patch.header("content-type", "application/merge-patch+json");
        assert_eq!(hub.admin(patch).await.status, 200);
        gone(&hub, &crd).await;
        assert_eq!(hub.get(widgets).await.status, 404);
    }
    hub.shutdown().await;
}

#[tokio::test]
async fn versions_are_of_one_object() {
    let hub = Hub::start().await;
    let crds = format!("/clusters/a/{CRDS}");
    let both = definition(&json!([version("v1", false), version("v2", true)]));
    create(&hub, &crds, &both).await;
    eventually(&hub, &format!("{crds}/widgets.example.com"), is("Established")).await;
    let at = |version: &str| {
        format!("/clusters/a/apis/example.com/{version}/namespaces/default/widgets")
    };
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"size": 3},
    });
    let first = create(&hub, &at("v1"), &widget).await;
    let second = hub.get(&format!("{}/w", at("v2"))).await.json();
    assert_eq!(first["apiVersion"], "example.com/v1");
    assert_eq!(second["apiVersion"], "example.com/v2");
    assert_eq!(first["metadata"], second["metadata"]);
    let listed = hub.get(&at("v1")).await.json();
    assert_eq!(listed["items"][0]["apiVersion"], "example.com/v1");
    // An update in either version without a change is none.
    let again = hub.admin(Ask::new(Method::PUT, &format!("{}/w", at("v1"))).json(&first)).await;
    assert_eq!(again.json(), first);
    hub.shutdown().await;
}

#[tokio::test]
async fn names_are_taken_once() {
    let hub = Hub::start().await;
    let crds = format!("/clusters/a/{CRDS}");
    create(&hub, &crds, &definition(&json!([version("v1", true)]))).await;
    eventually(&hub, &format!("{crds}/widgets.example.com"), is("Established")).await;
    let mut rival = definition(&json!([version("v1", true)]));
    rival["metadata"]["name"] = json!("gadgets.example.com");
    rival["spec"]["names"] = json!({"plural": "gadgets", "kind": "Widget"});
    create(&hub, &crds, &rival).await;
    let refused = |_: u16, crd: &Value| {
        let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|c| c["type"] == "NamesAccepted" && c["reason"] == "ListKindConflict")
    };
    let path = format!("{crds}/gadgets.example.com");
    eventually(&hub, &path, refused).await;
    let other = hub.admin(Ask::new(Method::DELETE, &format!("{crds}/widgets.example.com"))).await;
    assert_eq!(other.status, 200);
    eventually(&hub, &path, is("Established")).await;
    hub.shutdown().await;
}

#[tokio::test]
async fn shared_types_are_served_everywhere_and_stay_while_used() {
    let hub = Hub::start().await;
    let shared = format!("/clusters/system:crds/{CRDS}");
    create(&hub, &shared, &definition(&json!([version("v1", true)]))).await;
    let crd = format!("{shared}/widgets.example.com");
    eventually(&hub, &crd, is("Established")).await;
    let widgets = |cluster: &str| {
        format!("/clusters/{cluster}/apis/example.com/v1/namespaces/default/widgets")
    };
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"},
    });
    create(&hub, &widgets("a"), &widget).await;
    create(&hub, &widgets("b"), &widget).await;
    let all = hub.get("/clusters/*/apis/example.com/v1/widgets").await.json();
    assert_eq!(all["items"].as_array().unwrap().len(), 2, "{all}");
    // By its name the definition is seen everywhere; a list shows those of the logical cluster.
    assert_eq!(hub.get(&format!("/clusters/a/{CRDS}/widgets.example.com")).await.status, 200);
    let local = hub.get(&format!("/clusters/a/{CRDS}")).await.json();
    assert_eq!(local["items"], json!([]));
    let own = definition(&json!([version("v1", true)]));
    let own = hub.admin(Ask::new(Method::POST, &format!("/clusters/a/{CRDS}")).json(&own)).await;
    assert_eq!(own.status, 409, "{own:?}");
    let refused = hub.admin(Ask::new(Method::DELETE, &crd)).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.json()["message"].to_string().contains("2 objects"), "{refused:?}");
    for cluster in ["a", "b"] {
        let path = format!("{}/w", widgets(cluster));
        assert_eq!(hub.admin(Ask::new(Method::DELETE, &path)).await.status, 200);
    }
    assert_eq!(hub.admin(Ask::new(Method::DELETE, &crd)).await.status, 200);
    gone(&hub, &crd).await;
    hub.shutdown().await;
}
