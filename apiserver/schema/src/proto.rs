//! Kubernetes protobuf from and to JSON values, driven by the same tables as everything else.
//!
//! A protobuf body is four magic bytes and a message `Unknown` that names the kind and carries the
//! object's own message. [`decode`] gives the JSON that Go would write for that object, canonical
//! as after [`Schema::coerce`](crate::Schema::coerce); [`encode`] gives, byte for byte, what Go's
//! encoder gives for a canonical value (but raw JSON inside an object has its keys sorted).
//!
//! Go's encoder writes scalars that aren't pointers even when they are zero, so zero on the wire
//! says nothing; and it can't tell an empty list or map from none.
//!
//! Invariants: no input panics; fields that a type lacks are skipped; the time is linear in the
//! input; nesting ends where that of JSON bodies ends, and the number of objects and map entries is
//! bounded ([`MAX_OBJECTS`]), since an empty message of two bytes becomes a whole object.
//!
//! Sources: `k8s.io/apimachinery/pkg/runtime/serializer/protobuf` and the `generated.proto` files.

mod decode;
mod encode;
mod scalar;
pub(crate) mod wire;

use machinery::Gvk;
use serde_json::{Map, Value};

use crate::coerce::CoerceMode;
use crate::model::Schema;
use crate::types::Types;
use decode::Decoder;
use encode::Encoder;
use wire::{Reader, Writer};

/// The bytes with which every protobuf body begins.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// The most objects and map entries in one body: twenty times what the largest real ones have,
/// and some 150 MB in memory at worst.
pub const MAX_OBJECTS: u32 = 200_000;

/// Which object a body carries; `raw` is the message of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The group and version, as `apps/v1`; may be empty.
    pub api_version: &'a str,
    /// The kind; may be empty.
    pub kind: &'a str,
    /// The object's message.
    pub raw: &'a [u8],
    /// How `raw` is compressed; Kubernetes never sets it.
    pub content_encoding: &'a str,
    /// The media type of `raw`; empty for protobuf.
    pub content_type: &'a str,
}

/// Why a body can't be decoded, or a value can't be encoded. All are the sender's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtoError {
    /// The body has no bytes.
    #[error("empty data")]
    Empty,
    /// The body begins with other bytes than [`MAGIC`].
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    Prefix,
    /// The body ends within a field.
    #[error("unexpected EOF")]
    Truncated,
    /// A number of more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A field with a number or wire type that doesn't exist, groups among them.
    #[error("proto: illegal tag {number} (wire type {wire})")]
    IllegalTag {
        /// The field's number.
        number: u64,
        /// The wire type.
        wire: u8,
    },
    /// A field that is encoded as its type can't be.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    WireType {
        /// The field's JSON name, or `?` inside special types.
        field: String,
        /// The wire type.
        wire: u8,
    },
    /// Text that isn't UTF-8.
    #[error("proto: field {field} contains invalid UTF-8")]
    Utf8 {
        /// The field's JSON name, or `?` inside special types.
        field: String,
    },
    /// Objects nest deeper than JSON bodies may.
    #[error("exceeded max depth")]
    TooDeep,
    /// More than [`MAX_OBJECTS`].
    #[error("too many objects in one body")]
    TooMany,
    /// A value that its type doesn't have: a broken amount, an infinite number, raw JSON that is
    /// none. In encoding, a value that isn't canonical.
    #[error("{0}")]
    Value(String),
    /// No such kind is known.
    #[error("no kind {kind:?} is registered for version {version:?}")]
    UnknownKind {
        /// The kind.
        kind: String,
        /// Its group and version.
        version: String,
    },
}

