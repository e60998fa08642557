//! Decodes untyped JSON as Go decodes a body into a struct, and leaves what Go would write back.
//!
//! After [`Schema::coerce`] the value is canonical: unknown fields are gone; null fields and zero
//! values that Go omits are gone; fields that Go always writes are there; times, amounts and base64
//! have their canonical text; lists and maps without items are nil, as they are after a journey
//! through protobuf, the form in which upstream stores built-in kinds. It is idempotent.

mod bytes;
mod scalar;
mod time;

use std::fmt::Write as _;

use serde_json::{Map, Value};

pub(crate) use scalar::is_duration;

use crate::model::{Field, FieldRef, Pool, Scalar, Schema, Shape, TypeId, Union};

/// What becomes of fields that the type doesn't have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoerceMode {
    /// They are dropped and reported (`fieldValidation=Strict` and `Warn`).
    Report,
    /// They are dropped silently (`fieldValidation=Ignore`, and stored objects).
    Drop,
    /// They stay as they are: the type is of another release than the object, whose own schema
    /// tells what is unknown (imported types).
    Keep,
}

/// A field that the type doesn't have.
///
/// Prints as upstream's message: `unknown field "spec.containers[0].x"`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown field {path:?}")]
pub struct Unknown {
    /// The path from the object's root, without a leading dot.
    pub path: String,
}

/// A value of the wrong JSON type, or a text that doesn't parse. Prints as upstream's decoder does:
/// `json: cannot unmarshal number into Go struct field ConfigMap.data of type string`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(Box<str>);

/// Reported unknown fields end here, as upstream's decoder ends.
const MAX_UNKNOWN: usize = 100;

/// Why writing to a text can't fail.
const ENDLESS: &str = "a String takes any text";

// === impl DecodeError ===

impl DecodeError {
    /// The error with this text.
    pub(crate) fn new(text: String) -> Self {
        Self(text.into())
    }
}

struct Walk<'s> {
    pool: &'s Pool,
    mode: CoerceMode,
    /// The path with list indexes and map keys, of which unknown fields are told.
    path: String,
    /// The structs and their fields on the way, of which Go's type errors tell.
    fields: Vec<(TypeId, FieldRef)>,
    /// The struct whose field is being read.
    owner: Option<TypeId>,
    unknown: Vec<Unknown>,
}

/// What is needed to name a Go type in an error.
#[derive(Clone, Copy)]
struct Declared<'s> {
    shape: &'s Shape,
    /// The name of the field's type, when it doesn't follow from the shape.
    name: Option<&'s str>,
    /// How many lists and maps lie between the named type and the value.
    depth: usize,
}

// === impl Schema ===

impl Schema {
    /// Decodes `value` as this type and makes it canonical, in place.
    ///
    /// Names are case-sensitive. Returns the unknown fields (only with [`CoerceMode::Report`]), by
    /// path and in order of their names, at most a hundred.
    ///
    /// # Errors
    /// [`DecodeError`] at the first value of a wrong type; `value` is then half done and useless.
    pub fn coerce(&self, value: &mut Value, mode: CoerceMode) -> Result<Vec<Unknown>, DecodeError> {
        let mut walk = Walk {
            pool: &self.pool,
            mode,
            path: String::new(),
            fields: Vec::new(),
            owner: None,
            unknown: Vec::new(),
        };
        if value.is_null() {
            *value = Value::Object(Map::new());
        }
        let shape = Shape::Struct(self.root);
        let declared = Declared { shape: &shape, name: None, depth: 0 };
        match value {
            Value::Object(object) => walk.object(self.root, object)?,
            other => return Err(walk.mismatch(other, declared)),
        }
        Ok(walk.unknown)
    }
}

// === impl Walk ===

impl<'s> Walk<'s> {
    fn object(&mut self, id: TypeId, object: &mut Map<String, Value>) -> Result<(), DecodeError> {
        let pool = self.pool;
        let mut failure = None;
        object.retain(|name, value| {
            if failure.is_some() {
                return true;
            }
            let Some(found) = pool.lookup(id, name) else {
                self.report(name);
                return self.mode == CoerceMode::Keep;
            };
            if value.is_null() {
                return false;
            }
            match self.member(id, found, name, value) {
                Ok(()) => !pool.declared(found).is_omitted(value),
                Err(error) => {
                    failure = Some(error);
                    true
                }
            }
        });
        if let Some(error) = failure {
            return Err(error);
        }
        for &always in &pool.get(id).always {
            let field = pool.declared(always);
            if !object.contains_key(&*field.name) {
                object.insert(field.name.clone().into_owned(), pool.filled(field));
            }
        }
        Ok(())
    }

