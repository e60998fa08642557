//! Problems, as upstream's errors turn into field errors.

use machinery::FieldError;
use machinery::field::{FieldErrorKind, go_quote};
use serde_json::Value;

use super::super::print;
use super::{MAX_PROBLEMS, MAX_STEPS, Values};

/// Most bytes of all problems together: paths and values may be long.
const MAX_TOLD: usize = 4 << 20;
/// What a value that belongs to nothing is called in messages.
const NOWHERE: &str = "<nil>";

// === impl Values ===

impl Values<'_> {
    pub(super) fn push(&mut self, make: impl FnOnce(&Self) -> FieldError) {
        self.failures += 1;
        if self.quiet == 0 && self.problems.len() < MAX_PROBLEMS && self.told < MAX_TOLD {
            let problem = make(self);
            let value = problem.value.as_ref().map_or(0, String::len);
            self.told += problem.field.len() + value + problem.detail.len();
            self.problems.push(problem);
        }
    }

    /// `path in body WHY`, of the value at the path.
    pub(super) fn invalid(&mut self, value: impl FnOnce() -> String, why: impl FnOnce() -> String) {
        self.push(|v| v.error(FieldErrorKind::Invalid, value(), v.said(&why())));
    }

    /// A value that has the JSON type `found`, or a text `found` that isn't of a format.
    pub(super) fn wrong_type(&mut self, expected: &str, found: &str) {
        self.push(|v| {
            let found = go_quote(found);
            let why = v.said(&format!("must be of type {expected}: {found}"));
            v.error(FieldErrorKind::TypeInvalid, found, why)
        });
    }

    pub(super) fn too(&mut self, kind: FieldErrorKind, actual: Option<i64>, why: String) {
        self.push(|v| FieldError {
            kind,
            field: v.field_name(&v.path),
            value: actual.map(|n| n.to_string()),
            detail: why,
        });
    }

    pub(super) fn missing(&mut self, name: &str) {
        self.push(|v| FieldError {
            kind: FieldErrorKind::Required,
            field: v.field_name(&format!("{}.{name}", v.path)),
            value: None,
            detail: String::new(),
        });
    }

    pub(super) fn not_allowed(&mut self, name: &str) {
        self.push(|v| {
            let why = format!("{}.{name} in body is a forbidden property", v.path);
            let value = go_quote(name);
            v.error(FieldErrorKind::Invalid, value, why)
        });
    }

    pub(super) fn unsupported(&mut self, value: &Value, allowed: &[Value]) {
        self.push(|v| {
            let text = |value: &Value| match value {
                Value::String(text) => go_quote(text),
                other => go_quote(&print::json(other)),
            };
            let all: Vec<String> = allowed.iter().map(text).collect();
            let detail = format!("supported values: {}", all.join(", "));
            v.error(FieldErrorKind::NotSupported, print::value(value), detail)
        });
    }

    /// The problem of a walk that didn't come to its end.
    pub(super) fn too_much(&self) -> FieldError {
        FieldError {
            kind: FieldErrorKind::Invalid,
            field: self.field_name(""),
            value: Some("\"\"".into()),
            detail: format!("takes more than {MAX_STEPS} steps to validate"),
        }
    }

    /// A text that names its place itself.
    pub(super) fn plain(&mut self, why: impl FnOnce(&Self) -> String) {
        self.push(|v| FieldError {
            kind: FieldErrorKind::Invalid,
            field: v.field_name(""),
            value: Some("\"\"".into()),
            detail: why(v),
        });
    }

    pub(super) fn said(&self, why: &str) -> String {
        format!("{} in body {why}", self.path)
    }

    pub(super) fn error(&self, kind: FieldErrorKind, value: String, detail: String) -> FieldError {
        FieldError { kind, field: self.field_name(&self.path), value: Some(value), detail }
    }

    pub(super) fn field_name(&self, path: &str) -> String {
        let path = path.strip_prefix('.').unwrap_or(path);
        match (self.base.as_str(), path) {
            ("", "") => NOWHERE.into(),
            ("", path) => path.into(),
            (base, "") => base.into(),
            (base, path) => format!("{base}.{path}"),
        }
    }
}

pub(super) fn bytes(most: i64) -> String {
    let noun = if most == 1 { "byte" } else { "bytes" };
    format!("may not be more than {most} {noun}")
}

pub(super) fn entries(most: i64) -> String {
    let noun = if most == 1 { "item" } else { "items" };
    format!("must have at most {most} {noun}")
}
