//! The protobuf form of documents: messages of `gnostic`, in which Go's clients read them.
//!
//! A message is a table of its fields, and one encoder writes any of them from the JSON. Only what
//! this server emits is in the tables: other keywords are left out. Extensions, defaults, examples
//! and enumerated values are any YAML in gnostic, and JSON is YAML.
//!
//! Facts (names and numbers of fields) are those of `OpenAPIv2.proto` and `OpenAPIv3.proto` in the
//! module `github.com/google/gnostic-models`.

mod v2;
mod v3;

use serde_json::{Map, Value};

use crate::proto::wire::Writer;

/// JSON nests this deep at most in what is encoded; deeper parts are empty messages.
const MAX_DEPTH: usize = 512;

/// An OpenAPI v2 document as a protobuf `openapi.v2.Document`, made piece by piece.
#[derive(Default)]
pub(super) struct Pieces {
    paths: Vec<u8>,
    definitions: Vec<u8>,
}

/// An OpenAPI v3 document as a protobuf `openapi.v3.Document`.
pub fn v3_protobuf(document: &Value) -> Vec<u8> {
    encode(document, &v3::DOCUMENT)
}

/// A message: which keys of a JSON object become which fields.
struct Message {
    fields: &'static [Field],
    /// What becomes of other keys.
    rest: Rest,
}

/// One field of a message: its key in JSON, its number, and what it holds.
struct Field(&'static str, u32, Kind);

/// Keys of an object that have no field of their own.
enum Rest {
    /// They are left out.
    Dropped,
    /// Those that begin with `x-` are a list of named YAML, with this number.
    Extensions(u32),
    /// All are a list of named values, with this number.
    Named(u32, Kind),
    /// Those that begin with `x-` are named YAML with the first number, others named values with
    /// the second.
    Both(u32, u32, Kind),
}

/// What a field holds.
#[derive(Clone, Copy)]
enum Kind {
    /// Text; empty text is absent.
    Text,
    /// True, or absent.
    Flag,
    /// An integer; zero is absent.
    Integer,
    /// A number; zero is absent.
    Double,
    /// Any value, as YAML.
    Yaml,
    /// A message.
    One(&'static Message),
    /// One of several messages, or a value that is a message by its place: the value decides.
    /// Yields the number that the value has inside of the message, and its kind.
    Choice(fn(&Value) -> Option<(u32, Kind)>),
    /// A repeated field; an item of any other kind.
    Many(&'static Kind),
    /// A field of a `oneof`, which is written even when it is false, zero or empty.
    Present(&'static Kind),
}

// === impl Pieces ===

impl Pieces {
    pub(super) fn path(&mut self, name: &str, item: Value) {
        self.paths.append(&mut encode(&single(name, item), &v2::PATHS));
    }

    pub(super) fn definition(&mut self, name: &str, schema: Value) {
        self.definitions.append(&mut encode(&single(name, schema), &v2::DEFINITIONS));
    }

    /// The whole document, of which `rest` is all but the pieces.
    pub(super) fn finish(self, rest: &Value) -> Vec<u8> {
        let mut out = Writer::default();
        out.bytes(v2::DEFINITIONS_FIELD, &self.definitions);
        out.bytes(v2::PATHS_FIELD, &self.paths);
        let mut document = encode(rest, &v2::DOCUMENT);
        document.append(&mut out.finish());
        document
    }
}

fn single(name: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), value)]))
}

fn encode(document: &Value, message: &'static Message) -> Vec<u8> {
    let mut out = Writer::default();
    write_message(&mut out, document, message, 0);
    out.finish()
}

/// Writes the fields of a message. The writer goes from the end to the beginning, so that the last
/// field comes first.
fn write_message(out: &mut Writer, value: &Value, message: &Message, depth: usize) {
    let Some(object) = value.as_object().filter(|_| depth < MAX_DEPTH) else { return };
    match &message.rest {
        Rest::Dropped => {}
        Rest::Extensions(number) => extensions(out, object, *number, depth),
        Rest::Named(number, kind) => named(out, object, *number, *kind, depth, |_| true),
        Rest::Both(extension, number, kind) => {
            named(out, object, *number, *kind, depth, |key| !key.starts_with("x-"));
            extensions(out, object, *extension, depth);
        }
    }
    for Field(key, number, kind) in message.fields.iter().rev() {
        if let Some(value) = object.get(*key) {
            write_field(out, *number, value, *kind, depth + 1);
        }
    }
}

fn extensions(out: &mut Writer, object: &Map<String, Value>, number: u32, depth: usize) {
    named(out, object, number, Kind::Yaml, depth, |key| key.starts_with("x-"));
}

/// A list of messages with a name (1) and a value (2).
fn named(
    out: &mut Writer,
    object: &Map<String, Value>,
    number: u32,
    kind: Kind,
    depth: usize,
    wanted: fn(&str) -> bool,
) {
    for (key, value) in object.iter().rev().filter(|(key, _)| wanted(key)) {
        let end = out.len();
        write_field(out, 2, value, kind, depth + 1);
        out.bytes(1, key.as_bytes());
        out.delimit(number, end);
    }
}

fn write_field(out: &mut Writer, number: u32, value: &Value, kind: Kind, depth: usize) {
    match kind {
        Kind::Text => {
            let text = value.as_str().unwrap_or_default();
            if !text.is_empty() {
                out.bytes(number, text.as_bytes());
            }
        }
        Kind::Flag if value == &Value::Bool(true) => out.varint(number, 1),
        Kind::Flag => {}
        Kind::Integer => {
            // Negative numbers take all 64 bits.
            let integer = value.as_i64().or_else(|| value.as_f64().map(|float| float as i64));
            if let Some(integer) = integer.filter(|integer| *integer != 0) {
                out.varint(number, integer.cast_unsigned());
            }
        }
        Kind::Double => {
            if let Some(float) = value.as_f64().filter(|float| *float != 0.0) {
                out.double(number, float);
            }
        }
        Kind::Yaml => {
            let end = out.len();
            out.bytes(2, yaml(value).as_bytes());
            out.delimit(number, end);
        }
        Kind::One(message) => {
            let end = out.len();
            write_message(out, value, message, depth);
            out.delimit(number, end);
        }
        Kind::Choice(choose) => {
            let end = out.len();
            if let Some((inner, kind)) = choose(value).filter(|_| depth < MAX_DEPTH) {
                write_field(out, inner, value, kind, depth + 1);
            }
            out.delimit(number, end);
        }
        Kind::Many(item) => {
            for value in value.as_array().into_iter().flatten().rev() {
                write_field(out, number, value, *item, depth + 1);
            }
        }
        Kind::Present(inner) => match (*inner, value) {
            (Kind::Text, Value::String(text)) => out.bytes(number, text.as_bytes()),
            (Kind::Flag, Value::Bool(flag)) => out.varint(number, u64::from(*flag)),
            (Kind::Double, value) => out.double(number, value.as_f64().unwrap_or_default()),
            (inner, value) => write_field(out, number, value, inner, depth),
        },
    }
}

/// A value as YAML on one line. JSON is YAML, but for the control characters that only JSON takes
/// unescaped; they can stand in texts alone.
fn yaml(value: &Value) -> String {
    let json = value.to_string();
    let mut out = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('\n');
    out
}

/// Whether an object is a reference.
fn is_reference(value: &Value) -> bool {
    value.get("$ref").is_some()
}

#[cfg(test)]
mod tests;
