//! Laws of the three formats over arbitrary documents, and the bounds of each.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::time::Duration;

use patch::strategic::{FieldMerge, MergeSchema, Strategy as Merging};
use patch::{MAX_DEPTH, PatchError, json, merge, strategic};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A type whose every field merges by the key `name` and has this type again.
#[derive(Debug)]
struct Everything;

impl MergeSchema for Everything {
    fn field(&self, name: &str) -> Option<FieldMerge<'_>> {
        let (strategy, merge_key) = match name {
            "list" => (Merging::Merge, Some("name")),
            "set" => (Merging::Merge, None),
            "whole" => (Merging::Replace, None),
            "none" => return None,
            _ => (Merging::Unset, None),
        };
        Some(FieldMerge { strategy, merge_key, schema: Some(self) })
    }
}

/// Objects whose names and values often meet those of another.
fn object() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        Just(json!(1.5)),
        "[a-c]".prop_map(Value::from),
        Just(json!("replace")),
        Just(json!("delete")),
    ];
    let name = prop::sample::select(vec![
        "name",
        "list",
        "set",
        "whole",
        "none",
        "a",
        "$patch",
        "$retainKeys",
        "$setElementOrder/list",
        "$setElementOrder/set",
        "$deleteFromPrimitiveList/set",
        "$deleteFromPrimitiveList/list",
    ]);
    let value = scalar.prop_recursive(4, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(name.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    value.prop_map(|value| if value.is_object() { value } else { json!({"list": value}) })
}

fn operations() -> impl Strategy<Value = Value> {
    let path = || "(/(name|list|set|a|0|1|-1|-|~0|~)){0,3}|x|/";
    let op = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test", "?"]);
    let one = (op, path(), path(), object()).prop_map(|(op, path, from, value)| {
        let value = value.get("list").cloned().unwrap_or(value);
        json!({"op": op, "path": path, "from": from, "value": value})
    });
    prop::collection::vec(one, 0..5).prop_map(Value::Array)
}

fn merged(doc: &Value, patch: &Value) -> Value {
    let mut result = doc.clone();
    merge::apply(&mut result, patch.clone()).unwrap();
    result
}

/// Whether null stands anywhere; merge patches can't leave it in fields.
fn without_null_fields(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().all(|v| !v.is_null() && without_null_fields(v)),
        Value::Array(items) => items.iter().all(without_null_fields),
        _ => true,
    }
}

/// Whether null stands in no list, however deep.
fn without_nulls_in_lists(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().all(without_nulls_in_lists),
        Value::Array(items) => items.iter().all(without_null_fields),
        _ => true,
    }
}

fn without_directives(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.iter().all(|(name, v)| !name.starts_with('$') && without_directives(v))
        }
        Value::Array(items) => items.iter().all(without_directives),
        _ => true,
    }
}

/// Whether no list says a thing twice: the same item, or two objects of one name. A patch that does
/// is taken as it is where there is no list yet, and merged item by item where there is one, so that
/// the second time differs, upstream as here.
fn without_repeats(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().all(without_repeats),
        Value::Array(items) => {
            let same = |a: &Value, b: &Value| {
                a == b || a.is_object() && b.is_object() && a.get("name") == b.get("name")
            };
            let repeats = |(at, item): (usize, &Value)| {
                items.iter().skip(at + 1).any(|later| same(item, later))
            };
            !items.iter().enumerate().any(repeats) && items.iter().all(without_repeats)
        }
        _ => true,
    }
}

