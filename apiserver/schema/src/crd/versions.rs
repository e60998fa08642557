//! Rules of versions that schemas have nothing to do with.

use machinery::{FieldError, FieldPath};
use serde_json::{Value, json};

use super::view::{Version, View};

/// Longest deprecation warning, in bytes.
const MAX_WARNING: usize = 256;

/// Stored versions stay in the spec, and the storage version is stored.
pub(super) fn validate_stored(crd: &Value) -> Vec<FieldError> {
    let at = FieldPath::root("status").child("storedVersions");
    let list = crd.pointer("/status/storedVersions").and_then(Value::as_array);
    let stored: Vec<&str> = list.into_iter().flatten().filter_map(Value::as_str).collect();
    if stored.is_empty() {
        let why = "must have at least one stored version";
        return vec![FieldError::invalid(&at, &Value::Null, why)];
    }
    let view = View::of(crd);
    let mut problems = Vec::new();
    for version in view.versions.iter().filter(|version| version.flag("storage")) {
        if !stored.contains(&version.name()) {
            let why = format!("must have the storage version {}", version.name());
            problems.push(FieldError::invalid(&at, &json!(stored), why));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        let last = !stored.iter().skip(index + 1).any(|later| later == name);
        if last && !view.versions.iter().any(|version| version.name() == *name) {
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must \
                 remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {name} and removes {name} from status.storedVersions"
            );
            problems.push(FieldError::invalid_str(&at.index(index), name, why));
        }
    }
    problems
}

/// The warning of a deprecated version.
pub(super) fn validate_warning(version: &Version<'_>, at: &FieldPath) -> Vec<FieldError> {
    let field = version.object.and_then(|object| object.get("deprecationWarning"));
    let Some(warning) = field.and_then(Value::as_str) else { return Vec::new() };
    let at = at.child("deprecationWarning");
    let mut problems = Vec::new();
    let mut wrong = |why: String| {
        // Upstream prints it as JSON.
        let mut problem = FieldError::invalid_str(&at, warning, why);
        problem.value = field.map(machinery::field::go_json);
        problems.push(problem);
    };
    if !version.flag("deprecated") {
        wrong("can only be set for deprecated versions".into());
        return problems;
    }
    if warning.len() > MAX_WARNING {
        wrong(format!("must be <= {MAX_WARNING} characters long"));
    }
    if warning.is_empty() {
        wrong("must not be an empty string".into());
    }
    // Go's quoting escapes exactly what it doesn't print.
    let is_printable = |c: char| {
        c == '"'
            || c == '\\'
            || machinery::field::go_quote(&c.to_string()).trim_matches('"') == c.to_string()
    };
    if let Some((index, _)) = warning.char_indices().find(|(_, c)| !is_printable(*c)) {
        wrong(format!(
            "must only contain printable UTF-8 characters; non-printable character found at \
             index {index}"
        ));
    }
    problems
}
