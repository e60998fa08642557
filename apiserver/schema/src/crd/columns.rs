//! Additional columns of tables, and the paths that CRDs name.

use machinery::{FieldError, FieldPath};
use serde_json::Value;

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// What is wrong with `additionalPrinterColumns`.
pub(super) fn validate(columns: &[Value], at: &FieldPath) -> Vec<FieldError> {
    let at = at.child("additionalPrinterColumns");
    let all = columns.iter().enumerate();
    all.flat_map(|(index, column)| validate_column(column, &at.index(index))).collect()
}

fn validate_column(column: &Value, at: &FieldPath) -> Vec<FieldError> {
    let field = |name: &str| column.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut problems = Vec::new();
    if field("name").is_empty() {
        problems.push(FieldError::required(&at.child("name"), ""));
    }
    let kind = field("type");
    let one_of = |all: &[&str]| format!("must be one of {}", all.join(","));
    if kind.is_empty() {
        problems.push(FieldError::required(&at.child("type"), one_of(&TYPES)));
    } else if !TYPES.contains(&kind) {
        problems.push(FieldError::invalid_str(&at.child("type"), kind, one_of(&TYPES)));
    }
    let format = field("format");
    if !format.is_empty() && !FORMATS.contains(&format) {
        problems.push(FieldError::invalid_str(&at.child("format"), format, one_of(&FORMATS)));
    }
    let path = field("jsonPath");
    if path.is_empty() {
        problems.push(FieldError::required(&at.child("JSONPath"), ""));
    } else {
        problems.extend(validate_path(path, &at.child("JSONPath")));
    }
    problems
}

/// A path begins with a dot; nothing more is asked of it.
pub(super) fn validate_path(path: &str, at: &FieldPath) -> Option<FieldError> {
    let why = "must be a simple json path starting with .";
    (!path.starts_with('.')).then(|| FieldError::invalid_str(at, path, why))
}
