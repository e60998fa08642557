//! The server half of strategic merge patch.
//!
//! A patch is a partial document. Objects merge field by field and null deletes, as in JSON merge
//! patch; a list whose field declares the strategy `merge` merges item by item, objects by their
//! merge key and scalars as a set; any other list is replaced. Directives steer this:
//! - `$patch: replace|delete` in an object takes or empties it whole; in an item of a merged list,
//!   `delete` removes the items with its key and `replace` takes the patch's list as it is;
//! - `$deleteFromPrimitiveList/<field>` names scalars to remove from a merged list;
//! - `$setElementOrder/<field>` gives the order of a merged list;
//! - `$retainKeys` names the fields of an object that stay, others go.
//!
//! A merged list is ordered by `$setElementOrder`, then the patch, then the document. Results are
//! upstream's to the byte, oddities included (only the merge key counts, so two Service ports that
//! differ by protocol collapse; directives inside values that are new in the document mostly stay);
//! see `k8s.io/apimachinery/pkg/util/strategicpatch`, which the tests run as an oracle.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::depth::is_too_deep;
use crate::error::PatchError;
use crate::golang::{Printed, print};

mod list;

/// Directive of an object: what becomes of the object itself.
const PATCH: &str = "$patch";
/// Directive of an object: the names of the fields that stay.
const RETAIN_KEYS: &str = "$retainKeys";
/// Prefix of a field whose list names scalars to remove.
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
/// Prefix of a field whose list gives an order.
const SET_ORDER: &str = "$setElementOrder";

/// How the fields of one type merge: what strategic merge patch asks of a schema.
///
/// One value stands for one object type, as a struct does in Go. For a list it stands for the type
/// of the items, for a map (`additionalProperties`) `field` answers the same for every name, and
/// for values without structure (raw JSON) it answers `None`.
pub trait MergeSchema: std::fmt::Debug {
    /// How the field merges; `None` when the type has no such field.
    fn field(&self, name: &str) -> Option<FieldMerge<'_>>;

    /// The type's name in errors, as Go's struct is called: `PodSpec`.
    fn type_name(&self) -> &str {
        ""
    }
}

/// How one field merges.
#[derive(Debug, Clone, Copy)]
pub struct FieldMerge<'a> {
    /// What `x-kubernetes-patch-strategy` says.
    pub strategy: Strategy,
    /// What `x-kubernetes-patch-merge-key` says: the field that identifies an item of a list of
    /// objects. Lists of scalars with [`Strategy::Merge`] have none.
    pub merge_key: Option<&'a str>,
    /// The type of the field's value (of its items, when it is a list). `None` for scalars and for
    /// anything whose fields are unknown: objects there merge by name and lists are replaced.
    pub schema: Option<&'a dyn MergeSchema>,
}

/// What becomes of a field that both the document and the patch have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strategy {
    /// None declared: objects merge, lists are replaced.
    #[default]
    Unset,
    /// Lists merge, objects as well.
    Merge,
    /// The patch's value replaces the document's.
    Replace,
}

impl Strategy {
    /// Parses the value of `x-kubernetes-patch-strategy`, a list joined by commas. `retainKeys` in
    /// it matters only to the client that computes a patch; the server obeys the directive
    /// `$retainKeys` wherever it stands. `None` for a strategy that doesn't exist.
    pub fn parse(text: &str) -> Option<Self> {
        let mut strategy = Self::Unset;
        for part in text.split(',') {
            match part {
                "retainKeys" | "" => {}
                "merge" if strategy == Self::Unset => strategy = Self::Merge,
                "replace" if strategy == Self::Unset => strategy = Self::Replace,
                _ => return None,
            }
        }
        Some(strategy)
    }
}

/// Applies `patch` to `doc`, whose type is `schema`.
///
/// # Errors
/// [`PatchError::Malformed`] when one of the two is no object or nests deeper than
/// [`MAX_DEPTH`](crate::MAX_DEPTH), or a directive has the wrong form;
/// [`PatchError::Unmergeable`] when the two don't fit together under the schema.
pub fn apply(doc: &Value, patch: &Value, schema: &dyn MergeSchema) -> Result<Value, PatchError> {
    let (Value::Object(original), Value::Object(changes)) = (doc, patch) else {
        return Err(PatchError::Malformed("invalid JSON document".into()));
    };
    if is_too_deep(doc) || is_too_deep(patch) {
        return Err(PatchError::too_deep());
    }
    merge_object(original.clone(), changes.clone(), Some(schema)).map(Value::Object)
}

type Fields = Map<String, Value>;

