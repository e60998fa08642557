//! Whether an object fits its schema, as far as ownership needs it to.

use serde_json::{Map, Value};

use super::items::ItemKey;
use super::problem::Problems;
use super::schema::{ApplySchema, Form, ListForm, MapForm, Scalar, Type};
use super::shown::{Shown, Verb};
use crate::golang::{print, type_name};

/// Whether items of a list may have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicates {
    /// They may: what is stored is as it is.
    Allowed,
    /// They may not: whoever applies must say what he means.
    Refused,
}

/// Checks `value` against `ty`.
///
/// # Errors
/// Everything that is wrong, up to the first field of each object that is not declared.
pub(super) fn validate<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    value: &Value,
    duplicates: Duplicates,
) -> Result<(), Problems> {
    let Some(form) = ty.forms().deduce(Some(value)).one() else {
        return Err(invalid_atom());
    };
    match (form, value) {
        (_, Value::Null) => Ok(()),
        // What is stored has been decoded, and what is owned as a whole is not looked into.
        (Form::List(ListForm::Atomic), Value::Array(_))
        | (Form::Map(MapForm::Atomic), Value::Object(_))
            if duplicates == Duplicates::Allowed =>
        {
            Ok(())
        }
        (Form::Scalar(scalar), value) => check_scalar(scalar, Some(value), ""),
        (Form::List(form), Value::Array(items)) => list(ty, form, items, duplicates),
        (Form::List(_), other) => {
            Err(Problems::new(format!("expected list, got {}", shown(other))))
        }
        (Form::Map(_), Value::Object(fields)) => map(ty, fields, duplicates),
        (Form::Map(_), other) => Err(Problems::new(format!("expected map, got {}", shown(other)))),
    }
}

/// A place where nothing may stand: upstream's schemas have none.
pub(super) fn invalid_atom() -> Problems {
    Problems::new("schema error: invalid atom: inlined")
}

/// Checks a scalar; `side` says which of two values it is.
pub(super) fn check_scalar(
    scalar: Scalar,
    value: Option<&Value>,
    side: &str,
) -> Result<(), Problems> {
    let Some(value) = value else { return Ok(()) };
    let problem = match (scalar, value) {
        (_, Value::Null)
        | (Scalar::Number | Scalar::Any, Value::Number(_))
        | (Scalar::String | Scalar::Any, Value::String(_))
        | (Scalar::Bool | Scalar::Any, Value::Bool(_)) => return Ok(()),
        (Scalar::Number, other) => {
            format!("expected numeric (int or float), got {}", type_name(other))
        }
        (Scalar::String, other) => {
            let other = print(Shown(other, Verb::Syntax));
            format!("expected string, got &value.valueUnstructured{{Value:{other}}}")
        }
        (Scalar::Bool, other) => format!("expected boolean, got {}", shown(other)),
        (Scalar::Any, other) => format!("expected any scalar, got {}", shown(other)),
    };
    Err(Problems::new(format!("{side}{problem}")))
}

fn shown(value: &Value) -> String {
    format!("&{{{}}}", print(Shown(value, Verb::Plain)))
}

fn list<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    form: ListForm,
    items: &[Value],
    duplicates: Duplicates,
) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let mut keys = Vec::new();
    for (at, item) in items.iter().enumerate() {
        if form == ListForm::Atomic {
            let found = validate(ty.item(), item, duplicates);
            problems.add(found.err().unwrap_or_default().below(format_args!("[{at}]")));
            continue;
        }
        match ItemKey::of(ty, item) {
            Ok(key) => keys.push((key, at)),
            Err(why) => {
                // Without a key there is no path either, so upstream goes no further.
                problems.add(Problems::new(format!("element {at}: {why}")));
                break;
            }
        }
    }
    let repeated = match duplicates {
        Duplicates::Allowed => Vec::new(),
        Duplicates::Refused => repeated(&keys),
    };
    for (at, (key, _)) in keys.iter().enumerate() {
        if repeated.binary_search(&at).is_ok() {
            let key = key.to_element();
            problems.add(Problems::new(format!("duplicate entries for key {key}")));
        }
        let Some(item) = items.get(at) else { continue };
        if let Err(found) = validate(ty.item(), item, duplicates) {
            problems.add(found.below(key.to_element()));
        }
    }
    problems.result()
}

/// The places of items whose key an earlier one has, sorted.
fn repeated(keys: &[(ItemKey<'_>, usize)]) -> Vec<usize> {
    let mut order: Vec<&(ItemKey<'_>, usize)> = keys.iter().collect();
    order.sort_by(|(a, _), (b, _)| a.cmp(b));
    let pairs = order.iter().zip(order.iter().skip(1));
    let mut repeated: Vec<usize> =
        pairs.filter(|((a, _), (b, _))| a.cmp(b).is_eq()).map(|(_, (_, at))| *at).collect();
    repeated.sort_unstable();
    repeated
}

fn map<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    fields: &Map<String, Value>,
    duplicates: Duplicates,
) -> Result<(), Problems> {
    let mut problems = Problems::default();
    for (name, value) in fields {
        let Some(inner) = ty.field(name) else {
            let undeclared = Problems::new("field not declared in schema");
            problems.add(undeclared.below(format_args!(".{name}")));
            break;
        };
        if let Err(found) = validate(inner, value, duplicates) {
            problems.add(found.below(format_args!(".{name}")));
        }
    }
    problems.result()
}
