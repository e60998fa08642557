//! Reading the file: one revision of it, unmoved by what the writer does meanwhile.
//!
//! Everything here blocks on the disk and is called off the async executor.

use std::ops::Bound;

use bytes::Bytes;
use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTable};

use super::format::{self, Entry, Malformed, RawChange, RawRecord, RawValue};
use super::parts::whole;
use crate::history::{History, MESSAGE_BYTES, MESSAGE_CHANGES};
use crate::undo::Undo;
use crate::{Change, Key, Page, Range, ReadError, Record, Revision};

/// The store as one commit left it.
pub(crate) struct Snapshot {
    objects: ReadOnlyTable<&'static [u8], &'static [u8]>,
    log: ReadOnlyTable<u64, &'static [u8]>,
    /// Not in files that were made before there were parts, until they have one.
    parts: Option<ReadOnlyTable<&'static [u8], &'static [u8]>>,
    /// The last commit that is in it.
    pub(crate) revision: Revision,
    /// The oldest revision whose state can be read.
    pub(crate) oldest: Revision,
}

// === impl Snapshot ===

impl Snapshot {
    /// The state after the last commit, which was `revision`.
    pub(crate) fn new(
        database: &Database,
        revision: Revision,
        oldest: Revision,
    ) -> Result<Self, redb::Error> {
        let read = database.begin_read()?;
        let objects = read.open_table(format::OBJECTS)?;
        let log = read.open_table(format::LOG)?;
        let parts = match read.open_table(format::PARTS) {
            Ok(parts) => Some(parts),
            Err(redb::TableError::TableDoesNotExist(_)) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { objects, log, parts, revision, oldest })
    }

    fn whole(&self, value: RawValue<'_>) -> Result<Bytes, ReadError> {
        whole(value, self.parts.as_ref())
    }

    /// Whether the state at `revision` and the changes after it can be read.
    pub(crate) fn readable(&self, revision: Revision) -> Result<(), ReadError> {
        if revision < self.oldest {
            return Err(ReadError::Compacted { oldest: self.oldest });
        }
        if revision > self.revision {
            return Err(ReadError::Future { current: self.revision });
        }
        Ok(())
    }

    /// The present record of `key`.
    pub(crate) fn get(&self, key: &Key) -> Result<Option<Record>, ReadError> {
        find(&self.objects, self.parts.as_ref(), key)
    }

    /// Records of `range` at `at`, or now.
    pub(crate) fn range(
        &self,
        range: Range,
        at: Option<Revision>,
        history: &History,
    ) -> Result<Page, ReadError> {
        let at = at.unwrap_or(self.revision);
        self.readable(at)?;
        let limit = range.limit;
        if at == self.revision {
            let mut page = Page { revision: at, ..Page::default() };
            for record in self.records(&range)? {
                if !page.push(record?, limit) {
                    break;
                }
            }
            return Ok(page);
        }
        let records = self.records(&range)?;
        let mut undo = Undo::new(range, at);
        let from = history.visit(at, self.revision, |change| {
            let Some(previous) = &change.previous else { return };
            if undo.wants(change.key.as_bytes(), previous.revision) {
                undo.replaced(previous.clone());
            }
        });
        self.visit_log(at, from, |raw, _| {
            let Some(previous) = raw.previous else { return Ok(()) };
            if undo.wants(raw.key, previous.revision)
                && let Some(key) = Key::parse(raw.key)
            {
                undo.replaced(previous.to_record(key, |value| self.whole(value))?);
            }
            Ok(())
        })?;
        undo.page(records)
    }

