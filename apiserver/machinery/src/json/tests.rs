//! Documents, duplicates, limits and hostile input.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(text: &str) -> Result<Parsed, JsonError> {
    parse(text.as_bytes(), &Limits::default())
}

fn read_yaml(text: &str) -> Result<Parsed, JsonError> {
    yaml(text.as_bytes(), &Limits::default())
}

#[track_caller]
fn duplicates(text: &str, value: &Value, expect: &[&str]) {
    let parsed = read(text).unwrap();
    assert_eq!(parsed.value, *value);
    assert_eq!(parsed.duplicates, expect);
}

#[test]
fn the_last_duplicate_wins_and_all_are_told_in_order() {
    duplicates(
        r#"{"spec":{"replicas":1,"replicas":2,"c":[{},{"image":"a","image":"b"}]},"spec":{"x":1}}"#,
        &json!({"spec": {"x": 1}}),
        &["spec.replicas", "spec.c[1].image", "spec"],
    );
    // The repeated key comes before the repetition inside of it, and each path once.
    duplicates(
        r#"{"a":1,"a":{"b":1,"b":2,"b":3},"a":{"b":1,"b":2}}"#,
        &json!({"a": {"b": 2}}),
        &["a", "a.b"],
    );
    duplicates(r#"[[{"k":1,"\u006b":2}]]"#, &json!([[{"k": 2}]]), &["[0][0].k"]);
}

#[test]
fn duplicates_are_bounded() {
    let many: String = (0..300).map(|i| format!(r#""k{i}":1,"k{i}":2,"#)).collect();
    let parsed = read(&format!("{{{many}\"z\":0}}")).unwrap();
    assert_eq!(parsed.duplicates.len(), 100);
    assert_eq!(parsed.duplicates[99], "k99");
    // A long key around many duplicates would cost its length each time.
    let inner = r#""a":1,"#.repeat(100_000);
    let text = format!(r#"{{"{}":{{{inner}"b":1}}}}"#, "k".repeat(1_000_000));
    let parsed = read(&text).unwrap();
    assert_eq!(parsed.duplicates, [format!("{}.a", "k".repeat(253))]);
}

#[test]
fn numbers() {
    for (text, expect) in [
        ("1", json!(1)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("9223372036854775807", json!(i64::MAX)),
        ("9223372036854775808", json!(9.223_372_036_854_776e18)),
        ("1.5", json!(1.5)),
        ("1.0", json!(1)),
        ("1e3", json!(1000)),
        ("-0", json!(0)),
        ("1e300", json!(1e300)),
        ("1e-400", json!(0)),
    ] {
        assert_eq!(read(text).unwrap().value, expect, "{text}");
    }
}

#[test]
fn errors_say_what_and_where() {
    for (text, message, offset) in [
        ("", "unexpected end of JSON input", 0),
        ("{\"a\":", "unexpected end of JSON input", 4),
        ("x", "invalid character 'x' looking for beginning of value", 0),
        ("{\n \"a\": }", "invalid character '}' looking for beginning of value", 8),
        ("{'a':1}", "invalid character '\\'' looking for beginning of object key string", 1),
        ("{\"a\" 1}", "invalid character '1' after object key", 5),
        ("{\"a\":1 2}", "invalid character '2' after object key:value pair", 7),
        ("[1 2]", "invalid character '2' after array element", 3),
        ("{} {}", "invalid character '{' after top-level value", 3),
        ("\"\\q\"", "invalid character 'q' in string escape code", 2),
        ("\"a\nb\"", "invalid character '\\x0a' in string literal", 2),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!((error.message.as_str(), error.offset), (message, offset), "{text:?}");
    }
    for bad in [&b"\"\xff\""[..], b"\xff", b"\"\\ud800\"", b"1e999", b"[1,]", b"\xef\xbb\xbf{}"] {
        parse(bad, &Limits::default()).unwrap_err();
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |open: &str, close: &str, n: usize| open.repeat(n) + "1" + &close.repeat(n);
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deepest = read(&nested(open, close, 120)).unwrap();
        assert_eq!(depth(&deepest.value, 1000), 120);
        assert_eq!(depth(&deepest.value, 7), 7);
        for levels in [121, 127, 128, 1_000_000] {
            let error = read(&nested(open, close, levels)).unwrap_err();
            assert_eq!(error.message, "exceeded max depth", "{levels}");
        }
    }
    // More than serde_json's own limit has no effect, so that the stack stays bounded.
    let deep = Limits { max_depth: 1_000_000, ..Limits::default() };
    assert!(parse(nested("[", "]", 127).as_bytes(), &deep).is_ok());
    assert!(parse(nested("[", "]", 100_000).as_bytes(), &deep).is_err());
    let open = [("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", ""), ("[{a: ", "}]")];
    for (open, close) in open {
        assert!(read_yaml(&nested(open, close, 100_000)).is_err());
    }
    assert_eq!(depth(&json!(1), 9), 0);
    assert_eq!(depth(&json!({"a": [{}], "b": []}), 9), 3);
}

#[track_caller]
fn check_yaml(text: &str, expect: &Value) {
    assert_eq!(read_yaml(text).map(|p| p.value).as_ref(), Ok(expect), "{text:?}");
}

#[test]
fn yaml_scalars_are_those_of_version_1_1() {
    for (text, expect) in [
        ("yes", json!(true)),
        ("Off", json!(false)),
        ("~", json!(null)),
        ("", json!(null)),
        ("'yes'", json!("yes")),
        ("\"1\"", json!("1")),
        ("012", json!(10)),
        ("0o17", json!(15)),
        ("0x1F", json!(31)),
        ("0b11", json!(3)),
        ("-0b11", json!(-3)),
        ("1_000", json!(1000)),
        ("1.0", json!(1)),
        ("1.5e1", json!(15)),
        (".5", json!(0.5)),
        ("+1", json!(1)),
        ("089", json!(89)),
        ("1.2.3", json!("1.2.3")),
        ("1e999", json!("1e999")),
        ("18446744073709551615", json!(18_446_744_073_709_551_615_f64)),
        ("2020-01-01", json!("2020-01-01")),
        ("!!str 1", json!("1")),
        ("!!int '7'", json!(7)),
        ("!!binary aGk=", json!("hi")),
        ("! 1", json!("1")),
        ("a: |\n  x", json!({"a": "x"})),
        ("1: a\ntrue: b\n1.5: c", json!({"1": "a", "true": "b", "1.5": "c"})),
        ("--- {a: [1, 'x']}\n---\n", json!({"a": [1, "x"]})),
    ] {
        check_yaml(text, &expect);
    }
}

#[test]
fn yaml_aliases_and_merges() {
    check_yaml("a: &x {k: 1}\nb: *x", &json!({"a": {"k": 1}, "b": {"k": 1}}));
    let text = "a: &x {k: 1, l: 2}\nb:\n  l: 3\n  <<: *x\n  k: 4\n";
    check_yaml(text, &json!({"a": {"k": 1, "l": 2}, "b": {"k": 4, "l": 3}}));
    assert_eq!(read_yaml(text).unwrap().duplicates, Vec::<String>::new());
    check_yaml(
        "- &x {k: 1}\n- &y {k: 2, m: 1}\n- <<: [*x, *y]",
        &json!([{"k": 1}, {"k": 2, "m": 1}, {"k": 1, "m": 1}]),
    );
    for bad in
        ["a: &x [*x]", "*x", "<<: 1", "[a]: 1", "~: 1", "a: .nan", "a: 1\n---\nb: 1", "!!int x"]
    {
        read_yaml(bad).unwrap_err();
    }
}

#[test]
fn yaml_duplicates_have_lines() {
    let parsed = read_yaml("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n1: x\n1: z\n").unwrap();
    assert_eq!(parsed.value, json!({"a": 3, "b": {"c": 2}, "1": "z"}));
    assert_eq!(
        parsed.duplicates,
        [
            "line 4: key \"c\" already set in map",
            "line 5: key \"a\" already set in map",
            "line 7: key 1 already set in map",
        ]
    );
}

#[test]
fn yaml_bombs_are_refused() {
    let mut laughs = "a0: &a0 [lol]\n".to_owned();
    for i in 1..30 {
        let previous = i - 1;
        let list = vec![format!("*a{previous}"); 9].join(",");
        laughs += &format!("a{i}: &a{i} [{list}]\n");
    }
    let error = read_yaml(&laughs).unwrap_err();
    assert!(error.message.ends_with("document contains excessive aliasing"), "{error}");
    let text = format!("- &a {}\n{}", "x".repeat(1_000_000), "- *a\n".repeat(1000));
    read_yaml(&text).unwrap_err();
    let merges = format!("- &a {{k: {}}}\n{}", "x".repeat(100_000), "- <<: *a\n".repeat(1000));
    read_yaml(&merges).unwrap_err();
}

#[test]
fn yaml_errors_have_lines() {
    let error = read_yaml("a: 1\nb: [\n").unwrap_err();
    assert!(error.message.starts_with("yaml: line "), "{error}");
    assert_eq!(yaml(b"a: \xff", &Limits::default()).unwrap_err().offset, 3);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("whole floats become integers", |f| f.fract() != 0.0)
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn valid_json_is_what_serde_json_reads(value in any_json()) {
        let text = serde_json::to_string_pretty(&value).unwrap();
        let parsed = read(&text).unwrap();
        prop_assert_eq!(&parsed.value, &serde_json::from_str::<Value>(&text).unwrap());
        prop_assert_eq!(parsed.value, value);
        prop_assert!(parsed.duplicates.is_empty());
    }

    #[test]
    fn json_is_yaml(value in any_json()) {
        // YAML forbids some control characters that JSON escapes; all others are the same.
        let text = value.to_string();
        prop_assert_eq!(read_yaml(&text).map(|p| p.value), Ok(value));
    }

    #[test]
    fn json_is_accepted_exactly_when_serde_json_accepts_it(text in "[\\[\\]{}:,\"a10.eE\\\\ -]{0,12}") {
        prop_assert_eq!(read(&text).is_ok(), serde_json::from_str::<Value>(&text).is_ok());
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, text in "[\\[\\]{}:,\"'a1&*<>|!?#\n -]{0,40}") {
        for bytes in [&bytes, text.as_bytes()] {
            for result in [parse(bytes, &Limits::default()), yaml(bytes, &Limits::default())] {
                if let Err(error) = result {
                    prop_assert!(error.offset <= bytes.len());
                    prop_assert!(!error.to_string().is_empty());
                }
            }
        }
    }
}
