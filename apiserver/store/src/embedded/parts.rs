//! Large parts of values that many records have in common: stored once, and counted.
//!
//! A CRD is mostly its schemas, and a thousand logical clusters have the same ones. Of such a value the
//! records and the log hold what comes before and after its `spec`, and the hash of that, under which
//! it stands in a table of its own.
//!
//! # Invariants
//! - The count of a part is the number of values, in present records and in the log, that refer to it;
//!   parts and counts change in the transaction that changes the values.
//! - What does not add up is kept: a part goes only when its count comes to exactly nothing.

pub(super) mod put;

use std::collections::HashMap;

use redb::{ReadableTable, ReadableTableMetadata, StorageError, Table};
use sha2::{Digest, Sha256};

use super::format::{Hash, PartedValue, RawChange, RawValue};
use crate::object::shared_part;
use crate::{Key, ReadError};

/// The tables of parts in a transaction that writes, and what it changes of the counts.
pub(crate) struct Parts<'t> {
    parts: Table<'t, &'static [u8], &'static [u8]>,
    counts: Table<'t, &'static [u8], &'static [u8]>,
    changes: HashMap<Hash, i64>,
    /// Whether a part was added that was not there.
    pub(crate) added: bool,
}

/// A value in the form in which records and the log hold it.
#[derive(Debug)]
pub(crate) enum Form<'v> {
    /// As it is.
    Whole(&'v [u8]),
    /// Without its part, which is stored under the hash.
    Parted(Vec<u8>),
}

// === impl Form ===

impl Form<'_> {
    pub(crate) fn raw(&self) -> RawValue<'_> {
        match self {
            Self::Whole(bytes) => RawValue { bytes, parted: false },
            Self::Parted(bytes) => RawValue { bytes, parted: true },
        }
    }
}

// === impl Parts ===

impl<'t> Parts<'t> {
    pub(crate) fn new(
        parts: Table<'t, &'static [u8], &'static [u8]>,
        counts: Table<'t, &'static [u8], &'static [u8]>,
    ) -> Self {
        Self { parts, counts, changes: HashMap::new(), added: false }
    }

    /// The table that readers find parts in.
    pub(crate) fn table(&self) -> &Table<'t, &'static [u8], &'static [u8]> {
        &self.parts
    }

    /// Whether any value refers to a part.
    pub(crate) fn is_empty(&self) -> Result<bool, StorageError> {
        Ok(self.parts.is_empty()? && self.changes.is_empty())
    }

    /// The form of a value, whose part is stored if it has one. `references` to it are counted.
    pub(crate) fn store<'v>(
        &mut self,
        key: &Key,
        value: &'v [u8],
        references: i64,
    ) -> Result<Form<'v>, StorageError> {
        let Some(range) = shared_part(key, value) else { return Ok(Form::Whole(value)) };
        let (Some(head), Some(part), Some(tail)) =
            (value.get(..range.start), value.get(range.clone()), value.get(range.end..))
        else {
            return Ok(Form::Whole(value));
        };
        let hash: Hash = Sha256::digest(part).into();
        if self.parts.get(hash.as_slice())?.is_none() {
            self.parts.insert(hash.as_slice(), part)?;
            self.added = true;
        }
        self.count(hash, references);
        Ok(Form::Parted(PartedValue { hash, head, tail }.encode()))
    }

    /// Counts references that come and go.
    pub(crate) fn count(&mut self, hash: Hash, references: i64) {
        *self.changes.entry(hash).or_default() += references;
    }

    /// A value of a record or of the log is gone, or counted once more.
    pub(crate) fn count_value(&mut self, value: RawValue<'_>, references: i64) {
        // What can't be read refers to nothing that could be told.
        if let Ok(Some(parted)) = value.parted() {
            self.count(parted.hash, references);
        }
    }

    /// A change goes out of the log.
    pub(crate) fn forget(&mut self, change: &RawChange<'_>) {
        change.value.into_iter().for_each(|value| self.count_value(value, -1));
        change.previous.into_iter().for_each(|previous| self.count_value(previous.value, -1));
    }

    /// Writes the counts, and removes the parts that nothing refers to any more.
    pub(crate) fn settle(mut self) -> Result<(), StorageError> {
        for (hash, change) in std::mem::take(&mut self.changes) {
            if change == 0 {
                continue;
            }
            let hash = hash.as_slice();
            let count = self.counts.get(hash)?;
            let count = count.and_then(|count| count.value().try_into().ok());
            let count = count.map_or(0, u64::from_be_bytes);
            match count.checked_add_signed(change) {
                Some(0) => {
                    self.counts.remove(hash)?;
                    self.parts.remove(hash)?;
                }
                Some(count) => {
                    self.counts.insert(hash, count.to_be_bytes().as_slice())?;
                }
                None => tracing::error!(count, change, "the references to a part do not add up"),
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Parts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("changes", &self.changes.len()).finish_non_exhaustive()
    }
}

/// Puts a value together again. A file in which nothing was ever parted has no table of parts.
///
/// # Errors
/// When its part is not there, or can't be read.
pub(crate) fn whole(
    value: RawValue<'_>,
    parts: Option<&impl ReadableTable<&'static [u8], &'static [u8]>>,
) -> Result<bytes::Bytes, ReadError> {
    let corrupt = |why: &str| ReadError::Corrupt(why.to_owned());
    let parted = value.parted().map_err(|error| corrupt(&error.to_string()))?;
    let Some(PartedValue { hash, head, tail }) = parted else {
        return Ok(bytes::Bytes::copy_from_slice(value.bytes));
    };
    let part = match parts {
        Some(parts) => parts.get(hash.as_slice()).map_err(super::snapshot::storage)?,
        None => None,
    };
    let part = part.ok_or_else(|| corrupt("a part of a value is missing"))?;
    Ok([head, part.value(), tail].concat().into())
}
