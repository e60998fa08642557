//! The subresource `scale`: where in an object its numbers are.

use machinery::field::FieldErrorKind;
use machinery::{FieldError, FieldPath};
use serde_json::{Map, Value};

use super::columns::validate_path;

/// Where the numbers of `scale` are; paths as they are written, as `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// `specReplicasPath`.
    pub spec_replicas: Box<str>,
    /// `statusReplicasPath`.
    pub status_replicas: Box<str>,
    /// `labelSelectorPath`.
    pub label_selector: Option<Box<str>>,
}

// === impl ScalePaths ===

impl ScalePaths {
    pub(super) fn of(subresources: Option<&Map<String, Value>>) -> Option<Self> {
        let scale = subresources?.get("scale")?;
        let path = |name: &str| {
            scale.get(name).and_then(Value::as_str).unwrap_or_default().to_owned().into_boxed_str()
        };
        Some(Self {
            spec_replicas: path("specReplicasPath"),
            status_replicas: path("statusReplicasPath"),
            label_selector: Some(path("labelSelectorPath")).filter(|p| !p.is_empty()),
        })
    }

    /// What is wrong with the numbers of an object.
    pub fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut problems: Vec<FieldError> =
            replicas(object, &self.spec_replicas).err().into_iter().collect();
        problems.extend(self.validate_status(object));
        problems
    }

    /// What is wrong with the numbers of an object of which only the status was written.
    pub fn validate_status(&self, object: &Value) -> Vec<FieldError> {
        let mut problems: Vec<FieldError> =
            replicas(object, &self.status_replicas).err().into_iter().collect();
        if let Some(path) = &self.label_selector {
            let found = lookup(object, path);
            // A selector may be an object where the type is one of Kubernetes' own.
            let fits = |v: &Value| v.is_string() || v.is_object();
            let why = match found {
                Err(why) => Some(why),
                Ok(Some(value)) if !fits(value) => Some(mistyped(path, value, "string")),
                Ok(_) => None,
            };
            problems.extend(why.map(|why| problem(path, "\"\"", why)));
        }
        problems
    }
}

/// The number at a path: 0 if there is none.
fn replicas(object: &Value, path: &str) -> Result<i64, FieldError> {
    let value = match lookup(object, path) {
        Err(why) => return Err(problem(path, "0", why)),
        Ok(None) => return Ok(0),
        Ok(Some(value)) => value,
    };
    let Some(number) = value.as_i64() else {
        return Err(problem(path, "0", mistyped(path, value, "int64")));
    };
    let why = match number {
        ..0 => "should be a non-negative integer".into(),
        n if n > i64::from(i32::MAX) => format!("should be less than or equal to {}", i32::MAX),
        n => return Ok(n),
    };
    Err(problem(path, &number.to_string(), why))
}

/// The value at a path of names.
fn lookup<'v>(object: &'v Value, path: &str) -> Result<Option<&'v Value>, String> {
    let path = path.strip_prefix('.').unwrap_or(path);
    let mut at = object;
    let mut walked = String::new();
    for name in path.split('.') {
        match at {
            Value::Object(fields) => match fields.get(name) {
                Some(value) => at = value,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => return Err(mistyped(&walked, other, "map[string]interface {}")),
        }
        walked.push('.');
        walked.push_str(name);
    }
    Ok(Some(at))
}

fn mistyped(path: &str, value: &Value, expected: &str) -> String {
    let found = match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    let shown = match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!("{path} accessor error: {shown} is of the type {found}, expected {expected}")
}

fn problem(path: &str, value: &str, detail: String) -> FieldError {
    let kind = FieldErrorKind::Invalid;
    FieldError { kind, field: path.to_owned(), value: Some(value.to_owned()), detail }
}

/// What is wrong with `subresources`.
pub(super) fn validate(
    subresources: Option<&Map<String, Value>>,
    at: &FieldPath,
) -> Vec<FieldError> {
    let Some(paths) = ScalePaths::of(subresources) else { return Vec::new() };
    let at = at.child("subresources");
    let mut problems = Vec::new();
    for (field, path, root) in [
        ("scale.specReplicasPath", &paths.spec_replicas, ".spec"),
        ("scale.statusReplicasPath", &paths.status_replicas, ".status"),
    ] {
        let at = at.child(field);
        if path.is_empty() {
            problems.push(FieldError::required(&at, ""));
        } else if let Some(problem) = validate_path(path, &at) {
            problems.push(problem);
        } else if !path.strip_prefix(root).is_some_and(|rest| rest.starts_with('.')) {
            let why = format!("should be a json path under {root}");
            problems.push(FieldError::invalid_str(&at, path, why));
        }
    }
    if let Some(path) = &paths.label_selector {
        let at = at.child("scale.labelSelectorPath");
        if let Some(problem) = validate_path(path, &at) {
            problems.push(problem);
        } else if !(path.starts_with(".spec.") || path.starts_with(".status.")) {
            let why = "should be a json path under either .spec or .status";
            problems.push(FieldError::invalid_str(&at, path, why));
        }
    }
    problems
}
