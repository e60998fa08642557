//! What clusters serve becomes what the hub serves, and nothing that is served is taken away.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use agent::target::TargetRef;
use agent::types::{Settings, run};
use engine::SyncedType;
use runtime::Tasks;
use serde_json::{Value, json};
use tokio::sync::watch;
use tracing::info_span;

use crate::yard::{Side, TARGETS, Yard, condition};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const API: &str = "/clusters/infra/apis/apiresource.kcp.io/v1alpha1";

/// A reader of types, as an agent or the operator runs it.
struct Reader {
    types: watch::Receiver<Arc<[SyncedType]>>,
    task: tokio::task::JoinHandle<()>,
}

impl Reader {
    fn start(yard: &Yard, cluster: &Side, name: &str, uid: &str) -> Self {
        let (sender, types) = watch::channel(Vec::new().into());
        let settings = Settings {
            target: TargetRef::new("infra", name, uid),
            hub: yard.hub.whole(),
            cluster: cluster.link(),
            every: Duration::from_secs(60),
            types: sender,
        };
        let task = Tasks::new().spawn(info_span!("reader"), run(settings));
        Self { types, task }
    }

    /// Waits until the types that are synced are as they should be.
    async fn syncs(&mut self, expect: &[&str]) -> Vec<SyncedType> {
        let names = |types: &Arc<[SyncedType]>| -> BTreeSet<String> {
            types.iter().map(|one| one.resource.to_string()).collect()
        };
        let expect: BTreeSet<String> = expect.iter().map(|name| (*name).to_owned()).collect();
        let done = self.types.wait_for(|types| names(types) == expect);
        if let Ok(types) = tokio::time::timeout(Duration::from_secs(60), done).await {
            return types.unwrap().to_vec();
        }
        panic!("synced are {:?}", names(&self.types.borrow()));
    }
}