    fn member(
        &mut self,
        id: TypeId,
        found: FieldRef,
        name: &str,
        value: &mut Value,
    ) -> Result<(), DecodeError> {
        let field = self.pool.declared(found);
        let (length, owner) = (self.path.len(), self.owner);
        push_key(&mut self.path, name);
        self.fields.push((id, found));
        self.owner = Some(id);
        let name = field.extra().go.as_deref();
        self.value(Declared { shape: &field.shape, name, depth: 0 }, value)?;
        // Lists and maps without items don't survive protobuf; Go writes the nil that remains.
        let gone = match (&field.shape, &*value) {
            (Shape::List(_) | Shape::Scalar(Scalar::Strings), Value::Array(items)) => {
                items.is_empty()
            }
            (Shape::Map(_), Value::Object(entries)) => entries.is_empty(),
            _ => false,
        };
        if gone {
            *value = Value::Null;
        }
        self.fields.pop();
        self.owner = owner;
        self.path.truncate(length);
        Ok(())
    }

    fn value(&mut self, declared: Declared<'s>, value: &mut Value) -> Result<(), DecodeError> {
        match (declared.shape, &mut *value) {
            // Go leaves the zero value of an item that is null.
            (shape, Value::Null) => {
                *value = self.pool.zero_of(shape);
                Ok(())
            }
            (Shape::Struct(id), Value::Object(object)) => self.object(*id, object),
            (Shape::List(item), Value::Array(items)) => {
                let item = declared.below(item);
                self.items(item, items)
            }
            (Shape::Map(item), Value::Object(entries)) => {
                let item = declared.below(item);
                for (key, value) in entries {
                    let length = self.path.len();
                    push_key(&mut self.path, key);
                    self.value(item, value)?;
                    fill_entry(item.shape, value);
                    self.path.truncate(length);
                }
                Ok(())
            }
            (Shape::Union(union, id), value) => self.union(declared, *union, *id, value),
            (Shape::Scalar(scalar), value) => self.scalar(declared, *scalar, value),
            (_, other) => Err(self.mismatch(other, declared)),
        }
    }

    fn items(&mut self, item: Declared<'s>, items: &mut [Value]) -> Result<(), DecodeError> {
        for (at, value) in items.iter_mut().enumerate() {
            let length = self.path.len();
            write!(self.path, "[{at}]").expect(ENDLESS);
            self.value(item, value)?;
            self.path.truncate(length);
        }
        Ok(())
    }

    fn union(
        &mut self,
        declared: Declared<'s>,
        union: Union,
        id: TypeId,
        value: &mut Value,
    ) -> Result<(), DecodeError> {
        // Types with two forms read themselves upstream, and report nothing.
        let mode = std::mem::replace(&mut self.mode, CoerceMode::Drop);
        let result = self.union_parts(declared, union, id, value);
        self.mode = mode;
        result
    }

    fn union_parts(
        &mut self,
        declared: Declared<'s>,
        union: Union,
        id: TypeId,
        value: &mut Value,
    ) -> Result<(), DecodeError> {
        match (union, value) {
            (_, Value::Object(object)) => self.object(id, object),
            (Union::SchemaOrBool, Value::Bool(_)) => Ok(()),
            (Union::SchemaOrArray, Value::Array(items)) => {
                for item in items {
                    match item {
                        Value::Object(object) => self.object(id, object)?,
                        other => return Err(self.mismatch(other, declared)),
                    }
                }
                Ok(())
            }
            (Union::SchemaOrStrings, Value::Array(items)) if items.iter().all(Value::is_string) => {
                Ok(())
            }
            (_, other) => Err(self.mismatch(other, declared)),
        }
    }

