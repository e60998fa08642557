//! Lists taken as sets.

use crate::eval::Evaluated;
use crate::op::Op;
use crate::value::{EvalError, List, V};

pub(super) fn call<'a>(op: Op, args: &[V<'a>]) -> Evaluated<'a> {
    let [V::List(a), V::List(b)] = args else { return Err(EvalError::no_such_overload()) };
    Ok(V::Bool(match op {
        Op::SetsContains => contains(a, b)?,
        Op::SetsEquivalent => contains(a, b)? && contains(b, a)?,
        _ => {
            for item in a.iter() {
                if b.contains(&item?)? {
                    return Ok(V::Bool(true));
                }
            }
            false
        }
    }))
}

fn contains<'a>(list: &List<'a>, part: &List<'a>) -> Result<bool, EvalError> {
    for item in part.iter() {
        if !list.contains(&item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}
