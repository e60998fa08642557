//! Conversions between types.

use std::sync::Arc;

use crate::eval::Evaluated;
use crate::library::moment::Moment;
use crate::library::time;
use crate::op::Op;
use crate::value::{EvalError, V};

pub(super) fn call<'a>(op: Op, args: &[V<'a>]) -> Evaluated<'a> {
    let [value] = args else { return Err(EvalError::no_such_overload()) };
    if !convertible(op, value) {
        return Err(EvalError::no_such_overload());
    }
    let converted = match op {
        Op::ToDyn => Ok(Some(value.clone())),
        Op::TypeOf => Ok(Some(V::Type(Arc::new(value.runtime_type())))),
        Op::ToBool => Ok(bool(value)),
        Op::ToBytes => Ok(bytes(value)),
        Op::ToDouble => Ok(double(value)),
        Op::ToInt => int(value),
        Op::ToUint => uint(value),
        Op::ToString => string(value),
        Op::ToDuration => Ok(duration(value)),
        Op::ToTimestamp => timestamp(value),
        _ => Err(EvalError::no_such_overload()),
    }?;
    converted.ok_or_else(|| {
        let to = match op {
            Op::ToBool => "bool",
            Op::ToBytes => "bytes",
            Op::ToDouble => "double",
            Op::ToInt => "int",
            Op::ToUint => "uint",
            Op::ToString => "string",
            Op::ToDuration => "google.protobuf.Duration",
            _ => "google.protobuf.Timestamp",
        };
        let from = value.type_name();
        EvalError::failed(format_args!("type conversion error from '{from}' to '{to}'"))
    })
}

/// Whether the conversion has an overload for the type of the value.
const fn convertible(op: Op, value: &V<'_>) -> bool {
    match op {
        Op::ToDyn | Op::TypeOf => true,
        Op::ToBool => matches!(value, V::Bool(_) | V::String(_)),
        Op::ToBytes => matches!(value, V::Bytes(_) | V::String(_)),
        Op::ToDouble => {
            matches!(value, V::Double(_) | V::Int(_) | V::Uint(_) | V::String(_))
        }
        Op::ToInt => matches!(
            value,
            V::Int(_) | V::Uint(_) | V::Double(_) | V::String(_) | V::Duration(_) | V::Timestamp(_)
        ),
        Op::ToUint => matches!(value, V::Uint(_) | V::Int(_) | V::Double(_) | V::String(_)),
        Op::ToDuration => matches!(value, V::Duration(_) | V::Int(_) | V::String(_)),
        Op::ToTimestamp => matches!(value, V::Timestamp(_) | V::Int(_) | V::String(_)),
        _ => matches!(
            value,
            V::String(_)
                | V::Bool(_)
                | V::Bytes(_)
                | V::Double(_)
                | V::Duration(_)
                | V::Int(_)
                | V::Timestamp(_)
                | V::Uint(_)
                | V::Ip(_)
                | V::Cidr(_)
        ),
    }
}

fn overflow<'a>(text: &str) -> Result<Option<V<'a>>, EvalError> {
    Err(EvalError::failed(text))
}

fn bool<'a>(value: &V<'a>) -> Option<V<'a>> {
    match value {
        V::Bool(value) => Some(V::Bool(*value)),
        // What Go's strconv.ParseBool takes.
        V::String(text) => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(V::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(V::Bool(false)),
            _ => None,
        },
        _ => None,
    }
}

fn bytes<'a>(value: &V<'a>) -> Option<V<'a>> {
    match value {
        V::Bytes(bytes) => Some(V::Bytes(Arc::clone(bytes))),
        V::String(text) => Some(V::Bytes(text.as_bytes().into())),
        _ => None,
    }
}

fn double<'a>(value: &V<'a>) -> Option<V<'a>> {
    match value {
        V::Double(value) => Some(V::Double(*value)),
        V::Int(value) => Some(V::Double(*value as f64)),
        V::Uint(value) => Some(V::Double(*value as f64)),
        V::String(text) => parse_float(text).map(V::Double),
        _ => None,
    }
}

