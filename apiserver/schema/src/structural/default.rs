//! Fills in the defaults of a schema (kube-apiserver's `defaulting`).
//!
//! An absent field gets its default, and so does one that is null and may not be. What was filled
//! in is completed in turn. Parts of a schema without defaults cost nothing.

use serde_json::{Map, Value};

use super::Structural;
use super::node::{Additional, Flags, NodeData};

// === impl Structural ===

impl Structural {
    /// Fills in defaults. Idempotent.
    pub fn default(&self, value: &mut Value) {
        fill(self, self.data(self.root), value);
    }
}

/// The recursion ends with the schema.
fn fill(schema: &Structural, node: &NodeData, value: &mut Value) {
    if !node.has(Flags::DEFAULTS) {
        return;
    }
    match value {
        Value::Object(fields) => fill_object(schema, node, fields),
        Value::Array(items) => {
            let Some(item) = node.items.map(|id| schema.data(id)) else { return };
            for value in items {
                replace_null(item, value);
                fill(schema, item, value);
            }
        }
        _ => {}
    }
}

fn fill_object(schema: &Structural, node: &NodeData, fields: &mut Map<String, Value>) {
    for property in &node.properties {
        let part = schema.data(property.node);
        if !part.has(Flags::DEFAULTS) {
            continue;
        }
        match (fields.get_mut(&*property.name), part.default_value()) {
            (None, Some(default)) => {
                let mut value = default.clone();
                fill(schema, part, &mut value);
                fields.insert(property.name.to_string(), value);
            }
            (Some(value), _) => {
                replace_null(part, value);
                fill(schema, part, value);
            }
            (None, None) => {}
        }
    }
    if let Additional::Of(id) = node.additional {
        let part = schema.data(id);
        for (name, value) in fields {
            if node.property(name).is_none() {
                replace_null(part, value);
                fill(schema, part, value);
            }
        }
    }
}

fn replace_null(node: &NodeData, value: &mut Value) {
    if value.is_null()
        && !node.has(Flags::NULLABLE)
        && let Some(default) = node.default_value()
    {
        *value = default.clone();
    }
}
