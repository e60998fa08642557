//! Parts of a schema as types of CEL.
//!
//! The rules are upstream's: unknown fields, parts without a type, and lists and maps of such parts are
//! invisible; sizes come from limits, or from what fits a request.

use std::sync::Arc;

use cel_rules::{DeclType, Field, ListSemantics, ObjectType, Type, escape};

use crate::structural::node::{Additional, Kind, ListType, Node};

/// Bytes of the largest request that upstream counts with.
pub(super) const MAX_REQUEST: u64 = 3 << 20;

/// Sizes of JSON texts: shortest and longest.
const MIN_STRING: u64 = 2;
const MIN_DURATION: u64 = 3;
const DATE: u64 = 12;
const MIN_DATE_TIME: u64 = 21;
const MAX_TIME: u64 = 32;

/// The type of a part's values; none if expressions can't see them. Structures are named by the way
/// from `name`, so that those of different places differ. The recursion ends with the schema.
pub(super) fn declare(node: Node<'_>, root: bool, name: &str) -> Option<Arc<DeclType>> {
    if node.is_int_or_string() {
        let max = node.max_length().map_or(MAX_REQUEST - 2, four_bytes);
        return Some(DeclType::plain(Type::Dyn, max, 1));
    }
    if root {
        return Some(structure(node, true, name));
    }
    match node.kind()? {
        Kind::Array => {
            let items = node.items()?;
            let element = declare(items, items.is_embedded(), &format!("{name}.@idx"))?;
            let most = (MAX_REQUEST - 2) / (element.min_serialized_size() + 1);
            let max = node.max_items().map_or(most, at_least_zero);
            Some(DeclType::list(element, max, semantics(node)))
        }
        Kind::Object => match node.additional() {
            Additional::Of(values) => {
                let value = declare(values, values.is_embedded(), &format!("{name}.@elem"))?;
                let most = (MAX_REQUEST - 2) / (value.min_serialized_size() + 6);
                let max = node.max_properties().map_or(most, at_least_zero);
                Some(DeclType::map(DeclType::plain(Type::String, 0, MIN_STRING), value, max))
            }
            _ => Some(structure(node, false, name)),
        },
        Kind::String => Some(text(node)),
        Kind::Boolean => Some(DeclType::plain(Type::Bool, 0, 4)),
        Kind::Number => Some(DeclType::plain(Type::Double, 0, 1)),
        Kind::Integer => Some(DeclType::plain(Type::Int, 0, 1)),
    }
}

fn at_least_zero(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Bytes of that many characters.
fn four_bytes(characters: i64) -> u64 {
    at_least_zero(characters).saturating_mul(4)
}

fn semantics(node: Node<'_>) -> ListSemantics {
    match node.list_type() {
        ListType::Set => ListSemantics::Set,
        ListType::Map => ListSemantics::Map(node.list_map_keys().into()),
        ListType::Unset | ListType::Atomic => ListSemantics::Atomic,
    }
}

/// A structure. That of a whole resource has its type and the names of its metadata, whatever the
/// schema says of them.
fn structure(node: Node<'_>, resource: bool, name: &str) -> Arc<DeclType> {
    let mut size = 2;
    let mut fields = Vec::new();
    for (json_name, part) in node.properties() {
        if resource && matches!(json_name, "apiVersion" | "kind" | "metadata") {
            continue;
        }
        let Some(decl) = declare(part, part.is_embedded(), &format!("{name}.{json_name}")) else {
            continue;
        };
        let required = node.required().iter().any(|required| **required == *json_name);
        if required && part.default_value().is_none() {
            size += json_name.len() as u64 + decl.min_serialized_size() + 4;
        }
        fields.extend(field(json_name, decl, required));
    }
    if resource {
        let plain = || DeclType::plain(Type::String, MAX_REQUEST - 2, MIN_STRING);
        let names = ["name", "generateName"].map(|name| field(name, plain(), false));
        let metadata =
            ObjectType::new(&format!("{name}.metadata"), names.into_iter().flatten().collect());
        let metadata = DeclType::object(Arc::new(metadata), 2);
        for (json_name, decl) in
            [("apiVersion", plain()), ("kind", plain()), ("metadata", metadata)]
        {
            let required = node.required().iter().any(|required| **required == *json_name);
            if required {
                size += json_name.len() as u64 + decl.min_serialized_size() + 4;
            }
            fields.extend(field(json_name, decl, required));
        }
    }
    DeclType::object(Arc::new(ObjectType::new(name, fields)), size)
}

fn field(json_name: &str, decl: Arc<DeclType>, required: bool) -> Option<Field> {
    let name = escape(json_name)?;
    let json_name = (name != json_name).then(|| json_name.into());
    Some(Field { name: name.into(), json_name, decl, required })
}

fn text(node: Node<'_>) -> Arc<DeclType> {
    match node.format() {
        "byte" => {
            let max = node.max_length().map_or(MAX_REQUEST - 2, at_least_zero);
            DeclType::plain(Type::Bytes, max, MIN_STRING)
        }
        "duration" => DeclType::plain(Type::Duration, MAX_TIME, MIN_DURATION),
        "date" => DeclType::plain(Type::Timestamp, DATE, DATE),
        "date-time" => DeclType::plain(Type::Timestamp, MAX_TIME, MIN_DATE_TIME),
        _ => {
            let names = node.enum_values().iter().filter_map(|value| value.as_str());
            let longest = (!node.enum_values().is_empty())
                .then(|| names.map(|name| name.len() as u64).max().unwrap_or(0));
            let max = node.max_length().map(four_bytes).or(longest).unwrap_or(MAX_REQUEST - 2);
            DeclType::plain(Type::String, max, MIN_STRING)
        }
    }
}
