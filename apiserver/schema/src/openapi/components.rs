//! Component schemas.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::descriptions::Descriptions;
use crate::model::{Field, Pool, Scalar, Shape, StructType, Union};
use crate::types::Types;

const PREFIX: &str = "#/components/schemas/";

/// Scalars with schemas of their own: their names and what they say.
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
const DURATION: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Duration";
const FIELDS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const APIEXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";

/// A reference to a component.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("{PREFIX}{name}")})
}

/// The body of PATCH.
pub(super) fn patch() -> Value {
    reference(PATCH)
}

/// Makes the components of one document.
pub(super) struct Components<'t> {
    types: &'t Types,
    descriptions: Descriptions,
    made: BTreeSet<String>,
}

// === impl Components ===

impl<'t> Components<'t> {
    pub(super) fn new(types: &'t Types) -> Self {
        Self { types, descriptions: Descriptions::read(), made: BTreeSet::new() }
    }

    /// All schemas that `paths` refers to, and those that they refer to in turn, but for those that
    /// were made before. `custom` are those that aren't built in.
    pub(super) fn used_by(
        &mut self,
        paths: &Value,
        mut custom: Map<String, Value>,
    ) -> Map<String, Value> {
        let mut wanted = BTreeSet::new();
        references(paths, false, &mut wanted);
        let mut schemas = Map::new();
        while let Some(name) = wanted.pop_first() {
            if !self.made.insert(name.clone()) {
                continue;
            }
            let own = custom.remove(&name);
            let schema = own.unwrap_or_else(|| component(&name, self.types, &self.descriptions));
            references(&schema, false, &mut wanted);
            schemas.insert(name, schema);
        }
        schemas
    }
}

/// Collects the components that a schema, or anything around schemas, refers to. Data (defaults,
/// examples, values, extensions) refers to nothing, whatever it looks like; `named` says that the
/// keys are names of properties.
fn references(value: &Value, named: bool, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            let target = object.get("$ref").and_then(Value::as_str).filter(|_| !named);
            if let Some(name) = target.and_then(|target| target.strip_prefix(PREFIX)) {
                into.insert(name.to_owned());
            }
            for (key, value) in object {
                let is_data = matches!(key.as_str(), "default" | "enum" | "example");
                if named || !(is_data || key.starts_with("x-")) {
                    references(value, !named && key == "properties", into);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, false, into)),
        _ => {}
    }
}

fn component(name: &str, types: &Types, descriptions: &Descriptions) -> Value {
    let mut schema = match types.pool().find(name) {
        Some(id) => object(types, types.pool().get(id), descriptions),
        None => special(name),
    };
    if let (Some(text), Value::Object(schema)) = (descriptions.of_type(name), &mut schema) {
        schema.insert("description".into(), text.into());
    }
    schema
}

/// Schemas of types that are no structs with fields.
fn special(name: &str) -> Value {
    match name {
        TIME | MICRO_TIME => json!({"type": "string", "format": "date-time"}),
        DURATION => json!({"type": "string"}),
        QUANTITY => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        INT_OR_STRING => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        FIELDS | PATCH | RAW => json!({"type": "object"}),
        // The types of apiextensions that hold any JSON or have two forms say nothing.
        _ => json!({}),
    }
}

fn object(types: &Types, ty: &StructType, descriptions: &Descriptions) -> Value {
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    let pool = types.pool();
    let fields: Vec<&Field> = ty.flat.iter().map(|r| pool.declared(*r)).collect();
    if !fields.is_empty() {
        let property = |field: &&Field| {
            let mut property = property(pool, field);
            if let Some(text) = descriptions.of_field(&ty.name, &field.name) {
                property.insert("description".into(), text.into());
            }
            (field.name.clone().into_owned(), Value::Object(property))
        };
        schema.insert("properties".into(), Value::Object(fields.iter().map(property).collect()));
    }
    let declared = ty.fields.iter().filter(|f| f.required && !f.inline);
    let inlined = fields.iter().copied().filter(|f| f.required);
    let mut required: Vec<Value> = Vec::new();
    for name in declared.map(|f| &*f.name).chain(inlined.map(|f| &*f.name)) {
        if !required.iter().any(|known| known == name) {
            required.push(name.into());
        }
    }
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
    if ty.atomic {
        schema.insert("x-kubernetes-map-type".into(), "atomic".into());
    }
    let mut kinds: Vec<[&str; 3]> = types
        .kinds()
        .filter(|(_, known)| known.root_struct().name == ty.name)
        .map(|(gvk, _)| [&*gvk.group_version.group, &*gvk.group_version.version, &*gvk.kind])
        .collect();
    kinds.sort_unstable();
    if !kinds.is_empty() {
        let kinds = kinds.into_iter().map(|[group, version, kind]| {
            // Kinds of meta/v1 are published under the core group.
            let group = if group == "meta.k8s.io" { "" } else { group };
            json!({"group": group, "version": version, "kind": kind})
        });
        schema.insert("x-kubernetes-group-version-kind".into(), kinds.collect());
    }
    Value::Object(schema)
}

