//! Two masked answers, compared leaf by leaf.

use std::fmt;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// One place where the answers differ.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) case: String,
    pub(crate) step: String,
    /// Field names and indices with dots between, as `body.items.0.metadata.name`.
    pub(crate) path: String,
    /// What the real server has there.
    pub(crate) real: Option<Value>,
    /// What ours has there.
    pub(crate) ours: Option<Value>,
}

/// Prints an entry for the list, but for its reason.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, step, path, real, ours } = self;
        let show = |value: &Option<Value>| match value {
            Some(value) => shortened(&value.to_string()),
            None => "(nothing)".to_owned(),
        };
        writeln!(f, "- {{case: {case:?}, step: {step:?}, path: {path:?}}}")?;
        writeln!(f, "    real: {}", show(real))?;
        write!(f, "    ours: {}", show(ours))
    }
}

/// Where two answers differ. Answers of different status have nothing more to compare.
pub(crate) fn differences(case: &str, step: &str, real: &Value, ours: &Value) -> Vec<Difference> {
    let (left, right);
    let (mut real, mut ours) = (real, ours);
    if real["status"] != ours["status"] {
        (left, right) = (outcome(real), outcome(ours));
        (real, ours) = (&left, &right);
    }
    let mut found = Vec::new();
    walk(Some(real), Some(ours), &mut String::new(), &mut |path, real, ours| {
        found.push(Difference {
            case: case.to_owned(),
            step: step.to_owned(),
            path: path.to_owned(),
            real: real.cloned(),
            ours: ours.cloned(),
        });
    });
    found
}

/// The status of an answer, and what it says.
fn outcome(answer: &Value) -> Value {
    let body = &answer["body"];
    let text = body.get("message").unwrap_or(body);
    json!({"status": format!("{} {text}", answer["status"])})
}

type Report<'a> = dyn FnMut(&str, Option<&Value>, Option<&Value>) + 'a;

fn walk(real: Option<&Value>, ours: Option<&Value>, path: &mut String, report: &mut Report<'_>) {
    match (real, ours) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let mut names: Vec<_> = left.keys().chain(right.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                below(path, name, |path| walk(left.get(name), right.get(name), path, report));
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for index in 0..left.len().max(right.len()) {
                let name = index.to_string();
                below(path, &name, |path| walk(left.get(index), right.get(index), path, report));
            }
        }
        _ if real == ours => {}
        _ => report(path, real, ours),
    }
}

fn below(path: &mut String, name: &str, look: impl FnOnce(&mut String)) {
    let length = path.len();
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
    look(path);
    path.truncate(length);
}

/// Drops the items of the real server's list that ours has not. `list` is as
/// `items.versions by version`: lists within lists, and the field by which items are told apart.
///
/// # Errors
/// When `list` is not of that form.
pub(crate) fn keep_common(real: &mut Value, ours: &Value, list: &str) -> Result<()> {
    let (path, key) = list.split_once(" by ").context("no \"by\" in a list")?;
    keep(real, ours, &path.split('.').collect::<Vec<_>>(), key);
    Ok(())
}

fn keep(real: &mut Value, ours: &Value, path: &[&str], key: &str) {
    let Some((name, rest)) = path.split_first() else { return };
    let (Some(Value::Array(real)), Some(Value::Array(ours))) = (real.get_mut(name), ours.get(name))
    else {
        return;
    };
    if rest.is_empty() {
        real.retain(|item| ours.iter().any(|other| id(other, key) == id(item, key)));
        return;
    }
    // What encloses has been reduced before, to items in the same order.
    for (real, ours) in real.iter_mut().zip(ours) {
        keep(real, ours, rest, key);
    }
}

fn id<'a>(item: &'a Value, key: &str) -> Option<&'a Value> {
    if key == "itself" { Some(item) } else { item.pointer(&format!("/{}", key.replace('.', "/"))) }
}

fn shortened(text: &str) -> String {
    const LONGEST: usize = 600;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST).chain("…".chars()).collect()
}
