//! The patch formats of a Kubernetes API server, as pure functions over JSON values.
//!
//! - [`json`]: RFC 6902, a list of operations;
//! - [`merge`]: RFC 7396, a partial document;
//! - [`apply`]: server-side apply, with the ownership of fields that every write keeps;
//! - [`strategic`]: the server half of strategic merge patch, a partial document whose lists merge
//!   by keys that the schema declares.
//!
//! This crate knows neither HTTP nor kinds: the schema comes in through
//! [`strategic::MergeSchema`], and the caller turns a [`PatchError`] into a status. Whatever the
//! documents hold, nothing here panics, recursion ends at [`MAX_DEPTH`], and the work is bounded
//! by the size of the inputs (JSON patches, which could do more, have budgets of their own).

pub mod apply;
mod depth;
mod error;
mod golang;
pub mod json;
pub mod merge;
pub mod strategic;

pub use depth::MAX_DEPTH;
pub use error::PatchError;
