//! Kubernetes API machinery: names, keys, selectors, metadata, errors and strict JSON.
//!
//! Nothing here does I/O, knows of HTTP, of a store, or of any particular kind. Everything is a
//! pure function of its arguments; clocks and randomness come in as parameters.

pub mod gvr;
pub mod key;
pub mod name;

pub use gvr::{GroupResource, GroupVersion, Gvk, Gvr};
pub use key::{ClusterName, ObjectKey};
