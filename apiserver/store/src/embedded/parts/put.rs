//! One change on its way into the file: into the present records, and into the log.

use redb::{StorageError, Table};

use super::{Form, Parts};
use crate::Change;
use crate::embedded::format::{self, RawChange, RawRecord, RawValue};

/// The values of a change as they were written, and as they had been.
#[derive(Debug)]
pub(in crate::embedded) struct Written<'c> {
    value: Option<Form<'c>>,
    /// Of a record that was parted.
    previous: Option<Vec<u8>>,
}

/// Writes a change to the present records. The log will refer to the parts of its values, too.
pub(in crate::embedded) fn put<'c>(
    objects: &mut Table<'_, &'static [u8], &'static [u8]>,
    parts: &mut Parts<'_>,
    buffer: &mut Vec<u8>,
    change: &'c Change,
) -> Result<Written<'c>, StorageError> {
    let key = change.key.as_bytes();
    let value = match &change.value {
        Some(value) => Some(parts.store(&change.key, value, 2)?),
        None => None,
    };
    let replaced = match &value {
        Some(form) => {
            let (revision, created) = (change.revision, change.created());
            RawRecord { revision, created, value: form.raw() }.encode(buffer);
            objects.insert(key, buffer.as_slice())?
        }
        None => objects.remove(key)?,
    };
    // What the record referred to, the log refers to now: the count stays.
    let parted = |record: RawRecord<'_>| record.value.parted.then(|| record.value.bytes.to_vec());
    let previous =
        replaced.and_then(|bytes| RawRecord::decode(bytes.value()).ok().and_then(parted));
    Ok(Written { value, previous })
}

/// Takes what a log entry refers to off the counts. One that can't be read refers to nothing.
pub(in crate::embedded) fn forget(parts: &mut Parts<'_>, entry: &[u8]) {
    let Ok(entry) = format::Entry::decode(entry) else { return };
    for change in entry.changes() {
        let Ok(change) = change else { return };
        parts.forget(&change);
    }
}

// === impl Written ===

impl Written<'_> {
    /// The change as the log holds it.
    pub(in crate::embedded) fn logged<'w>(&'w self, change: &'w Change) -> RawChange<'w> {
        let previous = change.previous.as_ref().map(|record| RawRecord {
            revision: record.revision,
            created: record.created,
            value: match &self.previous {
                Some(bytes) => RawValue { bytes, parted: true },
                None => RawValue::plain(&record.value),
            },
        });
        let value = self.value.as_ref().map(Form::raw);
        RawChange { key: change.key.as_bytes(), value, previous }
    }
}
