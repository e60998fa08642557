//! Names of a custom resource: what they may be, and whether they are free.

use std::collections::HashSet;

use machinery::field::go_quote;
use machinery::{FieldError, FieldPath, name};
use serde_json::{Map, Value};

use super::{Condition, condition, group, spelled_group, text};

/// What became of the names that a CRD asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceptedNames {
    /// `status.acceptedNames`: of each name the one asked for if it is free, else the one it had.
    pub names: Value,
    /// `NamesAccepted`.
    pub accepted: Condition,
    /// `Established`, as it is while the type isn't served: True stays, else it is being installed
    /// or waits for its names.
    pub established: Condition,
}

/// Tries the names of a CRD against those of all CRDs of its logical cluster; itself may be
/// among them, as may be other groups.
///
/// Of several conflicts the last is told: list kind, kind, short names, singular, plural.
pub fn accept_names<'v>(crd: &Value, others: impl Iterator<Item = &'v Value>) -> AcceptedNames {
    let taken = Taken::of(group(crd), others);
    let empty = Map::new();
    let asked = crd.pointer("/spec/names").and_then(Value::as_object).unwrap_or(&empty);
    let held = crd.pointer("/status/acceptedNames").and_then(Value::as_object).unwrap_or(&empty);
    let mut names = held.clone();
    let mut conflict = None;
    for (field, reason, used) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        let why = match field {
            "shortNames" => short_name_conflict(asked, held, used),
            _ => name_conflict(asked, held, used, field),
        };
        match why {
            Some(why) => conflict = Some((reason, why)),
            None => set_or_remove(&mut names, field, asked.get(field)),
        }
    }
    set_or_remove(&mut names, "categories", asked.get("categories"));
    for field in ["plural", "kind"] {
        // Go writes these even when they are empty.
        names.entry(field).or_insert_with(|| "".into());
    }
    let accepted = match conflict {
        Some((reason, why)) => Condition::new("NamesAccepted", "False", reason, why),
        None => Condition::new("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
    };
    let established = next_established(crd, accepted.status == "True");
    AcceptedNames { names: Value::Object(names), accepted, established }
}

/// The condition of a type that is served.
pub fn established() -> Condition {
    let why = "the initial names have been accepted";
    Condition::new("Established", "True", "InitialNamesAccepted", why)
}

fn next_established(crd: &Value, accepted: bool) -> Condition {
    let old = condition::find(crd, "Established");
    let field =
        |name: &str| old.and_then(|old| old.get(name)).and_then(Value::as_str).unwrap_or_default();
    if super::is_condition_true(crd, "Established") {
        return Condition::new("Established", "True", field("reason"), field("message"));
    }
    if accepted {
        let why = "the initial names have been accepted";
        return Condition::new("Established", "False", "Installing", why);
    }
    match old {
        Some(_) => Condition::new("Established", "False", field("reason"), field("message")),
        None => {
            let why = "not all names are accepted";
            Condition::new("Established", "False", "NotAccepted", why)
        }
    }
}

/// The names that CRDs of a group have.
#[derive(Default)]
struct Taken<'v> {
    resources: HashSet<&'v str>,
    kinds: HashSet<&'v str>,
}

// === impl Taken ===

impl<'v> Taken<'v> {
    fn of(group: &str, crds: impl Iterator<Item = &'v Value>) -> Self {
        let mut taken = Self::default();
        for crd in crds.filter(|crd| super::group(crd) == group) {
            let Some(names) = crd.pointer("/status/acceptedNames") else { continue };
            let named = |field: &str| names.get(field).and_then(Value::as_str);
            taken.resources.extend(["plural", "singular"].into_iter().filter_map(named));
            taken.resources.extend(short_names(names.as_object()));
            taken.kinds.extend(["kind", "listKind"].into_iter().filter_map(named));
        }
        taken
    }
}

fn name_conflict(
    asked: &Map<String, Value>,
    held: &Map<String, Value>,
    used: &HashSet<&str>,
    field: &str,
) -> Option<String> {
    let of = |names: &Map<String, Value>| {
        names.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let name = of(asked);
    (name != of(held) && used.contains(name.as_str())).then(|| in_use(&name))
}

fn short_name_conflict(
    asked: &Map<String, Value>,
    held: &Map<String, Value>,
    used: &HashSet<&str>,
) -> Option<String> {
    let own: HashSet<&str> = short_names(Some(held)).collect();
    let taken = short_names(Some(asked)).filter(|n| !own.contains(n) && used.contains(n));
    // Upstream tells each text once.
    let mut texts: Vec<String> = Vec::new();
    for text in taken.map(in_use) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", go_quote(name))
}

fn short_names(names: Option<&Map<String, Value>>) -> impl Iterator<Item = &str> {
    let list = names.and_then(|names| names.get("shortNames")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

fn set_or_remove(names: &mut Map<String, Value>, field: &str, value: Option<&Value>) {
    match value {
        Some(value) => names.insert(field.to_owned(), value.clone()),
        None => names.remove(field),
    };
}

/// The name of the CRD itself.
pub(super) fn validate_own(crd: &Value) -> Vec<FieldError> {
    let (plural, group) = (text(crd, &["spec", "names", "plural"]), spelled_group(crd));
    let name = text(crd, &["metadata", "name"]);
    let path = FieldPath::root("metadata").child("name");
    let wrong = name != format!("{plural}.{group}");
    let why = r#"must be spec.names.plural+"."+spec.group"#;
    if wrong { vec![FieldError::invalid_str(&path, name, why)] } else { Vec::new() }
}

/// The names that a CRD asks for or has.
pub(super) fn validate(names: &Map<String, Value>, at: &FieldPath) -> Vec<FieldError> {
    let named = |field: &str| names.get(field).and_then(Value::as_str).unwrap_or_default();
    let mut problems = Vec::new();
    for field in ["plural", "singular"] {
        problems.extend(label(named(field), &at.child(field)));
    }
    for field in ["kind", "listKind"] {
        let value = named(field);
        let wrong = name::dns1035_label(&value.to_lowercase());
        if !value.is_empty() && !wrong.is_empty() {
            let why =
                format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
            problems.push(FieldError::invalid_str(&at.child(field), value, why));
        }
    }
    problems.extend(labels(names, "shortNames", at));
    if !named("kind").is_empty() && named("kind") == named("listKind") {
        let why = "kind and listKind may not be the same";
        problems.push(FieldError::invalid_str(&at.child("listKind"), named("listKind"), why));
    }
    problems.extend(labels(names, "categories", at));
    problems
}

fn label(value: &str, at: &FieldPath) -> Option<FieldError> {
    let wrong = name::dns1035_label(value);
    (!value.is_empty() && !wrong.is_empty())
        .then(|| FieldError::invalid_str(at, value, wrong.join(",")))
}

fn labels(names: &Map<String, Value>, field: &str, at: &FieldPath) -> Vec<FieldError> {
    let list = names.get(field).and_then(Value::as_array).into_iter().flatten();
    let values = list.map(|value| value.as_str().unwrap_or_default()).enumerate();
    let problem = |(index, value): (usize, &str)| {
        let wrong = name::dns1035_label(value);
        let path = at.child(field).index(index);
        (!wrong.is_empty()).then(|| FieldError::invalid_str(&path, value, wrong.join(",")))
    };
    values.filter_map(problem).collect()
}
