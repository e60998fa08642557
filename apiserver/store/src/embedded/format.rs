//! The bytes on disk: tables, keys of `meta`, and the encoding of records and log entries.
//!
//! `FORMAT.md` describes what this file encodes; a change here is a change there.

use bytes::Bytes;
use redb::TableDefinition;

use crate::{Change, Key, Record, Revision};

/// A table from bytes to bytes.
pub(crate) type BytesTable = TableDefinition<'static, &'static [u8], &'static [u8]>;

/// What the store was made with and how it stands.
pub(crate) const META: BytesTable = TableDefinition::new("meta");
/// The present records by key.
pub(crate) const OBJECTS: BytesTable = TableDefinition::new("objects");
/// The changes of each commit by its revision.
pub(crate) const LOG: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new("log");

/// Parts of values by their hash.
pub(crate) const PARTS: BytesTable = TableDefinition::new("parts");
/// How many values refer to a part: eight bytes, big-endian, by its hash.
pub(crate) const PART_COUNTS: BytesTable = TableDefinition::new("part_counts");

/// `major.minor` as decimal text.
pub(crate) const META_FORMAT: &[u8] = b"format";
/// The hub's UID as text.
pub(crate) const META_HUB_UID: &[u8] = b"hub_uid";
/// Eight bytes, big-endian.
pub(crate) const META_RV_BASE: &[u8] = b"rv_base";
/// Eight bytes, big-endian: the oldest revision whose state can be read.
pub(crate) const META_OLDEST: &[u8] = b"oldest";

/// The major version that is read, and written into new stores.
pub(crate) const MAJOR: u32 = 1;
/// The minor version that is written into new stores.
pub(crate) const MINOR: u32 = 1;
/// The first minor version whose files have parts.
pub(crate) const WITH_PARTS: u32 = 1;

/// Revisions and flags before the value of a record.
const RECORD_HEAD: usize = 17;
/// Time and number of changes before the changes of a log entry.
const ENTRY_HEAD: usize = 12;

const HAS_VALUE: u8 = 1;
const HAS_PREVIOUS: u8 = 2;
const VALUE_PARTED: u8 = 4;
const PREVIOUS_PARTED: u8 = 8;

/// A flag of records.
const RECORD_PARTED: u8 = 1;

/// SHA-256.
pub(crate) type Hash = [u8; 32];

/// Bytes that cannot have been written by any version of this format.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(&'static str);

/// A log entry before anything is copied out of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// When it was committed, in milliseconds since 1970.
    pub(crate) time: u64,
    count: u32,
    changes: &'a [u8],
}

/// A record without its key, before anything is copied out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawRecord<'a> {
    pub(crate) revision: Revision,
    pub(crate) created: Revision,
    pub(crate) value: RawValue<'a>,
}

/// A value as it stands in a record or in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawValue<'a> {
    pub(crate) bytes: &'a [u8],
    /// Whether the bytes are those of a [`PartedValue`].
    pub(crate) parted: bool,
}

/// A value whose middle is stored elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartedValue<'a> {
    /// The hash of the part.
    pub(crate) hash: Hash,
    /// What stands before it.
    pub(crate) head: &'a [u8],
    /// What stands after it.
    pub(crate) tail: &'a [u8],
}

/// A change before anything is copied out of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawChange<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: Option<RawValue<'a>>,
    pub(crate) previous: Option<RawRecord<'a>>,
}

/// Writes a log entry's bytes over `out`.
pub(crate) fn encode_entry<'c>(
    out: &mut Vec<u8>,
    time: u64,
    changes: impl ExactSizeIterator<Item = RawChange<'c>>,
) {
    out.clear();
    out.extend_from_slice(&time.to_be_bytes());
    put_length(out, changes.len());
    for change in changes {
        let start = out.len();
        put_length(out, 0);
        out.push(change.flags());
        put_bytes(out, change.key);
        if let Some(previous) = &change.previous {
            out.extend_from_slice(&previous.revision.0.to_be_bytes());
            out.extend_from_slice(&previous.created.0.to_be_bytes());
        }
        if let Some(value) = &change.value {
            put_bytes(out, value.bytes);
        }
        if let Some(previous) = &change.previous {
            put_bytes(out, previous.value.bytes);
        }
        let length = u32::try_from(out.len() - start - 4).expect("a commit is bounded");
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

// === impl RawRecord ===

impl<'a> RawRecord<'a> {
    /// Writes the record's bytes over `out`.
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.revision.0.to_be_bytes());
        out.extend_from_slice(&self.created.0.to_be_bytes());
        out.push(if self.value.parted { RECORD_PARTED } else { 0 });
        out.extend_from_slice(self.value.bytes);
    }

    /// Reads a record's bytes. Other flags are for later minor versions, which may not change what
    /// the value means.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = bytes;
        let revision = Revision(take_u64(&mut rest)?);
        let created = Revision(take_u64(&mut rest)?);
        let flags = take(&mut rest, 1)?[0];
        let bytes = bytes.get(RECORD_HEAD..).ok_or(Malformed("record is cut short"))?;
        let value = RawValue { bytes, parted: flags & RECORD_PARTED != 0 };
        Ok(Self { revision, created, value })
    }

    /// Copies the record out, its value being put together by `whole`.
    ///
    /// The value gets memory of its own, so that who keeps it does not keep what it was read from.
    pub(crate) fn to_record<E>(
        self,
        key: Key,
        whole: impl FnOnce(RawValue<'a>) -> Result<Bytes, E>,
    ) -> Result<Record, E> {
        let Self { revision, created, value } = self;
        Ok(Record { key, value: whole(value)?, revision, created })
    }
}

