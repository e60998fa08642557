//! Values as structured-merge-diff compares and prints them.
//!
//! Numbers are compared by what they are: 1 and 1.0 are equal. Nesting is bounded by the depth of
//! the documents, which the entry points check.

use std::cmp::Ordering;
use std::fmt::Write as _;

use machinery::field::go_quote;
use serde_json::{Map, Number, Value};

/// Why writing to a text can't fail.
const ENDLESS: &str = "a String takes any text";

/// Whether two values are the same.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let same =
                |((a, x), (b, y)): ((&String, &Value), (&String, &Value))| a == b && equal(x, y);
            a.len() == b.len() && a.iter().zip(b).all(same)
        }
        (a, b) => a == b,
    }
}

/// The order in which sets hold values.
pub(super) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let unequal = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
            unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => compare_maps(a, b),
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Field by field in the order of names. Of two maps that differ in a name, the one that has the
/// smaller is the smaller.
fn compare_maps(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    for ((name, x), (other, y)) in a.iter().zip(b) {
        let order = name.cmp(other).then_with(|| compare(x, y));
        if order.is_ne() {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return a.cmp(&b);
    }
    let float = |number: &Number| number.as_f64().unwrap_or(0.0);
    float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal)
}

/// What a number in a path becomes when it is read: upstream reads all as floats.
pub(super) fn as_float(value: &mut Value) {
    match value {
        Value::Number(number) => {
            // Up to here floats and integers are the same, and integers are printed faster.
            const EXACT: u64 = 1 << 53;
            if number.as_i64().is_none_or(|number| number.unsigned_abs() > EXACT)
                && let Some(float) = number.as_f64().and_then(Number::from_f64)
            {
                *number = float;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(as_float),
        Value::Object(fields) => fields.values_mut().for_each(as_float),
        _ => {}
    }
}

/// Appends a value as paths in messages show it. All numbers are floats there: in what was read from
/// stored fields, and in what is applied.
pub(super) fn push_shown(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => write!(out, "{value}").expect(ENDLESS),
        Value::Number(number) => {
            push_float(out, number.as_f64().unwrap_or(0.0), Layout::General);
        }
        Value::String(text) => out.push_str(&go_quote(text)),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_shown(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                out.push_str(name);
                out.push('=');
                push_shown(out, value);
            }
        }
    }
}

/// When a float is printed with an exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// As Go's `%v`.
    General,
    /// As Go's JSON encoders.
    Json,
}

/// Appends a float as Go does: the shortest digits that read back as the same number.
pub(super) fn push_float(out: &mut String, value: f64, layout: Layout) {
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let with_exponent = match layout {
        Layout::General => !(-4..6).contains(&exponent),
        Layout::Json => value != 0.0 && !(1e-6..1e21).contains(&value.abs()),
    };
    if with_exponent {
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(out, "{mantissa}e{sign}{:02}", exponent.abs()).expect(ENDLESS);
    } else {
        write!(out, "{value}").expect(ENDLESS);
    }
}

/// Appends JSON as upstream writes values into paths: maps sorted, HTML escaped.
pub(super) fn push_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => write!(out, "{value}").expect(ENDLESS),
        Value::Number(number) => match number.as_i64() {
            Some(number) => write!(out, "{number}").expect(ENDLESS),
            None => push_float(out, number.as_f64().unwrap_or(0.0), Layout::Json),
        },
        Value::String(text) => push_string(out, text, true),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_json(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (at, (name, value)) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_string(out, name, true);
                out.push(':');
                push_json(out, value);
            }
            out.push('}');
        }
    }
}

/// Appends a JSON string; with the characters escaped that mean something in HTML, if so wanted.
pub(super) fn push_string(out: &mut String, text: &str, html: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' => write!(out, "\\u{:04x}", u32::from(c)).expect(ENDLESS),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if html => {
                write!(out, "\\u{:04x}", u32::from(c)).expect(ENDLESS);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn floats_are_printed_as_go_prints_them() {
        let check = |value: f64, general: &str, encoded: &str| {
            let mut out = String::new();
            push_float(&mut out, value, Layout::General);
            assert_eq!(out, general);
            out.clear();
            push_float(&mut out, value, Layout::Json);
            assert_eq!(out, encoded);
        };
        check(0.0, "0", "0");
        check(1.5, "1.5", "1.5");
        check(-0.25, "-0.25", "-0.25");
        check(123_456.0, "123456", "123456");
        check(1e6, "1e+06", "1000000");
        check(1e20, "1e+20", "100000000000000000000");
        check(1e21, "1e+21", "1e+21");
        check(1.25e22, "1.25e+22", "1.25e+22");
        check(0.00001, "1e-05", "0.00001");
        check(1e-7, "1e-07", "1e-07");
    }

    #[test]
    fn values_have_one_order() {
        let sorted = [
            json!(-1),
            json!(0.5),
            json!(1),
            json!("a"),
            json!("b"),
            json!(false),
            json!(true),
            json!([]),
            json!([1]),
            json!({}),
            json!({"a": 1}),
            json!({"b": 0}),
            Value::Null,
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} {b}");
                assert_eq!(equal(a, b), i == j, "{a} {b}");
            }
        }
        assert!(equal(&json!({"a": [1]}), &json!({"a": [1.0]})));
    }
}
