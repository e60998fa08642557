//! Every case gives what upstream's own libraries give: `tests/data/golden.json`, made by
//! `kind-tests/tools/patch-oracle` from `tests/data/cases.json` and from random cases.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::HashMap;
use std::sync::LazyLock;

use patch::strategic::{FieldMerge, MergeSchema, Strategy};
use patch::{PatchError, json, merge, strategic};
use serde_json::Value;

static CASES: &str = include_str!("data/cases.json");

static GOLDEN: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("data/golden.json")).unwrap());

/// Merge metadata, as the oracle read it from the tags of Go's structs.
static TYPES: LazyLock<HashMap<String, Type>> = LazyLock::new(|| {
    let types = GOLDEN["types"].as_object().unwrap();
    types.iter().map(|(name, fields)| (name.clone(), Type::new(name, fields))).collect()
});

/// Cases whose outcome differs on purpose: ours, and why.
const DIFFERENT: &[(&str, &str, &str)] = &[
    (
        "scalars repeat in the document",
        r#"{"tags":["c","a","b"]}"#,
        "upstream's order depends on spare capacity of a slice; the server's slices have none",
    ),
    (
        "empty order",
        r#"{"parts":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]}"#,
        "upstream sorts items that are in no order by a comparison that contradicts itself",
    ),
    ("empty order, new list", r#"{"parts":[{"name":"a"},{"name":"b"},{"name":"c"}]}"#, "as above"),
    (
        "order of scalars where objects are",
        "other: expected a map[string]interface {}, but received a string",
        "the same fault in the words of the other checks",
    ),
    (
        "json: test holds",
        r#"{"a":{"x":[1,"y",null,true]}}"#,
        "upstream panics where it compares null in a list",
    ),
    ("merge: list as patch", "malformed: Invalid JSON Patch", "upstream refuses one step later"),
];

#[derive(Debug)]
struct Type {
    name: String,
    fields: HashMap<String, (Strategy, Option<String>, Option<String>)>,
}

#[test]
fn answers_are_those_of_upstream() {
    let answers = GOLDEN["answers"].as_array().unwrap();
    let mut wrong = Vec::new();
    for answer in answers {
        let name = answer["name"].as_str().unwrap();
        let ours = outcome(answer);
        let theirs = match DIFFERENT.iter().find(|(case, ..)| *case == name) {
            Some((_, ours, _)) => (*ours).to_owned(),
            None => expected(answer),
        };
        // Upstream panics on these, and answers 500.
        let refused =
            theirs == "panic" && (ours.starts_with("failed") || ours.starts_with("other"));
        if ours != theirs && !refused {
            wrong.push(format!("{answer}\n  theirs: {theirs}\n  ours:   {ours}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_golden_file_has_every_case() {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    let answers = GOLDEN["answers"].as_array().unwrap();
    for (case, answer) in cases.iter().zip(answers) {
        for part in ["name", "type", "doc", "patch"] {
            assert_eq!(case[part], answer[part], "run the oracle again");
        }
    }
    assert!(answers.len() > cases.len());
}

#[test]
fn unknown_fields_of_operations_are_those_of_upstream() {
    for answer in GOLDEN["answers"].as_array().unwrap().iter().filter(|a| a["type"] == "json") {
        let unknown = answer.get("unknown").map_or(&[][..], |list| list.as_array().unwrap());
        if answer.get("class").is_none() {
            assert_eq!(json::unknown_fields(&answer["patch"]), unknown, "{answer}");
        }
    }
}

fn expected(answer: &Value) -> String {
    match (answer.get("class").and_then(Value::as_str), answer.get("error")) {
        // The texts of these are never shown.
        (Some(class @ ("failed" | "panic")), _) => class.to_owned(),
        (Some(class), _) if is_loose(answer) => class.to_owned(),
        (Some(class), Some(error)) => format!("{class}: {}", error.as_str().unwrap()),
        _ => answer["result"].to_string(),
    }
}

fn outcome(answer: &Value) -> String {
    let (class, text) =
        match run(answer["type"].as_str().unwrap(), &answer["doc"], &answer["patch"]) {
            Ok(result) => return result.to_string(),
            Err(PatchError::Failed(_) | PatchError::TestFailed(_)) => return "failed".to_owned(),
            Err(PatchError::Malformed(text)) => ("malformed", text),
            Err(PatchError::Unmergeable(text)) => ("other", text),
            Err(other) => return format!("{other:?}"),
        };
    if is_loose(answer) { class.to_owned() } else { format!("{class}: {text}") }
}

/// Whether only the class of an error counts: texts about JSON patches name Go types, and of the
/// many faults of a random patch upstream finds any first.
fn is_loose(answer: &Value) -> bool {
    answer["type"] == "json" || answer["name"].as_str().unwrap().starts_with("random ")
}

fn run(ty: &str, doc: &Value, patch: &Value) -> Result<Value, PatchError> {
    let mut result = doc.clone();
    match ty {
        "json" => json::apply(&mut result, patch, json::MAX_COPIED)?,
        "merge" => merge::apply(&mut result, patch.clone())?,
        root => return strategic::apply(doc, patch, &TYPES[root]),
    }
    Ok(result)
}

// === impl Type ===

impl Type {
    fn new(name: &str, fields: &Value) -> Self {
        let text = |field: &Value, name: &str| Some(field.get(name)?.as_str().unwrap().to_owned());
        let fields = fields.as_object().unwrap().iter().map(|(name, field)| {
            let strategy = text(field, "strategy").unwrap_or_default();
            let strategy = Strategy::parse(&strategy).unwrap();
            (name.clone(), (strategy, text(field, "key"), text(field, "type")))
        });
        Self { name: name.to_owned(), fields: fields.collect() }
    }
}

impl MergeSchema for Type {
    fn field(&self, name: &str) -> Option<FieldMerge<'_>> {
        let (strategy, key, ty) = self.fields.get(name)?;
        let schema = ty.as_ref().map(|name| &TYPES[name] as &dyn MergeSchema);
        Some(FieldMerge { strategy: *strategy, merge_key: key.as_deref(), schema })
    }

    fn type_name(&self) -> &str {
        &self.name
    }
}
