//! One operation of a JSON patch, read from its JSON form.

use serde_json::{Map, Value};

use crate::error::PatchError;

/// What an operation does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind<'a> {
    Add,
    Remove,
    Replace,
    Move,
    Copy,
    Test,
    /// Any other name. It fails when its turn comes, after the operations before it.
    Unknown(&'a str),
}

/// An operation that borrows from the patch.
#[derive(Debug)]
pub(super) struct Operation<'a> {
    pub(super) kind: Kind<'a>,
    path: Option<&'a str>,
    from: Option<&'a str>,
    value: Option<&'a Value>,
}

// === impl Operation ===

impl<'a> Operation<'a> {
    pub(super) fn parse((at, value): (usize, &'a Value)) -> Result<Self, PatchError> {
        let empty = || Self { kind: Kind::Unknown("unknown"), path: None, from: None, value: None };
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Null => return Ok(empty()),
            _ => return Err(PatchError::Malformed(format!("operation {at} is no object"))),
        };
        let kind = match text(at, fields, "op")?.unwrap_or("unknown") {
            "add" => Kind::Add,
            "remove" => Kind::Remove,
            "replace" => Kind::Replace,
            "move" => Kind::Move,
            "copy" => Kind::Copy,
            "test" => Kind::Test,
            other => Kind::Unknown(other),
        };
        let path = text(at, fields, "path")?;
        let from = text(at, fields, "from")?;
        Ok(Self { kind, path, from, value: fields.get("value") })
    }

    pub(super) fn path(&self) -> Result<&'a str, PatchError> {
        let text = "operation missing path field: missing value";
        self.path.ok_or_else(|| PatchError::Failed(text.into()))
    }

    pub(super) fn from(&self) -> Result<&'a str, PatchError> {
        let text = "operation, missing from field: missing value";
        self.from.ok_or_else(|| PatchError::Failed(text.into()))
    }

    /// The operation's value; null when there is none.
    pub(super) fn value(&self) -> &'a Value {
        self.value.unwrap_or(&Value::Null)
    }
}

fn text<'a>(
    at: usize,
    fields: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<&'a str>, PatchError> {
    match fields.get(name) {
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Null) | None => Ok(None),
        Some(_) => Err(PatchError::Malformed(format!("operation {at}: {name} is no string"))),
    }
}
