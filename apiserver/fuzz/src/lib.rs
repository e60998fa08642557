//! What each fuzz target does with the bytes that it is given.
//!
//! A target panics when a parser does, and when a law is broken that must hold for all input.
//! Those in this file read bytes and texts; the modules read documents ([`document`]), so that what
//! lies behind the parsers is reached, too.

mod custom;
pub mod document;
mod expression;
mod imports;
mod owned;
mod requests;

pub use custom::{definition, object};
pub use expression::cel;
pub use imports::imported;
pub use owned::apply;
pub use requests::request;

use machinery::json::{self, Limits};
use machinery::meta::Header;
use machinery::quantity::Quantity;
use machinery::selector::{FieldSelector, LabelSelector};
use machinery::{ClusterName, GroupVersion};
use schema::{CoerceMode, Types};
use serde_json::Value;

/// Kinds whose bodies are decoded.
const KINDS: [(&str, &str, &str); 6] = [
    ("", "v1", "ConfigMap"),
    ("", "v1", "Secret"),
    ("", "v1", "Event"),
    ("coordination.k8s.io", "v1", "Lease"),
    ("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema"),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"),
];

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

fn decode(value: Value) {
    let types = Types::builtin();
    for (group, version, kind) in KINDS {
        let kind = GroupVersion::new(group, version).kind(kind);
        let schema = types.kind(&kind).expect("a built-in kind");
        let mut once = value.clone();
        if schema.coerce(&mut once, CoerceMode::Report).is_err() {
            continue;
        }
        schema.default(&mut once);
        let mut twice = once.clone();
        schema.coerce(&mut twice, CoerceMode::Drop).expect("what was decoded decodes");
        schema.default(&mut twice);
        assert_eq!(once, twice, "decoding is idempotent");
        let bytes = schema::proto::encode(&types, &kind, &once).expect("what was decoded encodes");
        schema::proto::decode(&types, &kind, &bytes).expect("what was encoded decodes");
    }
}

/// A JSON body, decoded as several kinds.
pub fn json_body(data: &[u8]) {
    if let Ok(parsed) = json::parse(data, &Limits::default()) {
        decode(parsed.value);
    }
}

/// A YAML body.
pub fn yaml_body(data: &[u8]) {
    if let Ok(parsed) = json::yaml(data, &Limits::default()) {
        decode(parsed.value);
    }
}

/// A protobuf body: an envelope, and bare messages of several kinds.
pub fn protobuf_body(data: &[u8]) {
    let types = Types::builtin();
    if let Ok(envelope) = schema::proto::decode_envelope(data)
        && let Some(version) = GroupVersion::parse(envelope.api_version)
    {
        let kind = version.kind(envelope.kind);
        let _ = schema::proto::decode(&types, &kind, envelope.raw);
    }
    for (group, version, kind) in KINDS {
        let kind = GroupVersion::new(group, version).kind(kind);
        if let Ok(value) = schema::proto::decode(&types, &kind, data) {
            schema::proto::encode(&types, &kind, &value).expect("what was decoded encodes");
        }
    }
}

/// Two JSON documents, one after the other: an object and a patch of it.
fn halves(data: &[u8]) -> Option<(Value, Value)> {
    let middle = data.iter().position(|byte| *byte == b'\n')?;
    let (object, patch) = data.split_at(middle);
    let limits = Limits::default();
    let parsed = |bytes: &[u8]| json::parse(bytes, &limits).ok().map(|parsed| parsed.value);
    Some((parsed(object)?, parsed(patch.get(1..)?)?))
}

/// RFC 6902.
pub fn json_patch(data: &[u8]) {
    if let Some((mut object, patch)) = halves(data) {
        let _ = patch::json::apply(&mut object, &patch, 1 << 16);
    }
}

/// RFC 7396.
pub fn merge_patch(data: &[u8]) {
    if let Some((mut object, patch)) = halves(data)
        && patch::merge::apply(&mut object, patch.clone()).is_ok()
    {
        let once = object.clone();
        patch::merge::apply(&mut object, patch).expect("it applied before");
        assert_eq!(object, once, "a merge patch applied twice does nothing more");
    }
}

/// Strategic merge patch, under the schema of several kinds.
pub fn strategic_patch(data: &[u8]) {
    let Some((object, patch)) = halves(data) else {
        return;
    };
    let types = Types::builtin();
    for (group, version, kind) in KINDS {
        let kind = GroupVersion::new(group, version).kind(kind);
        let schema = types.kind(&kind).expect("a built-in kind");
        let _ = patch::strategic::apply(&object, &patch, &schema.merge());
    }
}

/// Label and field selectors.
pub fn selectors(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    if let Ok(selector) = LabelSelector::parse(text) {
        let again = LabelSelector::parse(&selector.to_string()).expect("the canonical form parses");
        assert_eq!(again.to_string(), selector.to_string());
        selector.matches(|_| Some("x"));
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        selector.matches(|_| Some("x".into()));
    }
}

/// Quantities: the canonical form is stable and means the same.
pub fn quantity(data: &[u8]) {
    if let Some(Ok(quantity)) = text(data).map(Quantity::parse) {
        let again = Quantity::parse(&quantity.to_string()).expect("the canonical form parses");
        assert!(again == quantity, "{quantity}");
    }
}

/// The header of an object, and the places where its bytes are changed without parsing.
pub fn object_bytes(data: &[u8]) {
    let _ = Header::scan(data);
    let Ok(parsed) = json::parse(data, &Limits::default()) else {
        return;
    };
    if !parsed.value.is_object() {
        return;
    }
    let encoded = store::object::encode(&parsed.value);
    let marked = store::object::with_resource_version(&encoded, 7);
    let marked = store::object::with_cluster(&marked, "one");
    serde_json::from_slice::<Value>(&marked).expect("it is still JSON");
}

/// Names, group versions and keys of the store.
pub fn names_and_keys(data: &[u8]) {
    if let Some(text) = text(data) {
        let _ = ClusterName::parse(text);
        let _ = GroupVersion::parse(text);
        let mut problems = machinery::name::dns1123_subdomain(text);
        problems.extend(machinery::name::qualified_name(text));
        problems.extend(machinery::name::label_value(text));
    }
    if let Some(key) = store::Key::parse(data) {
        let rebuilt = store::Key::new(&key.resource(), &key.object());
        assert_eq!(rebuilt, key, "a key is its parts");
    }
}
