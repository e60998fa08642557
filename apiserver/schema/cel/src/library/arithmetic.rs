//! Operators on numbers, texts, times and lists.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::eval::Evaluated;
use crate::library::moment::Moment;
use crate::op::Op;
use crate::value::{EvalError, V, compare};

fn failed<'a>(text: &str) -> Evaluated<'a> {
    Err(EvalError::failed(text))
}

fn int<'a>(value: Option<i64>) -> Evaluated<'a> {
    value.map_or_else(|| failed("integer overflow"), |value| Ok(V::Int(value)))
}

fn uint<'a>(value: Option<u64>) -> Evaluated<'a> {
    value.map_or_else(|| failed("unsigned integer overflow"), |value| Ok(V::Uint(value)))
}

fn duration<'a>(value: Option<i64>) -> Evaluated<'a> {
    value.map_or_else(|| failed("integer overflow"), |value| Ok(V::Duration(value)))
}

fn timestamp<'a>(value: Option<Moment>) -> Evaluated<'a> {
    value.map_or_else(|| failed("timestamp overflow"), |value| Ok(V::Timestamp(value)))
}

pub(super) fn call<'a>(op: Op, args: &[V<'a>]) -> Evaluated<'a> {
    match (op, args) {
        (Op::Not, [V::Bool(value)]) => Ok(V::Bool(!value)),
        (Op::Negate, [V::Int(value)]) => int(value.checked_neg()),
        (Op::Negate, [V::Double(value)]) => Ok(V::Double(-value)),
        (_, [V::Int(a), V::Int(b)]) => ints(op, *a, *b),
        (_, [V::Uint(a), V::Uint(b)]) => uints(op, *a, *b),
        (_, [V::Double(a), V::Double(b)]) => doubles(op, *a, *b),
        (Op::Add, _) => add(args),
        (Op::Subtract, _) => subtract(args),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn ints<'a>(op: Op, a: i64, b: i64) -> Evaluated<'a> {
    match op {
        Op::Add => int(a.checked_add(b)),
        Op::Subtract => int(a.checked_sub(b)),
        Op::Multiply => int(a.checked_mul(b)),
        Op::Divide if b == 0 => failed("division by zero"),
        Op::Divide => int(a.checked_div(b)),
        Op::Modulo if b == 0 => failed("modulus by zero"),
        Op::Modulo => int(a.checked_rem(b)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn uints<'a>(op: Op, a: u64, b: u64) -> Evaluated<'a> {
    match op {
        Op::Add => uint(a.checked_add(b)),
        Op::Subtract => uint(a.checked_sub(b)),
        Op::Multiply => uint(a.checked_mul(b)),
        Op::Divide if b == 0 => failed("division by zero"),
        Op::Divide => uint(a.checked_div(b)),
        Op::Modulo if b == 0 => failed("modulus by zero"),
        Op::Modulo => uint(a.checked_rem(b)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn doubles<'a>(op: Op, a: f64, b: f64) -> Evaluated<'a> {
    Ok(V::Double(match op {
        Op::Add => a + b,
        Op::Subtract => a - b,
        Op::Multiply => a * b,
        Op::Divide => a / b,
        _ => return Err(EvalError::no_such_overload()),
    }))
}

fn add<'a>(args: &[V<'a>]) -> Evaluated<'a> {
    match args {
        [V::String(a), V::String(b)] => {
            let mut text = String::with_capacity(a.len() + b.len());
            text.push_str(a);
            text.push_str(b);
            Ok(V::string(text))
        }
        [V::Bytes(a), V::Bytes(b)] => Ok(V::Bytes(Arc::from([&**a, &**b].concat()))),
        [V::List(a), V::List(b)] => a.clone().concat(b).map(V::List),
        [V::Duration(a), V::Duration(b)] => duration(a.checked_add(*b)),
        [V::Duration(d), V::Timestamp(t)] | [V::Timestamp(t), V::Duration(d)] => {
            timestamp(t.shift(i128::from(*d)))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn subtract<'a>(args: &[V<'a>]) -> Evaluated<'a> {
    match args {
        [V::Duration(a), V::Duration(b)] => duration(a.checked_sub(*b)),
        [V::Timestamp(t), V::Duration(d)] => timestamp(t.shift(-i128::from(*d))),
        [V::Timestamp(a), V::Timestamp(b)] => duration(a.since(*b)),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// `<`, `<=`, `>` and `>=`.
pub(super) fn compares<'a>(op: Op, args: &[V<'a>]) -> Evaluated<'a> {
    let [a, b] = args else { return Err(EvalError::no_such_overload()) };
    let Some(order) = compare(a, b)? else { return failed("NaN values cannot be ordered") };
    Ok(V::Bool(match op {
        Op::Less => order == Ordering::Less,
        Op::LessEquals => order != Ordering::Greater,
        Op::Greater => order == Ordering::Greater,
        _ => order != Ordering::Less,
    }))
}
