//! APIResourceSchemas: what a type looks like, once for each content.

#![allow(unreachable_pub, reason = "`KubeSchema` repeats its structs where nobody reaches them")]

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One version of a type, as a cluster serves it.
///
/// The object's name says what is in it ([`contract::schema_name`]); the server holds everybody to
/// that, so none ever changes, and equal clusters share it. Hence no field has a default.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "apiresource.kcp.io",
    version = "v1alpha1",
    kind = "APIResourceSchema",
    plural = "apiresourceschemas",
    singular = "apiresourceschema",
    category = "kcp",
    derive = "PartialEq",
    doc = "What one version of a type looks like; named by its content, and never changed.",
    validation = Rule::new("self.metadata.name.matches('^sha256-[0-9a-f]{64}$')").message("the name must be sha256- and the digest of the content"),
    printcolumn(name = "Kind", type_ = "string", json_path = ".spec.names.kind", description = "The kind of the objects."),
    printcolumn(name = "Group", type_ = "string", json_path = ".spec.group", description = "The group; empty for core."),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version", description = "The version."),
    printcolumn(name = "Scope", type_ = "string", json_path = ".spec.scope", description = "Where objects live.", priority = "1"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", description = "How long ago the object was created.")
)]
#[serde(rename_all = "camelCase")]
pub struct APIResourceSchemaSpec {
    /// The group; empty for core.
    #[schemars(length(max = 253))]
    pub group: String,
    /// The version.
    #[schemars(length(min = 1, max = 63))]
    pub version: String,
    /// What the type is called.
    pub names: TypeNames,
    /// Where objects live.
    pub scope: Scope,
    /// The structural schema of objects (OpenAPI v3).
    #[schemars(schema_with = "any_object")]
    pub schema: Value,
    /// Parts of an object that are written apart from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subresources: Option<Subresources>,
    /// What tables of objects show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub columns: Vec<Column>,
    /// Fields that lists can be selected by, as paths (`.spec.color`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(min = 1, max = 253)))]
    pub selectable_fields: Vec<String>,
}

/// What a type is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TypeNames {
    /// The resource.
    #[schemars(length(min = 1, max = 63))]
    pub plural: String,
    /// The name of one.
    #[schemars(length(min = 1, max = 63))]
    pub singular: String,
    /// The kind of objects.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// The kind of lists.
    #[schemars(length(min = 1, max = 67))]
    pub list_kind: String,
    /// Short names, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 63)))]
    pub short_names: Vec<String>,
    /// Categories, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 63)))]
    pub categories: Vec<String>,
}

/// Where objects live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Scope {
    /// In namespaces.
    Namespaced,
    /// In none.
    Cluster,
}

/// Parts of an object that are written apart from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Subresources {
    /// Whether the status is one.
    pub status: bool,
    /// The number of replicas, if that is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
}

/// Where an object holds the number of its replicas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Scale {
    /// The wanted number, as `.spec.replicas`.
    #[schemars(length(min = 1, max = 253))]
    pub spec_replicas_path: String,
    /// The number there is, as `.status.replicas`.
    #[schemars(length(min = 1, max = 253))]
    pub status_replicas_path: String,
    /// The selector of what is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub label_selector_path: Option<String>,
}

/// A column of the tables of objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Column {
    /// Its heading.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 63))]
    pub type_: String,
    /// What it shows of an object.
    #[schemars(length(min = 1, max = 1024))]
    pub json_path: String,
    /// What it is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub description: Option<String>,
    /// How numbers and texts are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub format: Option<String>,
    /// Above zero, only wide tables show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
}

fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "description": "The structural schema of objects (OpenAPI v3).",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}
