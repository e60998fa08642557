//! Protobuf, for those who take nothing else.

use bytes::Bytes;
use machinery::GroupVersion;
use schema::{Types, proto};
use serde_json::Value;

use crate::registry::Error;

/// A JSON object in its protobuf envelope; `None` when its kind has no protobuf form.
pub(super) fn document(json: &[u8]) -> Option<Bytes> {
    let value: Value = serde_json::from_slice(json).ok()?;
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let version = GroupVersion::parse(text("apiVersion")?)?;
    let kind = version.kind(text("kind")?);
    // Imported kinds are among the known ones; what a CRD made up has no protobuf form.
    let builtin = || Types::builtin().kind(&kind).cloned();
    let schema = Types::known(&kind).or_else(builtin)?;
    let raw = proto::encode_as(&schema, &value).ok()?;
    Some(proto::encode_envelope(text("apiVersion")?, &kind.kind, &raw).into())
}

/// One event of a watch. What has no protobuf form is carried as JSON, which clients tell by its
/// first byte.
pub(super) fn watch_frame(event: &str, object: &[u8]) -> Bytes {
    let object = document(object).unwrap_or_else(|| Bytes::copy_from_slice(object));
    // Only an object of 4 GiB has no frame.
    proto::encode_watch_event(event, &object).map(Bytes::from).unwrap_or_default()
}

/// `DeleteOptions` from a protobuf body, as JSON.
///
/// # Errors
/// When the body is something else.
pub(crate) fn decode_options(types: &Types, bytes: &[u8]) -> Result<Value, Error> {
    let bad = |error: proto::ProtoError| Error::bad_request(error.to_string());
    let envelope = proto::decode_envelope(bytes).map_err(bad)?;
    let kind = GroupVersion::new("meta.k8s.io", "v1").kind("DeleteOptions");
    proto::decode(types, &kind, envelope.raw).map_err(bad)
}