    /// Go names the inlined structs between a struct and its field.
    fn push_field(&self, text: &mut String, mut within: TypeId, field: FieldRef) {
        while within != field.owner {
            let inlined = self.pool.get(within).fields.iter().filter(|f| f.inline);
            let structs = inlined.filter_map(|f| crate::data::struct_of(&f.shape));
            let holds =
                |id: &TypeId| self.pool.get(*id).flat.iter().any(|r| r.owner == field.owner);
            let Some(next) = { structs }.find(holds) else { break };
            text.push('.');
            text.push_str(self.pool.get(next).short_name());
            within = next;
        }
        text.push('.');
        text.push_str(&self.pool.declared(field).name);
    }

    fn report(&mut self, name: &str) {
        if self.mode == CoerceMode::Report && self.unknown.len() < MAX_UNKNOWN {
            let length = self.path.len();
            push_key(&mut self.path, name);
            self.unknown.push(Unknown { path: self.path.clone() });
            self.path.truncate(length);
        }
    }

    /// The error of a value whose JSON type doesn't fit.
    fn mismatch(&self, value: &Value, declared: Declared<'s>) -> DecodeError {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        self.cannot(found, &declared.go_type(self.pool))
    }

    fn cannot(&self, found: &str, go_type: &str) -> DecodeError {
        let mut text = format!("json: cannot unmarshal {found} into Go ");
        match self.owner {
            None => text.push_str("value"),
            Some(owner) => {
                write!(text, "struct field {}", self.pool.get(owner).short_name()).expect(ENDLESS);
                for (within, field) in &self.fields {
                    self.push_field(&mut text, *within, *field);
                }
            }
        }
        write!(text, " of type {go_type}").expect(ENDLESS);
        DecodeError(text.into())
    }
}

// === impl Declared ===

impl<'s> Declared<'s> {
    fn below(self, shape: &'s Shape) -> Self {
        Self { shape, name: self.name, depth: self.depth + 1 }
    }

    fn go_type(&self, pool: &Pool) -> String {
        let mut name = self.name;
        for _ in 0..self.depth {
            let inner = |n: &'s str| n.strip_prefix("[]").or_else(|| n.strip_prefix("map[string]"));
            name = name.and_then(inner);
        }
        name.map_or_else(|| go_type(pool, self.shape), str::to_owned)
    }
}

fn go_type(pool: &Pool, shape: &Shape) -> String {
    match shape {
        Shape::List(item) => format!("[]{}", go_type(pool, item)),
        Shape::Map(item) => format!("map[string]{}", go_type(pool, item)),
        Shape::Struct(id) | Shape::Union(_, id) => pool.get(*id).go_name().to_owned(),
        Shape::Scalar(scalar) => scalar.go_type().to_owned(),
    }
}

// === impl Pool ===

impl Pool {
    fn lookup(&self, id: TypeId, json_name: &str) -> Option<FieldRef> {
        let flat = &self.get(id).flat;
        let at = flat.binary_search_by(|r| (*self.declared(*r).name).cmp(json_name)).ok()?;
        flat.get(at).copied()
    }

    /// What Go writes for a field that was never set.
    fn filled(&self, field: &Field) -> Value {
        if field.pointer { Value::Null } else { self.zero_of(&field.shape) }
    }

    fn zero_of(&self, shape: &Shape) -> Value {
        let Shape::Struct(id) = shape else { return zero(shape) };
        let always = self.get(*id).always.iter().map(|r| self.declared(*r));
        let fields = always.map(|field| (field.name.clone().into_owned(), self.filled(field)));
        Value::Object(fields.collect())
    }
}

/// Go's zero value as JSON; objects without their fields.
pub(crate) fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::Struct(_) => Value::Object(Map::new()),
        Shape::List(_) | Shape::Map(_) | Shape::Union(..) => Value::Null,
        Shape::Scalar(scalar) => scalar.zero(),
    }
}

/// Protobuf knows no nil in the entries of a map.
fn fill_entry(shape: &Shape, value: &mut Value) {
    if value.is_null() {
        match shape {
            Shape::Scalar(Scalar::Bytes) => *value = Value::String(String::new()),
            Shape::Scalar(Scalar::Strings) => *value = Value::Array(Vec::new()),
            _ => {}
        }
    }
}

fn push_key(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

#[cfg(test)]
mod tests;