fn property(pool: &Pool, field: &Field) -> Map<String, Value> {
    let extra = field.extra();
    let mut schema = shape(pool, &field.shape, extra.item_default.as_ref());
    // In OpenAPI 3.0 nothing may stand beside `$ref`, so it moves into `allOf`.
    if let Some(target) = schema.remove("$ref") {
        schema.insert("allOf".into(), json!([{"$ref": target}]));
    }
    let mut set = |name: &str, value: Value| {
        schema.insert(name.to_owned(), value);
    };
    if let Some(default) = &extra.published_default {
        set("default", default.clone());
    }
    if !extra.values.is_empty() {
        set("enum", extra.values.iter().map(|v| Value::from(&**v)).collect());
    }
    let texts = [
        ("x-kubernetes-patch-strategy", &extra.patch_strategy),
        ("x-kubernetes-patch-merge-key", &extra.patch_merge_key),
        ("x-kubernetes-list-type", &extra.list_type),
        ("x-kubernetes-map-type", &extra.map_type),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            set(name, Value::from(&**text));
        }
    }
    if !extra.list_map_keys.is_empty() {
        let keys = extra.list_map_keys.iter().map(|k| Value::from(&**k));
        set("x-kubernetes-list-map-keys", keys.collect());
    }
    schema
}

fn shape(pool: &Pool, shape: &Shape, item_default: Option<&Value>) -> Map<String, Value> {
    let value = match shape {
        Shape::Struct(id) => reference(&pool.get(*id).name),
        Shape::List(item) => json!({"type": "array", "items": inner(pool, item, item_default)}),
        Shape::Map(item) => {
            json!({"type": "object", "additionalProperties": inner(pool, item, item_default)})
        }
        Shape::Union(union, _) => {
            let name = match union {
                Union::SchemaOrBool => "JSONSchemaPropsOrBool",
                Union::SchemaOrArray => "JSONSchemaPropsOrArray",
                Union::SchemaOrStrings => "JSONSchemaPropsOrStringArray",
            };
            reference(&format!("{APIEXTENSIONS}.{name}"))
        }
        Shape::Scalar(scalar) => match scalar {
            Scalar::String => json!({"type": "string"}),
            Scalar::Bool => json!({"type": "boolean"}),
            Scalar::Int32 => json!({"type": "integer", "format": "int32"}),
            Scalar::Int64 => json!({"type": "integer", "format": "int64"}),
            Scalar::Double => json!({"type": "number", "format": "double"}),
            Scalar::Bytes => json!({"type": "string", "format": "byte"}),
            Scalar::Strings => {
                json!({"type": "array", "items": {"type": "string", "default": ""}})
            }
            Scalar::Time => reference(TIME),
            Scalar::MicroTime => reference(MICRO_TIME),
            Scalar::Duration => reference(DURATION),
            Scalar::Quantity => reference(QUANTITY),
            Scalar::IntOrString => reference(INT_OR_STRING),
            Scalar::Raw => reference(RAW),
            Scalar::FieldsV1 => reference(FIELDS),
            Scalar::Json => reference(&format!("{APIEXTENSIONS}.JSON")),
        },
    };
    match value {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// The schema of items or values; the published default belongs to the innermost.
fn inner(pool: &Pool, item: &Shape, default: Option<&Value>) -> Value {
    let mut schema = shape(pool, item, default);
    if let Some(default) = default
        && !matches!(item, Shape::List(_) | Shape::Map(_))
    {
        if let Some(target) = schema.remove("$ref") {
            schema.insert("allOf".into(), json!([{"$ref": target}]));
        }
        schema.insert("default".into(), default.clone());
    }
    Value::Object(schema)
}
