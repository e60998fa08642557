//! JSON that remembers duplicate keys.

use std::fmt;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::error::{JsonError, TOO_DEEP};
use super::path::Path;
use super::{Limits, Parsed, scalar};

/// How often a duplicate is looked at per reported one; the same path can come many times.
const ATTEMPTS: usize = 10;

/// Parses one JSON document.
///
/// The last of duplicate keys wins. Integers in the range of `i64` are integers, larger ones
/// become floats as in Go. Floats without a fraction become integers, as Go writes them. A UTF-8 byte order mark is not skipped (RFC 8259).
///
/// # Errors
/// [`JsonError`] for anything that is no JSON (RFC 8259): invalid UTF-8, lone surrogates, numbers
/// beyond an `f64`, anything behind the value; and for nesting beyond the limit.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Parsed, JsonError> {
    let mut duplicates = Duplicates::new(limits.max_duplicates);
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let node = Node { duplicates: &mut duplicates, path: &Path::Root, levels: limits.max_depth };
    let value = node
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|e| JsonError::from_serde(&e, bytes))?;
    Ok(Parsed { value, duplicates: duplicates.paths })
}

/// The duplicates found so far.
struct Duplicates {
    paths: Vec<String>,
    max: usize,
    attempts: usize,
}

impl Duplicates {
    fn new(max: usize) -> Self {
        Self { paths: Vec::new(), max, attempts: max.saturating_mul(ATTEMPTS) }
    }

    /// Adds `key` at position `at`: duplicates inside its value came later in the document.
    fn add(&mut self, at: usize, path: &Path<'_>, key: &str) {
        if at >= self.max || self.attempts == 0 {
            return;
        }
        self.attempts -= 1;
        let text = path.render(key);
        if self.paths.iter().take(at).any(|p| *p == text) {
            return;
        }
        self.paths.insert(at.min(self.paths.len()), text);
        self.paths.truncate(self.max);
    }
}

/// Reads one value; `levels` more may open inside.
struct Node<'a> {
    duplicates: &'a mut Duplicates,
    path: &'a Path<'a>,
    levels: usize,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(match i64::try_from(value) {
            Ok(value) => Value::from(value),
            Err(_) => Value::from(value as f64),
        })
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        if let Some(whole) = scalar::as_integer(value) {
            return Ok(Value::from(whole));
        }
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let Some(levels) = self.levels.checked_sub(1) else {
            return Err(de::Error::custom(TOO_DEEP));
        };
        let mut list = Vec::new();
        loop {
            let path = Path::Index(self.path, list.len());
            let node = Node { duplicates: self.duplicates, path: &path, levels };
            match items.next_element_seed(node)? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let Some(levels) = self.levels.checked_sub(1) else {
            return Err(de::Error::custom(TOO_DEEP));
        };
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let before = self.duplicates.paths.len();
            let path = Path::Key(self.path, &key);
            let node = Node { duplicates: self.duplicates, path: &path, levels };
            let value = entries.next_value_seed(node)?;
            // The usual case moves the key; only a duplicate needs it twice.
            if map.contains_key(&key) {
                self.duplicates.add(before, self.path, &key);
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
