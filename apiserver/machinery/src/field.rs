//! Problems with single fields of an object, and the texts that clients see of them.
//!
//! Texts are upstream's (`k8s.io/apimachinery/pkg/util/validation/field`): kubectl prints one
//! line for each problem, controllers test the reasons.

mod error;
mod path;
mod quote;

pub use error::{FieldError, FieldErrorKind, aggregate};
pub use path::FieldPath;
pub use quote::{go_json, go_quote};

#[cfg(test)]
mod tests;
