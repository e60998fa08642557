//! Equal schemas are one: a table of those in use, by content.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, LazyLock, Weak};

use machinery::FieldError;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Structural;
use crate::model::SchemaHash;

/// Schemas that somebody holds, and a few that nobody holds any more.
#[derive(Default)]
struct Table {
    known: HashMap<SchemaHash, Weak<Structural>>,
    /// The size at which entries of dropped schemas are thrown out.
    sweep_at: usize,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// Below this size the table is not swept: such an entry costs some 40 bytes.
const SMALL: usize = 64;

/// The identity of a schema's content. Maps are sorted in memory, so equal ones print equally.
pub(super) fn hash(schema: &Value) -> SchemaHash {
    let full = hash_of(&("structural", schema));
    let mut short = [0; 16];
    short.copy_from_slice(&full[..16]);
    SchemaHash(short)
}

/// The schema of that content, or the one that `make` makes.
///
/// Nothing is locked while it is made: two that are made at once become one afterwards.
pub(super) fn find_or(
    hash: SchemaHash,
    make: impl FnOnce() -> Result<Structural, Vec<FieldError>>,
) -> Result<Arc<Structural>, Vec<FieldError>> {
    if let Some(found) = TABLE.lock().find(hash) {
        return Ok(found);
    }
    let made = Arc::new(make()?);
    let mut table = TABLE.lock();
    if let Some(found) = table.find(hash) {
        return Ok(found);
    }
    table.sweep();
    table.known.insert(hash, Arc::downgrade(&made));
    Ok(made)
}

// === impl Table ===

impl Table {
    fn find(&self, hash: SchemaHash) -> Option<Arc<Structural>> {
        self.known.get(&hash).and_then(Weak::upgrade)
    }

    /// Each sweep is paid for by as many insertions as entries it keeps.
    fn sweep(&mut self) {
        if self.known.len() >= self.sweep_at.max(SMALL) {
            self.known.retain(|_, schema| schema.strong_count() > 0);
            self.sweep_at = self.known.len() * 2;
        }
    }
}

/// SHA-256 of a value's JSON.
pub(crate) fn hash_of(value: &impl Serialize) -> [u8; 32] {
    // JSON comes in very small pieces.
    let mut writer = io::BufWriter::with_capacity(4096, Hasher(Sha256::new()));
    serde_json::to_writer(&mut writer, value).expect("a hasher takes all bytes");
    let hasher = writer.into_inner().expect("a hasher takes all bytes");
    hasher.0.finalize().into()
}

/// Hashes what is written to it.
#[derive(Debug)]
struct Hasher(Sha256);

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
