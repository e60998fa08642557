//! Object metadata: the header that the server keeps of every object, and the rules of
//! `metadata` that hold for all kinds.

mod access;
mod header;
mod owner;
mod validate;

pub use access::{get, get_bool, get_i64, get_str, remove, set};
pub use header::Header;
pub use owner::OwnerReference;
pub use validate::{validate_object_meta, validate_object_meta_update};

/// Most bytes of annotations, keys and values together.
pub const MAX_ANNOTATIONS: usize = 256 * 1024;
/// The finalizer by which dependents outlive the object.
pub const FINALIZER_ORPHAN: &str = "orphan";
/// The finalizer by which dependents go first.
pub const FINALIZER_FOREGROUND: &str = "foregroundDeletion";

#[cfg(test)]
mod tests;
