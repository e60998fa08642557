//! Shapes of the documents, over the built-in resources.

use http::HeaderMap;
use http::header::{ETAG, IF_NONE_MATCH};
use http_body_util::BodyExt;
use schema::Types;
use serde_json::{Value, json};

use super::*;
use crate::http::negotiate::Encoding;

fn documents() -> Arc<Documents> {
    Discovery::default().documents(&Types::builtin().resources().to_vec().into())
}

async fn value(document: &Document) -> Value {
    let response = document.answer(&HeaderMap::new(), Encoding::Json);
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

#[tokio::test]
async fn aggregated_documents_hold_every_resource() {
    let documents = documents();
    let core = value(&documents.root(true, true)).await;
    assert_eq!(core["kind"], "APIGroupDiscoveryList");
    assert_eq!(core["apiVersion"], "apidiscovery.k8s.io/v2");
    assert_eq!(core["items"][0]["metadata"], json!({}));
    let resources = core["items"][0]["versions"][0]["resources"].as_array().unwrap();
    let configmaps = resources.iter().find(|r| r["resource"] == "configmaps").unwrap();
    assert_eq!(
        *configmaps,
        json!({
            "resource": "configmaps", "scope": "Namespaced", "singularResource": "configmap",
            "responseKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "shortNames": ["cm"],
            "verbs": [
                "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"
            ],
        })
    );
    let namespaces = resources.iter().find(|r| r["resource"] == "namespaces").unwrap();
    assert_eq!(namespaces["scope"], "Cluster");
    assert!(namespaces["subresources"].as_array().unwrap().len() >= 2);
    let others = value(&documents.root(false, true)).await;
    let names: Vec<&str> = others["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|g| g["metadata"]["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"coordination.k8s.io") && !names.contains(&""), "{names:?}");
}

#[tokio::test]
async fn legacy_documents_tell_the_same() {
    let documents = documents();
    let core = value(&documents.root(true, false)).await;
    assert_eq!((&core["kind"], &core["versions"]), (&json!("APIVersions"), &json!(["v1"])));
    let groups = value(&documents.root(false, false)).await;
    let leases = groups["groups"].as_array().unwrap();
    let leases = leases.iter().find(|group| group["name"] == "coordination.k8s.io").unwrap();
    let preferred = json!({"groupVersion": "coordination.k8s.io/v1", "version": "v1"});
    assert_eq!(leases["preferredVersion"], preferred);
    let one = value(&documents.group("coordination.k8s.io").unwrap()).await;
    assert_eq!((&one["kind"], &one["preferredVersion"]), (&json!("APIGroup"), &preferred));
    let list = value(&documents.version("", "v1").unwrap()).await;
    assert_eq!((&list["kind"], &list["groupVersion"]), (&json!("APIResourceList"), &json!("v1")));
    let names: Vec<&str> =
        list["resources"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"namespaces/status") && names.contains(&"secrets"));
    let secrets = list["resources"].as_array().unwrap().iter().find(|r| r["name"] == "secrets");
    // The first 8 bytes of the SHA-256 of "/v1/Secret".
    let expected = machinery::hash::storage_version_hash("", "v1", "Secret");
    assert_eq!(secrets.unwrap()["storageVersionHash"], expected);
    assert!(documents.group("nothing").is_none() && documents.version("", "v2").is_none());
}

#[test]
fn equal_sets_share_documents_and_few_are_held() {
    let discovery = Discovery::default();
    let all = Types::builtin().resources().to_vec();
    let first = discovery.documents(&all.clone().into());
    assert!(Arc::ptr_eq(&first, &discovery.documents(&all.clone().into())));
    assert!(!Arc::ptr_eq(&first, &discovery.documents(&all[1..].to_vec().into())));
    for _ in 0..HELD * 2 {
        let resource = Types::builtin().resources()[0].clone();
        drop(discovery.documents(&vec![resource].into()));
    }
    assert!(discovery.held.lock().len() <= HELD);
}

#[test]
fn an_unchanged_document_is_not_sent_again() {
    let document = documents().root(false, true);
    let first = document.answer(&HeaderMap::new(), Encoding::Json);
    let mut headers = HeaderMap::new();
    headers.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
    let again = document.answer(&headers, Encoding::Json);
    assert_eq!((again.status().as_u16(), again.body().length()), (304, Some(0)));
    assert_eq!(again.headers()[ETAG], first.headers()[ETAG]);
    headers.insert(IF_NONE_MATCH, "\"other\"".parse().unwrap());
    assert_eq!(document.answer(&headers, Encoding::Json).status(), 200);
}
