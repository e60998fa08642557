//! Every expression gives what Kubernetes' own CEL environment gives: `tests/data/golden.json`, made by
//! `kind-tests/tools/cel-oracle` from `tests/data/cases.json`. Compared are the type, the value or the
//! exact text of the error, the cost that was counted, and the estimate.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod differences;
mod schemas;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use cel_rules::{Budget, DeclType, DeclaredSizes, Env, Type, Value};
use serde_json::Value as Json;

static CASES: LazyLock<Json> =
    LazyLock::new(|| serde_json::from_str(include_str!("../data/cases.json")).unwrap());

static GOLDEN: LazyLock<Json> =
    LazyLock::new(|| serde_json::from_str(include_str!("../data/golden.json")).unwrap());

/// The inputs of a group of cases.
struct Group {
    decl: Arc<DeclType>,
    env: Env,
    input: Json,
}

/// What came out of one case.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    ty: String,
    value: String,
    stage: String,
    error: String,
    cost: Option<u64>,
    min: u64,
    max: u64,
}

fn optional_decl(decl: &Arc<DeclType>) -> Arc<DeclType> {
    DeclType::plain(Type::optional(decl.ty().clone()), 0, 0)
}

fn groups() -> HashMap<String, Group> {
    let mut groups = HashMap::new();
    for group in CASES["groups"].as_array().unwrap() {
        let schema = &CASES["schemas"][group["schema"].as_str().unwrap()];
        let decl = schemas::declare("selfType", schema).unwrap();
        let env = Env::new([("self", Arc::clone(&decl)), ("oldSelf", optional_decl(&decl))]);
        let name = group["name"].as_str().unwrap().to_owned();
        groups.insert(name, Group { decl, env, input: group["self"].clone() });
    }
    groups
}

fn ours(group: &Group, text: &str) -> Outcome {
    let mut out = Outcome::default();
    let expression = match group.env.compile(text) {
        Ok(expression) => expression,
        Err(error) => {
            out.stage = "compile".to_owned();
            out.error = error.to_string();
            return out;
        }
    };
    out.ty = schemas::type_text(expression.output_type());
    let estimate = expression.estimate(&DeclaredSizes(&group.decl));
    let program = match expression.program() {
        Ok(program) => program,
        Err(error) => {
            out.stage = "program".to_owned();
            out.error = error.to_string();
            return out;
        }
    };
    (out.min, out.max) = (estimate.min, estimate.max);
    let input = Value::from_json(&group.input, &group.decl).unwrap();
    let mut budget = Budget::new(1_000_000);
    let inputs = [input.clone(), Value::optional(Some(input))];
    match program.evaluate(&inputs, &mut budget) {
        Ok(value) => out.value = value.render(),
        Err(error) => {
            out.stage = "eval".to_owned();
            out.error = error.to_string();
        }
    }
    out.cost = Some(budget.spent());
    out
}

fn golden(answer: &Json) -> Outcome {
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    Outcome {
        ty: text("type"),
        value: text("value"),
        stage: text("stage"),
        error: text("error"),
        cost: answer["cost"].as_u64(),
        min: answer["min"].as_u64().unwrap_or_default(),
        max: answer["max"].as_u64().unwrap_or_default(),
    }
}

#[test]
fn outcomes_are_those_of_upstream() {
    let groups = groups();
    let mut wrong = Vec::new();
    let mut unused: Vec<_> = differences::DIFFERENT.to_vec();
    let answers = GOLDEN.as_array().unwrap();
    assert!(answers.len() > 1000, "the golden file is whole");
    for answer in answers {
        let (name, text) = (answer["group"].as_str().unwrap(), answer["expr"].as_str().unwrap());
        let (ours, golden) = (ours(&groups[name], text), golden(answer));
        let known = unused.iter().position(|(expr, _)| *expr == text);
        match (ours == golden, known) {
            (true, None) => {}
            (false, Some(at)) => drop(unused.remove(at)),
            (true, Some(_)) => wrong.push(format!("{text}\n  no longer differs")),
            (false, None) => {
                wrong.push(format!("{name}: {text}\n  upstream: {golden:?}\n  ours:     {ours:?}"))
            }
        }
    }
    assert!(unused.is_empty(), "differences without a case: {unused:?}");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), answers.len(), wrong.join("\n"));
}
