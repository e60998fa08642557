//! Schemas that mean harm: whatever they say, to compare and to merge them takes a bounded time.

#![expect(clippy::disallowed_types, reason = "how long it takes is what is judged here")]

use std::time::{Duration, Instant};

use super::*;

/// Far more than any of them takes, on a machine that is busy; what isn't bounded takes minutes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Compares and merges types in all ways.
#[track_caller]
fn end(types: &[Type]) {
    let begun = Instant::now();
    let names: Vec<String> = (0..types.len()).map(|number| format!("t{number}")).collect();
    let inputs: Vec<(&str, &str, &Type)> =
        names.iter().zip(types).map(|(name, ty)| (&**name, "2026-01-01T00:00:00Z", ty)).collect();
    let agreement = agree(&inputs);
    let told = agreement.differences.len();
    assert!(told <= MAX_DIFFERENCES, "{told}");
    for ty in types.iter().take(2) {
        for other in types.iter().take(2) {
            differences(ty, other, ["hub", "east"]);
        }
    }
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
}

fn many<T: Into<Value>>(count: usize, make: impl Fn(usize) -> T) -> Vec<Value> {
    (0..count).map(|number| make(number).into()).collect()
}

fn fields(count: usize, make: impl Fn(usize) -> (String, Value)) -> Value {
    Value::Object((0..count).map(make).collect())
}

#[test]
fn words_that_nobody_knows() {
    let schema = |tail: &str| {
        let mut made = fields(100_000, |number| (format!("x-{number}{tail}"), json!(number)));
        made["type"] = json!("object");
        made
    };
    end(&[thing(&schema("")), thing(&schema("a"))]);
}

#[test]
fn conditions_without_end() {
    let schema = |tail: &str| {
        let all = many(50_000, |number| json!({"not": {"pattern": format!("^{number}{tail}")}}));
        json!({"type": "string", "allOf": all})
    };
    end(&[thing(&schema("")), thing(&schema("a"))]);
}

#[test]
fn rules_without_end_and_fields_that_they_may_be_about() {
    let schema = |tail: &str| {
        let rules = many(20_000, |number| json!({"rule": format!("self.r{number}{tail} == 1")}));
        let properties =
            fields(20_000, |number| (format!("f{number}{tail}"), json!({"type": "string"})));
        json!({"type": "object", "properties": properties, "x-kubernetes-validations": rules})
    };
    end(&[thing(&schema("")), thing(&schema("a"))]);
}

#[test]
fn values_for_each_field() {
    let values = many(60_000, |number| format!("v{number}"));
    let map = json!({"type": "object", "additionalProperties": {"type": "string", "enum": values}});
    let one = json!({"type": "string", "enum": ["v1"]});
    let named = json!({"type": "object", "properties": fields(20_000, |number| (format!("f{number}"), one.clone()))});
    end(&[thing(&map), thing(&named)]);
}

#[test]
fn columns_and_fields_to_select_by() {
    let of = |tail: &str| {
        let mut made = thing(&json!({"type": "object"}));
        made.selectable_fields =
            (0..50_000).map(|number| format!(".spec.f{number}{tail}")).collect();
        let column = |number| Column {
            name: format!("c{number}{tail}"),
            type_: "string".into(),
            json_path: ".spec".into(),
            description: None,
            format: None,
            priority: None,
        };
        made.columns = (0..50_000).map(column).collect();
        made
    };
    end(&[of(""), of("a")]);
}

/// Both name fields and tell of others, so that each level has more pairs than the one above.
#[test]
fn levels_that_multiply() {
    let schema = |name: &str| {
        (0..11).fold(json!({"type": "object"}), |below, _| {
            json!({"type": "object", "properties": {name: below}, "additionalProperties": below})
        })
    };
    end(&[thing(&schema("a")), thing(&schema("b")), thing(&schema("c"))]);
}

/// Many clusters, each with a schema of its own, of which the last doesn't fit.
#[test]
fn schemas_without_end() {
    let mut types: Vec<Type> = (0..150)
        .map(|cluster| {
            let field =
                |number| (format!("f{}", number * (cluster + 1)), json!({"type": "string"}));
            thing(&json!({"type": "object", "properties": fields(300, field)}))
        })
        .collect();
    types.push(thing(&json!({"type": "string"})));
    end(&types);
}

#[test]
fn names_without_end() {
    let name = "n".repeat(300_000);
    let schema = |kind: &str| {
        let inner = fields(10_000, |number| (format!("f{number}"), json!({"type": kind})));
        json!({"type": "object", "properties": {&name: {"type": "object", "properties": inner}}})
    };
    end(&[thing(&schema("string")), thing(&schema("integer"))]);
}
