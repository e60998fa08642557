//! The lines of an export, read and checked: a header, records in ascending order, a trailer.

use std::io::{self, BufRead, BufReader, Read};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{FORMAT, Summary};
use crate::{Identity, Key, Record, Revision};

/// How far above the highest resourceVersion of its stream an import starts, besides the time: what
/// is left where the clock has no sensible time.
const RESOURCE_VERSION_GAP: u64 = 1_000_000_000;

/// The highest resourceVersion and revision that are taken: far from where sums overflow.
const HIGHEST: u64 = 1 << 62;

/// The largest value that is taken: what etcd ever took in one request.
const MAX_VALUE_BYTES: usize = 1_572_864;

/// The longest line: a value of the largest size, with every byte escaped as six, and its key.
const LINE_BYTES: u64 = 7 * MAX_VALUE_BYTES as u64;

/// Why a stream can't be read.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
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
}

/// An export that is being read.
pub(crate) struct Stream<R> {
    lines: Lines<R>,
    header: Header,
    last: Option<Key>,
    count: u64,
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

// === impl Stream ===

impl<R: Read> Stream<R> {
    /// Reads the header.
    pub(crate) fn open(input: R) -> Result<Self, StreamError> {
        let (input, hash) = (BufReader::new(input), Sha256::new());
        let mut lines = Lines { input, hash, line: Vec::new(), number: 0 };
        let header = header(&mut lines)?;
        Ok(Self { lines, header, last: None, count: 0 })
    }

    /// The revision at which the records were read.
    pub(crate) fn revision(&self) -> Revision {
        Revision(self.header.revision)
    }

    /// Who the store is that takes the records, at `now` (since the Unix epoch): its
    /// resourceVersions begin above anything that the source, or an earlier import of the same
    /// stream, can have served.
    ///
    /// The microseconds of `now` are added to the highest one of the stream. No server commits a
    /// million times a second, so neither the source nor an earlier import comes so far; and no two
    /// imports begin alike, so that the number tells them apart ([`Identity::rv_base`]). A thousand
    /// imports after each other leave room for as many more.
    pub(crate) fn identity(&self, now: Duration) -> Identity {
        let now = u64::try_from(now.as_micros()).unwrap_or(HIGHEST).min(HIGHEST);
        let rv_base = self.header.resource_version + RESOURCE_VERSION_GAP + now;
        Identity { hub_uid: self.header.hub_uid.clone(), rv_base }
    }

    /// The next record; `None` when the trailer has come and says that all was as it was written.
    pub(crate) fn next_record(&mut self) -> Result<Option<Record>, StreamError> {
        let hash = self.lines.hash.clone();
        if !self.lines.advance()? {
            return Err(StreamError::Truncated);
        }
        let line = self.lines.parse::<Line>()?;
        if line.key.is_none() && line.records.is_some() {
            end(&mut self.lines, &line, self.count, hash)?;
            return Ok(None);
        }
        let record = record(&self.lines, line, self.revision())?;
        if self.last.as_ref().is_some_and(|last| *last >= record.key) {
            return Err(self.lines.malformed("keys are not in ascending order"));
        }
        self.last = Some(record.key.clone());
        self.count += 1;
        Ok(Some(record))
    }

    /// What was read.
    pub(crate) fn summary(self) -> Summary {
        let (records, revision) = (self.count, self.revision());
        let Header { hub_uid, resource_version, .. } = self.header;
        Summary { records, revision, hub_uid, resource_version }
    }
}

fn header(lines: &mut Lines<impl Read>) -> Result<Header, StreamError> {
    if !lines.advance()? {
        return Err(StreamError::Truncated);
    }
    let header = lines.parse::<Header>()?;
    if header.format != FORMAT {
        return Err(StreamError::Format { found: header.format });
    }
    if Uuid::parse_str(&header.hub_uid).is_err() {
        return Err(lines.malformed("hub_uid is not a UUID"));
    }
    if header.revision > header.resource_version || header.resource_version > HIGHEST {
        return Err(lines.malformed("revision and resource_version are out of range"));
    }
    Ok(header)
}

fn record(lines: &Lines<impl Read>, line: Line, newest: Revision) -> Result<Record, StreamError> {
    let key = line.key.and_then(Key::parse);
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
    if value.len() > MAX_VALUE_BYTES {
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
) -> Result<(), StreamError> {
    if trailer.records != Some(count) {
        return Err(StreamError::Changed("number of records"));
    }
    if trailer.sha256 != Some(format!("{:x}", hash.finalize())) {
        return Err(StreamError::Changed("hash"));
    }
    if lines.advance()? {
        return Err(lines.malformed("it stands behind the trailer"));
    }
    Ok(())
}

// === impl Lines ===

impl<R: Read> Lines<R> {
    /// Reads the next line; `false` at the end of the stream.
    fn advance(&mut self) -> Result<bool, StreamError> {
        self.line.clear();
        self.number += 1;
        let mut bounded = (&mut self.input).take(LINE_BYTES);
        bounded.read_until(b'\n', &mut self.line).map_err(StreamError::Read)?;
        if self.line.is_empty() {
            return Ok(false);
        }
        if self.line.last() != Some(&b'\n') {
            let too_long = self.line.len() as u64 >= LINE_BYTES;
            return Err(if too_long {
                self.malformed("it is too long")
            } else {
                StreamError::Truncated
            });
        }
        self.hash.update(&self.line);
        Ok(true)
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, StreamError> {
        // The message may quote a secret's content: only its place is told.
        serde_json::from_slice(&self.line).map_err(|error| {
            self.malformed(&format!("no line of an export at column {}", error.column()))
        })
    }

    fn malformed(&self, problem: &str) -> StreamError {
        StreamError::Malformed { line: self.number, problem: problem.to_owned() }
    }
}
