//! Paths: what they find, what is refused, and that no text panics.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn object() -> Value {
    json!({
        "a": {"b": [1, 2, 3], "c.d": "dotted", "it's": true},
        "items": [
            {"type": "Ready", "status": "True", "n": 1},
            {"type": "Synced", "status": "False", "n": 2.5},
            {"type": "Odd"},
        ],
    })
}

#[test]
fn finds() {
    let cases = [
        ("", json!([object()])),
        (".a.b", json!([[1, 2, 3]])),
        ("a.b[0]", json!([1])),
        ("{.a.b[1]}", json!([2])),
        ("$.a.b[-1]", json!([3])),
        (".a.b[-4]", json!([])),
        (".a.b[9]", json!([])),
        (".a.b[*]", json!([1, 2, 3])),
        (".a.b[1:]", json!([2, 3])),
        (".a.b[:2]", json!([1, 2])),
        (".a.b[-2:-1]", json!([2])),
        (".a['c.d']", json!(["dotted"])),
        (r#".a["c.d"]"#, json!(["dotted"])),
        (r".a.c\.d", json!(["dotted"])),
        (r"['a']['it\'s']", json!([true])),
        (".a.*", json!([[1, 2, 3], "dotted", true])),
        (r#".items[?(@.type=="Ready")].status"#, json!(["True"])),
        (".items[?(@.type != 'Ready')].type", json!(["Synced", "Odd"])),
        (".items[?(@.n)].n", json!([1, 2.5])),
        (".items[?(@.n>1)].type", json!(["Synced"])),
        (".items[?(@.n<=1)].type", json!(["Ready"])),
        (".items[?(@['type']=='Odd')].type", json!(["Odd"])),
        (".items[*].status", json!(["True", "False"])),
        (".missing.deeper[0]", json!([])),
    ];
    for (path, expect) in cases {
        let parsed = JsonPath::parse(path).unwrap_or_else(|e| panic!("{e}"));
        let value = object();
        let found: Vec<Value> = parsed.find(&value).into_iter().cloned().collect();
        assert_eq!(Value::from(found.clone()), expect, "{path}");
        assert_eq!(parsed.first(&value), found.first(), "{path}");
    }
}

#[test]
fn refuses() {
    let too_long = ".a".repeat(3000);
    let bad = [
        "..a",
        ".a..b",
        ".a[",
        ".a[]",
        ".a[x]",
        ".a[1:2:3]",
        ".a[?(@.b]",
        ".a[?(b)]",
        ".a[?(@.b=)]",
        ".a[?(@.b==)]",
        ".a['b",
        ".a]",
        "{.a",
        ".a b[",
        "[?(@.a[?(@.b)])]",
        r".a\",
        &too_long,
    ];
    for path in bad {
        assert!(JsonPath::parse(path).is_err(), "{path}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(path in r#"[.\[\]a'"?@()=<>!*:{}$\\0-9 -]{0,24}"#) {
        if let Ok(parsed) = JsonPath::parse(&path) {
            let value = object();
            prop_assert_eq!(parsed.find(&value).first().copied(), parsed.first(&value));
        }
    }
}
