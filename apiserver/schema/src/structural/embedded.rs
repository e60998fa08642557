//! Validates embedded resources: they have an apiVersion, a kind and valid metadata.

use machinery::meta::validate_object_meta;
use machinery::{FieldError, FieldPath, name};
use serde_json::{Map, Value, json};

use super::coerce::meta_schema;
use super::node::{Flags, NodeData};
use super::validate::MAX_PROBLEMS;
use super::{Structural, print};
use crate::coerce::CoerceMode;

/// What is wrong with the embedded resources of an object.
pub(super) fn validate(schema: &Structural, value: &Value) -> Vec<FieldError> {
    let root = schema.data(schema.root);
    let mut walk = Walk { schema, path: FieldPath::default(), problems: Vec::new() };
    walk.value(root, false, value);
    walk.problems
}

/// What is wrong with one value of a part that may be an embedded resource itself.
pub(super) fn validate_part(
    schema: &Structural,
    node: &NodeData,
    resource: bool,
    value: &Value,
    at: &FieldPath,
) -> Vec<FieldError> {
    let mut walk = Walk { schema, path: at.clone(), problems: Vec::new() };
    walk.value(node, resource, value);
    walk.problems
}

struct Walk<'s> {
    schema: &'s Structural,
    path: FieldPath,
    problems: Vec<FieldError>,
}

// === impl Walk ===

impl<'s> Walk<'s> {
    /// The recursion ends with the schema.
    fn value(&mut self, node: &'s NodeData, resource: bool, value: &Value) {
        let told = self.problems.len() >= MAX_PROBLEMS;
        if told || (!node.has(Flags::RESOURCES) && !resource) {
            return;
        }
        match value {
            Value::Object(fields) => {
                if resource {
                    self.resource(fields);
                }
                for (name, value) in fields {
                    let Some(part) = node.field(name).map(|id| self.schema.data(id)) else {
                        continue;
                    };
                    let mark = node.enter(&mut self.path, name);
                    self.value(part, part.has(Flags::EMBEDDED), value);
                    self.path.leave(mark);
                }
            }
            Value::Array(items) => {
                let Some(item) = node.items.map(|id| self.schema.data(id)) else { return };
                for (at, value) in items.iter().enumerate() {
                    let mark = self.path.enter_index(at);
                    self.value(item, item.has(Flags::EMBEDDED), value);
                    self.path.leave(mark);
                }
            }
            _ => {}
        }
    }

    fn resource(&mut self, fields: &Map<String, Value>) {
        for name in ["apiVersion", "kind"] {
            if !fields.contains_key(name) {
                self.problems.push(FieldError::required(&self.path.child(name), ""));
            }
        }
        if let Some(value) = fields.get("apiVersion") {
            let why = value.as_str().map_or(Some("must be a string".into()), version_problem);
            self.invalid("apiVersion", value, why);
        }
        if let Some(value) = fields.get("kind") {
            let why = value.as_str().map_or(Some("must be a string".into()), kind_problem);
            self.invalid("kind", value, why);
        }
        if let Some(value) = fields.get("metadata") {
            self.metadata(value);
        }
    }

    fn metadata(&mut self, value: &Value) {
        let mut metadata = value.clone();
        if let Err(why) = meta_schema().coerce(&mut metadata, CoerceMode::Drop) {
            self.invalid("metadata", value, Some(why.to_string()));
            return;
        }
        let empty =
            |name: &str| metadata.get(name).and_then(Value::as_str).is_none_or(str::is_empty);
        let (nameless, namespaced) = (empty("name"), !empty("namespace"));
        if let (true, Value::Object(fields)) = (nameless, &mut metadata) {
            // Embedded resources need no name; the rules want one.
            fields.insert("name".into(), "name".into());
        }
        let object = json!({ "metadata": metadata });
        let at = self.path.child("metadata");
        let rule = name::path_segment;
        self.problems.extend(validate_object_meta(&object, namespaced, rule, &at));
    }

    fn invalid(&mut self, name: &str, value: &Value, why: Option<String>) {
        if let Some(why) = why {
            let mut problem = FieldError::invalid(&self.path.child(name), value, why);
            problem.value = Some(print::value(value));
            self.problems.push(problem);
        }
    }
}

fn version_problem(version: &str) -> Option<String> {
    match version.matches('/').count() {
        _ if version.is_empty() => Some("must not be empty".into()),
        0 | 1 => None,
        _ => Some(format!("unexpected GroupVersion string: {version}")),
    }
}

fn kind_problem(kind: &str) -> Option<String> {
    if kind.is_empty() {
        return Some("must not be empty".into());
    }
    let problems = name::dns1035_label(&kind.to_lowercase());
    (!problems.is_empty())
        .then(|| format!("may have mixed case, but should otherwise match: {}", problems.join(",")))
}
