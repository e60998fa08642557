//! Aggregated discovery: everything in one document (`apidiscovery.k8s.io/v2`).

use std::sync::Arc;

use schema::ResourceDef;
use schema::resource::{Subresource, Verb};
use serde_json::{Map, Value, json};

use super::{Document, Documents};

const MEDIA_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The core group, or all others.
pub(super) fn root(documents: &Documents, core: bool) -> Document {
    let groups = documents.groups.iter().filter(|group| group.name.is_empty() == core);
    let items: Vec<Value> = groups
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|version| {
                    let resources = documents.of_version(&group.name, version);
                    let resources: Vec<Value> =
                        resources.iter().map(|resource| of_resource(resource, version)).collect();
                    json!({"version": version, "freshness": "Current", "resources": resources})
                })
                .collect();
            let metadata = if core { json!({}) } else { json!({"name": group.name}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let document = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    });
    Document::tagged(&document, MEDIA_TYPE)
}

fn of_resource(resource: &ResourceDef, version: &str) -> Value {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    set("resource", json!(resource.plural));
    set("responseKind", kind(&resource.group, version, &resource.kind));
    set("scope", json!(if resource.namespaced { "Namespaced" } else { "Cluster" }));
    set("singularResource", json!(resource.singular));
    set("verbs", verbs(&resource.verbs));
    for (name, texts) in
        [("shortNames", &resource.short_names), ("categories", &resource.categories)]
    {
        if !texts.is_empty() {
            set(name, json!(texts));
        }
    }
    let subresources: Vec<Value> =
        resource.subresources.iter().map(|part| of_subresource(part, resource, version)).collect();
    if !subresources.is_empty() {
        set("subresources", subresources.into());
    }
    Value::Object(fields)
}

fn of_subresource(part: &Subresource, resource: &ResourceDef, version: &str) -> Value {
    let kind = match &part.kind {
        Some([group, version, name]) => kind(group, version, name),
        None => kind(&resource.group, version, &resource.kind),
    };
    json!({"subresource": part.name, "responseKind": kind, "verbs": verbs(&part.verbs)})
}

fn kind(group: &Arc<str>, version: &str, kind: &Arc<str>) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

/// Names of verbs, sorted.
pub(super) fn verbs(verbs: &[Verb]) -> Value {
    let mut names: Vec<&str> = verbs.iter().map(|verb| verb.as_str()).collect();
    names.sort_unstable();
    json!(names)
}
