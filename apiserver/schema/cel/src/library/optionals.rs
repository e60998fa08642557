//! Optional values.

use std::sync::Arc;

use crate::eval::Evaluated;
use crate::op::Op;
use crate::value::{EvalError, V};

pub(super) fn call<'a>(op: Op, args: &[V<'a>]) -> Evaluated<'a> {
    match (op, args) {
        (Op::OptionalNone, []) => Ok(V::Optional(None)),
        (Op::OptionalOf, [value]) => Ok(V::Optional(Some(Arc::new(value.clone())))),
        (Op::OptionalOfNonZeroValue, [value]) => {
            Ok(V::Optional((!is_zero(value)).then(|| Arc::new(value.clone()))))
        }
        (Op::OptionalUnwrap | Op::UnwrapOpt, [V::List(list)]) => {
            let mut out = Vec::new();
            for item in list.iter() {
                match item? {
                    V::Optional(Some(value)) => out.push((*value).clone()),
                    V::Optional(None) => {}
                    other => {
                        let shown = super::format::display(&other);
                        let text = format_args!("value {shown} is not optional");
                        return Err(EvalError::failed(text));
                    }
                }
            }
            Ok(V::list(out))
        }
        (Op::HasValue, [V::Optional(value)]) => Ok(V::Bool(value.is_some())),
        (Op::Value, [V::Optional(Some(value))]) => Ok((**value).clone()),
        (Op::Value, [V::Optional(None)]) => Err(EvalError::failed("optional.none() dereference")),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn is_zero(value: &V<'_>) -> bool {
    match value {
        V::Null => true,
        V::Bool(value) => !value,
        V::Int(value) => *value == 0,
        V::Uint(value) => *value == 0,
        V::Double(value) => *value == 0.0,
        V::String(text) => text.is_empty(),
        V::Bytes(bytes) => bytes.is_empty(),
        V::List(list) => list.len() == 0,
        V::Map(map) => map.len() == 0,
        V::Duration(nanos) => *nanos == 0,
        V::Timestamp(timestamp) => timestamp.is_zero(),
        V::Optional(value) => value.is_none(),
        _ => false,
    }
}
