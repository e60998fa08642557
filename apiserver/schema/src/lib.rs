//! The types that the server knows, as data: structural schemas, resources, columns, defaults.
//!
//! Built-in types are compiled from the files in `data/`; nothing in the code names a kind. What
//! a [`Schema`] is asked to do (decode, default, merge, publish) is the same for every type.
//!
//! The crate does no I/O and knows nothing of HTTP or of the store. No input makes it panic.

mod apply;
pub mod coerce;
pub mod crd;
mod data;
mod declare;
pub mod default;
pub mod import;
pub mod jsonpath;
pub mod known;
mod merge;
pub mod model;
pub mod openapi;
pub mod proto;
pub mod resource;
pub mod structural;
pub mod table;
pub mod types;

pub use apply::ApplyType;
pub use coerce::{CoerceMode, DecodeError, Unknown};
pub use model::{Field, Pool, Scalar, Schema, SchemaHash, Shape, StructType, TypeId, Union};
pub use resource::{NameRule, ResourceDef};
pub use structural::Structural;
pub use types::Types;
