//! Status that controllers write at the hub goes down where a SyncTarget says so.

use agent::manifest::Kind;
use serde_json::{Value, json};

use crate::pod::Pod;
use crate::yard::{TARGETS, Yard, installed_in};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/x.io/v1/namespaces/default/things";

fn at_hub(path: &str) -> String {
    format!("/clusters/infra{path}")
}

fn things() -> Value {
    let text = || json!({"type": "string"});
    let fields = |fields: Value| json!({"type": "object", "properties": fields});
    let schema = json!({"type": "object", "properties": {
        "spec": fields(json!({"a": text()})),
        "status": fields(json!({"address": text(), "phase": text()})),
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.io"},
        "spec": {
            "group": "x.io", "scope": "Namespaced",
            "names": {
                "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList",
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

#[tokio::test]
async fn each_field_goes_its_own_way() {
    let yard = Yard::new().await;
    yard.east.post(CRDS, &things()).await;
    let mut spec = yard.secret("east", yard.east.kubeconfig()).await;
    spec["resources"] = json!(["things.x.io"]);
    spec["statusDown"] = json!([{"resource": "things.x.io", "fields": ["address"]}]);
    let uid = yard.target("east", &spec).await;
    let own = installed_in(&uid);
    let pod = Pod::of_deployment(&yard.east, &own, &yard.hub).await;
    yard.says("east", "Ready", "True", "Ready").await;
    let role = Kind::named("ClusterRole").unwrap().path("", &own);
    let writes = |found: &Value| found["rules"].to_string().contains("things/status");
    yard.east.eventually(&role, |found| writes(found)).await;

    let labels = json!({"workloads.kcp.io/cluster": "east"});
    let object = json!({"metadata": {"name": "one", "labels": labels}, "spec": {"a": "1"}});
    yard.hub.post(&at_hub(THINGS), &object).await;
    let one = format!("{THINGS}/one");
    yard.east.eventually(&one, |found| !found.is_null()).await;
    let (here, there) = (format!("{}/status", at_hub(&one)), format!("{one}/status"));
    yard.hub.patch(&here, &json!({"status": {"address": "a.example"}})).await;
    yard.east.eventually(&one, |found| found["status"]["address"] == "a.example").await;
    yard.east.patch(&there, &json!({"status": {"phase": "Good"}})).await;
    let both = json!({"address": "a.example", "phase": "Good"});
    yard.hub.eventually(&at_hub(&one), |found| found["status"] == both).await;
    let copy = yard.east.get(&one).await;
    assert_eq!(copy["status"], both);
    // What somebody in the cluster makes of the hub's is put back, and never comes up.
    yard.east.patch(&there, &json!({"status": {"address": "b.example"}})).await;
    yard.east.eventually(&one, |found| found["status"]["address"] == "a.example").await;
    assert_eq!(yard.hub.get(&at_hub(&one)).await["status"], both);
    yard.hub.patch(&here, &json!({"status": {"address": null}})).await;
    let rest = json!({"phase": "Good"});
    yard.east.eventually(&one, |found| found["status"] == rest).await;
    yard.hub.patch(&here, &json!({"status": {"address": "c.example"}})).await;
    yard.east.eventually(&one, |found| found["status"]["address"] == "c.example").await;

    // Without the rule the right goes, and all of the status is the cluster's.
    let target = format!("/clusters/infra{TARGETS}/east");
    yard.hub.patch(&target, &json!({"spec": {"statusDown": null}})).await;
    yard.east.eventually(&role, |found| !writes(found)).await;
    let later = json!({"status": {"address": "d.example"}});
    let comes_up = async {
        // The agent reads its SyncTarget now and then.
        loop {
            yard.east.patch(&there, &later).await;
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            if yard.hub.get(&at_hub(&one)).await["status"]["address"] == "d.example" {
                break;
            }
        }
    };
    let patience = std::time::Duration::from_secs(60);
    tokio::time::timeout(patience, comes_up).await.expect("it comes up");
    pod.stop().await;
    yard.shutdown().await;
}

/// What may never go down, and what is no field, is refused where it is said.
#[tokio::test]
async fn rules_are_judged_when_they_are_written() {
    let yard = Yard::new().await;
    let path = format!("/clusters/infra{TARGETS}");
    let refused = async |rule: Value, why: &str| {
        let body = json!({
            "apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
            "metadata": {"name": "east"}, "spec": {"statusDown": [rule]},
        });
        let error = yard.hub.send(http::Method::POST, &path, &body).await.unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    };
    let crds = "customresourcedefinitions.apiextensions.k8s.io";
    refused(json!({"resource": crds}), "status of this type never goes down").await;
    refused(json!({"resource": "synctargets.workload.kcp.io"}), "never goes down").await;
    refused(json!({"resource": "things.x.io", "fields": ["a[0]"]}), "fields").await;
    refused(json!({"resource": "things.x.io", "fields": ["a", "a"]}), "fields").await;
    yard.target("east", &json!({"statusDown": [{"resource": "things.x.io"}]})).await;
    yard.shutdown().await;
}
