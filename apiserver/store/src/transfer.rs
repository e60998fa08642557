//! Moving a store: the export stream, importing it into a new file, and shrinking a file.
//!
//! # The stream
//! UTF-8 lines of JSON, each ended by a line feed, whatever backend it came from:
//! 1. A header: `{"format":"kcp-store/1","hub_uid":…,"revision":…,"resource_version":…}`. All records
//!    are as they were at `revision`; `resource_version` is the highest that the source had served.
//! 2. A line for each record, in ascending byte order of keys: `{"key":…,"revision":…,"created":…,
//!    "value":…}`, or `"base64"` in place of `"value"` for a value that is not UTF-8. `revision` wrote
//!    the value, `created` is the record's creation.
//! 3. A trailer: `{"records":…,"sha256":…}`, the number of records and the hash, in hexadecimal, of
//!    all bytes before the trailer's line. A stream without it is cut short, and refused.
//!
//! History is not exported. Values are as stored, secrets included: who writes a stream to a file
//! sees to its permissions.

mod export;
mod import;
pub(crate) mod stream;

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::embedded::open;
use crate::{OpenError, Revision};

pub use self::export::{ExportError, export};
pub use self::import::{ImportError, import};
pub use self::stream::StreamError;

/// The format that [`export`] writes and [`import`] reads.
const FORMAT: &str = "kcp-store/1";

/// What was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How many records.
    pub records: u64,
    /// The revision at which they were read.
    pub revision: Revision,
    /// The hub that they belong to.
    pub hub_uid: String,
    /// The highest resourceVersion that the source had served.
    pub resource_version: u64,
}

/// Bytes of a file before and after it was shrunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
}

/// Moves what a store's file holds together and cuts the free rest off. The file must not be open.
///
/// Blocks for about as long as reading and writing the file takes.
///
/// # Errors
/// As opening it; [`OpenError::Io`] with `NotFound` when there is no store.
pub fn compact_file(path: &Path) -> Result<Shrunk, OpenError> {
    let found = open::file(path)?;
    let (backend, file) =
        found.ok_or_else(|| OpenError::Io(std::io::ErrorKind::NotFound.into()))?;
    let length = || file.metadata().map(|metadata| metadata.len()).map_err(OpenError::Io);
    let before = length()?;
    let mut database = open::open(backend, open::MAKING_CACHE)?.database;
    // Each round moves pages from the end towards the start, until none can be.
    while database.compact().map_err(redb::Error::from)? {}
    database.close()?;
    Ok(Shrunk { before, after: length()? })
}

/// The time since the Unix epoch.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests;
