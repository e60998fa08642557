//! Objects as bytes: the one form in which the store and the cache hold them.
//!
//! # Form
//! Canonical JSON: no white space, keys sorted, except that `apiVersion`, `kind` and `metadata`
//! come first in that order. So the place where `resourceVersion` (and the annotation
//! `kcp.io/cluster`) belongs is found without parsing. A stored value has no `resourceVersion`:
//! the revision is the record's. The empty value is a tombstone: it hides the virtual object that
//! would otherwise stand at its key.

mod body;

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes, BytesMut};
use machinery::json::JsonError;
use machinery::meta::Header;
use serde_json::Value;

use crate::{Expect, Key, Revision};
use body::Body;

/// The annotation that names an object's logical cluster in wildcard answers; never stored.
pub const CLUSTER_ANNOTATION: &str = "kcp.io/cluster";

/// Where an object comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The store holds it.
    Stored,
    /// It follows from its logical cluster or namespace and costs nothing until it is changed.
    Virtual,
    /// The store holds something that is no object. It is shown to nobody and never overwritten.
    Unreadable,
}

/// One object, held once and shared by all that answer with it.
#[derive(Debug)]
pub struct Object {
    /// The key.
    pub key: Key,
    /// What the server knows of it without parsing.
    pub header: Header,
    /// The whole object in its stored version, `resourceVersion` included.
    body: Body,
    /// The revision that wrote it.
    pub revision: Revision,
    /// The revision that created it.
    pub created: Revision,
    /// Where it comes from.
    pub origin: Origin,
    /// What a reader has made of the bytes and keeps with them, as their compressed form.
    pub memo: Memo,
    /// What the server has made of the content: the type that a CRD defines, or the form in which
    /// a custom resource is shown.
    pub derived: Memo,
}

/// A place for one thing that is made at most once.
pub type Memo = OnceLock<Arc<dyn Any + Send + Sync>>;

// === impl Object ===

impl Object {
    /// Takes a stored value, adding its `resourceVersion` (revision + `rv_base`).
    ///
    /// # Errors
    /// When the value is no JSON object.
    pub fn new(
        key: Key,
        value: &[u8],
        revision: Revision,
        rv_base: u64,
        origin: Origin,
    ) -> Result<Self, JsonError> {
        let header = Header::scan(value)?;
        let json = with_resource_version(value, revision.0 + rv_base);
        let body = if shares(&key) { Body::shared(json) } else { Body::Whole(json) };
        Ok(Self {
            key,
            header,
            body,
            revision,
            created: revision,
            origin,
            memo: Memo::new(),
            derived: Memo::new(),
        })
    }

    /// An object that nobody can read: what the store holds at its key is none.
    pub(crate) fn unreadable(
        key: Key,
        revision: Revision,
        created: Revision,
        origin: Origin,
    ) -> Self {
        Self {
            key,
            header: Header::default(),
            body: Body::Whole(Bytes::new()),
            revision,
            created,
            origin,
            memo: Memo::new(),
            derived: Memo::new(),
        }
    }

    /// The whole object in its stored version, `resourceVersion` included. Of a large object whose
    /// parts are shared with others this is a copy; of any other, and mostly, it costs nothing.
    pub fn json(&self) -> Bytes {
        self.body.bytes()
    }

    /// The large part, its `spec`, that objects which are equal there share: one allocation for each
    /// content. `None` for an object that is held in one piece.
    pub fn shared_part(&self) -> Option<&Arc<[u8]>> {
        self.body.part()
    }

    /// Whether these are the object's own bytes, not merely equal ones.
    pub fn is_own(&self, json: &Bytes) -> bool {
        matches!(&self.body, Body::Whole(own) if own.as_ptr() == json.as_ptr())
    }

    /// The same object with the version of another revision.
    pub(crate) fn at(&self, revision: Revision, rv_base: u64) -> Self {
        let json = with_resource_version(&self.json(), revision.0 + rv_base);
        Self {
            key: self.key.clone(),
            header: self.header.clone(),
            body: Body::Whole(json),
            revision,
            created: self.created,
            origin: self.origin,
            memo: Memo::new(),
            derived: Memo::new(),
        }
    }

    /// The same object with other bytes.
    #[must_use]
    pub fn with_json(mut self, json: Bytes) -> Self {
        self.body = Body::Whole(json);
        self
    }

