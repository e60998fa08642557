//! Reading a stream into a new store file.

use std::io::Read;
use std::path::Path;

use redb::Database;

use super::stream::{Stream, StreamError};
use super::{Summary, now};
use crate::OpenError;
use crate::embedded::format::{self, RawRecord};
use crate::embedded::open::{self, Birth};
use crate::embedded::parts::Parts;

/// The bytes of values that one transaction writes.
const CHUNK_BYTES: usize = 4 << 20;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// There is something at the target already.
    #[error("target exists")]
    Exists,
    /// The stream is not a whole export.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The file could not be made.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Reads a stream into a new store at `path`, whole or not at all.
///
/// The store keeps the hub's UID and the records' revisions; its resourceVersions begin above
/// anything that the source can have served. Blocks while it works.
///
/// # Errors
/// As [`ImportError`] says; nothing is left at `path` then.
pub fn import(path: &Path, input: impl Read) -> Result<Summary, ImportError> {
    if path.try_exists().map_err(OpenError::Io)? {
        return Err(ImportError::Exists);
    }
    let mut stream = Stream::open(input)?;
    let birth = Birth { identity: stream.identity(now()), revision: stream.revision() };
    let made = open::make(path, &birth, |database| fill(database, &mut stream))?;
    if !made {
        return Err(ImportError::Exists);
    }
    Ok(stream.summary())
}

fn fill(database: &Database, stream: &mut Stream<impl Read>) -> Result<(), ImportError> {
    let mut buffer = Vec::new();
    let mut more = true;
    while more {
        let write = database.begin_write().map_err(stored)?;
        let mut objects = write.open_table(format::OBJECTS).map_err(stored)?;
        let counts = write.open_table(format::PART_COUNTS).map_err(stored)?;
        let mut parts = Parts::new(write.open_table(format::PARTS).map_err(stored)?, counts);
        let mut bytes = 0;
        while more && bytes < CHUNK_BYTES {
            let Some(record) = stream.next_record()? else {
                more = false;
                break;
            };
            bytes += record.value.len();
            let form = parts.store(&record.key, &record.value, 1).map_err(stored)?;
            let (revision, created) = (record.revision, record.created);
            RawRecord { revision, created, value: form.raw() }.encode(&mut buffer);
            objects.insert(record.key.as_bytes(), buffer.as_slice()).map_err(stored)?;
        }
        drop(objects);
        parts.settle().map_err(stored)?;
        write.commit().map_err(stored)?;
    }
    Ok(())
}

fn stored(error: impl Into<redb::Error>) -> OpenError {
    error.into().into()
}
