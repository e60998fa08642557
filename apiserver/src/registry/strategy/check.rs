//! Checks that several kinds share. Each returns what is wrong, in upstream's words.

use machinery::meta::get;
use machinery::{FieldError, FieldPath};
use serde_json::Value;

/// Most problems that are told of the items of one list. A body has room for a million wrong items,
/// and each problem takes far more than what it is told of.
pub(super) const MOST_PROBLEMS: usize = 1_000;

/// What is wrong with the items of a list, one after the other.
pub(super) fn each<'i, P: IntoIterator<Item = FieldError>>(
    items: &'i [Value],
    path: &FieldPath,
    mut judge: impl FnMut(&'i Value, &FieldPath) -> P,
) -> Vec<FieldError> {
    let items = items.iter().enumerate();
    let problems = items.flat_map(|(index, item)| judge(item, &path.index(index)));
    problems.take(MOST_PROBLEMS).collect()
}

/// The text of a field; empty when it is absent.
pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    get(object, &[field]).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a field; none when it is absent.
pub(super) fn items<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    get(object, &[field]).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A part of an object that is there and not null.
pub(super) fn part<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    get(object, &[field]).filter(|value| !value.is_null())
}

/// One value of an enumeration, which must be given.
pub(super) fn one_of(path: &FieldPath, given: &str, valid: &[&str]) -> Option<FieldError> {
    match given {
        "" => Some(FieldError::required(path, "")),
        given => other_than(path, given, valid),
    }
}

/// A value that is none of an enumeration.
pub(super) fn other_than(path: &FieldPath, given: &str, valid: &[&str]) -> Option<FieldError> {
    (!valid.contains(&given)).then(|| FieldError::not_supported(path, &given.into(), valid))
}

/// A wildcard beside other items of a list says nothing more, and so is a mistake.
pub(super) fn crowded(path: &FieldPath, list: &[Value], what: &str) -> Option<FieldError> {
    let crowded = list.len() > 1 && list.iter().any(|item| item == "*");
    let why = || format!("if '*' is present, must not specify other {what}");
    crowded.then(|| FieldError::invalid(path, &Value::from(list), why()))
}

/// What a rule for names says of a text.
pub(super) fn named(
    path: &FieldPath,
    given: &str,
    rule: fn(&str) -> Vec<String>,
) -> Vec<FieldError> {
    rule(given).into_iter().map(|why| FieldError::invalid_str(path, given, why)).collect()
}
