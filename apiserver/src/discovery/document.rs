//! A document that many clients fetch again and again: bytes, ETag, and a compressed form.

use std::io::Write;
use std::sync::OnceLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION, VARY,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use machinery::hash::upper_hex_sha512;
use serde_json::Value;

use crate::http::body::Body;
use crate::http::negotiate::{Encoding, accepts_gzip};

/// Smaller documents are sent as they are.
const COMPRESS_FROM: usize = 128 * 1024;

/// A whole document.
#[derive(Debug)]
pub(crate) struct Document {
    body: Bytes,
    media_type: &'static str,
    /// The hash of the body, if clients may ask by it whether it has changed.
    hash: Option<String>,
    compressed: OnceLock<Bytes>,
}

// === impl Document ===

impl Document {
    /// A document that is sent whole each time.
    pub(crate) fn plain(value: &Value) -> Self {
        Self::new(value, "application/json", false)
    }

    /// A document with an ETag.
    pub(crate) fn tagged(value: &Value, media_type: &'static str) -> Self {
        Self::new(value, media_type, true)
    }

    /// A document with an ETag, as it is.
    pub(crate) fn written(body: Vec<u8>, media_type: &'static str) -> Self {
        let body = Bytes::from(body);
        let hash = Some(upper_hex_sha512(&body));
        Self { body, media_type, hash, compressed: OnceLock::new() }
    }

    fn new(value: &Value, media_type: &'static str, tagged: bool) -> Self {
        let body = Bytes::from(value.to_string());
        let hash = tagged.then(|| upper_hex_sha512(&body));
        Self { body, media_type, hash, compressed: OnceLock::new() }
    }

    /// A document in another encoding than that whose hash it has.
    pub(crate) fn encoded(body: Vec<u8>, media_type: &'static str, hash: &str) -> Self {
        let (body, hash) = (Bytes::from(body), Some(hash.to_owned()));
        Self { body, media_type, hash, compressed: OnceLock::new() }
    }

    /// The bytes of memory that it takes.
    pub(crate) fn size(&self) -> usize {
        self.body.len() + self.compressed.get().map_or(0, Bytes::len)
    }

    /// The hash of the body; empty without one.
    pub(crate) fn hash(&self) -> &str {
        self.hash.as_deref().unwrap_or_default()
    }

    /// The answer to a request with these headers: the document, or that it has not changed.
    pub(crate) fn answer(&self, headers: &HeaderMap, encoding: Encoding) -> Response<Body> {
        let tag =
            self.hash.as_ref().and_then(|hash| HeaderValue::from_str(&format!("\"{hash}\"")).ok());
        let unchanged = tag.as_ref().is_some_and(|tag| matches(headers, tag));
        let mut response = if unchanged {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else if self.body.len() >= COMPRESS_FROM && accepts_gzip(headers) {
            let mut response = Response::new(Body::full(self.compressed()));
            let gzip = HeaderValue::from_static("gzip");
            response.headers_mut().insert(CONTENT_ENCODING, gzip);
            response
        } else {
            Response::new(Body::full(self.body.clone()))
        };
        let told = response.headers_mut();
        if !unchanged {
            // JSON is YAML as it stands.
            let media_type = match encoding {
                Encoding::Yaml => encoding.media_type(),
                _ => self.media_type,
            };
            told.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        told.insert(VARY, HeaderValue::from_static("Accept"));
        if let Some(tag) = tag {
            told.insert(ETAG, tag);
            told.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
        }
        response
    }

    fn compressed(&self) -> Bytes {
        let make = || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            // Writing to memory does not fail.
            let written = encoder.write_all(&self.body).and_then(|()| encoder.finish());
            written.map(Bytes::from).unwrap_or_default()
        };
        self.compressed.get_or_init(make).clone()
    }
}

/// Whether `If-None-Match` names this tag.
fn matches(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let Ok(tag) = tag.to_str() else { return false };
    let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|given| given == "*" || given.strip_prefix("W/").unwrap_or(given) == tag)
}

/// The answer that sends a client elsewhere for good.
pub(crate) fn moved(to: &str) -> Option<Response<Body>> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    response.headers_mut().insert(LOCATION, HeaderValue::from_str(to).ok()?);
    Some(response)
}
