//! One structural schema as documents show it.

use serde_json::{Map, Value, json};

use super::known::Known;
use super::{Form, OBJECT_META, PRESERVE};
use crate::openapi::MAX_DEPTH;
use crate::openapi::components::reference;
use crate::openapi::descriptions::common;

type Object = Map<String, Value>;

const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Keywords that are shown as they are, unless their value says nothing.
const TEXTS: [&str; 7] = [
    "description",
    "format",
    "pattern",
    "title",
    "type",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];
const NUMBERS: [&str; 9] = [
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
];
const FLAGS: [&str; 7] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "nullable",
    "uniqueItems",
    EMBEDDED,
    INT_OR_STRING,
    PRESERVE,
];
const LISTS: [&str; 4] =
    ["enum", "required", "x-kubernetes-list-map-keys", "x-kubernetes-validations"];

/// Writes the schemas of one document.
pub(super) struct Writer {
    form: Form,
}

/// What lies below a value.
struct Parts<'v> {
    properties: Option<&'v Object>,
    items: Option<&'v Object>,
    additional: Option<&'v Value>,
}

// === impl Writer ===

impl Writer {
    pub(super) fn new(form: Form) -> Self {
        Self { form }
    }

    /// The schema of one value, and of all below it. `known` is its Go type, if it has one.
    pub(super) fn schema(&self, from: &Object, known: Option<&Known<'_>>, depth: usize) -> Object {
        if depth > MAX_DEPTH {
            return Object::from_iter([(PRESERVE.to_owned(), Value::Bool(true))]);
        }
        if depth > 0 && known.is_some_and(Known::is_metadata) {
            return metadata(from);
        }
        let mut made = keywords(from);
        let mut parts = Parts::of(from);
        if self.form == Form::V3 {
            if let Some(default) = from.get("default").filter(|default| !default.is_null()) {
                made.insert("default".into(), default.clone());
            }
            combinations(from, &mut made, depth);
            unfold(&mut made);
        } else {
            simplify(&mut made, &mut parts);
        }
        self.add_parts(&parts, known, depth, &mut made);
        let open = self.form == Form::V2 && made.contains_key(PRESERVE);
        if made.contains_key(EMBEDDED) && !open {
            embed(&mut made);
        }
        made
    }

    fn add_parts(
        &self,
        parts: &Parts<'_>,
        known: Option<&Known<'_>>,
        depth: usize,
        made: &mut Object,
    ) {
        if let Some(properties) = parts.properties.filter(|properties| !properties.is_empty()) {
            let fields = properties.iter().map(|(name, schema)| {
                let mut markers = Object::new();
                let known = known.and_then(|known| known.field(name, &mut markers));
                let mut field = match schema.as_object() {
                    Some(schema) => self.schema(schema, known.as_ref(), depth + 1),
                    None => Object::new(),
                };
                field.append(&mut markers);
                (name.clone(), Value::Object(field))
            });
            made.insert("properties".into(), Value::Object(fields.collect()));
        }
        if let Some(items) = parts.items {
            let known = known.and_then(Known::items);
            let items = self.schema(items, known.as_ref(), depth + 1);
            made.insert("items".into(), Value::Object(items));
        }
        match parts.additional {
            Some(Value::Object(values)) => {
                let known = known.and_then(Known::values);
                let values = self.schema(values, known.as_ref(), depth + 1);
                made.insert("additionalProperties".into(), Value::Object(values));
            }
            Some(Value::Bool(any)) => {
                made.insert("additionalProperties".into(), Value::Bool(*any));
            }
            _ => {}
        }
    }
}

// === impl Parts ===

impl<'v> Parts<'v> {
    fn of(schema: &'v Object) -> Self {
        let object = |name| schema.get(name).and_then(Value::as_object);
        Self {
            properties: object("properties"),
            items: object("items"),
            additional: schema.get("additionalProperties"),
        }
    }
}

