//! Label and field selectors of lists and watches.

mod field;
mod label;
mod lexer;
mod structured;

pub use field::{FieldOperator, FieldRequirement, FieldSelector};
pub use label::{LabelOperator, LabelRequirement, LabelSelector};

/// Longest selector text, in bytes. Upstream is bounded by the length of a URL only; this is well
/// above what a URL carries here, and keeps hostile bodies cheap.
pub const MAX_SELECTOR: usize = 256 * 1024;

/// Why a text is no selector; the message is upstream's.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct SelectorError(pub String);

#[cfg(test)]
mod tests;
