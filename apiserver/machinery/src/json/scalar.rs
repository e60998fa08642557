//! Plain YAML scalars as `sigs.k8s.io/yaml` reads them: YAML 1.1.

use serde_json::{Number, Value};

/// What a scalar without quotes and without a tag means. `None`: it is no JSON (`.nan`, `.inf`).
pub(super) fn resolve(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Some(Value::Bool(true));
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Some(Value::Bool(false));
        }
        _ => {}
    }
    let first = text.bytes().next().unwrap_or(b' ');
    if !(first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.')) {
        return Some(Value::String(text.to_owned()));
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return None;
    }
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let number = integer(&plain).or_else(|| float(&plain));
    Some(number.map_or_else(|| Value::String(text.to_owned()), Value::Number))
}

/// `12`, `-0x1f`, `0b11`, `0o17` and `017`.
fn integer(text: &str) -> Option<Number> {
    let negative = text.starts_with('-');
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, digits.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, digits.get(2..)?),
        [b'0', _, ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    if !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = i128::from(u64::from_str_radix(digits, radix).ok()?);
    let value = if negative { -magnitude } else { magnitude };
    match i64::try_from(value) {
        Ok(value) => Some(value.into()),
        // Go's JSON decoder reads what no int64 holds as a float.
        Err(_) => Number::from_f64(value as f64),
    }
}

/// `1.5`, `.5`, `1e3`: digits with a point or an exponent, and nothing else. What is beyond an
/// `f64` is no number but text.
fn float(text: &str) -> Option<Number> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let numeric = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let exponent_fits = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['+', '-']).unwrap_or(e);
        !e.is_empty() && numeric(e)
    });
    if whole.len() + fraction.len() == 0 || !numeric(whole) || !numeric(fraction) || !exponent_fits
    {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    if let Some(whole) = as_integer(value) {
        return Some(whole.into());
    }
    Number::from_f64(value)
}

/// The integer that a float is. Go's JSON writes such a float without a point, so that it is an
/// integer when it is read again; here it is one at once.
pub(super) fn as_integer(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() < 9.0e18).then_some(value as i64)
}
