//! Values and numbers as Go prints them in messages.

use std::fmt::Write as _;

use machinery::field::{go_json, go_quote};
use serde_json::{Number, Value};

/// A value as `field.Error` prints it: simple ones plainly, others as JSON.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => go_quote(text),
        Value::Number(number) => plain_number(number),
        other => json(other),
    }
}

/// A value as text: texts as they are, numbers as `%v` prints them, others as JSON.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => plain_number(number),
        other => json(other),
    }
}

/// JSON as Go writes it: whole floats have no fraction.
pub(super) fn json(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => json_float(number.as_f64().unwrap_or_default()),
        Value::Array(_) | Value::Object(_) if has_float(value) => {
            let mut out = String::new();
            write_json(value, &mut out);
            out
        }
        other => go_json(other),
    }
}

/// A number as `%v` prints it.
pub(super) fn plain_number(number: &Number) -> String {
    match integer(number) {
        Some(whole) => whole.to_string(),
        None => float(number.as_f64().unwrap_or_default()),
    }
}

/// What Go's decoder makes an `int64`: a number that is written without fraction and fits.
pub(super) fn integer(number: &Number) -> Option<i64> {
    number.as_i64()
}

/// A float as `%v` prints it: the shortest digits, with an exponent below -4 and from 6 on.
pub(super) fn float(value: f64) -> String {
    let text = format!("{value:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.unsigned_abs());
    }
    format!("{value}")
}

fn json_float(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        return match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                format!("{digits}e+{exponent}")
            }
            _ => text,
        };
    }
    format!("{value}")
}

fn has_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_float),
        Value::Object(fields) => fields.values().any(has_float),
        _ => false,
    }
}

fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (at, (name, part)) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                let name = go_json(&Value::String(name.clone()));
                write!(out, "{name}:").expect("a String takes any text");
                write_json(part, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&json(scalar)),
    }
}
