//! From canonical JSON to messages, as Go's generated code writes them: fields by number, maps by
//! key, scalars that aren't pointers even when they are zero.

use std::cmp::Reverse;

use serde_json::{Map, Value};

use super::wire::Writer;
use super::{ProtoError, scalar};
use crate::model::{Field, Pool, Scalar, Shape, TypeId, Union};

/// Encodes objects whose types are in one pool.
pub(super) struct Encoder<'p> {
    pool: &'p Pool,
    writer: Writer,
}

// === impl Encoder ===

impl<'p> Encoder<'p> {
    pub(super) fn new(pool: &'p Pool) -> Self {
        Self { pool, writer: Writer::default() }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.writer.finish()
    }

    /// Writes the fields of an object of type `id`; a missing object has only zero values.
    pub(super) fn message(
        &mut self,
        id: TypeId,
        object: Option<&Map<String, Value>>,
    ) -> Result<(), ProtoError> {
        let mut fields: Vec<&Field> =
            self.pool.get(id).fields.iter().filter(|field| field.number > 0).collect();
        fields.sort_unstable_by_key(|field| Reverse(field.number));
        for field in fields {
            if field.inline
                && let Shape::Struct(inner) = field.shape
            {
                let end = self.writer.len();
                self.message(inner, object)?;
                self.writer.delimit(field.number, end);
                continue;
            }
            let value = object.and_then(|object| object.get(&*field.name));
            self.field(field, value.filter(|value| !value.is_null()))?;
        }
        Ok(())
    }

    fn field(&mut self, field: &Field, value: Option<&Value>) -> Result<(), ProtoError> {
        let name = &*field.name;
        match (&field.shape, value) {
            (Shape::List(_) | Shape::Map(_), None) => {}
            (Shape::Scalar(Scalar::Bytes | Scalar::Strings), None) => {}
            (_, None) if field.pointer => {}
            (Shape::List(shape), Some(value)) => {
                let items = value.as_array().ok_or_else(|| mismatch(name))?;
                for item in items.iter().rev() {
                    self.value(name, field.number, shape, not_null(item))?;
                }
            }
            (Shape::Map(shape), Some(value)) => {
                let entries = value.as_object().ok_or_else(|| mismatch(name))?;
                for (key, item) in entries.iter().rev() {
                    let end = self.writer.len();
                    let item = not_null(item);
                    if item.is_some() || **shape != Shape::Scalar(Scalar::Bytes) {
                        self.value(name, 2, shape, item)?;
                    }
                    self.writer.bytes(1, key.as_bytes());
                    self.writer.delimit(field.number, end);
                }
            }
            (shape, value) => self.value(name, field.number, shape, value)?,
        }
        Ok(())
    }

    /// Writes one value as the field `number`; zero when there is none.
    fn value(
        &mut self,
        name: &str,
        number: u32,
        shape: &Shape,
        value: Option<&Value>,
    ) -> Result<(), ProtoError> {
        let end = self.writer.len();
        match shape {
            Shape::Struct(id) => {
                let object = value.map(|value| value.as_object().ok_or_else(|| mismatch(name)));
                self.message(*id, object.transpose()?)?;
                self.writer.delimit(number, end);
                Ok(())
            }
            Shape::Union(union, id) => {
                if let Some(value) = value {
                    self.union(name, *union, *id, value)?;
                }
                self.writer.delimit(number, end);
                Ok(())
            }
            Shape::Scalar(scalar) => scalar::encode(&mut self.writer, number, *scalar, value)
                .ok_or_else(|| mismatch(name)),
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
        value: &Value,
    ) -> Result<(), ProtoError> {
        let schema = Shape::Struct(id);
        match (union, value) {
            (Union::SchemaOrBool, Value::Bool(allows)) => {
                self.writer.varint(1, u64::from(*allows));
            }
            (Union::SchemaOrBool, Value::Object(_)) => {
                self.value(name, 2, &schema, Some(value))?;
                self.writer.varint(1, 1);
            }
            (_, Value::Object(_)) => self.value(name, 1, &schema, Some(value))?,
            (_, Value::Array(items)) => {
                let string = Shape::Scalar(Scalar::String);
                let shape = if union == Union::SchemaOrArray { &schema } else { &string };
                for item in items.iter().rev() {
                    self.value(name, 2, shape, not_null(item))?;
                }
            }
            _ => return Err(mismatch(name)),
        }
        Ok(())
    }
}

fn not_null(value: &Value) -> Option<&Value> {
    (!value.is_null()).then_some(value)
}

fn mismatch(name: &str) -> ProtoError {
    ProtoError::Value(format!("{name} has a value that its type doesn't have"))
}
