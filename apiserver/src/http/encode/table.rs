//! `Table`: what `kubectl get` prints.

use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use schema::{ResourceDef, table};
use serde_json::Value;

use super::metadata;
use crate::http::negotiate::MetaVersion;
use crate::http::query::Query;
use crate::registry::Error;

/// What a row says of its object (`includeObject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    #[default]
    Metadata,
    Object,
}

// === impl Include ===

impl Include {
    /// Reads the query parameter.
    ///
    /// # Errors
    /// For a value that is none of the three.
    pub(crate) fn parse(query: &Query<'_>) -> Result<Self, Error> {
        match query.text("includeObject") {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => Err(Error::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: \
                 {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

/// `columnDefinitions` of a resource, as JSON.
pub(super) fn columns(resource: &ResourceDef) -> Vec<u8> {
    let columns: Vec<Value> =
        table::columns(resource).iter().map(table::Column::definition).collect();
    serde_json::to_vec(&columns).expect("definitions are JSON values")
}

/// One row, as JSON.
pub(super) fn row(
    json: &Bytes,
    resource: &ResourceDef,
    version: MetaVersion,
    include: Include,
    now: Timestamp,
) -> Bytes {
    // Only what the store holds comes here; a body that does not parse has no cells but its name.
    let object = serde_json::from_slice::<Value>(json).unwrap_or_default();
    let cells = table::row(resource, &object, now);
    let mut out = BytesMut::with_capacity(512);
    out.put_slice(b"{\"cells\":");
    let cells = serde_json::to_vec(&cells).expect("cells are JSON values");
    out.put_slice(&cells);
    match include {
        Include::None => out.put_slice(b",\"object\":null"),
        Include::Metadata => {
            out.put_slice(b",\"object\":");
            out.put_slice(&metadata::partial(json, version));
        }
        Include::Object => {
            out.put_slice(b",\"object\":");
            out.put_slice(json);
        }
    }
    out.put_u8(b'}');
    out.freeze()
}

/// The part of a table before its rows. `columns` is [`columns`], or `None` to leave it out.
pub(super) fn head(version: MetaVersion, list_metadata: &[u8], columns: Option<&[u8]>) -> BytesMut {
    let mut out = BytesMut::with_capacity(256 + columns.map_or(0, <[u8]>::len));
    out.put_slice(b"{\"kind\":\"Table\",\"apiVersion\":\"");
    out.put_slice(version.api_version().as_bytes());
    out.put_slice(b"\",\"metadata\":");
    out.put_slice(list_metadata);
    out.put_slice(b",\"columnDefinitions\":");
    out.put_slice(columns.unwrap_or(b"null"));
    out.put_slice(b",\"rows\":[");
    out
}

/// A table of one row.
pub(super) fn single(
    json: &Bytes,
    resource: &ResourceDef,
    version: MetaVersion,
    include: Include,
    now: Timestamp,
    with_columns: bool,
) -> Bytes {
    let columns = with_columns.then(|| columns(resource));
    let list_metadata = serde_json::json!({"resourceVersion": resource_version(json)}).to_string();
    let mut out = head(version, list_metadata.as_bytes(), columns.as_deref());
    out.put_slice(&row(json, resource, version, include, now));
    out.put_slice(b"]}");
    out.freeze()
}

fn resource_version(json: &Bytes) -> String {
    let metadata = metadata::raw(json);
    let metadata = serde_json::from_slice::<Value>(&metadata).unwrap_or_default();
    metadata.get("resourceVersion").and_then(Value::as_str).unwrap_or_default().to_owned()
}
