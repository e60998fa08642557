//! What others derive from the cache and must drop as soon as it changes.

use std::fmt;

use crate::Key;

/// Is told of each change before anybody can see that the cache has reached its revision.
///
/// # Assumptions
/// It runs while the cache is locked, so it is quick, and never asks the cache.
pub trait Observer: fmt::Debug + Send + Sync {
    /// The record at `key` changed, or went.
    fn changed(&self, key: &Key);

    /// Anything may have changed.
    fn reset(&self);
}
