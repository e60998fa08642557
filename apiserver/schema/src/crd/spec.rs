//! The rules of a CRD's spec, in upstream's order.

use machinery::{FieldError, FieldPath, name};
use serde_json::{Map, Value};

use super::tolerance::Tolerance;
use super::view::{Version, View};
use super::{
    columns, conversion, fields, groups, is_condition_true, names, scale, schema, spelled_group,
    text, versions,
};
use crate::structural::print;

/// Most bytes of a list of versions that a message repeats.
const MAX_PRINTED: usize = 1024;

/// What is wrong with a spec; with the old CRD, also what may not change.
pub(super) fn validate(crd: &Value, tolerance: &Tolerance, old: Option<&Value>) -> Vec<FieldError> {
    let view = View::of(crd);
    let at = FieldPath::root("spec");
    let mut problems = validate_group(spelled_group(crd), &at.child("group"));
    problems.extend(validate_scope(text(crd, &["spec", "scope"]), &at.child("scope")));
    problems.extend(validate_presence(&view, tolerance, &at));
    let rules = schema::Rules::new(&view, tolerance, old);
    if view.preserves_unknown() && rules.has_defaults {
        let why = "must be false in order to use defaults in the schema";
        let path = at.child("preserveUnknownFields");
        problems.push(FieldError::invalid(&path, &Value::Bool(true), why));
    }
    let mut seen = Vec::new();
    for (index, version) in view.versions.iter().enumerate() {
        let at = at.child("versions").index(index);
        seen.push(version.name());
        problems.extend(label(version.name(), &at.child("name")));
        problems.extend(versions::validate_warning(version, &at));
        let status = view.subresources(version).is_some_and(|sub| sub.contains_key("status"));
        problems.extend(validate_version(version, version.name(), status, &rules, &at));
    }
    problems.extend(validate_list(crd, &view, &mut seen, &at));
    let empty = Map::new();
    let asked = crd.pointer("/spec/names").and_then(Value::as_object).unwrap_or(&empty);
    for field in ["plural", "singular", "kind", "listKind"] {
        if asked.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
            problems.push(FieldError::required(&at.child("names").child(field), ""));
        }
    }
    problems.extend(names::validate(asked, &at.child("names")));
    problems.extend(validate_version(&view.shared(), "", view.has_any_status(), &rules, &at));
    let strategy = text(crd, &["spec", "conversion", "strategy"]);
    if view.preserves_unknown() && !strategy.is_empty() && strategy != "None" {
        let why = "must be None if spec.preserveUnknownFields is true";
        let path = at.child("conversion").child("strategy");
        problems.push(FieldError::invalid_str(&path, strategy, why));
    }
    problems.extend(conversion::validate(crd, tolerance));
    problems.extend(old.map(|old| validate_change(crd, old, &at)).unwrap_or_default());
    problems
}

fn validate_group(group: &str, at: &FieldPath) -> Vec<FieldError> {
    if group.is_empty() {
        return vec![FieldError::required(at, "")];
    }
    let wrong = name::dns1123_subdomain(group);
    if !wrong.is_empty() {
        return vec![FieldError::invalid_str(at, group, wrong.join(","))];
    }
    if !group.contains('.') && !groups::is_builtin(group) {
        let why = "should be a domain with at least one dot";
        return vec![FieldError::invalid_str(at, group, why)];
    }
    Vec::new()
}

fn validate_scope(scope: &str, at: &FieldPath) -> Option<FieldError> {
    match scope {
        "" => Some(FieldError::required(at, "")),
        "Cluster" | "Namespaced" => None,
        _ => Some(FieldError::not_supported(at, &scope.into(), &["Cluster", "Namespaced"])),
    }
}

/// Every version has a schema.
fn validate_presence(view: &View<'_>, tolerance: &Tolerance, at: &FieldPath) -> Vec<FieldError> {
    if view.shared().schema().is_some() {
        return Vec::new();
    }
    let missing = view.versions.iter().enumerate().filter(|(_, v)| v.schema().is_none());
    let path = |index| at.child("versions").index(index).child("schema").child("openAPIV3Schema");
    if !tolerance.missing_schemas {
        return missing.map(|(index, _)| FieldError::required(&path(index), "")).collect();
    }
    if view.preserves_unknown() {
        return Vec::new();
    }
    let why = "because otherwise all fields are pruned";
    let served = missing.filter(|(_, version)| version.flag("served"));
    served.map(|(index, _)| FieldError::required(&path(index), why)).collect()
}

/// One version, or what all share, whose name is empty and whose parts stand in the spec itself.
fn validate_version(
    version: &Version<'_>,
    name: &str,
    status: bool,
    rules: &schema::Rules<'_>,
    at: &FieldPath,
) -> Vec<FieldError> {
    let field = if name.is_empty() { "validation" } else { "schema" };
    let mut problems = rules.validate(version, status, &at.child(field));
    problems.extend(scale::validate(version.subresources(), at));
    problems.extend(columns::validate(version.columns(), at));
    problems.extend(fields::validate(version, name, rules.tolerance, at));
    problems
}

/// What the versions must be together.
fn validate_list(
    crd: &Value,
    view: &View<'_>,
    names: &mut Vec<&str>,
    at: &FieldPath,
) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let mut wrong = |why: &str| {
        let list = crd.pointer("/spec/versions").filter(|list| list.is_array());
        let mut problem = FieldError::invalid(&at.child("versions"), &Value::Null, why);
        problem.value = Some(list.map_or("[]".into(), shortened));
        problems.push(problem);
    };
    let count = names.len();
    let first = names.first().copied();
    names.sort_unstable();
    names.dedup();
    if names.len() != count {
        wrong("must contain unique version names");
    }
    if view.versions.iter().filter(|version| version.flag("storage")).count() != 1 {
        wrong("must have exactly one version marked as storage version");
    }
    problems.extend(
        first.filter(|name| !name.is_empty()).and_then(|name| label(name, &at.child("version"))),
    );
    problems
}

/// A value as messages print it, cut where it becomes long.
///
/// Upstream prints all of it, in the form that its Go structs have.
pub(super) fn shortened(value: &Value) -> String {
    let mut text = print::value(value);
    if text.len() > MAX_PRINTED {
        text.truncate(text.floor_char_boundary(MAX_PRINTED));
        text.push_str("...");
    }
    text
}

fn label(value: &str, at: &FieldPath) -> Option<FieldError> {
    let wrong = name::dns1035_label(value);
    (!wrong.is_empty()).then(|| FieldError::invalid_str(at, value, wrong.join(",")))
}

/// What objects are stored under never changes; what they are called not after they could exist.
fn validate_change(new: &Value, old: &Value, at: &FieldPath) -> Vec<FieldError> {
    let mut fixed: Vec<&[&str]> = Vec::new();
    if is_condition_true(old, "Established") {
        fixed.extend([&["scope"][..], &["names", "kind"]]);
    }
    fixed.extend([&["group"][..], &["names", "plural"]]);
    let mut problems = Vec::new();
    for path in fixed {
        let value = |crd| {
            let path: Vec<&str> = ["spec"].iter().chain(path).copied().collect();
            text(crd, &path)
        };
        if value(new) != value(old) {
            let at = path.iter().fold(at.clone(), |at, field| at.child(field));
            problems.push(FieldError::invalid_str(&at, value(new), "field is immutable"));
        }
    }
    problems
}
