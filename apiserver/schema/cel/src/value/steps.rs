//! Steps of walks over values.
//!
//! Upstream's cost of an equality counts the elements of two lists and not what is in them, and a value
//! may hold one part many times over, so a cheap expression could walk for ever. Every walk counts its
//! steps here, and an evaluation that takes too many ends as if its budget were spent. The count belongs
//! to the thread, on which an evaluation runs from its beginning to its end.
//!
//! An evaluation may read what another one has yet to make (a [`Record`](crate::Record)), which then runs
//! inside it, on the same stack: the steps of both are counted together, and so is how deep they are.

use std::cell::Cell;

use crate::ast::MAX_DEPTH;
use crate::value::EvalError;

/// Steps of one evaluation: the elements that a full budget pays for when lists are compared.
const MAX_STEPS: u64 = 10_000_000;

/// How deep the trees of evaluations inside each other may be in all: what the stack of a thread takes
/// with ease, and more than a reader of such expressions follows.
const MAX_NESTED: u32 = 2 * MAX_DEPTH as u32;

/// What an evaluation inside another one takes of the stack beside its tree, in levels of one.
const BETWEEN: u32 = 16;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// An evaluation that runs.
pub(crate) struct Running {
    levels: u32,
}

/// An evaluation of a tree of that depth begins; it ends when the result is dropped.
///
/// # Errors
/// If it is inside too many others.
pub(crate) fn begin(depth: u16) -> Result<Running, EvalError> {
    let (outside, levels) = (DEPTH.get(), u32::from(depth) + BETWEEN);
    if outside == 0 {
        STEPS.set(0);
    } else if outside + levels > MAX_NESTED {
        return Err(EvalError::failed("evaluations nest too deeply"));
    }
    DEPTH.set(outside + levels);
    Ok(Running { levels })
}

impl Drop for Running {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get().saturating_sub(self.levels));
    }
}

/// Counts steps.
///
/// # Errors
/// If there were too many.
pub(crate) fn take(steps: u64) -> Result<(), EvalError> {
    let taken = STEPS.get().saturating_add(steps);
    STEPS.set(taken);
    if taken > MAX_STEPS { Err(EvalError::CostLimit) } else { Ok(()) }
}
