//! The one generic registry: create, get, list, watch, update, patch and delete for every resource.
//!
//! Kinds differ by data ([`schema::resource::ResourceDef`]) and by [`strategy`] traits, never by a
//! handler of their own. The registry knows the store and the catalog, and nothing of HTTP.

mod answer;
mod error;
mod request;

pub use answer::{Deleted, EventKind, List, View, Watch, WatchItem, Written};
pub use error::{Cause, Details, Error, Reason};
pub use request::{
    Body, ClusterScope, Context, DeleteOptions, FieldValidation, ListOptions, Media, PatchType,
    Propagation, Target, VersionMatch, WriteOptions,
};