proptest! {
    // Some laws look at few of the patches.
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn an_empty_merge_patch_changes_nothing(doc in object()) {
        prop_assert_eq!(merged(&doc, &json!({})), doc);
    }

    #[test]
    fn a_merge_patch_applied_twice_is_applied_once(doc in object(), patch in object()) {
        // A list that meets an object keeps the nulls of its items, and loses them the next time.
        prop_assume!(without_nulls_in_lists(&patch));
        let once = merged(&doc, &patch);
        prop_assert_eq!(merged(&once, &patch), once);
    }

    #[test]
    fn a_merge_patch_leaves_what_it_sets(doc in object(), patch in object()) {
        let result = merged(&doc, &patch);
        for (name, value) in patch.as_object().unwrap() {
            match value {
                Value::Null => prop_assert!(result.get(name).is_none()),
                Value::Array(_) | Value::Object(_) => {}
                scalar => prop_assert_eq!(&result[name], scalar),
            }
        }
    }

    #[test]
    fn an_empty_strategic_patch_changes_nothing(doc in object()) {
        prop_assert_eq!(strategic::apply(&doc, &json!({}), &Everything).unwrap(), doc);
    }

    #[test]
    fn a_full_replacement_gives_the_patch(doc in object(), patch in object()) {
        let mut replacement = patch.clone();
        replacement["$patch"] = json!("replace");
        let result = strategic::apply(&doc, &replacement, &Everything).unwrap();
        let mut expected = patch;
        expected.as_object_mut().unwrap().remove("$patch");
        prop_assert_eq!(result, expected);
    }

    #[test]
    fn a_strategic_patch_applied_twice_is_applied_once(doc in object(), patch in object()) {
        prop_assume!(without_directives(&patch) && without_directives(&doc));
        prop_assume!(without_null_fields(&patch) && without_repeats(&patch));
        if let Ok(once) = strategic::apply(&doc, &patch, &Everything)
            && let Ok(twice) = strategic::apply(&once, &patch, &Everything)
        {
            prop_assert_eq!(twice, once);
        }
    }

    #[test]
    fn strategic_patches_never_panic(doc in object(), patch in object()) {
        if let Err(error) = strategic::apply(&doc, &patch, &Everything) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn json_patches_never_panic(doc in object(), patch in operations()) {
        let mut result = doc;
        if let Err(error) = json::apply(&mut result, &patch, json::MAX_COPIED) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn anything_as_json_patch_never_panics(doc in object(), patch in object()) {
        let mut result = doc;
        let error = json::apply(&mut result, &patch, json::MAX_COPIED).unwrap_err();
        prop_assert!(matches!(error, PatchError::Malformed(_)));
    }
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!({ "a": inner }))
}

#[test]
fn results_can_be_read_back() {
    assert_eq!(MAX_DEPTH, machinery::json::Limits::default().max_depth);
}

#[test]
fn depth_is_bounded() {
    let deep = nested(MAX_DEPTH + 1);
    let shallow = json!({});
    let malformed = |result: Result<Value, PatchError>| {
        assert!(matches!(result, Err(PatchError::Malformed(_))), "{result:?}");
    };
    malformed(strategic::apply(&shallow, &deep, &Everything));
    malformed(strategic::apply(&deep, &shallow, &Everything));
    malformed(merge::apply(&mut shallow.clone(), deep.clone()).map(|()| Value::Null));
    let op = json!([{"op": "add", "path": "/a", "value": deep}]);
    malformed(json::apply(&mut shallow.clone(), &op, json::MAX_COPIED).map(|()| Value::Null));

    let full = nested(MAX_DEPTH);
    assert_eq!(merged(&full, &full), full);
    assert_eq!(strategic::apply(&full, &full, &Everything).unwrap(), full);
}

#[test]
fn operations_cannot_build_depth() {
    // Each copy, and each round of moves, adds a level.
    let copies = json!({"op": "copy", "from": "/a", "path": "/a/a"});
    let mut doc = json!({"a": {}});
    let error = json::apply(&mut doc, &json!(vec![copies; 200]), json::MAX_COPIED).unwrap_err();
    assert!(matches!(error, PatchError::TooLarge(_)), "{error}");

    let level = [
        json!({"op": "add", "path": "/b", "value": {}}),
        json!({"op": "move", "from": "/a", "path": "/b/a"}),
        json!({"op": "move", "from": "/b", "path": "/a"}),
    ];
    let moves: Vec<_> = (0..200).flat_map(|_| level.clone()).collect();
    let error = json::apply(&mut json!({"a": {}}), &json!(moves), json::MAX_COPIED).unwrap_err();
    assert!(matches!(error, PatchError::TooLarge(_)), "{error}");
}

#[test]
fn copies_have_a_budget() {
    let doc = json!({"a": "x".repeat(100)});
    let copy = |to: &str| json!({"op": "copy", "from": "/a", "path": to});
    let patch = json!([copy("/b"), copy("/c")]);
    assert_eq!(json::apply(&mut doc.clone(), &patch, 204), Ok(()));
    let error = json::apply(&mut doc.clone(), &patch, 203).unwrap_err();
    assert!(matches!(error, PatchError::TooLarge(_)), "{error}");
}

#[test]
fn operations_are_counted() {
    let operation = json!({"op": "test", "path": "/a", "value": 1});
    let patch = |count| Value::Array(vec![operation.clone(); count]);
    let mut doc = json!({"a": 1});
    assert_eq!(json::apply(&mut doc, &patch(10_000), json::MAX_COPIED), Ok(()));
    let error = json::apply(&mut doc, &patch(10_001), json::MAX_COPIED).unwrap_err();
    assert_eq!(error, PatchError::TooManyOperations { max: 10_000, got: 10_001 });
    let text = "The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!(error.to_string(), text);
}

#[test]
fn shifting_a_long_list_has_a_budget() {
    let insert = json!({"op": "add", "path": "/a/0", "value": 0});
    let mut doc = json!({"a": vec![0; 100_000]});
    let error = json::apply(&mut doc, &json!(vec![insert; 10_000]), json::MAX_COPIED).unwrap_err();
    assert!(matches!(error, PatchError::TooLarge(_)), "{error}");
}

/// Quadratic merging of these lists would take minutes.
#[test]
fn long_lists_merge_in_linear_time() {
    let items = |from: usize| -> Vec<Value> {
        (from..from + 50_000).map(|at| json!({"name": at.to_string(), "set": [at]})).collect()
    };
    let doc = json!({"list": items(0), "set": (0..50_000).collect::<Vec<_>>()});
    let patch = json!({"list": items(25_000), "set": (25_000..75_000).rev().collect::<Vec<_>>()});
    let started = std::time::SystemTime::now();
    let result = strategic::apply(&doc, &patch, &Everything).unwrap();
    assert_eq!(result["list"].as_array().unwrap().len(), 75_000);
    assert_eq!(result["set"].as_array().unwrap().len(), 75_000);
    assert!(started.elapsed().unwrap() < Duration::from_secs(60));
}
