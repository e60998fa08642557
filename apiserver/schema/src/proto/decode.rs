//! From messages to JSON.

use machinery::json::{self, Limits};
use serde_json::{Map, Value};

use super::wire::{Raw, Reader};
use super::{MAX_OBJECTS, ProtoError, scalar};
use crate::model::{Field, Pool, Scalar, Shape, TypeId, Union};

/// Decodes messages whose types are in one pool.
pub(super) struct Decoder<'p> {
    pool: &'p Pool,
    max_depth: usize,
    objects_left: u32,
}

// === impl Decoder ===

impl<'p> Decoder<'p> {
    pub(super) fn new(pool: &'p Pool) -> Self {
        Self { pool, max_depth: Limits::default().max_depth, objects_left: MAX_OBJECTS }
    }

    /// Decodes a message of type `id` into an object that lies `depth` deep; later values of a
    /// field win, later messages merge into earlier ones.
    pub(super) fn message(
        &mut self,
        id: TypeId,
        message: &[u8],
        object: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), ProtoError> {
        self.count(depth)?;
        let fields = &self.pool.get(id).fields;
        let mut reader = Reader::new(message);
        let mut last = 0;
        while let Some((number, raw)) = reader.next()? {
            // Fields mostly come in the order of their numbers, which mostly is ours.
            let is_it = |field: &Field| field.number == number;
            let ahead = fields.iter().skip(last).position(is_it).map(|at| at + last);
            let Some(at) = ahead.or_else(|| fields.iter().position(is_it)) else { continue };
            last = at;
            self.field(&fields[at], raw, object, depth)?;
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &Field,
        raw: Raw<'_>,
        object: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), ProtoError> {
        let name = &*field.name;
        match (&field.shape, object.get_mut(name)) {
            (Shape::Struct(id), _) if field.inline => {
                return self.message(*id, raw.bytes(name)?, object, depth);
            }
            (Shape::Struct(id), Some(Value::Object(existing))) => {
                return self.message(*id, raw.bytes(name)?, existing, depth + 1);
            }
            (Shape::List(item), Some(Value::Array(items))) => {
                return self.item(name, item, raw, items, depth + 2);
            }
            (Shape::Map(item), Some(Value::Object(entries))) => {
                return self.entry(name, item, raw, entries, depth + 2);
            }
            _ => {}
        }
        let value = match &field.shape {
            Shape::List(item) => {
                let mut items = Vec::new();
                self.item(name, item, raw, &mut items, depth + 2)?;
                Value::Array(items)
            }
            Shape::Map(item) => {
                let mut entries = Map::new();
                self.entry(name, item, raw, &mut entries, depth + 2)?;
                Value::Object(entries)
            }
            shape => self.value(name, shape, raw, depth + 1)?,
        };
        object.insert(name.to_owned(), value);
        Ok(())
    }

    /// Decodes one item of a list, or many numbers that are packed.
    fn item(
        &mut self,
        name: &str,
        shape: &Shape,
        raw: Raw<'_>,
        items: &mut Vec<Value>,
        depth: usize,
    ) -> Result<(), ProtoError> {
        if let (Shape::Scalar(Scalar::Bool | Scalar::Int32 | Scalar::Int64), Raw::Bytes(packed)) =
            (shape, raw)
        {
            let mut reader = Reader::new(packed);
            while !reader.is_empty() {
                let number = Raw::Varint(reader.varint()?);
                items.push(self.value(name, shape, number, depth)?);
            }
            return Ok(());
        }
        items.push(self.value(name, shape, raw, depth)?);
        Ok(())
    }