    /// The changes after `after`, as many whole commits as fit a message, and the revision that
    /// they reach up to.
    pub(crate) fn changes(&self, after: Revision) -> Result<(Vec<Change>, Revision), ReadError> {
        self.readable(after)?;
        let mut changes = Vec::new();
        let mut bytes = 0;
        let mut reached = after;
        for entry in self.log.range(after.next().0..).map_err(storage)? {
            let (revision, entry) = entry.map_err(storage)?;
            let full =
                changes.len() >= MESSAGE_CHANGES || bytes + entry.value().len() > MESSAGE_BYTES;
            if full && !changes.is_empty() {
                break;
            }
            bytes += entry.value().len();
            reached = Revision(revision.value());
            for raw in Entry::decode(entry.value()).map_err(malformed)?.changes() {
                let raw = raw.map_err(malformed)?;
                changes.extend(raw.to_change(reached, |value| self.whole(value))?);
            }
        }
        Ok((changes, reached))
    }

    /// When the commit `revision` was made, in milliseconds since 1970, if the log has it.
    pub(crate) fn time(&self, revision: Revision) -> Result<Option<u64>, ReadError> {
        let entry = self.log.get(revision.0).map_err(storage)?;
        entry.map(|entry| Ok(Entry::decode(entry.value()).map_err(malformed)?.time)).transpose()
    }

    fn visit_log(
        &self,
        after: Revision,
        until: Revision,
        mut visit: impl FnMut(RawChange<'_>, Revision) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        if after >= until {
            return Ok(());
        }
        for entry in self.log.range(after.next().0..=until.0).map_err(storage)? {
            let (revision, entry) = entry.map_err(storage)?;
            for raw in Entry::decode(entry.value()).map_err(malformed)?.changes() {
                visit(raw.map_err(malformed)?, Revision(revision.value()))?;
            }
        }
        Ok(())
    }

    /// The present records of a range, in key order. Keys of a form that only a later version knows
    /// are left out.
    fn records(
        &self,
        range: &Range,
    ) -> Result<impl Iterator<Item = Result<Record, ReadError>> + use<'_>, ReadError> {
        let prefix = range.prefix.clone();
        // `after` may stand before or after the prefix: the later of the two starts the range.
        let after = range.after.as_ref().filter(|after| after.as_bytes() >= prefix.as_bytes());
        let start = match after {
            Some(after) => Bound::Excluded(after.as_bytes()),
            None => Bound::Included(prefix.as_bytes()),
        };
        let records = self.objects.range::<&[u8]>((start, Bound::Unbounded)).map_err(storage)?;
        let records = records.map_while(move |entry| match entry {
            Err(error) => Some(Err(storage(error))),
            Ok((key, value)) if key.value().starts_with(prefix.as_bytes()) => {
                let key = Key::parse(key.value());
                let record = |key| record(key, value.value(), self.parts.as_ref());
                Some(key.map(record).transpose())
            }
            Ok(_) => None,
        });
        Ok(records.filter_map(Result::transpose))
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("revision", &self.revision)
            .field("oldest", &self.oldest)
            .finish_non_exhaustive()
    }
}

/// The present record of `key` in the table of objects, as a reader or the writer sees it.
pub(crate) fn find(
    objects: &impl ReadableTable<&'static [u8], &'static [u8]>,
    parts: Option<&impl ReadableTable<&'static [u8], &'static [u8]>>,
    key: &Key,
) -> Result<Option<Record>, ReadError> {
    let found = objects.get(key.as_bytes()).map_err(storage)?;
    found.map(|bytes| record(key.clone(), bytes.value(), parts)).transpose()
}

fn record(
    key: Key,
    bytes: &[u8],
    parts: Option<&impl ReadableTable<&'static [u8], &'static [u8]>>,
) -> Result<Record, ReadError> {
    let raw = RawRecord::decode(bytes).map_err(malformed)?;
    raw.to_record(key, |value| whole(value, parts))
}

/// What redb reports when it cannot read.
pub(crate) fn storage(error: redb::StorageError) -> ReadError {
    match error {
        redb::StorageError::Corrupted(what) => ReadError::Corrupt(what),
        other => ReadError::Unavailable(other.into()),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err takes")]
fn malformed(error: Malformed) -> ReadError {
    ReadError::Corrupt(error.to_string())
}
