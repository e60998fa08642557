//! Bytes are those that Go makes of the same documents (`tests/data/openapi/gnostic.json`:
//! documents with all that this server emits, and what gnostic-models 0.7 encodes them to).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;

#[test]
fn bytes_are_those_of_go() {
    let cases: Value =
        serde_json::from_str(include_str!("../../../tests/data/openapi/gnostic.json")).unwrap();
    let check = |ours: Vec<u8>, name: &str| {
        let theirs = STANDARD.decode(cases[name].as_str().unwrap()).unwrap();
        let different = ours.iter().zip(&theirs).position(|(a, b)| a != b);
        assert_eq!((ours.len(), different), (theirs.len(), None), "{name}");
    };
    check(encode(&cases["v2"], &v2::DOCUMENT), "v2_protobuf");
    check(v3_protobuf(&cases["v3"]), "v3_protobuf");
}

#[test]
fn yaml_has_no_control_characters() {
    let text = yaml(&json!({"a\u{7f}": "é\u{85}\u{feff}\u{1}\n"}));
    assert_eq!(text, "{\"a\\u007f\":\"é\\u0085\\ufeff\\u0001\\n\"}\n");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["a\u{7f}"], "é\u{85}\u{feff}\u{1}\n");
}

/// Clients join the parts of a message that comes in several.
#[test]
fn pieces_make_the_same_document() {
    let document = json!({
        "swagger": "2.0",
        "definitions": {"A": {"type": "object"}, "B": {}},
        "paths": {"/a": {"get": {"tags": ["t"]}}, "/b": {}},
    });
    let mut pieces = Pieces::default();
    for (name, item) in document["paths"].as_object().unwrap() {
        pieces.path(name, item.clone());
    }
    for (name, schema) in document["definitions"].as_object().unwrap() {
        pieces.definition(name, schema.clone());
    }
    let rest = json!({"swagger": "2.0"});
    assert_eq!(pieces.finish(&rest), encode(&document, &v2::DOCUMENT));
}
