//! `PartialObjectMetadata`: an object without what makes its kind.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http::negotiate::MetaVersion;

/// The metadata of an object's JSON as it stands there, without copying it. `{}` when there is none.
pub(super) fn raw(json: &Bytes) -> Bytes {
    #[derive(Deserialize)]
    struct Outer<'a> {
        #[serde(borrow)]
        metadata: Option<&'a RawValue>,
    }
    match serde_json::from_slice::<Outer<'_>>(json) {
        Ok(Outer { metadata: Some(metadata) }) => json.slice_ref(metadata.get().as_bytes()),
        _ => Bytes::from_static(b"{}"),
    }
}

/// The whole object of that kind.
pub(super) fn partial(json: &Bytes, version: MetaVersion) -> Bytes {
    let metadata = raw(json);
    let mut out = BytesMut::with_capacity(metadata.len() + 96);
    out.put_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"");
    out.put_slice(version.api_version().as_bytes());
    out.put_slice(b"\",\"metadata\":");
    out.put_slice(&metadata);
    out.put_u8(b'}');
    out.freeze()
}
