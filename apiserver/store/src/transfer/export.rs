//! Writing a store as a stream.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{FORMAT, Summary};
use crate::{KeyPrefix, Range, ReadError, Record, Store};

/// How many records are read at once: with values of 1 KB a megabyte, with the largest that a store
/// takes 100 MB.
const PAGE: usize = 64;

/// Why an export ended.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The store could not be read; [`ReadError::Compacted`] when the export took longer than the
    /// store keeps history.
    #[error("read the store")]
    Read(#[source] ReadError),
    /// The stream could not be written.
    #[error("write the stream")]
    Write(#[source] io::Error),
}

#[derive(Serialize)]
struct Header<'a> {
    format: &'a str,
    hub_uid: &'a str,
    revision: u64,
    resource_version: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    key: &'a str,
    revision: u64,
    created: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

#[derive(Serialize)]
struct Trailer {
    records: u64,
    sha256: String,
}

/// A writer that knows the hash of what went through it.
struct Hashed<W> {
    out: W,
    hash: Sha256,
    line: Vec<u8>,
}

/// Writes all records of a store, as they are at one revision, to `out`.
///
/// # Errors
/// As [`ExportError`] says; what was written until then has no trailer, so [`import`] refuses it.
///
/// [`import`]: super::import
pub async fn export(store: &dyn Store, out: impl Write) -> Result<Summary, ExportError> {
    let revision = store.revision().await.map_err(ExportError::Read)?;
    let identity = store.identity();
    let resource_version = revision.0.saturating_add(identity.rv_base);
    let mut out = Hashed { out, hash: Sha256::new(), line: Vec::new() };
    let hub_uid = identity.hub_uid.as_str();
    out.line(&Header { format: FORMAT, hub_uid, revision: revision.0, resource_version })?;
    let mut records = 0_u64;
    let mut after = None;
    loop {
        let range = Range { prefix: KeyPrefix::everything(), after, limit: PAGE };
        let page = store.range(range, Some(revision)).await.map_err(ExportError::Read)?;
        for record in &page.records {
            out.line(&line(record))?;
            records += 1;
        }
        if !page.more {
            break;
        }
        after = page.records.last().map(|record| record.key.clone());
    }
    let sha256 = format!("{:x}", out.hash.clone().finalize());
    out.line(&Trailer { records, sha256 })?;
    out.out.flush().map_err(ExportError::Write)?;
    Ok(Summary { records, revision, hub_uid: hub_uid.to_owned(), resource_version })
}

fn line(record: &Record) -> Line<'_> {
    let value = std::str::from_utf8(&record.value).ok();
    let base64 = value.is_none().then(|| STANDARD.encode(&record.value));
    let (revision, created) = (record.revision.0, record.created.0);
    Line { key: record.key.as_str(), revision, created, value, base64 }
}

// === impl Hashed ===

impl<W: Write> Hashed<W> {
    fn line(&mut self, line: &impl Serialize) -> Result<(), ExportError> {
        self.line.clear();
        let json = serde_json::to_writer(&mut self.line, line);
        json.map_err(|error| ExportError::Write(error.into()))?;
        self.line.push(b'\n');
        self.hash.update(&self.line);
        self.out.write_all(&self.line).map_err(ExportError::Write)
    }
}
