//! JSON to values, by declared types.

use serde_json::Value as Json;

use crate::decl::{DYN, DeclType, Shape};
use crate::library::{bytes, time};
use crate::types::Type;
use crate::value::{EvalError, List, Map, Text, V, Value};

impl<'a> Value<'a> {
    /// The value that `json` has under the declared type `decl`. Only this level is looked at; what is
    /// inside is read when it is asked for.
    ///
    /// # Errors
    /// If the JSON isn't of that type.
    pub fn from_json(json: &'a Json, decl: &'a DeclType) -> Result<Self, EvalError> {
        V::from_json(json, decl).map(Self)
    }

    /// The value of JSON about which nothing is declared.
    pub fn from_untyped(json: &'a Json) -> Self {
        Self(V::dynamic(json))
    }
}

impl<'a> V<'a> {
    pub(crate) fn from_json(json: &'a Json, decl: &'a DeclType) -> Result<Self, EvalError> {
        let value = match (decl.shape(), decl.ty(), json) {
            (_, _, Json::Null) => V::Null,
            (Shape::List { element, semantics }, _, Json::Array(items)) => {
                V::List(List::Json { items, element, semantics })
            }
            (Shape::Map { .. } | Shape::Object(_), _, Json::Object(map)) => {
                V::Map(Map::Json { map, decl })
            }
            (Shape::Plain, Type::Dyn, json) => V::dynamic(json),
            (Shape::Plain, Type::String, Json::String(text)) => V::String(Text::Borrowed(text)),
            (Shape::Plain, Type::Bool, Json::Bool(value)) => V::Bool(*value),
            (Shape::Plain, Type::Int, Json::Number(number)) => match number.as_i64() {
                Some(value) => V::Int(value),
                None => return Err(invalid("int", json)),
            },
            (Shape::Plain, Type::Uint, Json::Number(number)) => match number.as_u64() {
                Some(value) => V::Uint(value),
                None => return Err(invalid("uint", json)),
            },
            (Shape::Plain, Type::Double, Json::Number(number)) => {
                V::Double(number.as_f64().unwrap_or(f64::NAN))
            }
            (Shape::Plain, Type::Duration, Json::String(text)) => time::parse_json_duration(text)
                .map(V::Duration)
                .ok_or_else(|| EvalError::failed(format_args!("Invalid duration {text}")))?,
            (Shape::Plain, Type::Timestamp, Json::String(text)) => {
                time::parse_json_time(text).map(V::Timestamp).ok_or_else(|| {
                    EvalError::failed(format_args!("Invalid date-time formatted string {text}"))
                })?
            }
            (Shape::Plain, Type::Bytes, Json::String(text)) => {
                bytes::decode(text).map(|bytes| V::Bytes(bytes.into())).ok_or_else(|| {
                    EvalError::failed(format_args!("Invalid byte formatted string {text}"))
                })?
            }
            (_, ty, json) => return Err(invalid(ty.runtime_name(), json)),
        };
        Ok(value)
    }

    /// JSON as it is: integers that fit are ints, other numbers are doubles.
    fn dynamic(json: &'a Json) -> Self {
        match json {
            Json::Null => V::Null,
            Json::Bool(value) => V::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(value) => V::Int(value),
                None => V::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => V::String(Text::Borrowed(text)),
            Json::Array(items) => {
                static ATOMIC: crate::decl::ListSemantics = crate::decl::ListSemantics::Atomic;
                V::List(List::Json { items, element: &DYN, semantics: &ATOMIC })
            }
            Json::Object(map) => V::Map(Map::Json { map, decl: &DYN }),
        }
    }
}

fn invalid(expected: &str, found: &Json) -> EvalError {
    let found = match found {
        Json::Null => "null",
        Json::Bool(_) => "bool",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    };
    EvalError::failed(format_args!("invalid data, expected {expected}, got {found}"))
}
