//! Documents: what kubectl looks for, and that every reference leads somewhere.

mod custom;
mod real;

use std::collections::BTreeSet;

use super::*;

fn document(group: &str, version: &str) -> Value {
    let types = Types::builtin();
    let sources: Vec<Source<'_>> =
        types.resources().iter().map(|def| Source { def, crd: None }).collect();
    v3(&GroupVersion::new(group, version), &sources, &types)
}

fn all() -> Vec<(String, Value)> {
    let types = Types::builtin();
    let versions: BTreeSet<(String, String)> = types
        .resources()
        .iter()
        .flat_map(|r| r.versions.iter().map(|v| (r.group.to_string(), v.name.to_string())))
        .collect();
    versions.into_iter().map(|(g, v)| (format!("{g}/{v}"), document(&g, &v))).collect()
}

#[test]
fn every_reference_leads_to_a_described_schema() {
    fn walk(value: &Value, schemas: &Value, of: &str) {
        match value {
            Value::Object(object) => {
                if let Some(target) = object.get("$ref").and_then(Value::as_str) {
                    let name = target.strip_prefix("#/components/schemas/").unwrap();
                    assert!(!name.is_empty(), "{of}");
                    assert!(schemas.get(name).is_some(), "{of}: {name}");
                }
                object.values().for_each(|v| walk(v, schemas, of));
            }
            Value::Array(items) => items.iter().for_each(|v| walk(v, schemas, of)),
            _ => {}
        }
    }
    for (of, document) in all() {
        walk(&document, &document["components"]["schemas"], &of);
    }
}

#[test]
fn every_type_and_field_has_a_description() {
    let mut missing = BTreeSet::new();
    for (_, document) in all() {
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            if schema.get("description").is_none() && !name.ends_with("List") {
                missing.insert(name.clone());
            }
            for (field, property) in schema["properties"].as_object().into_iter().flatten() {
                if property.get("description").is_none() {
                    missing.insert(format!("{name} {field}"));
                }
            }
        }
    }
    assert_eq!(missing, BTreeSet::new());
}

#[test]
fn texts_that_clients_look_for() {
    let document = document("", "v1");
    let schemas = &document["components"]["schemas"];
    let config_map = &schemas["io.k8s.api.core.v1.ConfigMap"]["properties"];
    let meta = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"];
    let begins = |value: &Value, text: &str| {
        assert!(value["description"].as_str().unwrap().starts_with(text), "{value}");
    };
    begins(&config_map["apiVersion"], "APIVersion defines");
    begins(&config_map["metadata"], "Standard object's metadata");
    begins(&meta["creationTimestamp"], "CreationTimestamp is a timestamp");
}

#[test]
fn explain_finds_the_kind() {
    let document = document("", "v1");
    let get = &document["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["get"];
    let gvk = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    assert_eq!(get["x-kubernetes-group-version-kind"], gvk);
    assert_eq!(get["x-kubernetes-action"], "get");
    assert_eq!(get["operationId"], "readCoreV1NamespacedConfigMap");
    let schema = &document["components"]["schemas"]["io.k8s.api.core.v1.ConfigMap"];
    assert_eq!(schema["x-kubernetes-group-version-kind"], json!([gvk]));
    let metadata =
        json!([{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]);
    assert_eq!(schema["properties"]["metadata"]["allOf"], metadata);
}

#[test]
fn patch_tells_its_formats_and_field_validation() {
    let document = document("", "v1");
    let patch = &document["paths"]["/api/v1/namespaces/{name}"]["patch"];
    let names: Vec<&str> =
        patch["parameters"].as_array().unwrap().iter().filter_map(|p| p["name"].as_str()).collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    let content: Vec<&String> =
        patch["requestBody"]["content"].as_object().unwrap().keys().collect();
    assert_eq!(
        content,
        [
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json"
        ]
    );
}

#[test]
fn markers_of_lists() {
    let document = document("", "v1");
    let ports =
        &document["components"]["schemas"]["io.k8s.api.core.v1.ServiceSpec"]["properties"]["ports"];
    assert_eq!(ports["x-kubernetes-patch-merge-key"], "port");
    assert_eq!(ports["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(ports["x-kubernetes-list-type"], "map");
    assert_eq!(ports["x-kubernetes-list-map-keys"], json!(["port", "protocol"]));
    assert_eq!(ports["items"]["default"], json!({}));
}

#[test]
fn reviews_have_a_path_for_creation_only() {
    let document = document("authorization.k8s.io", "v1");
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    let root = "/apis/authorization.k8s.io/v1/";
    let of = |plural: &str| format!("{root}{plural}");
    let expected = [
        root.to_owned(),
        of("namespaces/{namespace}/localsubjectaccessreviews"),
        of("selfsubjectaccessreviews"),
        of("selfsubjectrulesreviews"),
        of("subjectaccessreviews"),
    ];
    assert_eq!(paths, expected.iter().collect::<Vec<_>>());
}
