//! Objects that a real kube-apiserver (1.36) was sent, and what it answered.
//!
//! `objects.json` holds creations: the stored form, the problems, the warnings of unknown fields.
//! `updates.json` holds updates of objects that were stored when the schema allowed anything.

use super::*;

#[derive(serde::Deserialize)]
struct Suite<C> {
    name: String,
    schema: Value,
    /// Whether cases give whole objects; else their `spec`.
    #[serde(default)]
    whole: bool,
    cases: Vec<C>,
}

#[derive(serde::Deserialize)]
struct Creation {
    object: Value,
    #[serde(default)]
    stored: Option<Value>,
    #[serde(default)]
    problems: Option<Vec<String>>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(serde::Deserialize)]
struct Update {
    old: Value,
    new: Value,
    problems: Vec<String>,
}

fn whole(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "foo"}, "spec": spec})
}

#[test]
fn creations() {
    check_creations(include_str!("../../../tests/data/custom/objects.json"));
}

/// Schemas and objects that chance made.
#[test]
fn random_creations() {
    check_creations(include_str!("../../../tests/data/custom/objects-random.json"));
}

fn check_creations(suites: &str) {
    let suites: Vec<Suite<Creation>> = serde_json::from_str(suites).unwrap();
    let mut differences = Vec::new();
    for suite in &suites {
        let schema = compile(&suite.schema);
        for case in &suite.cases {
            if let Err(difference) = check_creation(&schema, suite.whole, case) {
                differences.push(format!("{}: {}: {difference}", suite.name, case.object));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn check_creation(schema: &Structural, is_whole: bool, case: &Creation) -> Result<(), String> {
    let mut object = whole(&Value::Null);
    match (is_whole, &case.object) {
        (true, Value::Object(fields)) => {
            object.as_object_mut().unwrap().remove("spec");
            for (name, value) in fields {
                object[name] = value.clone();
            }
            object["metadata"]["name"] = "foo".into();
        }
        _ => object["spec"] = case.object.clone(),
    }
    let unknown = match schema.coerce(&mut object, CoerceMode::Report) {
        Ok(unknown) => unknown,
        Err(why) => {
            let expected = case.error.as_ref().is_some_and(|e| e.ends_with(&why.to_string()));
            return expected.then_some(()).ok_or(format!("{why} instead of {:?}", case.error));
        }
    };
    let warnings: Vec<String> = unknown.iter().map(ToString::to_string).collect();
    if warnings != case.warnings {
        return Err(format!("warned {warnings:?} instead of {:?}", case.warnings));
    }
    schema.default(&mut object);
    let mut problems = texts(&schema.validate(&object, None));
    problems.sort();
    if case.error.is_some() || problems != case.problems.clone().unwrap_or_default() {
        return Err(format!("\n  found {problems:#?}\n  not {:#?}", case.problems));
    }
    let Some(stored) = &case.stored else { return Ok(()) };
    let mut found = object.clone();
    if is_whole {
        let fields = found.as_object_mut().unwrap();
        fields.remove("apiVersion");
        fields.remove("kind");
        let metadata = fields["metadata"].as_object_mut().unwrap();
        metadata.remove("name");
        if metadata.is_empty() {
            fields.remove("metadata");
        }
    } else {
        found = found.get("spec").cloned().unwrap_or_default();
    }
    settle_numbers(&mut found);
    if found == *stored { Ok(()) } else { Err(format!("stored {found} instead of {stored}")) }
}

/// Writes of one part of objects that were stored when the schema allowed anything.
fn check_updates(
    suites: &str,
    place: &str,
    validate: fn(&Structural, &Value, &Value) -> Vec<FieldError>,
) {
    let suites: Vec<Suite<Update>> = serde_json::from_str(suites).unwrap();
    let mut differences = Vec::new();
    for suite in &suites {
        let schema = compile(&suite.schema);
        for case in &suite.cases {
            let mut old = whole(&json!({}));
            old[place] = case.old.clone();
            settle_numbers(&mut old);
            schema.repair(&mut old);
            schema.default(&mut old);
            let mut new = whole(&json!({}));
            new[place] = case.new.clone();
            schema.coerce(&mut new, CoerceMode::Drop).unwrap();
            schema.default(&mut new);
            // What every write changes; a whole object that is as it was would be forgiven.
            new["metadata"]["resourceVersion"] = "2".into();
            let mut problems = texts(&validate(&schema, &new, &old));
            problems.sort();
            if problems != case.problems {
                differences.push(format!(
                    "{}: {} to {}:\n  found {problems:#?}\n  not {:#?}",
                    suite.name, case.old, case.new, case.problems
                ));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn updates() {
    let suites = include_str!("../../../tests/data/custom/updates.json");
    check_updates(suites, "spec", |schema, new, old| schema.validate(new, Some(old)));
}

/// Schemas, objects and changes that chance made.
#[test]
fn random_updates() {
    let suites = include_str!("../../../tests/data/custom/updates-random.json");
    check_updates(suites, "spec", |schema, new, old| schema.validate(new, Some(old)));
}

#[test]
fn updates_of_the_status() {
    let suites = include_str!("../../../tests/data/custom/status.json");
    check_updates(suites, "status", Structural::validate_status);
}
