//! Bytes and JSON are those of Go: `tests/data/proto/golden.json`, made by
//! `kind-tests/tools/proto-oracle` from `samples.json` beside it and from the types' data.

mod known;

use std::collections::HashSet;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use machinery::GroupVersion;
use proptest::prelude::*;
use serde_json::json;

use super::*;

static GOLDEN: LazyLock<Vec<Answer>> = LazyLock::new(|| {
    let text = include_str!("../../tests/data/proto/golden.json");
    let answers: Vec<Value> = serde_json::from_str(text).unwrap();
    answers.iter().map(Answer::new).collect()
});

struct Answer {
    name: String,
    gvk: Gvk,
    raw: Vec<u8>,
    object: Value,
    again: Vec<u8>,
    body: Option<Vec<u8>>,
    frame: Option<Vec<u8>>,
}

impl Answer {
    fn new(value: &Value) -> Self {
        let text = |name: &str| value[name].as_str().unwrap().to_owned();
        let bytes = |name: &str| Some(STANDARD.decode(value.get(name)?.as_str().unwrap()).unwrap());
        Self {
            name: text("name"),
            gvk: gvk(&text("apiVersion"), &text("kind")),
            again: bytes("again").or_else(|| bytes("raw")).unwrap(),
            raw: bytes("raw").unwrap(),
            object: value["object"].clone(),
            body: bytes("body"),
            frame: bytes("frame"),
        }
    }
}

fn gvk(api_version: &str, kind: &str) -> Gvk {
    GroupVersion::parse(api_version).unwrap().kind(kind)
}

fn decode_builtin(gvk: &Gvk, raw: &[u8]) -> Result<Value, ProtoError> {
    decode(&Types::builtin(), gvk, raw)
}

#[test]
fn decodes_to_the_json_of_go() {
    for answer in &*GOLDEN {
        let found = decode_builtin(&answer.gvk, &answer.raw).unwrap();
        let (ours, theirs) = (format!("{found:#}"), format!("{:#}", answer.object));
        assert_eq!(ours, theirs, "{} {}", answer.name, answer.gvk);
    }
}

#[test]
fn encodes_to_the_bytes_of_go() {
    for answer in &*GOLDEN {
        let found = encode(&Types::builtin(), &answer.gvk, &answer.object).unwrap();
        assert_eq!(found, answer.again, "{} {}", answer.name, answer.gvk);
    }
}

#[test]
fn envelopes_and_watch_frames_are_those_of_go() {
    let mut seen = 0;
    for answer in &*GOLDEN {
        let (Some(body), Some(frame)) = (&answer.body, &answer.frame) else { continue };
        seen += 1;
        let api_version = answer.gvk.group_version.to_string();
        let envelope = decode_envelope(body).unwrap();
        let expected = Envelope {
            api_version: &api_version,
            kind: &answer.gvk.kind,
            raw: &answer.raw,
            content_encoding: "",
            content_type: "",
        };
        assert_eq!(envelope, expected);
        assert_eq!(encode_envelope(&api_version, &answer.gvk.kind, &answer.raw), *body);
        assert_eq!(encode_watch_event("MODIFIED", body).unwrap(), *frame);
    }
    assert!(seen > 20);
}

#[test]
fn the_golden_file_has_every_kind() {
    let golden: HashSet<_> = GOLDEN.iter().map(|answer| answer.gvk.clone()).collect();
    for (gvk, _) in Types::builtin().kinds() {
        let ours = gvk.group_version.group.ends_with("kcp.io");
        let framed = &*gvk.kind == "WatchEvent";
        assert!(golden.contains(gvk) || ours || framed, "{gvk}: run the oracle again");
    }
}

/// A field of the wire: its number, and what `value` writes.
fn field(number: u32, wire: u8, value: &[u8]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.raw(value);
    let mut tag = Writer::default();
    tag.varint(1, u64::from(number) << 3 | u64::from(wire));
    writer.raw(&tag.finish()[1..]);
    writer.finish()
}

fn message(number: u32, content: &[u8]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.bytes(number, content);
    writer.finish()
}