/// Leaves out what clients of OpenAPI v2 don't understand, or take for more than it says: a value
/// that may be null has no type, and where unknown fields are kept, known ones aren't described.
fn simplify(made: &mut Object, parts: &mut Parts<'_>) {
    let nullable = |schema: &Value| schema.get("nullable") == Some(&Value::Bool(true));
    let preserves = made.contains_key(PRESERVE);
    if made.remove("nullable").is_some() {
        made.remove("type");
        (parts.items, parts.properties) = (None, None);
    }
    if preserves {
        (parts.items, parts.properties) = (None, None);
    }
    let kind = made.get("type").and_then(Value::as_str).unwrap_or_default();
    if (kind == "array" && parts.items.is_none()) || (kind == "object" && preserves) {
        made.remove("type");
    }
    if let Some(Value::Array(required)) = made.get_mut("required") {
        if parts.additional.is_some_and(nullable) {
            required.clear();
        }
        required.retain(|name| {
            let property = name.as_str().and_then(|name| parts.properties?.get(name));
            !property.is_some_and(nullable)
        });
        if required.is_empty() {
            made.remove("required");
        }
    }
}

/// The keywords of one value, without those that have schemas in them.
fn keywords(from: &Object) -> Object {
    let mut made = Object::new();
    for (keyword, value) in from {
        let says = match keyword.as_str() {
            name if TEXTS.contains(&name) => value.as_str().is_some_and(|text| !text.is_empty()),
            name if NUMBERS.contains(&name) => value.is_number(),
            name if FLAGS.contains(&name) => value == &Value::Bool(true),
            name if LISTS.contains(&name) => value.as_array().is_some_and(|list| !list.is_empty()),
            "externalDocs" => value.is_object(),
            "example" => !value.is_null(),
            _ => false,
        };
        if says {
            made.insert(keyword.clone(), value.clone());
        }
    }
    made
}

/// `allOf`, `anyOf`, `oneOf` and `not`.
fn combinations(from: &Object, made: &mut Object, depth: usize) {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let list = from.get(keyword).and_then(Value::as_array);
        if let Some(list) = list.filter(|list| !list.is_empty()) {
            let all = list.iter().map(|schema| nested(schema, depth + 1)).collect();
            made.insert(keyword.into(), Value::Array(all));
        }
    }
    if let Some(not) = from.get("not").filter(|not| not.is_object()) {
        made.insert("not".into(), nested(not, depth + 1));
    }
}

/// A schema that only validates: nothing is added to it.
fn nested(from: &Value, depth: usize) -> Value {
    let Some(from) = from.as_object().filter(|_| depth <= MAX_DEPTH) else { return json!({}) };
    let mut made = keywords(from);
    combinations(from, &mut made, depth);
    let parts = Parts::of(from);
    if let Some(properties) = parts.properties.filter(|properties| !properties.is_empty()) {
        let fields =
            properties.iter().map(|(name, schema)| (name.clone(), nested(schema, depth + 1)));
        made.insert("properties".into(), Value::Object(fields.collect()));
    }
    for name in ["items", "additionalProperties"] {
        if let Some(schema) = from.get(name).filter(|schema| schema.is_object()) {
            made.insert(name.into(), nested(schema, depth + 1));
        }
    }
    Value::Object(made)
}

/// Says in plain OpenAPI that a value is an integer or a text.
fn unfold(made: &mut Object) {
    if !made.contains_key(INT_OR_STRING) {
        return;
    }
    let either = || json!([{"type": "integer"}, {"type": "string"}]);
    let first = made.get("allOf").and_then(|all| all.get(0)).and_then(|first| first.get("anyOf"));
    if made.get("anyOf") == Some(&either()) || first == Some(&either()) {
        return;
    }
    if !made.contains_key("anyOf") {
        made.insert("anyOf".into(), either());
        return;
    }
    let all = made.entry("allOf").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(all) = all {
        all.insert(0, json!({"anyOf": either()}));
    }
}

/// Describes what any object has that stands inside of another.
fn embed(made: &mut Object) {
    super::with_type_meta(made, OBJECT_META, "metadata");
    let required = made.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(required) = required {
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|known| known == name) {
                required.push(name.into());
            }
        }
    }
}

/// Metadata inside of an imported type, as Go has it.
fn metadata(from: &Object) -> Object {
    let text = from.get("description").cloned().unwrap_or_else(|| common("metadata").into());
    Object::from_iter([
        ("description".to_owned(), text),
        ("allOf".to_owned(), json!([reference(OBJECT_META)])),
    ])
}
