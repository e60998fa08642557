//! OpenAPI v3 to v2, as kube-apiserver does it for what both documents have in common.
//!
//! Parameters that many operations have stand once in the document, under their name and a hash of
//! what they say, which is what keeps it small.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::MAX_DEPTH;

const V3_PREFIX: &str = "#/components/schemas/";
const V2_PREFIX: &str = "#/definitions/";

/// What operations of built-in types take when they have no body.
const ANY: &str = "*/*";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

type Object = Map<String, Value>;

/// The operations of one path. What their parameters share with others goes to `shared`.
pub(super) fn path(item: Value, shared: &mut Object) -> Value {
    let Value::Object(item) = item else { return item };
    let parts = item.into_iter().map(|(name, part)| {
        let part = match (name.as_str(), part) {
            ("parameters", Value::Array(all)) => parameters(all, shared).into(),
            (_, Value::Object(part)) => operation(part, shared),
            (_, part) => part,
        };
        (name, part)
    });
    Value::Object(parts.collect())
}

/// A schema without what v2 can't say: defaults, null, and combinations. A reference may have
/// siblings there, and what is written as a number or a text counts as text.
pub(super) fn definition(schema: Value, depth: usize) -> Value {
    let Value::Object(mut schema) = schema else { return schema };
    if depth > 2 * MAX_DEPTH {
        return json!({});
    }
    schema.remove("default");
    schema.remove("nullable");
    let mut combinations = ["allOf", "anyOf", "oneOf"].map(|keyword| schema.remove(keyword));
    schema.remove("not");
    let [all, _, one] = &mut combinations;
    if let Some(Value::Array(all)) = all
        && let [only] = all.as_mut_slice()
        && let Some(target) = only.get_mut("$ref")
    {
        schema.insert("$ref".into(), target.take());
    }
    let is_text = |one: &Value| one.get("type").is_some_and(|kind| kind == "string");
    if one.as_ref().and_then(Value::as_array).is_some_and(|one| one.iter().any(is_text)) {
        schema.entry("type").or_insert_with(|| "string".into());
    }
    if let Some(target) = schema.get_mut("$ref") {
        turn(target);
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties
            .values_mut()
            .for_each(|property| *property = definition(property.take(), depth + 1));
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(keyword) {
            *inner = definition(inner.take(), depth + 1);
        }
    }
    Value::Object(schema)
}

/// Lets a reference to a component lead to the definition of that name.
fn turn(reference: &mut Value) {
    if let Some(name) = reference.as_str().and_then(|target| target.strip_prefix(V3_PREFIX)) {
        *reference = format!("{V2_PREFIX}{name}").into();
    }
}

fn operation(mut from: Object, shared: &mut Object) -> Value {
    let mut body = None;
    let mut consumes = Vec::new();
    if let Some(Value::Object(request)) = from.remove("requestBody") {
        let content = request.get("content").and_then(Value::as_object);
        consumes = media(content);
        let mut parameter = json!({"name": "body", "in": "body", "schema": schema_of(content)});
        if request.get("required") == Some(&Value::Bool(true)) {
            parameter["required"] = true.into();
        }
        body = Some(parameter);
    }
    let mut all = Vec::new();
    all.extend(body);
    if let Some(Value::Array(own)) = from.remove("parameters") {
        all.extend(parameters(own, shared));
    }
    let mut produces = Vec::new();
    if let Some(Value::Object(responses)) = from.get_mut("responses") {
        for response in responses.values_mut() {
            let Value::Object(response) = response else { continue };
            let Some(Value::Object(content)) = response.remove("content") else { continue };
            if produces.is_empty() {
                produces = media(Some(&content));
            }
            response.insert("schema".into(), schema_of(Some(&content)));
        }
    }
    if consumes.is_empty() {
        let is_builtin = from.contains_key("x-kubernetes-action")
            && produces.iter().any(|kind| kind == PROTOBUF);
        consumes = if is_builtin { vec![ANY.into()] } else { produces.clone() };
    }
    from.insert("consumes".into(), consumes.into());
    from.insert("produces".into(), produces.into());
    from.insert("schemes".into(), json!(["https"]));
    if !all.is_empty() {
        from.insert("parameters".into(), all.into());
    }
    Value::Object(from)
}

fn media(content: Option<&Object>) -> Vec<Value> {
    content.into_iter().flatten().map(|(kind, _)| kind.as_str().into()).collect()
}

/// The schema of a body, which is the same in all its encodings.
fn schema_of(content: Option<&Object>) -> Value {
    let first = content.and_then(|content| content.values().next());
    definition(first.and_then(|media| media.get("schema")).cloned().unwrap_or_default(), 0)
}

/// Parameters with their type beside their name; all but those of one path alone by reference.
fn parameters(all: Vec<Value>, shared: &mut Object) -> Vec<Value> {
    let parameter = |parameter: Value| {
        let Value::Object(mut parameter) = parameter else { return parameter };
        if let Some(Value::Object(mut schema)) = parameter.remove("schema") {
            parameter.append(&mut schema);
        }
        let name = parameter.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let parameter = Value::Object(parameter);
        if name == "name" {
            return parameter;
        }
        let hash = Sha256::digest(parameter.to_string());
        let hash = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
        let key = format!("{name}-{hash:08x}");
        let target = format!("#/parameters/{key}");
        shared.insert(key, parameter);
        json!({ "$ref": target })
    };
    all.into_iter().map(parameter).collect()
}