    /// The length of the whole object, in bytes.
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same object, created at an earlier revision.
    #[must_use]
    pub fn created_at(mut self, created: Revision) -> Self {
        self.created = created;
        self
    }

    /// What a commit that replaces this object must require.
    pub fn expect(&self) -> Expect {
        match self.origin {
            Origin::Virtual => Expect::Absent,
            Origin::Stored | Origin::Unreadable => Expect::At(self.revision),
        }
    }

    /// Bytes that this object keeps in memory, roughly.
    pub fn cost(&self) -> usize {
        self.body.own_len() + 256
    }
}

/// Resources whose objects are often large and alike, by their part of the key.
const ALIKE: [&str; 2] =
    ["apiextensions.k8s.io/customresourcedefinitions", "apiresource.kcp.io/apiresourceschemas"];

/// The part of a value that other values are likely to have as well, if it is large.
pub(crate) fn shared_part(key: &Key, value: &[u8]) -> Option<Range<usize>> {
    shares(key).then(|| body::large_spec(value)).flatten()
}

fn shares(key: &Key) -> bool {
    ALIKE.contains(&key.resource_part())
}

/// Writes an object in canonical form. `resourceVersion` is left out, as is the annotation
/// `kcp.io/cluster`.
pub fn encode(value: &Value) -> Bytes {
    let mut out = BytesMut::with_capacity(512).writer();
    let Value::Object(fields) = value else {
        return Bytes::new();
    };
    let mut first = true;
    let mut field = |out: &mut bytes::buf::Writer<BytesMut>, name: &str, value: &Value| {
        out.get_mut().put_u8(if std::mem::take(&mut first) { b'{' } else { b',' });
        write(out, name);
        out.get_mut().put_u8(b':');
        write(out, value);
    };
    for name in ["apiVersion", "kind"] {
        if let Some(value) = fields.get(name) {
            field(&mut out, name, value);
        }
    }
    if let Some(metadata) = fields.get("metadata") {
        match stripped_metadata(metadata) {
            Some(metadata) => field(&mut out, "metadata", &metadata),
            None => field(&mut out, "metadata", metadata),
        }
    }
    for (name, value) in fields {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            field(&mut out, name, value);
        }
    }
    let mut out = out.into_inner();
    if out.is_empty() {
        out.put_u8(b'{');
    }
    out.put_u8(b'}');
    out.freeze()
}

/// The object's bytes with `resourceVersion` set, replacing one that [`with_resource_version`]
/// wrote before.
pub fn with_resource_version(json: &[u8], version: u64) -> Bytes {
    let Some(at) = metadata_start(json) else {
        return Bytes::copy_from_slice(json);
    };
    let (head, mut rest) = json.split_at(at);
    if let Some(old) = rest.strip_prefix(RESOURCE_VERSION) {
        let end = old.iter().position(|byte| *byte == b'"').map_or(old.len(), |quote| quote + 1);
        rest = old.get(end..).unwrap_or_default();
        rest = rest.strip_prefix(b",").unwrap_or(rest);
    }
    let version = version.to_string();
    let end = if rest.starts_with(b"}") { "\"" } else { "\"," };
    // Exactly as long as it must be: it is held as long as the object, and is one allocation so.
    [head, RESOURCE_VERSION, version.as_bytes(), end.as_bytes(), rest].concat().into()
}

/// The object's bytes with the annotation [`CLUSTER_ANNOTATION`].
pub fn with_cluster(json: &[u8], cluster: &str) -> Bytes {
    let Some(mut at) = metadata_start(json) else {
        return Bytes::copy_from_slice(json);
    };
    if json.get(at..).is_some_and(|rest| rest.starts_with(RESOURCE_VERSION)) {
        let value = at + RESOURCE_VERSION.len();
        let digits = json.get(value..).unwrap_or_default();
        let quote = digits.iter().position(|byte| *byte == b'"').unwrap_or(0);
        at = value + quote + 1;
        if json.get(at) == Some(&b',') {
            at += 1;
        }
    }
    let (head, rest) = json.split_at(at.min(json.len()));
    let mut out = BytesMut::with_capacity(json.len() + 64 + cluster.len());
    out.put_slice(head);
    if head.ends_with(b"\"") {
        out.put_u8(b',');
    }
    out.put_slice(b"\"annotations\":{");
    write(&mut (&mut out).writer(), CLUSTER_ANNOTATION);
    out.put_u8(b':');
    write(&mut (&mut out).writer(), cluster);
    match rest.strip_prefix(b"\"annotations\":{") {
        Some(rest) => {
            if !rest.starts_with(b"}") {
                out.put_u8(b',');
            }
            out.put_slice(rest);
        }
        None => {
            out.put_u8(b'}');
            if !rest.starts_with(b"}") {
                out.put_u8(b',');
            }
            out.put_slice(rest);
        }
    }
    out.freeze()
}