/// What Go's strconv.ParseFloat takes, without hexadecimal floats and underscores.
fn parse_float(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let named = text.trim_start_matches(['+', '-']);
    let infinite = named.eq_ignore_ascii_case("inf") || named.eq_ignore_ascii_case("infinity");
    (value.is_finite() || value.is_nan() && named.len() == text.len() || infinite).then_some(value)
}

fn int<'a>(value: &V<'a>) -> Result<Option<V<'a>>, EvalError> {
    Ok(match value {
        V::Int(value) => Some(V::Int(*value)),
        V::Uint(value) => match i64::try_from(*value) {
            Ok(value) => Some(V::Int(value)),
            Err(_) => return overflow("integer overflow"),
        },
        V::Double(value) => {
            // Upstream refuses both ends, where a double can't tell neighbours apart.
            if !value.is_finite() || *value <= i64::MIN as f64 || *value >= i64::MAX as f64 {
                return overflow("integer overflow");
            }
            Some(V::Int(*value as i64))
        }
        V::String(text) => parse_int(text).map(V::Int),
        V::Duration(nanos) => Some(V::Int(*nanos)),
        V::Timestamp(timestamp) => Some(V::Int(timestamp.seconds)),
        _ => None,
    })
}

fn parse_int(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn uint<'a>(value: &V<'a>) -> Result<Option<V<'a>>, EvalError> {
    Ok(match value {
        V::Uint(value) => Some(V::Uint(*value)),
        V::Int(value) => match u64::try_from(*value) {
            Ok(value) => Some(V::Uint(value)),
            Err(_) => return overflow("unsigned integer overflow"),
        },
        V::Double(value) => {
            if !value.is_finite() || *value < 0.0 || *value >= u64::MAX as f64 {
                return overflow("unsigned integer overflow");
            }
            Some(V::Uint(*value as u64))
        }
        V::String(text) if !text.starts_with('+') => text.parse().ok().map(V::Uint),
        _ => None,
    })
}

fn string<'a>(value: &V<'a>) -> Result<Option<V<'a>>, EvalError> {
    Ok(Some(match value {
        V::String(text) => V::String(text.clone()),
        V::Bool(value) => V::string(value.to_string()),
        V::Int(value) => V::string(value.to_string()),
        V::Uint(value) => V::string(value.to_string()),
        V::Double(value) => V::string(float(*value)),
        V::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => V::string(text),
            Err(_) => {
                let text = "invalid UTF-8 in bytes, cannot convert to string";
                return Err(EvalError::failed(text));
            }
        },
        V::Duration(nanos) => V::string(time::show_duration(*nanos)),
        V::Timestamp(timestamp) => V::string(timestamp.to_string()),
        V::Ip(address) => V::string(address.to_string()),
        V::Cidr(cidr) => V::string(cidr.to_string()),
        V::Type(ty) => V::string(ty.runtime_name()),
        _ => return Ok(None),
    }))
}

/// From here on doubles are written with an exponent.
const LARGE: f64 = 1e6;

/// A double as Go's strconv writes it in the format `g` with as many digits as are needed.
pub(super) fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..LARGE).contains(&magnitude) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{value}")
}

fn duration<'a>(value: &V<'a>) -> Option<V<'a>> {
    match value {
        V::Duration(nanos) => Some(V::Duration(*nanos)),
        V::String(text) => time::parse_go_duration(text).map(V::Duration),
        _ => None,
    }
}

fn timestamp<'a>(value: &V<'a>) -> Result<Option<V<'a>>, EvalError> {
    Ok(match value {
        V::Timestamp(timestamp) => Some(V::Timestamp(*timestamp)),
        V::Int(seconds) => match Moment::from_unix(*seconds) {
            Some(timestamp) => Some(V::Timestamp(timestamp)),
            None => return overflow("timestamp overflow"),
        },
        V::String(text) => match Moment::parse(text) {
            Some(timestamp) if timestamp.in_range() => Some(V::Timestamp(timestamp)),
            Some(_) => return overflow("timestamp overflow"),
            None => None,
        },
        _ => None,
    })
}
