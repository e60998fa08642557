//! Quantities.

use machinery::quantity::{Notation, Quantity};

use crate::eval::Evaluated;
use crate::op::Op;
use crate::value::{EvalError, V};

pub(super) fn call<'a>(op: Op, args: &[V<'a>]) -> Evaluated<'a> {
    let result = match (op, args) {
        (Op::Quantity, [V::String(text)]) => {
            V::Quantity(Quantity::parse(text).map_err(EvalError::failed)?)
        }
        (Op::IsQuantity, [V::String(text)]) => V::Bool(Quantity::parse(text).is_ok()),
        (Op::Sign, [V::Quantity(q)]) => V::Int(i64::from(!q.is_zero()) * sign(*q)),
        (Op::AsInteger, [V::Quantity(q)]) => match integer(*q) {
            Some(value) => V::Int(value),
            None => return Err(EvalError::failed("cannot convert value to integer")),
        },
        (Op::IsInteger, [V::Quantity(q)]) => V::Bool(integer(*q).is_some()),
        (Op::AsApproximateFloat, [V::Quantity(q)]) => V::Double(float(*q)),
        (Op::CompareTo, [V::Quantity(a), V::Quantity(b)]) => V::Int(a.cmp(b) as i64),
        (Op::IsGreaterThan, [V::Quantity(a), V::Quantity(b)]) => V::Bool(a > b),
        (Op::IsLessThan, [V::Quantity(a), V::Quantity(b)]) => V::Bool(a < b),
        (Op::QuantityAdd, [V::Quantity(a), V::Quantity(b)]) => sum(a.checked_add(*b))?,
        (Op::QuantityAdd, [V::Quantity(a), V::Int(b)]) => sum(a.checked_add(whole(*b)))?,
        (Op::QuantitySub, [V::Quantity(a), V::Quantity(b)]) => sum(a.checked_sub(*b))?,
        (Op::QuantitySub, [V::Quantity(a), V::Int(b)]) => sum(a.checked_sub(whole(*b)))?,
        _ => return Err(EvalError::no_such_overload()),
    };
    Ok(result)
}

fn whole(value: i64) -> Quantity {
    Quantity::new(value, Notation::DecimalExponent)
}

fn sum<'a>(value: Option<Quantity>) -> Evaluated<'a> {
    value.map(V::Quantity).ok_or_else(|| EvalError::failed("quantity is too large"))
}

fn sign(quantity: Quantity) -> i64 {
    if quantity.is_negative() { -1 } else { 1 }
}

/// The value if it is whole and fits.
fn integer(quantity: Quantity) -> Option<i64> {
    let value = quantity.value()?;
    (Quantity::new(value, Notation::DecimalSi) == quantity).then_some(value)
}

/// The nearest double, from the canonical text: digits and a suffix.
fn float(quantity: Quantity) -> f64 {
    let text = quantity.to_string();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at_checked(split).unwrap_or((&text, ""));
    let number: f64 = digits.parse().unwrap_or(0.0);
    let factor = match suffix {
        "n" => return number / 1e9,
        "u" => return number / 1e6,
        "m" => return number / 1e3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024_f64.powi(2),
        "Gi" => 1024_f64.powi(3),
        "Ti" => 1024_f64.powi(4),
        "Pi" => 1024_f64.powi(5),
        "Ei" => 1024_f64.powi(6),
        exponent => {
            let power: i32 = exponent.trim_start_matches(['e', 'E']).parse().unwrap_or(0);
            return format!("{digits}e{power}").parse().unwrap_or(0.0);
        }
    };
    number * factor
}