/// A definition of Things whose `spec` has these fields.
fn things(fields: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Namespaced",
            "names": {
                "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList",
                "shortNames": ["th"],
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": fields},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

fn text() -> Value {
    json!({"type": "string"})
}

/// What is accepted of the types of a target, by resource.
fn states(target: &Value) -> Vec<(&str, &str)> {
    let all = target["status"]["syncedResources"].as_array().into_iter().flatten();
    all.map(|one| (one["resource"].as_str().unwrap(), one["state"].as_str().unwrap())).collect()
}

fn target(name: &str) -> String {
    format!("/clusters/infra{TARGETS}/{name}")
}

fn is(object: &Value, kind: &str, status: &str) -> bool {
    condition(object, kind)["status"] == status
}

#[tokio::test]
async fn types_of_a_cluster_are_served_by_the_hub() {
    let yard = Yard::new().await;
    let uid = yard.target("east", &json!({"mode": "None"})).await;
    let mut reader = Reader::start(&yard, &yard.east, "east", &uid);
    let types =
        reader.syncs(&["configmaps", "deployments.apps", "secrets", "serviceaccounts"]).await;
    let deployments = types.iter().find(|one| &*one.kind == "Deployment").unwrap();
    assert!(deployments.upstream_status && deployments.downstream_status);
    yard.says("east", "TypesImported", "True", "Imported").await;
    yard.says("east", "TypesComplete", "True", "Complete").await;
    // What every hub has is compared, and not published.
    let secrets = yard.hub.get(&format!("{API}/negotiatedapiresources/secrets.v1.core")).await;
    assert_eq!(condition(&secrets, "Enforced")["reason"], "BuiltIn", "{secrets:#}");
    assert_eq!(secrets["status"]["compatible"], json!(["east"]));
    assert!(yard.hub.get(&format!("/clusters/infra{CRDS}/secrets.core")).await.is_null());

    // A definition that is added is usable at once.
    yard.east.post(CRDS, &things(&json!({"a": text()}))).await;
    yard.hub
        .eventually(&format!("{API}/negotiatedapiresources/things.v1.x.io"), |found| {
            is(found, "Published", "True") && found["status"]["compatible"] == json!(["east"])
        })
        .await;
    let path = "/clusters/infra/apis/x.io/v1/namespaces/default/things";
    let thing = json!({"metadata": {"name": "one"}, "spec": {"a": "x", "b": "y"}});
    let made = yard.hub.post(path, &thing).await;
    assert_eq!(made["spec"], json!({"a": "x"}), "fields are those of the cluster's type");
    let all = ["configmaps", "deployments.apps", "secrets", "serviceaccounts", "things.x.io"];
    reader.syncs(&all).await;

    // It grows there, and here.
    let grown = things(&json!({"a": text(), "b": text()}));
    let change = json!({"spec": grown["spec"]});
    yard.east.patch(&format!("{CRDS}/things.x.io"), &change).await;
    let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    yard.hub
        .eventually(&format!("/clusters/infra{CRDS}/things.x.io"), |found| {
            found.pointer(fields).is_some_and(|fields| fields.get("b").is_some())
        })
        .await;

    // It vanishes there: the hub keeps the type and its objects, and says so.
    yard.east.delete(&format!("{CRDS}/things.x.io")).await;
    let import = format!("{API}/apiresourceimports/things.v1.x.io--east");
    yard.hub.eventually(&import, |found| found["spec"]["vanishedSince"].is_string()).await;
    reader.syncs(&["configmaps", "deployments.apps", "secrets", "serviceaccounts"]).await;
    assert_eq!(yard.hub.get(&format!("{path}/one")).await["spec"]["a"], "x");

    // The reader stops, and then the target goes: what is served stays.
    reader.task.abort();
    yard.hub.delete(&target("east")).await;
    yard.hub.eventually(&import, Value::is_null).await;
    let negotiated = format!("{API}/negotiatedapiresources/deployments.v1.apps");
    yard.hub.eventually(&negotiated, |found| found["status"].get("compatible").is_none()).await;
    assert!(is(&yard.hub.get(&negotiated).await, "Published", "True"));
    assert_eq!(yard.hub.get(&format!("{path}/one")).await["spec"]["a"], "x");
    yard.shutdown().await;
}

#[tokio::test]
async fn clusters_that_differ_are_told_field_by_field() {
    let yard = Yard::new().await;
    let west = Side::start().await;
    let spec = json!({"mode": "None", "resources": ["things.x.io"]});
    yard.east.post(CRDS, &things(&json!({"a": text(), "size": {"type": "integer"}}))).await;
    west.post(CRDS, &things(&json!({"a": text(), "size": text()}))).await;
    let (east_uid, west_uid) = (yard.target("east", &spec).await, yard.target("west", &spec).await);
    let mut east = Reader::start(&yard, &yard.east, "east", &east_uid);
    east.syncs(&["things.x.io"]).await;
    let reader = Reader::start(&yard, &west, "west", &west_uid);
    let found = yard
        .hub
        .eventually(&target("west"), |found| states(found) == [("things", "Incompatible")])
        .await;
    let message = found["status"]["syncedResources"][0]["message"].as_str().unwrap();
    assert!(message.contains(".spec.size"), "{message}");
    let import = yard.hub.get(&format!("{API}/apiresourceimports/things.v1.x.io--west")).await;
    let difference = &import["status"]["differences"][0];
    assert_eq!(difference["path"], ".spec.size");
    assert_eq!(difference["what"], "type");
    assert_eq!(
        difference["said"],
        json!([
            {"value": "integer", "targets": ["hub"]}, {"value": "string", "targets": ["west"]},
        ])
    );
    // The first one goes on; nothing is sent to the other.
    assert_eq!(east.syncs(&["things.x.io"]).await.len(), 1);
    assert!(reader.types.borrow().is_empty());

    // A person lets the type change, which would hurt an object.
    let path = "/clusters/infra/apis/x.io/v1/namespaces/default/things";
    yard.hub.post(path, &json!({"metadata": {"name": "one"}, "spec": {"a": "x", "size": 1}})).await;
    let one_field = json!({"spec": things(&json!({"a": text()}))["spec"]});
    yard.east.patch(&format!("{CRDS}/things.x.io"), &one_field).await;
    west.patch(&format!("{CRDS}/things.x.io"), &one_field).await;
    let negotiated = format!("{API}/negotiatedapiresources/things.v1.x.io");
    let both = json!(["east", "west"]);
    yard.hub.eventually(&negotiated, |found| found["status"]["incompatible"] == both).await;
    yard.hub.patch(&negotiated, &json!({"spec": {"strategy": "UpdatePublished"}})).await;
    let held = yard.hub.eventually(&negotiated, |found| is(found, "HeldBack", "True")).await;
    let hurt = &held["status"]["hurt"][0];
    assert_eq!((&hurt["name"], &hurt["why"]), (&json!("one"), &json!("spec.size would be lost")));
    // Once it wouldn't, it changes.
    yard.hub.patch(&format!("{path}/one"), &json!({"spec": {"size": null}})).await;
    yard.hub.patch(&negotiated, &json!({"spec": {"publish": false}})).await;
    yard.hub
        .eventually(&negotiated, |found| {
            is(found, "HeldBack", "False") && found["status"]["compatible"] == both
        })
        .await;
    let object = yard.hub.get(&format!("{path}/one")).await;
    assert_eq!(object["spec"], json!({"a": "x"}));
    reader.task.abort();
    east.task.abort();
    west.shutdown().await;
    yard.shutdown().await;
}

#[tokio::test]
async fn a_definition_made_by_hand_wins() {
    let yard = Yard::new().await;
    yard.hub
        .post(
            "/clusters/infra/api/v1/namespaces/default/configmaps",
            &json!({"metadata": {"name": "first"}}),
        )
        .await;
    let hand_made = things(&json!({"a": text(), "mine": text()}));
    yard.hub.post(&format!("/clusters/infra{CRDS}"), &hand_made).await;
    yard.east.post(CRDS, &things(&json!({"a": text()}))).await;
    let spec = json!({"mode": "None", "resources": ["things.x.io"]});
    let uid = yard.target("east", &spec).await;
    let mut reader = Reader::start(&yard, &yard.east, "east", &uid);
    let found = yard
        .hub
        .eventually(&target("east"), |found| states(found) == [("things", "Incompatible")])
        .await;
    assert!(
        found["status"]["syncedResources"][0]["message"].as_str().unwrap().contains(".spec.mine")
    );
    let negotiated = format!("{API}/negotiatedapiresources/things.v1.x.io");
    let object = yard.hub.get(&negotiated).await;
    assert_eq!(condition(&object, "Enforced")["reason"], "HandMade");
    let crd = format!("/clusters/infra{CRDS}/things.x.io");
    assert_eq!(
        yard.hub.get(&crd).await["spec"]["versions"][0]["schema"],
        hand_made["spec"]["versions"][0]["schema"]
    );
    // It goes by hand, and what clusters serve takes its place.
    yard.hub.delete(&crd).await;
    reader.syncs(&["things.x.io"]).await;
    let object = yard.hub.get(&negotiated).await;
    assert_eq!(condition(&object, "Enforced")["status"], "False");
    reader.task.abort();
    yard.shutdown().await;
}

#[tokio::test]
async fn logical_clusters_that_a_target_serves_have_its_types() {
    let yard = Yard::new().await;
    for cluster in ["app", "other"] {
        let path = format!("/clusters/{cluster}/api/v1/namespaces/default/configmaps");
        yard.hub.post(&path, &json!({"metadata": {"name": "first"}})).await;
    }
    yard.east.post(CRDS, &things(&json!({"a": text()}))).await;
    let spec = json!({
        "mode": "None", "resources": ["things.x.io"], "namespaceMapping": "Hashed",
        "allowedClusters": {"names": ["app"]},
    });
    let uid = yard.target("east", &spec).await;
    let mut reader = Reader::start(&yard, &yard.east, "east", &uid);
    reader.syncs(&["things.x.io"]).await;
    let negotiated =
        "/clusters/app/apis/apiresource.kcp.io/v1alpha1/negotiatedapiresources/things.v1.x.io";
    yard.hub
        .eventually(negotiated, |found| {
            is(found, "Published", "True") && found["status"]["compatible"] == json!(["infra.east"])
        })
        .await;
    let path = "/clusters/app/apis/x.io/v1/namespaces/default/things";
    yard.hub.post(path, &json!({"metadata": {"name": "one"}, "spec": {"a": "x"}})).await;
    let elsewhere = "/clusters/other/apis/x.io/v1/things";
    assert!(yard.hub.get(elsewhere).await.is_null(), "nobody serves it there");
    reader.task.abort();
    yard.shutdown().await;
}