#[test]
fn bad_envelopes() {
    let check = |body: &[u8], error: ProtoError| assert_eq!(decode_envelope(body), Err(error));
    check(b"", ProtoError::Empty);
    check(b"{}", ProtoError::Prefix);
    check(b"k8s", ProtoError::Prefix);
    check(b"k8s\0\x0a", ProtoError::Truncated);
    check(b"k8s\0\x0a\x05ab", ProtoError::Truncated);
    check(b"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", ProtoError::Truncated);
    check(b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", ProtoError::Overflow);
    check(b"k8s\0\x08\x01", ProtoError::WireType { field: "typeMeta".into(), wire: 0 });
    check(b"k8s\0\x0a\x03\x0a\x01\xff", ProtoError::Utf8 { field: "apiVersion".into() });
    check(b"k8s\0\x02\x00", ProtoError::IllegalTag { number: 0, wire: 2 });
    let empty = decode_envelope(b"k8s\0").unwrap();
    assert_eq!((empty.api_version, empty.kind, empty.raw), ("", "", &[][..]));
}

#[test]
fn bad_messages() {
    let config_map = gvk("v1", "ConfigMap");
    let check = |raw: &[u8], error: ProtoError| {
        assert_eq!(decode_builtin(&config_map, raw), Err(error), "{raw:x?}");
    };
    let wire_type = |field: &str, wire| ProtoError::WireType { field: field.into(), wire };
    check(b"\x0a", ProtoError::Truncated);
    check(&field(4, 2, b"\x01x"), wire_type("immutable", 2));
    check(&field(1, 0, b"\x01"), wire_type("metadata", 0));
    check(&field(1, 1, b"12345678"), wire_type("metadata", 1));
    check(&field(1, 5, b"1234"), wire_type("metadata", 5));
    check(&field(1, 5, b"123"), ProtoError::Truncated);
    check(&field(1, 1, b"1234567"), ProtoError::Truncated);
    check(&field(9, 3, b""), ProtoError::IllegalTag { number: 9, wire: 3 });
    check(&field(9, 4, b""), ProtoError::IllegalTag { number: 9, wire: 4 });
    check(&field(9, 6, b""), ProtoError::IllegalTag { number: 9, wire: 6 });
    check(&message(2, &message(2, b"\xff")), ProtoError::Utf8 { field: "data".into() });
    let unknown = gvk("v1", "Nothing");
    let error = decode_builtin(&unknown, b"").unwrap_err();
    assert_eq!(error.to_string(), r#"no kind "Nothing" is registered for version "v1""#);
}

#[test]
fn bad_values() {
    let check = |kind: &Gvk, raw: &[u8]| {
        let error = decode_builtin(kind, raw).unwrap_err();
        assert!(matches!(error, ProtoError::Value(_)), "{error:?}");
    };
    // An amount that is none, an endless time, a type of IntOrString that doesn't exist.
    let amount = message(2, &[message(1, b"cpu"), message(2, &message(1, b"x"))].concat());
    check(&gvk("v1", "LimitRange"), &message(2, &message(1, &amount)));
    let endless = message(8, &field(1, 0, b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"));
    check(&gvk("v1", "ConfigMap"), &message(1, &endless));
    let port = message(4, &field(1, 0, b"\x02"));
    check(&gvk("v1", "Service"), &message(2, &message(1, &port)));
    // Raw JSON that is none, or nests too deeply.
    for text in [&b"{"[..], b"{}x", "[".repeat(200).as_bytes()] {
        let entry = message(17, &message(7, &message(1, text)));
        check(&gvk("v1", "ConfigMap"), &message(1, &entry));
    }
}

#[test]
fn unknown_fields_are_skipped() {
    let raw = [
        field(90, 0, b"\x05"),
        field(91, 1, b"12345678"),
        field(92, 2, b"\x02ab"),
        field(93, 5, b"1234"),
        message(1, &message(1, b"n")),
    ];
    let found = decode_builtin(&gvk("v1", "ConfigMap"), &raw.concat()).unwrap();
    assert_eq!(found["metadata"]["name"], "n");
}

#[test]
fn repeated_messages_merge_and_repeated_scalars_replace() {
    let raw = [
        message(1, &message(1, b"a")),
        message(1, &[message(3, b"ns"), message(1, b"b")].concat()),
        message(2, &[message(1, b"k"), message(2, b"1")].concat()),
        message(2, &[message(2, b"2"), message(1, b"k")].concat()),
    ];
    let found = decode_builtin(&gvk("v1", "ConfigMap"), &raw.concat()).unwrap();
    let mut expected = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "b", "namespace": "ns"},
        "data": {"k": "2"},
    });
    let schema = Types::builtin().kind(&gvk("v1", "ConfigMap")).unwrap().clone();
    schema.coerce(&mut expected, CoerceMode::Drop).unwrap();
    assert_eq!(found, expected);
}

#[test]
fn depth_is_bounded() {
    let crd = gvk("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let nested = |levels: usize| {
        // not: {not: {not: ...}}
        let schema = (0..levels).fold(Vec::new(), |inner, _| message(*NOT, &inner));
        message(2, &message(7, &message(4, &message(1, &schema))))
    };
    assert!(decode_builtin(&crd, &nested(100)).is_ok());
    assert_eq!(decode_builtin(&crd, &nested(1_000)), Err(ProtoError::TooDeep));
    assert_eq!(decode_builtin(&crd, &nested(5_000)), Err(ProtoError::TooDeep));
}

/// The number of the field `not` of a schema, which makes schemas nest.
static NOT: LazyLock<u32> = LazyLock::new(|| {
    let types = Types::builtin();
    let pool = types.pool();
    let schema = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    pool.field(pool.find(schema).unwrap(), "not").unwrap().number
});

#[test]
fn the_number_of_objects_is_bounded() {
    let items = message(2, b"").repeat(MAX_OBJECTS as usize);
    let found = decode_builtin(&gvk("v1", "ConfigMapList"), &items);
    assert_eq!(found, Err(ProtoError::TooMany));
    let entries = message(2, b"").repeat(MAX_OBJECTS as usize);
    let found = decode_builtin(&gvk("v1", "ConfigMap"), &entries);
    assert_eq!(found, Err(ProtoError::TooMany));
}

#[test]
fn values_that_are_not_canonical_are_refused() {
    let check = |kind: &Gvk, object: Value| {
        let error = encode(&Types::builtin(), kind, &object).unwrap_err();
        assert!(matches!(error, ProtoError::Value(_)), "{error:?}");
    };
    let config_map = gvk("v1", "ConfigMap");
    check(&config_map, json!([]));
    check(&config_map, json!({"metadata": 1}));
    check(&config_map, json!({"data": []}));
    check(&config_map, json!({"data": {"a": 1}}));
    check(&config_map, json!({"binaryData": {"a": "?"}}));
    check(&config_map, json!({"immutable": "yes"}));
    check(&config_map, json!({"metadata": {"creationTimestamp": "now"}}));
    check(&config_map, json!({"metadata": {"generation": 1.5}}));
    check(&config_map, json!({"metadata": {"finalizers": {}}}));
    check(&gvk("v1", "Service"), json!({"spec": {"ports": [{"targetPort": []}]}}));
}

/// Our own kinds have no Go types: their messages only have to come back.
#[test]
fn own_kinds_come_back() {
    let kind = gvk("core.kcp.io/v1alpha1", "LogicalCluster");
    let mut object = json!({
        "apiVersion": "core.kcp.io/v1alpha1",
        "kind": "LogicalCluster",
        "metadata": {"name": "a"},
        "status": {"phase": "Ready"},
    });
    let types = Types::builtin();
    types.kind(&kind).unwrap().coerce(&mut object, CoerceMode::Drop).unwrap();
    let raw = encode(&types, &kind, &object).unwrap();
    assert_eq!(decode(&types, &kind, &raw).unwrap(), object);
}

/// What decodes must encode, and then decode to the same.
fn comes_back(gvk: &Gvk, raw: &[u8]) {
    let Ok(object) = decode_builtin(gvk, raw) else { return };
    let types = Types::builtin();
    let again = encode(&types, gvk, &object).unwrap();
    assert_eq!(decode(&types, gvk, &again).unwrap(), object, "{gvk}");
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        at in any::<prop::sample::Index>(),
    ) {
        comes_back(&at.get(&GOLDEN).gvk, &bytes);
        let body = [&MAGIC[..], &bytes].concat();
        if let Ok(envelope) = decode_envelope(&body) {
            prop_assert!(envelope.raw.len() <= bytes.len());
        }
    }

    #[test]
    fn damaged_messages_never_panic(
        at in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let answer = at.get(&GOLDEN);
        let mut raw = answer.raw.clone();
        prop_assume!(!raw.is_empty() && raw.len() < 20_000);
        for (place, byte) in damage {
            let place = place.index(raw.len());
            raw[place] = byte;
        }
        comes_back(&answer.gvk, &raw);
        raw.truncate(cut.index(raw.len()));
        comes_back(&answer.gvk, &raw);
    }

    #[test]
    fn numbers_come_back(value in any::<u64>(), number in 1..1_000_u32) {
        let mut writer = Writer::default();
        writer.varint(number, value);
        let bytes = writer.finish();
        let mut reader = Reader::new(&bytes);
        let (found, raw) = reader.next().unwrap().unwrap();
        prop_assert_eq!((found, raw.varint("x").unwrap()), (number, value));
        prop_assert!(reader.is_empty());
    }
}