/// An object's bytes after its opening brace and, in canonical form, after its version and kind:
/// items of lists of built-in kinds don't say what they are.
pub fn after_kind(json: &Bytes) -> Bytes {
    let metadata = "\"metadata\":{".len();
    json.slice(metadata_start(json).map_or(1.min(json.len()), |at| at - metadata)..)
}

const RESOURCE_VERSION: &[u8] = b"\"resourceVersion\":\"";

/// The offset just after `"metadata":{` of an object in canonical form.
fn metadata_start(json: &[u8]) -> Option<usize> {
    let mut at = 1;
    for name in [b"\"apiVersion\":\"".as_slice(), b"\"kind\":\""] {
        if let Some(value) = json.get(at..)?.strip_prefix(name) {
            let quote = value.iter().position(|byte| *byte == b'"')?;
            at += name.len() + quote + 1;
            at += usize::from(json.get(at) == Some(&b','));
        }
    }
    let metadata = b"\"metadata\":{";
    json.get(at..)?.starts_with(metadata).then_some(at + metadata.len())
}

/// Metadata without what is never stored, or `None` when there is nothing to leave out.
fn stripped_metadata(metadata: &Value) -> Option<Value> {
    let fields = metadata.as_object()?;
    let annotated = fields
        .get("annotations")
        .and_then(Value::as_object)
        .is_some_and(|annotations| annotations.contains_key(CLUSTER_ANNOTATION));
    if !annotated && !fields.contains_key("resourceVersion") {
        return None;
    }
    let mut fields = fields.clone();
    fields.remove("resourceVersion");
    if let Some(Value::Object(annotations)) = fields.get_mut("annotations") {
        annotations.remove(CLUSTER_ANNOTATION);
        if annotations.is_empty() {
            fields.remove("annotations");
        }
    }
    Some(Value::Object(fields))
}

fn write(out: &mut impl std::io::Write, value: &(impl serde::Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("writing JSON values to memory does not fail");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(bytes: &Bytes) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn canonical_form_puts_metadata_third_and_leaves_out_what_is_not_stored() {
        let object = json!({
            "data": {"metadata": "x"}, "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"resourceVersion": "7", "name": "a", "annotations": {"kcp.io/cluster": "c"}},
        });
        let stored = encode(&object);
        let expected = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"metadata":"x"}}"#;
        assert_eq!(text(&stored), expected);
    }

    #[test]
    fn resource_version_is_inserted_and_replaced() {
        let stored = encode(&json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}}));
        let first = with_resource_version(&stored, 5);
        let again = with_resource_version(&first, 66);
        let expected =
            r#"{"apiVersion":"v1","kind":"X","metadata":{"resourceVersion":"66","name":"a"}}"#;
        assert_eq!(text(&again), expected);
        let empty = encode(&json!({"metadata": {}}));
        assert_eq!(
            text(&with_resource_version(&with_resource_version(&empty, 1), 2)),
            r#"{"metadata":{"resourceVersion":"2"}}"#
        );
    }

    #[test]
    fn cluster_annotation_joins_the_others() {
        for (metadata, expected) in [
            (json!({"name": "a"}), json!({"kcp.io/cluster": "one"})),
            (json!({"annotations": {"x": "y"}}), json!({"kcp.io/cluster": "one", "x": "y"})),
            (json!({}), json!({"kcp.io/cluster": "one"})),
        ] {
            let stored = encode(&json!({"apiVersion": "v1", "kind": "X", "metadata": metadata}));
            for json in [stored.clone(), with_resource_version(&stored, 9)] {
                let annotated = with_cluster(&json, "one");
                let parsed: Value = serde_json::from_slice(&annotated).unwrap();
                assert_eq!(parsed["metadata"]["annotations"], expected, "{}", text(&annotated));
            }
        }
    }
}
