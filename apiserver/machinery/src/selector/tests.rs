//! Selectors: what matches, what the text says, and what is refused in which words.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn label(text: &str) -> LabelSelector {
    LabelSelector::parse(text).unwrap()
}

#[track_caller]
fn selects(text: &str, labels: &[(&str, &str)], expect: bool) {
    let get = |key: &str| labels.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
    assert_eq!(label(text).matches(get), expect, "{text:?} on {labels:?}");
}

#[test]
fn label_matches() {
    let app = [("app", "web"), ("tier", "2"), ("empty", "")];
    for yes in [
        "",
        "app",
        "app=web",
        "app==web",
        "app in (web,db)",
        "app notin (db)",
        "app!=db",
        "!x",
        "x!=y",
        "x notin (y)",
        "tier>1",
        "tier<3",
        "empty=",
        "empty",
        "empty in (,x)",
        "empty in ()",
        " app = web , tier ",
        "app=web,app!=db",
    ] {
        selects(yes, &app, true);
    }
    for no in [
        "x",
        "app=db",
        "app in (db)",
        "app notin (web)",
        "app!=web",
        "!app",
        "tier>2",
        "tier<2",
        "app>1",
        "x>1",
        "x=",
        "app=web,x",
    ] {
        selects(no, &app, false);
    }
    assert!(!LabelSelector::nothing().matches(|_| Some("x")));
    assert!(LabelSelector::everything().is_empty() && !LabelSelector::nothing().is_empty());
}

#[test]
fn label_texts() {
    for (text, canonical) in [
        ("b==1,a=2", "a=2,b=1"),
        ("x in (c,a,b,a)", "x in (a,b,c)"),
        ("x notin ( )", "x notin ()"),
        ("! a", "!a"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("a.b/c>7", "a.b/c>7"),
        ("a=,b", "a=,b"),
    ] {
        assert_eq!(label(text).to_string(), canonical);
    }
    assert_eq!(label("a in (x),b=y").exact("a"), Some("x"));
    assert_eq!(label("a in (x,y),b!=y").exact("a"), None);
}

#[test]
fn label_errors() {
    let requirement = "unable to parse requirement: ";
    for (text, message) in [
        ("=", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a b", &format!("{requirement}found 'b', expected: in, notin, =, ==, !=, gt, lt")),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a in b", &format!("{requirement}found 'b' expected: '('")),
        ("a in (b", &format!("{requirement}found '', expected: ',' or ')'")),
        ("!", &format!("{requirement}found '', expected: identifier")),
        (
            "a>b",
            &format!(
                "{requirement}values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the \
                 value must be an integer"
            ),
        ),
    ] {
        assert_eq!(LabelSelector::parse(text), Err(SelectorError(message.into())), "{text:?}");
    }
    let error = LabelSelector::parse("a%=b").unwrap_err().to_string();
    let begin = "unable to parse requirement: <nil>: Invalid value: \"a%\": name part must consist";
    assert!(error.starts_with(begin), "{error}");
    let error = LabelSelector::parse("a=é").unwrap_err().to_string();
    let begin = "unable to parse requirement: values[0][a]: Invalid value: \"é\": a valid label";
    assert!(error.starts_with(begin), "{error}");
    assert!(LabelSelector::parse(&"a,".repeat(MAX_SELECTOR)).is_err());
}

#[test]
fn structured_label_selectors() {
    let parse = |value| LabelSelector::from_value(&value);
    let full = json!({
        "matchLabels": {"b": "1", "a": ""},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["y", "x"]},
            {"key": "d", "operator": "DoesNotExist"},
            {"key": "e", "operator": "Exists", "values": null},
            {"key": "f", "operator": "NotIn", "values": ["z"]},
        ],
    });
    assert_eq!(parse(full).unwrap().to_string(), "a=,b=1,c in (x,y),!d,e,f notin (z)");
    assert!(parse(json!(null)).unwrap().is_nothing());
    assert!(parse(json!({"matchLabels": null})).unwrap().is_empty());
    let operator = json!({"matchExpressions": [{"key": "a", "operator": "in"}]});
    assert_eq!(
        parse(operator).unwrap_err().to_string(),
        "\"in\" is not a valid label selector operator"
    );
    let empty = json!({"matchExpressions": [{"key": "a", "operator": "In"}]});
    assert_eq!(
        parse(empty).unwrap_err().to_string(),
        "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
    );
    assert!(parse(json!({"matchLabels": {"a": 1}})).is_err());
    assert!(parse(json!([])).is_err());
}

