//! Discovery in parts: groups, a group, the resources of a version.

use machinery::GroupVersion;
use machinery::hash::storage_version_hash;
use schema::ResourceDef;
use schema::resource::{Flag, Subresource};
use serde_json::{Map, Value, json};

use super::aggregated::verbs;
use super::{Document, Documents, Group};

/// `/api`: the versions of the core group; `/apis`: all other groups.
pub(super) fn root(documents: &Documents, core: bool) -> Document {
    let groups = documents.groups.iter().filter(|group| group.name.is_empty() == core);
    if core {
        let versions: Vec<_> = groups.flat_map(|group| group.versions.iter()).collect();
        return Document::plain(&json!({
            "kind": "APIVersions",
            "versions": versions,
            // Clients reach the server where they have reached it.
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
        }));
    }
    let groups: Vec<Value> = groups.map(|group| Value::Object(describe(group))).collect();
    Document::plain(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
}

/// `/apis/G`.
pub(super) fn group(group: &Group) -> Document {
    let mut fields = describe(group);
    fields.insert("kind".into(), "APIGroup".into());
    fields.insert("apiVersion".into(), "v1".into());
    Document::plain(&Value::Object(fields))
}

/// `/api/V` and `/apis/G/V`.
pub(super) fn version(documents: &Documents, group: &str, version: &str) -> Document {
    let mut resources = Vec::new();
    for resource in documents.of_version(group, version) {
        resources.push(of_resource(resource));
        for part in &resource.subresources {
            resources.push(of_subresource(part, resource));
        }
    }
    Document::plain(&json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": GroupVersion::new(group, version).to_string(),
        "resources": resources,
    }))
}

fn describe(group: &Group) -> Map<String, Value> {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            let whole = GroupVersion { group: group.name.clone(), version: version.clone() };
            json!({"groupVersion": whole.to_string(), "version": version})
        })
        .collect();
    let mut fields = Map::new();
    fields.insert("name".into(), json!(group.name));
    if let Some(preferred) = versions.first() {
        fields.insert("preferredVersion".into(), preferred.clone());
    }
    fields.insert("versions".into(), versions.into());
    fields
}

fn of_resource(resource: &ResourceDef) -> Value {
    let mut fields = Map::new();
    fields.insert("name".into(), json!(resource.plural));
    fields.insert("singularName".into(), json!(resource.singular));
    fields.insert("namespaced".into(), json!(resource.namespaced));
    fields.insert("kind".into(), json!(resource.kind));
    fields.insert("verbs".into(), verbs(&resource.verbs));
    for (name, texts) in
        [("shortNames", &resource.short_names), ("categories", &resource.categories)]
    {
        if !texts.is_empty() {
            fields.insert(name.into(), json!(texts));
        }
    }
    if let Some(stored) = resource.storage_version().filter(|_| !resource.has(Flag::Virtual)) {
        // A view is stored as what it is a view of.
        let group = resource.view_of.as_ref().map_or(&resource.group, |view| &view.group);
        let hash = storage_version_hash(group, &stored.name, &resource.kind);
        fields.insert("storageVersionHash".into(), hash.into());
    }
    Value::Object(fields)
}

fn of_subresource(part: &Subresource, resource: &ResourceDef) -> Value {
    let mut fields = Map::new();
    fields.insert("name".into(), format!("{}/{}", resource.plural, part.name).into());
    fields.insert("singularName".into(), "".into());
    fields.insert("namespaced".into(), json!(resource.namespaced));
    fields.insert("verbs".into(), verbs(&part.verbs));
    match &part.kind {
        Some([group, version, kind]) => {
            fields.insert("group".into(), json!(group));
            fields.insert("version".into(), json!(version));
            fields.insert("kind".into(), json!(kind));
        }
        None => {
            fields.insert("kind".into(), json!(resource.kind));
        }
    }
    Value::Object(fields)
}
