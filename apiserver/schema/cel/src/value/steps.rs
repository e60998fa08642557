//! Steps of walks over values.
//!
//! Upstream's cost of an equality counts the elements of two lists and not what is in them, and a value
//! may hold one part many times over, so a cheap expression could walk for ever. Every walk counts its
//! steps here, and an evaluation that takes too many ends as if its budget were spent. The count belongs
//! to the thread, on which an evaluation runs from its beginning to its end.

use std::cell::Cell;

use crate::value::EvalError;

/// Steps of one evaluation: the elements that a full budget pays for when lists are compared.
const MAX_STEPS: u64 = 10_000_000;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// An evaluation begins.
pub(crate) fn begin() {
    STEPS.set(0);
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
