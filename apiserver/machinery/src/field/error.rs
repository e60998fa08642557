//! What is wrong with a field.

use std::collections::HashSet;
use std::fmt;

use serde_json::Value;

use super::{FieldPath, go_json, go_quote};

/// How a field is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    /// It must have a value.
    Required,
    /// The value is malformed or out of bounds.
    Invalid,
    /// The value must be unique and isn't.
    Duplicate,
    /// The value is none of an enumeration.
    NotSupported,
    /// The value may not be given here and now.
    Forbidden,
    /// The value names something that isn't there.
    NotFound,
    /// The value has the wrong JSON type.
    TypeInvalid,
    /// The value has too many bytes or characters.
    TooLong,
    /// The value has too few characters.
    TooShort,
    /// The list has too many items.
    TooMany,
    /// The list has too few items.
    TooFew,
    /// The server failed, not the input.
    Internal,
}

/// One problem with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// How the field is wrong.
    pub kind: FieldErrorKind,
    /// The field's path, as `spec.replicas`.
    pub field: String,
    /// The offending value as the message prints it; `None` where the message has none.
    pub value: Option<String>,
    /// What would be right, or empty.
    pub detail: String,
}

// === impl FieldErrorKind ===

impl FieldErrorKind {
    /// The machine-readable reason, as in `status.details.causes[].reason`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::NotFound => "FieldValueNotFound",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::Internal => "InternalError",
        }
    }

    /// The words that begin the message.
    pub fn message(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::Duplicate => "Duplicate value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "Not found",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
        }
    }
}

// === impl FieldError ===

impl FieldError {
    /// `Required value: detail`.
    pub fn required(path: &FieldPath, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, path, None, detail.into())
    }

    /// `Invalid value: value: detail`.
    pub fn invalid(path: &FieldPath, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, path, Some(print(value)), detail.into())
    }

    /// As [`invalid`](Self::invalid), of a string.
    pub fn invalid_str(path: &FieldPath, value: &str, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, path, Some(go_quote(value)), detail.into())
    }

    /// `Invalid value: value: detail`, of a value that has the wrong JSON type.
    pub fn type_invalid(path: &FieldPath, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::TypeInvalid, path, Some(print(value)), detail.into())
    }

    /// `Forbidden: detail`.
    pub fn forbidden(path: &FieldPath, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, path, None, detail.into())
    }

    /// `Duplicate value: value`.
    pub fn duplicate(path: &FieldPath, value: &Value) -> Self {
        Self::new(FieldErrorKind::Duplicate, path, Some(print(value)), String::new())
    }

    /// `Not found: value`.
    pub fn not_found(path: &FieldPath, value: &Value) -> Self {
        Self::new(FieldErrorKind::NotFound, path, Some(print(value)), String::new())
    }

    /// `Unsupported value: value: supported values: "a", "b"`.
    pub fn not_supported(path: &FieldPath, value: &Value, valid: &[&str]) -> Self {
        let quoted: Vec<String> = valid.iter().map(|v| go_quote(v)).collect();
        let detail = match quoted.as_slice() {
            [] => String::new(),
            some => format!("supported values: {}", some.join(", ")),
        };
        Self::new(FieldErrorKind::NotSupported, path, Some(print(value)), detail)
    }

    /// `Too long: may not be more than N bytes`.
    pub fn too_long(path: &FieldPath, max_bytes: usize) -> Self {
        let detail = format!("may not be more than {}", counted(max_bytes, "byte"));
        Self::new(FieldErrorKind::TooLong, path, None, detail)
    }

    /// `Too many: actual: must have at most N items`.
    pub fn too_many(path: &FieldPath, actual: usize, max: usize) -> Self {
        let detail = format!("must have at most {}", counted(max, "item"));
        // Upstream's printer takes a Go `int` for no simple type, and JSON prints it the same.
        Self::new(FieldErrorKind::TooMany, path, Some(actual.to_string()), detail)
    }

    /// `Internal error: detail`.
    pub fn internal(path: &FieldPath, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Internal, path, None, detail.into())
    }

    /// The message without the field, as `status.details.causes[].message`.
    pub fn body(&self) -> String {
        let mut text = self.kind.message().to_owned();
        for part in self.value.iter().chain(Some(&self.detail).filter(|d| !d.is_empty())) {
            text.push_str(": ");
            text.push_str(part);
        }
        text
    }

    fn new(kind: FieldErrorKind, path: &FieldPath, value: Option<String>, detail: String) -> Self {
        Self { kind, field: path.as_str().to_owned(), value, detail }
    }
}

/// Prints `field: body`.
impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

impl std::error::Error for FieldError {}

/// All problems in one message: alone as it is, several as `[a, b]`, each text once.
pub fn aggregate(errors: &[FieldError]) -> String {
    let mut seen = HashSet::new();
    let mut texts = Vec::new();
    for text in errors.iter().map(FieldError::to_string) {
        if seen.insert(text.clone()) {
            texts.push(text);
        }
    }
    let joined = texts.join(", ");
    if texts.len() > 1 { format!("[{joined}]") } else { joined }
}

fn print(value: &Value) -> String {
    match value {
        Value::String(text) => go_quote(text),
        other => go_json(other),
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