fn merge_object(
    mut original: Fields,
    mut patch: Fields,
    schema: Option<&dyn MergeSchema>,
) -> Result<Fields, PatchError> {
    match patch.get(PATCH).map(|directive| (directive, directive.as_str())) {
        None => {}
        Some((_, Some("replace"))) => {
            patch.remove(PATCH);
            return Ok(patch);
        }
        Some((_, Some("delete"))) => return Ok(Fields::new()),
        Some((directive, _)) => return Err(unknown_directive(directive, &patch)),
    }
    if let Some(keys) = patch.remove(RETAIN_KEYS) {
        retain_keys(&mut original, &patch, &keys)?;
    }
    list::merge_ordered(&mut original, &mut patch, schema)?;
    for (name, value) in patch {
        let (name, deletes_items) = match split_directive(&name, DELETE_FROM_LIST)? {
            Some("") => (name, true),
            Some(field) => (field.to_owned(), true),
            None => (name, false),
        };
        merge_field(&mut original, name, value, schema, deletes_items)?;
    }
    Ok(original)
}

/// Merges one field of a patch; `deletes_items` when it came as `$deleteFromPrimitiveList`.
fn merge_field(
    original: &mut Fields,
    name: String,
    value: Value,
    schema: Option<&dyn MergeSchema>,
    deletes_items: bool,
) -> Result<(), PatchError> {
    if value.is_null() {
        original.remove(&name);
        return Ok(());
    }
    let current = original.get_mut(&name).filter(|current| Kind::of(current) == Kind::of(&value));
    match (current, value) {
        (Some(Value::Object(current)), Value::Object(value)) => {
            let field = lookup(schema, &name)?;
            *current = match field.strategy {
                Strategy::Replace => value,
                _ => merge_object(std::mem::take(current), value, field.schema)?,
            };
        }
        (Some(Value::Array(current)), Value::Array(value)) => {
            let field = lookup(schema, &name)?;
            *current = list::merge(std::mem::take(current), value, field, deletes_items)?;
        }
        (Some(current), value) => *current = value,
        // The document lacks the field, or has another type there.
        (None, _) if deletes_items => {}
        (None, mut value) => {
            discard_nulls(&mut value);
            match without_directives(value) {
                Some(value) => original.insert(name, value),
                None => original.remove(&name),
            };
        }
    }
    Ok(())
}

/// Removes from `original` what isn't in the list `keys`, which must name all of `patch`.
fn retain_keys(original: &mut Fields, patch: &Fields, keys: &Value) -> Result<(), PatchError> {
    let invalid = || PatchError::Malformed("invalid patch format of retainKeys".into());
    let keys = keys.as_array().ok_or_else(invalid)?;
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    for (name, value) in patch {
        let exempt = value.is_null()
            || name.starts_with(DELETE_FROM_LIST)
            || name.starts_with(SET_ORDER)
            || keys.contains(name.as_str());
        if !exempt {
            return Err(invalid());
        }
    }
    original.retain(|name, _| keys.contains(name.as_str()));
    Ok(())
}

/// The field that a directive `<prefix>/<field>` is about; `None` when `name` is no such directive.
fn split_directive<'a>(name: &'a str, prefix: &str) -> Result<Option<&'a str>, PatchError> {
    match name.strip_prefix(prefix).map(|rest| rest.strip_prefix('/')) {
        None => Ok(None),
        Some(Some(field)) => Ok(Some(field)),
        Some(None) => {
            let what = if prefix == SET_ORDER { "setElementOrder" } else { "primitive" };
            Err(PatchError::Malformed(format!("invalid patch format of {what} list")))
        }
    }
}

fn lookup<'a>(
    schema: Option<&'a dyn MergeSchema>,
    name: &str,
) -> Result<FieldMerge<'a>, PatchError> {
    let Some(schema) = schema else {
        return Ok(FieldMerge { strategy: Strategy::Unset, merge_key: None, schema: None });
    };
    schema.field(name).ok_or_else(|| {
        let of = schema.type_name();
        PatchError::Unmergeable(format!(
            "unable to find api field in struct {of} for the json field {name:?}"
        ))
    })
}

/// Drops null fields of objects at any depth; null items of lists stay.
fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// `value` without the objects that carry `$patch`; `None` when it is one itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(PATCH) => None,
        Value::Object(fields) => {
            let kept = fields.into_iter();
            let kept = kept.filter_map(|(name, field)| Some((name, without_directives(field)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => {
            Some(Value::Array(items.into_iter().filter_map(without_directives).collect()))
        }
        scalar => Some(scalar),
    }
}

/// What Go would decode a value to: list items must all be of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    Bool,
    Integer,
    Float,
    String,
    List,
    Object,
}

// === impl Kind ===

impl Kind {
    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(number) if number.is_f64() => Self::Float,
            Value::Number(_) => Self::Integer,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Object,
        }
    }
}

fn unknown_directive(directive: &Value, within: &Fields) -> PatchError {
    let within = Value::Object(within.clone());
    let (directive, within) = (print(Printed(directive)), print(Printed(&within)));
    PatchError::Unmergeable(format!("unknown patch type: {directive} in map: {within}"))
}
