//! Reading a stream into a new store file.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use redb::Database;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{FORMAT, Summary};
use crate::embedded::format::{self, RawRecord};
use crate::embedded::open::{self, Birth};
use crate::embedded::parts::Parts;
use crate::{Identity, Key, MAX_COMMIT_BYTES, OpenError, Record, Revision};

/// How far above the source's highest resourceVersion an import starts. The source may have gone on
/// after it was exported, so that its clients know higher ones than the stream does; at ten
/// thousand writes a second it would take three years to use this up.
const RESOURCE_VERSION_GAP: u64 = 1_000_000_000_000;

/// The highest resourceVersion and revision that are taken: far from where sums overflow.
const HIGHEST: u64 = 1 << 62;

/// The longest line: a value of the largest size, with every byte escaped as six, and its key.
const LINE_BYTES: u64 = 7 * MAX_COMMIT_BYTES as u64;

/// The bytes of values that one transaction writes.
const CHUNK_BYTES: usize = 4 << 20;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// There is something at the target already.
    #[error("target exists")]
    Exists,
    /// The stream ends before its trailer.
    #[error("stream is cut short")]
    Truncated,
    /// The stream is of another version, or not an export at all.
    #[error("stream has format {found:?}, this program reads {FORMAT:?}")]
    Format {
        /// The format that its header gives.
        found: String,
    },
    /// A line does not say what it must.
    #[error("line {line}: {problem}")]
    Malformed {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
    },
    /// The trailer's number or hash is not that of the stream.
    #[error("stream was changed: its {0} differs")]
    Changed(&'static str),
    /// The stream could not be read.
    #[error("read the stream")]
    Read(#[source] io::Error),
    /// The file could not be made.
    #[error(transparent)]
    Open(#[from] OpenError),
}

#[derive(Deserialize)]
struct Header {
    format: String,
    #[serde(default)]
    hub_uid: String,
    #[serde(default)]
    revision: u64,
    #[serde(default)]
    resource_version: u64,
}

/// A record or the trailer.
#[derive(Deserialize)]
struct Line {
    key: Option<String>,
    revision: Option<u64>,
    created: Option<u64>,
    value: Option<String>,
    base64: Option<String>,
    records: Option<u64>,
    sha256: Option<String>,
}

/// The lines of a stream.
struct Lines<R> {
    input: BufReader<R>,
    hash: Sha256,
    line: Vec<u8>,
    number: u64,
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
    let mut lines =
        Lines { input: BufReader::new(input), hash: Sha256::new(), line: Vec::new(), number: 0 };
    let header = header(&mut lines)?;
    let rv_base = header.resource_version + RESOURCE_VERSION_GAP;
    let identity = Identity { hub_uid: header.hub_uid.clone(), rv_base };
    let revision = Revision(header.revision);
    let mut records = 0;
    let made = open::make(path, &Birth { identity, revision }, |database| {
        records = fill(database, &mut lines, revision)?;
        Ok::<_, ImportError>(())
    })?;
    if !made {
        return Err(ImportError::Exists);
    }
    let Header { hub_uid, resource_version, .. } = header;
    Ok(Summary { records, revision, hub_uid, resource_version })
}

fn header(lines: &mut Lines<impl Read>) -> Result<Header, ImportError> {
    if !lines.advance()? {
        return Err(ImportError::Truncated);
    }
    let header = lines.parse::<Header>()?;
    if header.format != FORMAT {
        return Err(ImportError::Format { found: header.format });
    }
    if Uuid::parse_str(&header.hub_uid).is_err() {
        return Err(lines.malformed("hub_uid is not a UUID"));
    }
    if header.revision > header.resource_version || header.resource_version > HIGHEST {
        return Err(lines.malformed("revision and resource_version are out of range"));
    }
    Ok(header)
}

fn fill(
    database: &Database,
    lines: &mut Lines<impl Read>,
    newest: Revision,
) -> Result<u64, ImportError> {
    let mut count = 0;
    let mut last = None::<Key>;
    let mut buffer = Vec::new();
    loop {
        let write = database.begin_write().map_err(stored)?;
        let mut objects = write.open_table(format::OBJECTS).map_err(stored)?;
        let counts = write.open_table(format::PART_COUNTS).map_err(stored)?;
        let mut parts = Parts::new(write.open_table(format::PARTS).map_err(stored)?, counts);
        let mut bytes = 0;
        let trailer = loop {
            if bytes >= CHUNK_BYTES {
                break None;
            }
            let hash = lines.hash.clone();
            if !lines.advance()? {
                return Err(ImportError::Truncated);
            }
            let line = lines.parse::<Line>()?;
            if line.key.is_none() && line.records.is_some() {
                break Some((line, hash));
            }
            let Record { key, value, revision, created } = record(lines, line, newest)?;
            if last.as_ref().is_some_and(|last| *last >= key) {
                return Err(lines.malformed("keys are not in ascending order"));
            }
            bytes += value.len();
            let form = parts.store(&key, &value, 1).map_err(stored)?;
            RawRecord { revision, created, value: form.raw() }.encode(&mut buffer);
            objects.insert(key.as_bytes().as_ref(), buffer.as_slice()).map_err(stored)?;
            last = Some(key);
            count += 1;
        };
        drop(objects);
        parts.settle().map_err(stored)?;
        write.commit().map_err(stored)?;
        if let Some((trailer, hash)) = trailer {
            end(lines, &trailer, count, hash)?;
            return Ok(count);
        }
    }
}

fn record(lines: &Lines<impl Read>, line: Line, newest: Revision) -> Result<Record, ImportError> {
    let key = line.key.and_then(|key| Key::parse(Bytes::from(key)));
    let key = key.ok_or_else(|| lines.malformed("it has no valid key"))?;
    let revision = line.revision.filter(|revision| (1..=newest.0).contains(revision));
    let revision = revision.ok_or_else(|| lines.malformed("its revision is not of the stream"))?;
    let created = line.created.filter(|created| (1..=revision).contains(created));
    let created =
        created.ok_or_else(|| lines.malformed("its creation is not between 1 and its revision"))?;
    let value = match (line.value, line.base64) {
        (Some(value), None) => value.into_bytes(),
        (None, Some(base64)) => {
            STANDARD.decode(base64).map_err(|_| lines.malformed("its base64 is invalid"))?
        }
        _ => return Err(lines.malformed("it must have one of value and base64")),
    };
    if value.len() > MAX_COMMIT_BYTES {
        return Err(lines.malformed("its value is too large"));
    }
    let (revision, created) = (Revision(revision), Revision(created));
    Ok(Record { key, value: value.into(), revision, created })
}

/// Compares the trailer with what was read.
fn end(
    lines: &mut Lines<impl Read>,
    trailer: &Line,
    count: u64,
    hash: Sha256,
) -> Result<(), ImportError> {
    if trailer.records != Some(count) {
        return Err(ImportError::Changed("number of records"));
    }
    if trailer.sha256 != Some(format!("{:x}", hash.finalize())) {
        return Err(ImportError::Changed("hash"));
    }
    if lines.advance()? {
        return Err(lines.malformed("it stands behind the trailer"));
    }
    Ok(())
}

// === impl Lines ===

impl<R: Read> Lines<R> {
    /// Reads the next line; `false` at the end of the stream.
    fn advance(&mut self) -> Result<bool, ImportError> {
        self.line.clear();
        self.number += 1;
        let mut bounded = (&mut self.input).take(LINE_BYTES);
        bounded.read_until(b'\n', &mut self.line).map_err(ImportError::Read)?;
        if self.line.is_empty() {
            return Ok(false);
        }
        if self.line.last() != Some(&b'\n') {
            let too_long = self.line.len() as u64 >= LINE_BYTES;
            return Err(if too_long {
                self.malformed("it is too long")
            } else {
                ImportError::Truncated
            });
        }
        self.hash.update(&self.line);
        Ok(true)
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, ImportError> {
        // The message may quote a secret's content: only its place is told.
        serde_json::from_slice(&self.line).map_err(|error| {
            self.malformed(&format!("no line of an export at column {}", error.column()))
        })
    }

    fn malformed(&self, problem: &str) -> ImportError {
        ImportError::Malformed { line: self.number, problem: problem.to_owned() }
    }
}

fn stored(error: impl Into<redb::Error>) -> OpenError {
    error.into().into()
}
