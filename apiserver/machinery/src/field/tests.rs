//! Paths and messages, to the letter.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn paths() {
    let spec = FieldPath::root("spec");
    let env = spec.child("containers").index(3).child("env");
    assert_eq!(env.to_string(), "spec.containers[3].env");
    assert_eq!(env.key("a.b").as_str(), "spec.containers[3].env[a.b]");
    assert_eq!(FieldPath::default().child("spec").as_str(), "spec");
    assert_eq!(FieldPath::default().index(0).as_str(), "[0]");
}

#[test]
fn one_path_walks_up_and_down() {
    let mut path = FieldPath::root("spec");
    let list = path.enter_child("ports");
    let item = path.enter_index(12);
    let entry = path.enter_key("é");
    assert_eq!(path.as_str(), "spec.ports[12][é]");
    path.leave(entry);
    path.leave(item);
    assert_eq!(path.as_str(), "spec.ports");
    path.leave(list);
    path.leave(1000);
    assert_eq!(path.as_str(), "spec");
}

#[test]
fn messages() {
    let at = FieldPath::root("f");
    let cases = [
        (FieldError::required(&at, ""), "Required value", "FieldValueRequired"),
        (FieldError::required(&at, "why"), "Required value: why", "FieldValueRequired"),
        (
            FieldError::invalid(&at, &json!("a\"b"), "why"),
            "Invalid value: \"a\\\"b\": why",
            "FieldValueInvalid",
        ),
        (FieldError::invalid(&at, &json!(-3), "d"), "Invalid value: -3: d", "FieldValueInvalid"),
        (FieldError::invalid(&at, &json!(1.5), ""), "Invalid value: 1.5", "FieldValueInvalid"),
        (
            FieldError::invalid(&at, &json!(null), "d"),
            "Invalid value: null: d",
            "FieldValueInvalid",
        ),
        (
            FieldError::type_invalid(&at, &json!({"b": ["<"], "a": true}), "d"),
            r#"Invalid value: {"a":true,"b":["\u003c"]}: d"#,
            "FieldValueTypeInvalid",
        ),
        (FieldError::forbidden(&at, "why"), "Forbidden: why", "FieldValueForbidden"),
        (FieldError::duplicate(&at, &json!("x")), "Duplicate value: \"x\"", "FieldValueDuplicate"),
        (FieldError::not_found(&at, &json!("x")), "Not found: \"x\"", "FieldValueNotFound"),
        (
            FieldError::not_supported(&at, &json!("x"), &["a", "b"]),
            "Unsupported value: \"x\": supported values: \"a\", \"b\"",
            "FieldValueNotSupported",
        ),
        (
            FieldError::not_supported(&at, &json!("x"), &[]),
            "Unsupported value: \"x\"",
            "FieldValueNotSupported",
        ),
        (
            FieldError::too_long(&at, 128),
            "Too long: may not be more than 128 bytes",
            "FieldValueTooLong",
        ),
        (
            FieldError::too_long(&at, 1),
            "Too long: may not be more than 1 byte",
            "FieldValueTooLong",
        ),
        (
            FieldError::too_many(&at, 9, 8),
            "Too many: 9: must have at most 8 items",
            "FieldValueTooMany",
        ),
        (FieldError::internal(&at, "why"), "Internal error: why", "InternalError"),
    ];
    for (error, body, reason) in cases {
        assert_eq!(error.body(), body);
        assert_eq!(error.to_string(), format!("f: {body}"));
        assert_eq!(error.kind.reason(), reason);
    }
}

#[test]
fn several_errors_in_one_message() {
    let error = |detail: &str| FieldError::required(&FieldPath::root("f"), detail);
    assert_eq!(aggregate(&[]), "");
    assert_eq!(aggregate(&[error("a")]), "f: Required value: a");
    assert_eq!(aggregate(&[error("a"), error("a")]), "f: Required value: a");
    let three = [error("b"), error("a"), error("b")];
    assert_eq!(aggregate(&three), "[f: Required value: b, f: Required value: a]");
}

#[test]
fn quoting() {
    assert_eq!(go_quote("\u{7}\u{8}\u{c}\n\r\t\u{b}\0\u{7f}"), r#""\a\b\f\n\r\t\v\x00\x7f""#);
    assert_eq!(
        go_quote("é\u{301}\u{200b}\u{2028}\u{e000}\u{e0000}😀\u{feff}\u{ad}"),
        "\"é\u{301}\\u200b\\u2028\\ue000\\U000e0000😀\\ufeff\\u00ad\""
    );
}

proptest! {
    #[test]
    fn json_stays_json(text: String) {
        let value = json!({ "k": text });
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&go_json(&value)).unwrap(), value);
    }

    #[test]
    fn quoted_ascii_is_one_line(text: String) {
        let quoted = go_quote(&text);
        prop_assert!(quoted.len() >= text.len() + 2);
        prop_assert!(!quoted.contains(char::is_control));
    }
}