    /// Decodes one entry of a map: a message {1: key, 2: value}.
    fn entry(
        &mut self,
        name: &str,
        shape: &Shape,
        raw: Raw<'_>,
        entries: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), ProtoError> {
        self.count(depth - 1)?;
        let mut reader = Reader::new(raw.bytes(name)?);
        let mut key = "";
        // Null is made the zero value when the whole object becomes canonical; that of bytes would
        // stay null, where Go has no bytes.
        let mut value = match shape {
            Shape::Scalar(Scalar::Bytes) => Value::String(String::new()),
            _ => Value::Null,
        };
        while let Some((number, raw)) = reader.next()? {
            match number {
                1 => key = raw.text(name)?,
                2 => value = self.value(name, shape, raw, depth)?,
                _ => {}
            }
        }
        entries.insert(key.to_owned(), value);
        Ok(())
    }

    /// Decodes a single value; if it is an object, it lies `depth` deep.
    fn value(
        &mut self,
        name: &str,
        shape: &Shape,
        raw: Raw<'_>,
        depth: usize,
    ) -> Result<Value, ProtoError> {
        match shape {
            Shape::Struct(id) => {
                let mut object = Map::new();
                self.message(*id, raw.bytes(name)?, &mut object, depth)?;
                Ok(Value::Object(object))
            }
            Shape::Union(union, id) => self.union(name, *union, *id, raw, depth),
            Shape::Scalar(Scalar::Raw | Scalar::Json | Scalar::FieldsV1) => {
                self.raw_json(name, raw, depth)
            }
            Shape::Scalar(scalar) => scalar::decode(name, *scalar, raw),
            Shape::List(_) | Shape::Map(_) => {
                Err(ProtoError::Value(format!("{name}: protobuf has no lists of lists")))
            }
        }
    }

    fn union(
        &mut self,
        name: &str,
        union: Union,
        id: TypeId,
        raw: Raw<'_>,
        depth: usize,
    ) -> Result<Value, ProtoError> {
        let mut reader = Reader::new(raw.bytes(name)?);
        let mut allows = false;
        let mut schema = None;
        let mut items = Vec::new();
        while let Some((number, raw)) = reader.next()? {
            match (union, number) {
                (Union::SchemaOrBool, 1) => allows = raw.varint(name)? != 0,
                (Union::SchemaOrBool, 2) | (_, 1) => {
                    let object = schema.get_or_insert_with(Map::new);
                    self.message(id, raw.bytes(name)?, object, depth)?;
                }
                (Union::SchemaOrArray, 2) => {
                    items.push(self.value(name, &Shape::Struct(id), raw, depth + 1)?);
                }
                (Union::SchemaOrStrings, 2) => items.push(raw.text(name)?.into()),
                _ => {}
            }
        }
        Ok(match (union, schema) {
            (Union::SchemaOrBool, None) => Value::Bool(allows),
            (Union::SchemaOrBool, Some(schema)) => Value::Object(schema),
            _ if !items.is_empty() => Value::Array(items),
            (_, Some(schema)) => Value::Object(schema),
            (_, None) => Value::Null,
        })
    }

    /// Decodes a message {1: JSON text}.
    fn raw_json(&self, name: &str, raw: Raw<'_>, depth: usize) -> Result<Value, ProtoError> {
        let mut reader = Reader::new(raw.bytes(name)?);
        let mut text = &[][..];
        while let Some((number, raw)) = reader.next()? {
            if number == 1 {
                text = raw.bytes(name)?;
            }
        }
        if text.is_empty() {
            return Ok(Value::Null);
        }
        let max_depth = self.max_depth.checked_sub(depth).ok_or(ProtoError::TooDeep)?;
        let limits = Limits { max_depth, ..Limits::default() };
        let parsed = json::parse(text, &limits);
        let parsed = parsed.map_err(|error| ProtoError::Value(format!("{name}: {error}")))?;
        Ok(parsed.value)
    }

    /// Counts an object that lies `depth` deep.
    fn count(&mut self, depth: usize) -> Result<(), ProtoError> {
        if depth > self.max_depth {
            return Err(ProtoError::TooDeep);
        }
        self.objects_left = self.objects_left.checked_sub(1).ok_or(ProtoError::TooMany)?;
        Ok(())
    }
}