/// Takes a body apart, without looking into the object.
///
/// # Errors
/// Whatever is wrong with the envelope. A missing kind is none.
pub fn decode_envelope(body: &[u8]) -> Result<Envelope<'_>, ProtoError> {
    if body.is_empty() {
        return Err(ProtoError::Empty);
    }
    let mut reader = Reader::new(body.strip_prefix(&MAGIC).ok_or(ProtoError::Prefix)?);
    let mut envelope =
        Envelope { api_version: "", kind: "", raw: &[], content_encoding: "", content_type: "" };
    while let Some((number, value)) = reader.next()? {
        match number {
            1 => {
                let mut inner = Reader::new(value.bytes("typeMeta")?);
                while let Some((number, value)) = inner.next()? {
                    match number {
                        1 => envelope.api_version = value.text("apiVersion")?,
                        2 => envelope.kind = value.text("kind")?,
                        _ => {}
                    }
                }
            }
            2 => envelope.raw = value.bytes("raw")?,
            3 => envelope.content_encoding = value.text("contentEncoding")?,
            4 => envelope.content_type = value.text("contentType")?,
            _ => {}
        }
    }
    Ok(envelope)
}

/// Decodes the message of an object of that kind to canonical JSON, `apiVersion` and `kind` as in
/// `gvk`.
///
/// # Errors
/// [`ProtoError::UnknownKind`], or whatever is wrong with the message.
pub fn decode(types: &Types, gvk: &Gvk, raw: &[u8]) -> Result<Value, ProtoError> {
    decode_as(types.kind(gvk).ok_or_else(|| unknown_kind(gvk))?, gvk, raw)
}

/// Decodes the message of an object of this type, as [`decode`] does.
///
/// # Errors
/// Whatever is wrong with the message.
pub fn decode_as(schema: &Schema, gvk: &Gvk, raw: &[u8]) -> Result<Value, ProtoError> {
    let mut object = Map::new();
    Decoder::new(schema.pool()).message(schema.root(), raw, &mut object, 1)?;
    object.insert("apiVersion".into(), gvk.group_version.to_string().into());
    object.insert("kind".into(), (&*gvk.kind).into());
    let mut object = Value::Object(object);
    schema
        .coerce(&mut object, CoerceMode::Drop)
        .map_err(|error| ProtoError::Value(error.to_string()))?;
    Ok(object)
}

/// Encodes a canonical object of that kind as its message, without an envelope.
///
/// # Errors
/// [`ProtoError::UnknownKind`], or [`ProtoError::Value`] when the object isn't canonical.
pub fn encode(types: &Types, gvk: &Gvk, object: &Value) -> Result<Vec<u8>, ProtoError> {
    encode_as(types.kind(gvk).ok_or_else(|| unknown_kind(gvk))?, object)
}

/// Encodes a canonical object of this type, as [`encode`] does.
///
/// # Errors
/// [`ProtoError::Value`] when the object isn't canonical.
pub fn encode_as(schema: &Schema, object: &Value) -> Result<Vec<u8>, ProtoError> {
    let Value::Object(object) = object else {
        let name = schema.root_struct().short_name();
        return Err(ProtoError::Value(format!("{name} is no object")));
    };
    let mut encoder = Encoder::new(schema.pool());
    encoder.message(schema.root(), Some(object))?;
    Ok(encoder.finish())
}

/// Makes a body of an object's message.
pub fn encode_envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.bytes(4, b"");
    writer.bytes(3, b"");
    writer.bytes(2, raw);
    let end = writer.len();
    writer.bytes(2, kind.as_bytes());
    writer.bytes(1, api_version.as_bytes());
    writer.delimit(1, end);
    writer.raw(&MAGIC);
    writer.finish()
}

/// Makes one frame of a watch: a length of four bytes, big endian, and a `WatchEvent` whose object
/// is a whole body with its envelope.
///
/// # Errors
/// [`ProtoError::TooMany`] when the length needs more than four bytes.
pub fn encode_watch_event(event_type: &str, object: &[u8]) -> Result<Vec<u8>, ProtoError> {
    let mut writer = Writer::default();
    writer.bytes(1, object);
    writer.delimit(2, 0);
    writer.bytes(1, event_type.as_bytes());
    let length = u32::try_from(writer.len()).map_err(|_| ProtoError::TooMany)?;
    writer.raw(&length.to_be_bytes());
    Ok(writer.finish())
}

fn unknown_kind(gvk: &Gvk) -> ProtoError {
    ProtoError::UnknownKind { kind: gvk.kind.to_string(), version: gvk.group_version.to_string() }
}

#[cfg(test)]
mod tests;
