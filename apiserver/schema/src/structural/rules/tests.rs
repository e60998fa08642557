//! Rules say what upstream's say: `tests/data/rules/golden.json`, made by `kind-tests/tools/cel-oracle`
//! from `tests/data/rules/cases.json`. A CRD's problems and an object's are compared as texts.

use machinery::{FieldError, FieldPath};
use serde_json::{Value, json};

use super::{Estimates, field_path};
use crate::structural::Structural;

static CASES: &str = include_str!("../../../tests/data/rules/cases.json");
static GOLDEN: &str = include_str!("../../../tests/data/rules/golden.json");

fn sorted(problems: &[FieldError]) -> Vec<String> {
    let mut texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Upstream names problems that other checks than these find.
fn ours_to_find(text: &str) -> bool {
    !text.contains("Required value: rule is not specified")
}

#[test]
fn rules_say_what_upstreams_say() {
    let cases: Value = serde_json::from_str(CASES).unwrap();
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let at = FieldPath::root("spec.validation.openAPIV3Schema");
    let mut wrong = Vec::new();
    for (case, golden) in cases.as_array().unwrap().iter().zip(golden.as_array().unwrap()) {
        let name = case["name"].as_str().unwrap();
        let schema = Structural::compile(&case["schema"], &at).unwrap();
        let mut compare = |what: String, upstream: Vec<String>, ours: Vec<String>| {
            let missing: Vec<_> = upstream.iter().filter(|text| !ours.contains(text)).collect();
            let extra: Vec<_> = ours.iter().filter(|text| !upstream.contains(text)).collect();
            if upstream != ours {
                wrong.push(format!("{what}\n  missing: {missing:#?}\n  extra: {extra:#?}"));
            }
        };
        let upstream =
            texts(&golden["crd"]).into_iter().filter(|text| ours_to_find(text)).collect();
        compare(name.to_owned(), upstream, sorted(&schema.check_rules(&at, Estimates::Judged)));
        let answers = golden["objects"].as_array().unwrap();
        for (index, (object, answer)) in
            case["objects"].as_array().unwrap().iter().zip(answers).enumerate()
        {
            let verdict = schema.validate_rules(&object["new"], object.get("old"));
            let what = format!("{name}, object {index}");
            compare(what.clone(), texts(&answer["problems"]), sorted(&verdict.problems));
            compare(what + ", warnings", texts(&answer["warnings"]), sorted(&verdict.warnings));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn unchanged_schemas_skip_the_estimates_of_rules() {
    let schema = json!({"type": "object", "properties": {"l": {
        "type": "array",
        "items": {"type": "string"},
        "x-kubernetes-validations": [{"rule": "self.all(x, self.exists(y, x == y + 'a'))"}],
    }}});
    let at = FieldPath::root("s");
    let schema = Structural::compile(&schema, &at).unwrap();
    let count = |estimates| schema.check_rules(&at, estimates).len();
    // The rule's own estimate, its part of the sum, and the sum.
    assert_eq!(count(Estimates::Judged), 3);
    assert_eq!(count(Estimates::Unchanged), 2);
}

#[test]
fn field_paths_are_normalized() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "object", "properties": {"b-c": {"type": "string"}}},
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
    }});
    let schema = Structural::compile(&schema, &FieldPath::root("s")).unwrap();
    let check = |path: &str, expect: Option<&str>| {
        assert_eq!(field_path::normalize(path, schema.root()).as_deref(), expect, "{path}");
    };
    check(".a", Some("a"));
    check(".a['b-c']", Some("a.b-c"));
    check(".a.b-c", Some("a.b-c"));
    check(".m['x']", Some("m[x]"));
    check(".m.x", Some("m[x]"));
    check(".m['it\\'s']", Some("m[it's]"));
    check(".nope", None);
    check("a", None);
    check(".a[0]", None);
    check(".a['b-c'", None);
    check(".", None);
}

#[test]
fn schemas_without_rules_have_no_programs() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let schema = Structural::compile(&schema, &FieldPath::root("s")).unwrap();
    let verdict = schema.validate_rules(&json!({"a": "x"}), None);
    assert!(verdict.problems.is_empty() && verdict.warnings.is_empty());
    assert!(schema.rules.get().is_none());
}
