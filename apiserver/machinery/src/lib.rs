//! Kubernetes API machinery: names, keys, selectors, metadata, errors and strict JSON; and what
//! collections of any crate do with room that they no longer need.
//!
//! Nothing here does I/O, knows of HTTP, of a store, or of any particular kind. Everything is a
//! pure function of its arguments; clocks and randomness come in as parameters. No input makes
//! anything here panic, overflow the stack, or take more than about linear time.

pub mod field;
pub mod gvr;
pub mod hash;
pub mod json;
pub mod key;
pub mod kubeconfig;
pub mod meta;
pub mod name;
pub mod network;
pub mod quantity;
pub mod room;
pub mod selector;
pub mod status;
pub mod time;
pub mod version;

pub use field::{FieldError, FieldErrorKind, FieldPath};
pub use gvr::{GroupResource, GroupVersion, Gvk, Gvr};
pub use key::{ClusterName, ObjectKey};
