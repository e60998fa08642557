//! Every step gives what upstream's own field manager gives: `tests/data/apply/golden.json`, made
//! by `kind-tests/tools/apply-oracle` from `tests/data/apply/cases.json` and from random sequences.

use std::borrow::Cow;
use std::sync::LazyLock;

use jiff::Timestamp;
use machinery::time::Time;
use patch::apply::{
    ApplyError, FieldSet, Managers, Replicas, Tracker, Versions, Write, from_scale, to_scale,
};
use serde_json::{Value, json};

use crate::openapi::{GROUP, Thing};

static CASES: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../data/apply/cases.json")).unwrap());

static GOLDEN: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../data/apply/golden.json")).unwrap());

/// Steps whose outcome differs on purpose, and why.
const DIFFERENT: &[(&str, usize, &str)] = &[(
    "sets of numbers",
    4,
    "upstream reads all numbers of a configuration as floats, and takes 9007199254740992 for \
     9007199254740993",
)];

#[test]
fn steps_are_those_of_upstream() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for sequence in GOLDEN["sequences"].as_array().unwrap() {
        let name = sequence["name"].as_str().unwrap();
        let mut live = None;
        for (at, step) in sequence["steps"].as_array().unwrap().iter().enumerate() {
            count += 1;
            let ours = outcome(sequence, at, step, live.as_ref());
            let theirs = &step["outcome"];
            let known = DIFFERENT.iter().any(|(case, step, _)| *case == name && *step == at);
            if ours != *theirs && !known {
                wrong.push(format!(
                    "{name}, step {at}: {}\n  theirs: {theirs}\n  ours:   {ours}",
                    step["object"]
                ));
            }
            if let Some(object) = theirs.get("object") {
                live = Some(object.clone());
            }
        }
    }
    assert!(count > 500);
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn sets_are_those_of_upstream() {
    for set in GOLDEN["sets"].as_array().unwrap() {
        let text = set["in"].as_str().unwrap();
        let value = serde_json::Deserializer::from_str(text).into_iter::<Value>().next().unwrap();
        let read = value.ok().and_then(|value| FieldSet::from_value(&value).ok());
        let json = read.as_ref().map(FieldSet::to_json);
        assert_eq!(json.as_deref(), set.get("out").and_then(Value::as_str), "{text}");
        if let Some(set) = read {
            assert_eq!(FieldSet::from_value(&set.to_value()).unwrap(), set, "{text}");
        }
    }
}

#[test]
fn scales_are_those_of_upstream() {
    for case in GOLDEN["scales"].as_array().unwrap() {
        let replicas = |version: &str| match case["paths"].get(version) {
            None => Replicas::UnknownVersion,
            Some(path) => path.as_str().map_or(Replicas::Nowhere, Replicas::at),
        };
        let object = Some(&case["object"]);
        let down = to_scale(object, replicas).unwrap();
        assert_eq!(down.as_ref().unwrap_or(&Value::Null), &case["down"], "{}", case["name"]);
        let scale = case.get("scale").or(down.as_ref());
        let version = case["version"].as_str().unwrap();
        let back = from_scale(object, scale, version, replicas).unwrap();
        assert_eq!(back.unwrap_or_default(), case["back"], "{}", case["name"]);
    }
}

#[test]
fn the_golden_file_has_every_case() {
    let (cases, golden) = (&CASES["sequences"], &GOLDEN["sequences"]);
    for (case, golden) in cases.as_array().unwrap().iter().zip(golden.as_array().unwrap()) {
        assert_eq!(case["name"], golden["name"], "run the oracle again");
        let steps = case["steps"].as_array().unwrap().iter();
        for (step, golden) in steps.zip(golden["steps"].as_array().unwrap()) {
            assert_eq!(step["object"], golden["object"], "{}: run the oracle again", case["name"]);
        }
    }
}

fn outcome(sequence: &Value, at: usize, step: &Value, live: Option<&Value>) -> Value {
    let text = |name: &str| step.get(name).and_then(Value::as_str).unwrap_or_default();
    let of = step.get("type").or_else(|| sequence.get("type")).and_then(Value::as_str).unwrap();
    let versions = Thing::new(&CASES["types"][of], text("subresource"));
    let version = if text("version").is_empty() { "v1" } else { text("version") };
    let api_version = format!("{GROUP}/{version}");
    let second = Timestamp::new(1_577_836_800 + i64::try_from(at).unwrap(), 0).unwrap();
    let write = Write {
        manager: text("by"),
        api_version: &api_version,
        kind: "Thing",
        subresource: text("subresource"),
        now: Time::at(second),
    };
    let live = live.filter(|_| text("do") != "create");
    let live = live.map(|live| versions.convert(Cow::Borrowed(live), &api_version).unwrap());
    let tracker = Tracker::new(&versions);
    let force = step.get("force") == Some(&Value::Bool(true));
    let object = &step["object"];
    let written = match text("do") {
        "apply" => tracker.apply(&write, live.as_deref(), object, force),
        _ => Ok(tracker.update(&write, live.as_deref(), object.clone())),
    };
    match written {
        Ok(object) => success(object),
        Err(error) => failure(&error),
    }
}

fn success(mut object: Value) -> Value {
    if object["metadata"].get("uid").is_none() {
        object["metadata"]["uid"] = json!("u");
    }
    let mut outcome = json!({});
    if let Some(fields) = object["metadata"].get("managedFields") {
        let entries = fields.as_array().unwrap().iter();
        let sets = entries.map(|entry| FieldSet::from_value(&entry["fieldsV1"]).unwrap().to_json());
        outcome["fields"] = sets.collect();
        assert!(Managers::from_value(fields).unwrap().into_value().is_some());
    }
    outcome["object"] = object;
    outcome
}

fn failure(error: &ApplyError) -> Value {
    let text = error.to_string();
    match error {
        ApplyError::BadRequest(_) => json!({"class": "BadRequest", "error": text}),
        ApplyError::Failed(_) => json!({"class": "failed", "error": sorted(&text)}),
        ApplyError::Conflicts(conflicts) => {
            let mut causes: Vec<[String; 2]> =
                conflicts.0.iter().map(|conflict| [conflict.message(), conflict.field()]).collect();
            causes.sort_by(|a, b| a[0].cmp(&b[0]));
            json!({"class": "Conflict", "error": text, "causes": causes})
        }
    }
}

/// The problems of an object in order: upstream finds them in the order of Go maps.
fn sorted(text: &str) -> String {
    let Some((first, problems)) = text.split_once("errors:\n") else { return text.to_owned() };
    let mut lines: Vec<&str> = problems.split('\n').collect();
    lines.sort_unstable();
    format!("{first}errors:\n{}", lines.join("\n"))
}
