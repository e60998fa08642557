//! Equality and order of values. Values of different types are unequal, but numbers compare by value.

use std::cmp::Ordering;

use serde_json::Value as Json;

use crate::value::{EvalError, V, steps};

/// Whether two values are equal.
pub(crate) fn equal<'a>(a: &V<'a>, b: &V<'a>) -> Result<bool, EvalError> {
    steps::take(1)?;
    Ok(match (a, b) {
        (V::Null, V::Null) => true,
        (V::Bool(a), V::Bool(b)) => a == b,
        (V::String(a), V::String(b)) => **a == **b,
        (V::Bytes(a), V::Bytes(b)) => a == b,
        (V::Duration(a), V::Duration(b)) => a == b,
        (V::Timestamp(a), V::Timestamp(b)) => a == b,
        (V::List(a), V::List(b)) => a.equals(b)?,
        (V::Map(a), V::Map(b)) => a.equals(b)?,
        (V::Type(a), V::Type(b)) => a.runtime_name() == b.runtime_name(),
        (V::Optional(None), V::Optional(None)) => true,
        (V::Optional(Some(a)), V::Optional(Some(b))) => equal(a, b)?,
        (V::Quantity(a), V::Quantity(b)) => a == b,
        (V::Ip(a), V::Ip(b)) => a == b,
        (V::Cidr(a), V::Cidr(b)) => a == b,
        (V::Url(a), V::Url(b)) => a.text() == b.text(),
        (V::Semver(a), V::Semver(b)) => a.cmp_precedence(b) == Ordering::Equal,
        (V::Format(a), V::Format(b)) => a == b,
        (V::Authz(a), V::Authz(b)) => std::sync::Arc::ptr_eq(a, b),
        _ => numbers(a, b) == Some(Ordering::Equal),
    })
}

/// The order of two values, or none if they have none (NaN included).
///
/// # Errors
/// If values of these types have no order.
pub(crate) fn compare(a: &V<'_>, b: &V<'_>) -> Result<Option<Ordering>, EvalError> {
    Ok(Some(match (a, b) {
        (V::Bool(a), V::Bool(b)) => a.cmp(b),
        (V::String(a), V::String(b)) => (**a).cmp(b),
        (V::Bytes(a), V::Bytes(b)) => a.cmp(b),
        (V::Duration(a), V::Duration(b)) => a.cmp(b),
        (V::Timestamp(a), V::Timestamp(b)) => a.cmp(b),
        (V::Int(_) | V::Uint(_) | V::Double(_), V::Int(_) | V::Uint(_) | V::Double(_)) => {
            return Ok(numbers(a, b));
        }
        _ => return Err(EvalError::no_such_overload()),
    }))
}

/// The order of two numbers of any type. An integer and a double compare as doubles, unless the double
/// is outside the range of the integer's type.
fn numbers(a: &V<'_>, b: &V<'_>) -> Option<Ordering> {
    const INT: (f64, f64) = (i64::MIN as f64, i64::MAX as f64);
    const UINT: (f64, f64) = (0.0, u64::MAX as f64);
    match (a, b) {
        (V::Int(a), V::Int(b)) => Some(a.cmp(b)),
        (V::Uint(a), V::Uint(b)) => Some(a.cmp(b)),
        (V::Double(a), V::Double(b)) => a.partial_cmp(b),
        (V::Int(a), V::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (V::Uint(a), V::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (V::Int(a), V::Double(b)) => with_double(*a as f64, *b, INT),
        (V::Double(a), V::Int(b)) => with_double(*b as f64, *a, INT).map(Ordering::reverse),
        (V::Uint(a), V::Double(b)) => with_double(*a as f64, *b, UINT),
        (V::Double(a), V::Uint(b)) => with_double(*b as f64, *a, UINT).map(Ordering::reverse),
        _ => None,
    }
}

fn with_double(int: f64, double: f64, (min, max): (f64, f64)) -> Option<Ordering> {
    if double < min {
        return Some(Ordering::Greater);
    }
    if double > max {
        return Some(Ordering::Less);
    }
    int.partial_cmp(&double)
}

/// Whether two pieces of JSON are equal. The recursion ends with the depth of JSON.
pub(crate) fn json_equal(a: &Json, b: &Json) -> Result<bool, EvalError> {
    steps::take(1)?;
    match (a, b) {
        (Json::Array(a), Json::Array(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b) {
                if !json_equal(a, b)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Json::Object(a), Json::Object(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (name, a) in a {
                match b.get(name) {
                    Some(b) if json_equal(a, b)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (a, b) => Ok(a == b),
    }
}
