//! Fills in the defaults of built-in kinds.
//!
//! The defaults are rules in `data/defaults.json`, by type. A rule sets a field that is absent (or
//! zero, where Go can't tell the two apart). The few that compute something are named functions.
//! Rules of an object run before those of its parts, as upstream's do.

mod named;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::model::{Field, Pool, Schema, Shape, TypeId};

/// One default of a type.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Rule {
    /// The field to set.
    #[serde(default)]
    field: &'static str,
    /// What to set; objects are completed member by member.
    value: Option<Value>,
    /// The field whose value is copied.
    from: Option<&'static str>,
    /// Removes the field instead.
    #[serde(default)]
    remove: bool,
    /// Runs a function over the object.
    call: Option<named::Function>,
    /// The rule holds only if all of these hold.
    #[serde(default)]
    when: Vec<When>,
}

/// A condition on a sibling field, which defaults have filled before.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct When {
    field: &'static str,
    /// One of these texts stands in the field; without any, the field isn't empty.
    #[serde(default, rename = "in")]
    values: Vec<&'static str>,
}

// === impl Schema ===

impl Schema {
    /// Sets the defaults of a built-in kind. The value has been through [`Schema::coerce`].
    ///
    /// Idempotent; changes nothing in kinds without defaults, and then costs nothing.
    pub fn default(&self, value: &mut Value) {
        default_struct(&self.pool, self.root, value);
    }
}

fn default_struct(pool: &Pool, id: TypeId, value: &mut Value) {
    let ty = pool.get(id);
    let Value::Object(object) = value else { return };
    if !ty.has_defaults {
        return;
    }
    for rule in &ty.defaults {
        rule.apply(pool.field(id, rule.field), object);
    }
    for field in &ty.fields {
        match (&field.shape, field.inline) {
            (Shape::Struct(inner), true) => default_inline(pool, *inner, object),
            (shape, _) => {
                if let Some(part) = object.get_mut(&*field.name) {
                    default_shape(pool, shape, part);
                }
            }
        }
    }
}

/// The fields of an inlined struct lie in the object around it.
fn default_inline(pool: &Pool, id: TypeId, object: &mut Map<String, Value>) {
    if pool.get(id).has_defaults {
        let mut whole = Value::Object(std::mem::take(object));
        default_struct(pool, id, &mut whole);
        if let Value::Object(filled) = whole {
            *object = filled;
        }
    }
}

fn default_shape(pool: &Pool, shape: &Shape, value: &mut Value) {
    match (shape, value) {
        (Shape::Struct(id), value) => default_struct(pool, *id, value),
        (Shape::List(item), Value::Array(items)) if crate::data::struct_of(item).is_some() => {
            items.iter_mut().for_each(|v| default_shape(pool, item, v));
        }
        (Shape::Map(item), Value::Object(map)) if crate::data::struct_of(item).is_some() => {
            map.values_mut().for_each(|v| default_shape(pool, item, v));
        }
        _ => {}
    }
}

// === impl Rule ===

impl Rule {
    /// `field` is the declaration of the field that the rule sets.
    fn apply(&self, field: Option<&Field>, object: &mut Map<String, Value>) {
        if !self.when.iter().all(|when| when.holds(object)) {
            return;
        }
        if let Some(function) = self.call {
            function.run(object);
            return;
        }
        if self.remove {
            object.remove(self.field);
            return;
        }
        let value = match self.from {
            Some(source) => object.get(source).cloned(),
            None => self.value.clone(),
        };
        let Some(value) = value else { return };
        let pointer = field.is_some_and(|f| f.pointer);
        match object.get_mut(self.field) {
            Some(present) if !is_unset(present, pointer) => complete(present, &value),
            _ => {
                object.insert(self.field.to_owned(), value);
            }
        }
    }
}

// === impl When ===

impl When {
    fn holds(&self, object: &Map<String, Value>) -> bool {
        match object.get(self.field) {
            None | Some(Value::Null) => false,
            Some(_) if self.values.is_empty() => true,
            Some(value) => value.as_str().is_some_and(|text| self.values.contains(&text)),
        }
    }
}

/// Whether Go would see the field as not set: a pointer only when nil, other values when zero.
fn is_unset(value: &Value, pointer: bool) -> bool {
    match value {
        Value::Null => true,
        _ if pointer => false,
        Value::String(s) => s.is_empty(),
        Value::Number(n) => n.as_i64() == Some(0),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Adds the members that an object lacks.
fn complete(present: &mut Value, value: &Value) {
    if let (Value::Object(present), Value::Object(value)) = (present, value) {
        for (name, value) in value {
            match present.get_mut(name) {
                Some(part) => complete(part, value),
                None => {
                    present.insert(name.clone(), value.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
