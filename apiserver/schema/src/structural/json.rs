//! Reading a schema's JSON: what has the wrong type counts as absent, as null does.

use serde_json::{Map, Value};

/// A schema's keywords.
pub(crate) type Keywords = Map<String, Value>;

/// Deepest nesting of schemas in a schema; more than JSON of a request can hold.
pub(crate) const MAX_DEPTH: usize = 128;

pub(crate) fn text<'v>(schema: &'v Keywords, keyword: &str) -> &'v str {
    schema.get(keyword).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn flag(schema: &Keywords, keyword: &str) -> bool {
    schema.get(keyword).and_then(Value::as_bool).unwrap_or_default()
}

pub(crate) fn object<'v>(schema: &'v Keywords, keyword: &str) -> Option<&'v Keywords> {
    schema.get(keyword).and_then(Value::as_object)
}

pub(crate) fn list<'v>(schema: &'v Keywords, keyword: &str) -> &'v [Value] {
    schema.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The schemas in a list, with their places.
pub(crate) fn schemas<'v>(
    schema: &'v Keywords,
    keyword: &str,
) -> impl Iterator<Item = (usize, &'v Keywords)> {
    let items = list(schema, keyword).iter().enumerate();
    items.filter_map(|(at, item)| Some((at, item.as_object()?)))
}

/// The schemas of named fields, sorted by name.
pub(crate) fn properties(schema: &Keywords) -> impl Iterator<Item = (&str, &Keywords)> {
    let fields = object(schema, "properties").into_iter().flatten();
    fields.filter_map(|(name, part)| Some((name.as_str(), part.as_object()?)))
}

pub(crate) fn texts<'v>(schema: &'v Keywords, keyword: &str) -> impl Iterator<Item = &'v str> {
    list(schema, keyword).iter().filter_map(Value::as_str)
}

/// Whether a keyword is there and isn't null.
pub(crate) fn has(schema: &Keywords, keyword: &str) -> bool {
    schema.get(keyword).is_some_and(|v| !v.is_null())
}