#[test]
fn field_selectors() {
    let selector = FieldSelector::parse("status.phase!=Running,metadata.name==a\\,b\\=\\\\,,=");
    let selector = selector.unwrap();
    assert_eq!(selector.exact("metadata.name"), Some("a,b=\\"));
    assert_eq!(selector.exact("status.phase"), None);
    assert_eq!(selector.to_string(), "metadata.name=a\\,b\\=\\\\,status.phase!=Running");
    assert_eq!(selector.requirements().len(), 2);
    let object = |phase: Option<&'static str>| {
        move |path: &str| match path {
            "metadata.name" => Some(Cow::Borrowed("a,b=\\")),
            _ => phase.map(Cow::Borrowed),
        }
    };
    assert!(selector.matches(object(Some("Failed"))) && selector.matches(object(None)));
    assert!(!selector.matches(object(Some("Running"))));
    assert!(FieldSelector::parse("x=").unwrap().matches(|_| None));
    for (text, message) in [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("b=1,a!", "invalid selector: 'b=1,a!'; can't understand 'a!'"),
        ("a=\\x", "invalid field selector: invalid escape sequence: \\x"),
        ("a=\\", "invalid field selector: invalid escape sequence: \\"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    ] {
        assert_eq!(FieldSelector::parse(text), Err(SelectorError(message.into())), "{text:?}");
    }
}

proptest! {
    #[test]
    fn label_texts_round_trip(text in "(!?[a-c](=|==|!=|>|<| in | notin )?[(]?[a1-3,]{0,4}[)]?,?){0,4}") {
        if let Ok(selector) = LabelSelector::parse(&text) {
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
        }
    }

    #[test]
    fn built_label_selectors_round_trip(
        keys in proptest::collection::vec(("[a-z]{1,3}", 0..6_usize, "[a-z0-9]{0,3}"), 0..5))
    {
        let requirements = keys.into_iter().map(|(key, operator, value)| {
            let (operator, values) = match operator {
                0 => (LabelOperator::Equals, vec![value.into()]),
                1 => (LabelOperator::NotEquals, vec![value.into()]),
                2 => (LabelOperator::In, vec![value.into(), "z".into()]),
                3 => (LabelOperator::NotIn, vec!["z".into(), value.into()]),
                4 => (LabelOperator::Exists, vec![]),
                _ => (LabelOperator::DoesNotExist, vec![]),
            };
            LabelRequirement::new(&key, operator, values).unwrap()
        });
        let selector = LabelSelector::new(requirements.collect());
        prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
    }

    #[test]
    fn field_texts_round_trip(text in "([a-c.]{1,3}(=|==|!=)([a-c]|\\\\[,=\\\\]){0,4},?){0,4}") {
        let selector = FieldSelector::parse(&text);
        if let Ok(selector) = selector {
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
        }
    }

    #[test]
    fn opposites(key in "[ab]", value in "[xy]", label in proptest::option::of("[xy]")) {
        let get = |k: &str| label.as_deref().filter(|_| k == "a");
        let matches = |text: String| super::tests::label(&text).matches(get);
        prop_assert_ne!(matches(format!("{key}={value}")), matches(format!("{key}!={value}")));
        prop_assert_ne!(matches(format!("{key} in ({value})")), matches(format!("{key} notin ({value})")));
        prop_assert_ne!(matches(key.clone()), matches(format!("!{key}")));
    }

    #[test]
    fn no_text_panics(text: String, shaped in "[a=!,()<> \\\\é]{0,20}") {
        for text in [text, shaped] {
            if let Ok(selector) = LabelSelector::parse(&text) {
                prop_assert_eq!(selector.is_empty(), selector.requirements().is_empty());
                selector.matches(|_| Some("1"));
            }
            if let Ok(selector) = FieldSelector::parse(&text) {
                prop_assert_eq!(selector.is_empty(), selector.requirements().is_empty());
                selector.matches(|_| None);
            }
        }
    }
}