// === impl RawValue ===

impl<'a> RawValue<'a> {
    /// A value as it is.
    pub(crate) fn plain(bytes: &'a [u8]) -> Self {
        Self { bytes, parted: false }
    }

    /// The pieces of a parted value.
    pub(crate) fn parted(self) -> Result<Option<PartedValue<'a>>, Malformed> {
        if !self.parted {
            return Ok(None);
        }
        let mut rest = self.bytes;
        let hash = take(&mut rest, 32)?.try_into().expect("32 bytes were taken");
        let head = take_bytes(&mut rest)?;
        Ok(Some(PartedValue { hash, head, tail: rest }))
    }
}

// === impl PartedValue ===

impl PartedValue<'_> {
    /// The bytes that stand in records and in the log.
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(36 + self.head.len() + self.tail.len());
        out.extend_from_slice(&self.hash);
        put_bytes(&mut out, self.head);
        out.extend_from_slice(self.tail);
        out
    }
}

// === impl Entry ===

impl<'a> Entry<'a> {
    /// Reads the head of a log entry.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = bytes;
        let time = take_u64(&mut rest)?;
        let count = take_u32(&mut rest)?;
        let changes = bytes.get(ENTRY_HEAD..).ok_or(Malformed("log entry is cut short"))?;
        Ok(Self { time, count, changes })
    }

    /// The changes, in the order in which they were asked for.
    pub(crate) fn changes(self) -> impl Iterator<Item = Result<RawChange<'a>, Malformed>> {
        let mut rest = self.changes;
        (0..self.count).map(move |_| RawChange::take(&mut rest))
    }
}

// === impl RawChange ===

impl<'a> RawChange<'a> {
    /// Reads a change; what a later minor version may have put behind its fields is passed over.
    fn take(rest: &mut &'a [u8]) -> Result<Self, Malformed> {
        let mut body = take_bytes(rest)?;
        let flags = take(&mut body, 1)?[0];
        let key = take_bytes(&mut body)?;
        let revisions = match flags & HAS_PREVIOUS {
            0 => None,
            _ => Some([take_u64(&mut body)?, take_u64(&mut body)?].map(Revision)),
        };
        let mut value = |parted: u8| -> Result<RawValue<'a>, Malformed> {
            Ok(RawValue { bytes: take_bytes(&mut body)?, parted: flags & parted != 0 })
        };
        let new = match flags & HAS_VALUE {
            0 => None,
            _ => Some(value(VALUE_PARTED)?),
        };
        let previous = match revisions {
            None => None,
            Some([revision, created]) => {
                Some(RawRecord { revision, created, value: value(PREVIOUS_PARTED)? })
            }
        };
        Ok(Self { key, value: new, previous })
    }

    fn flags(&self) -> u8 {
        let value = match self.value {
            None => 0,
            Some(value) => HAS_VALUE | if value.parted { VALUE_PARTED } else { 0 },
        };
        let previous = match self.previous {
            None => 0,
            Some(previous) => {
                HAS_PREVIOUS | if previous.value.parted { PREVIOUS_PARTED } else { 0 }
            }
        };
        value | previous
    }

    /// Copies the change out, its values being put together by `whole`; `None` when its key is of a
    /// form that only a later version knows.
    ///
    /// Each value gets memory of its own, so that who keeps one does not keep the entry.
    pub(crate) fn to_change<E>(
        self,
        revision: Revision,
        whole: impl Fn(RawValue<'a>) -> Result<Bytes, E>,
    ) -> Result<Option<Change>, E> {
        let Some(key) = Key::parse(self.key) else { return Ok(None) };
        let value = self.value.map(&whole).transpose()?;
        let previous = self.previous.map(|previous| previous.to_record(key.clone(), &whole));
        Ok(Some(Change { key, value, previous: previous.transpose()?, revision }))
    }
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    let length = u32::try_from(length).expect("a commit is bounded");
    out.extend_from_slice(&length.to_be_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], Malformed> {
    let (head, tail) = rest.split_at_checked(count).ok_or(Malformed("bytes are cut short"))?;
    *rest = tail;
    Ok(head)
}

fn take_u32(rest: &mut &[u8]) -> Result<u32, Malformed> {
    let bytes = take(rest, 4)?;
    Ok(u32::from_be_bytes(bytes.try_into().expect("four bytes were taken")))
}

fn take_u64(rest: &mut &[u8]) -> Result<u64, Malformed> {
    let bytes = take(rest, 8)?;
    Ok(u64::from_be_bytes(bytes.try_into().expect("eight bytes were taken")))
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let length = take_u32(rest)?;
    take(rest, usize::try_from(length).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests;
