//! The forms that objects take on the wire.
//!
//! Objects are JSON already: one object is sent as it is held, a list is joined while it is sent,
//! a watch event is framed once for all its watchers. Only tables and protobuf parse a body.

mod checksum;
mod gzip;
mod list;
mod metadata;
mod object;
mod packed;
mod protobuf;
mod table;
#[cfg(test)]
mod tests;
mod watch;

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use machinery::GroupVersion;
use schema::ResourceDef;

use super::negotiate::{Accepted, Encoding, JSON, PROTOBUF, YAML};

pub(crate) use list::list;
pub(crate) use object::object;
pub(crate) use protobuf::decode_options;
pub(crate) use table::Include;
pub(crate) use watch::{Open, watch};

/// What an answer is made for.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    /// The form that the client takes.
    pub(crate) accepted: Accepted,
    /// The resource.
    pub(crate) resource: Arc<ResourceDef>,
    /// The version of the URL.
    pub(crate) version: Arc<str>,
    /// What the rows of a table say of their objects.
    pub(crate) include: Include,
    /// The request's time, which ages in tables are counted from.
    pub(crate) now: Timestamp,
    /// Whether items of lists say what they are: those of custom resources do.
    pub(crate) kinds: bool,
    /// Whether a large answer may be compressed.
    pub(crate) gzip: bool,
}

// === impl Form ===

impl Form {
    /// The group and version of the URL.
    fn group_version(&self) -> GroupVersion {
        GroupVersion { group: self.resource.group.clone(), version: self.version.clone() }
    }
}

/// A whole JSON document in an encoding, with its media type.
///
/// JSON is YAML as it stands. What protobuf cannot say stays JSON.
pub(crate) fn whole(json: Bytes, encoding: Encoding) -> (Bytes, &'static str) {
    match encoding {
        Encoding::Json => (json, JSON),
        Encoding::Yaml => (json, YAML),
        Encoding::Protobuf => match protobuf::document(&json) {
            Some(bytes) => (bytes, PROTOBUF),
            None => (json, JSON),
        },
    }
}
