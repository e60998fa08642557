//! Schemas of the cases as declared types, by the rules that Kubernetes has for custom resources.

use std::sync::Arc;

use cel_rules::{DeclType, Field, ListSemantics, ObjectType, Type, escape};
use serde_json::{Value as Json, json};

/// Bytes of the largest request.
const MAX_REQUEST: u64 = 3 << 20;

/// The declared type of a schema; none if expressions can't see it.
pub(crate) fn declare(name: &str, schema: &Json) -> Option<Arc<DeclType>> {
    if schema["x-kubernetes-int-or-string"] == true {
        let max = schema["maxLength"].as_u64().map_or(MAX_REQUEST - 2, |max| max * 4);
        return Some(DeclType::plain(Type::Dyn, max, 1));
    }
    match schema["type"].as_str()? {
        "array" => {
            let element = declare(&format!("{name}.@idx"), &schema["items"])?;
            let most = (MAX_REQUEST - 2) / (element.min_serialized_size() + 1);
            let max = schema["maxItems"].as_u64().unwrap_or(most);
            Some(DeclType::list(element, max, semantics(schema)))
        }
        "object" if schema["additionalProperties"].is_object() => {
            let value = declare(&format!("{name}.@elem"), &schema["additionalProperties"])?;
            let most = (MAX_REQUEST - 2) / (value.min_serialized_size() + 6);
            let max = schema["maxProperties"].as_u64().unwrap_or(most);
            let key = DeclType::plain(Type::String, 0, 2);
            Some(DeclType::map(key, value, max))
        }
        "object" => Some(object(name, schema)),
        "string" => Some(string(schema)),
        "boolean" => Some(DeclType::plain(Type::Bool, 0, 4)),
        "number" => Some(DeclType::plain(Type::Double, 0, 1)),
        "integer" => Some(DeclType::plain(Type::Int, 0, 1)),
        _ => None,
    }
}

fn semantics(schema: &Json) -> ListSemantics {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListSemantics::Set,
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array();
            let keys = keys.into_iter().flatten().filter_map(|key| key.as_str());
            ListSemantics::Map(keys.map(Box::from).collect())
        }
        _ => ListSemantics::Atomic,
    }
}

fn object(name: &str, schema: &Json) -> Arc<DeclType> {
    let mut properties = schema["properties"].as_object().cloned().unwrap_or_default();
    if schema["x-kubernetes-embedded-resource"] == true {
        let text = json!({"type": "string"});
        properties.insert("kind".to_owned(), text.clone());
        properties.insert("apiVersion".to_owned(), text.clone());
        let names = json!({"name": text, "generateName": text});
        properties.insert("metadata".to_owned(), json!({"type": "object", "properties": names}));
    }
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name))
    };
    let mut size = 2;
    let mut fields = Vec::new();
    for (json_name, property) in &properties {
        let Some(decl) = declare(&format!("{name}.{json_name}"), property) else { continue };
        if required(json_name) && property["default"].is_null() {
            size += json_name.len() as u64 + decl.min_serialized_size() + 4;
        }
        if let Some(escaped) = escape(json_name) {
            fields.push(Field {
                json_name: (escaped != *json_name).then(|| json_name.as_str().into()),
                name: escaped.into(),
                required: required(json_name),
                decl,
            });
        }
    }
    DeclType::object(Arc::new(ObjectType::new(name, fields)), size)
}

fn string(schema: &Json) -> Arc<DeclType> {
    let max = schema["maxLength"].as_u64();
    match schema["format"].as_str() {
        Some("byte") => DeclType::plain(Type::Bytes, max.unwrap_or(MAX_REQUEST - 2), 2),
        Some("duration") => DeclType::plain(Type::Duration, 32, 3),
        Some("date") => DeclType::plain(Type::Timestamp, 12, 12),
        Some("date-time") => DeclType::plain(Type::Timestamp, 32, 21),
        _ => {
            let names = schema["enum"].as_array().into_iter().flatten();
            let longest =
                names.filter_map(|name| name.as_str()).map(|name| name.len() as u64).max();
            let max = max.map(|max| max * 4).or(longest).unwrap_or(MAX_REQUEST - 2);
            DeclType::plain(Type::String, max, 2)
        }
    }
}

/// A type as upstream prints it.
pub(crate) fn type_text(ty: &Type) -> String {
    match ty {
        Type::List(element) => format!("list({})", type_text(element)),
        Type::Map(entry) => format!("map({}, {})", type_text(&entry.0), type_text(&entry.1)),
        Type::Optional(inner) => format!("optional_type({})", type_text(inner)),
        Type::Type(Some(inner)) => format!("type({})", type_text(inner)),
        other => other.runtime_name().to_owned(),
    }
}
