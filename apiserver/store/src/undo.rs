//! The state at an old revision: the present state with the changes after that revision undone.
//!
//! A key held `r` at revision `at` exactly if either its present record is `r` and was written not
//! after `at`, or the one change after `at` that replaced `r` names it as the previous record. So a
//! single pass over the changes suffices, in any order, and only the first records of the page are
//! kept.

use std::collections::BTreeMap;

use crate::{Key, Page, Range, Record, Revision};

/// Collects the records of a page at an old revision.
#[derive(Debug)]
pub(crate) struct Undo {
    range: Range,
    at: Revision,
    /// Records that were replaced or deleted after `at`: at most one more than the page takes.
    old: BTreeMap<Key, Record>,
}

// === impl Undo ===

impl Undo {
    pub(crate) fn new(range: Range, at: Revision) -> Self {
        Self { range, at, old: BTreeMap::new() }
    }

    /// Whether a change with this key and previous revision must be given to [`Undo::replaced`].
    pub(crate) fn wants(&self, key: &[u8], previous: Revision) -> bool {
        previous <= self.at
            && key.starts_with(self.range.prefix.as_bytes())
            && self.range.after.as_ref().is_none_or(|after| key > after.as_bytes())
            && (self.range.limit == 0
                || self.old.len() <= self.range.limit
                || self.old.last_key_value().is_none_or(|(last, _)| key < last.as_bytes()))
    }

    /// Takes a record that a change after the revision replaced or deleted.
    pub(crate) fn replaced(&mut self, record: Record) {
        self.old.insert(record.key.clone(), record);
        if self.range.limit > 0 && self.old.len() > self.range.limit + 1 {
            self.old.pop_last();
        }
    }

    /// Merges with the present records of the range, given in key order and read no further than
    /// the page needs.
    ///
    /// # Errors
    /// The error of `present`.
    pub(crate) fn page<E>(
        self,
        present: impl Iterator<Item = Result<Record, E>>,
    ) -> Result<Page, E> {
        let Self { range, at, old } = self;
        let mut old = old.into_values().peekable();
        let mut page = Page { revision: at, ..Page::default() };
        for record in present {
            let record = record?;
            if record.revision > at {
                continue;
            }
            while let Some(earlier) = old.next_if(|earlier| earlier.key < record.key) {
                if !page.push(earlier, range.limit) {
                    return Ok(page);
                }
            }
            if !page.push(record, range.limit) {
                return Ok(page);
            }
        }
        for earlier in old {
            if !page.push(earlier, range.limit) {
                break;
            }
        }
        Ok(page)
    }
}

// === impl Page ===

impl Page {
    /// Adds a record; `false` when the page was full, which it then says.
    pub(crate) fn push(&mut self, record: Record, limit: usize) -> bool {
        if limit > 0 && self.records.len() == limit {
            self.more = true;
            return false;
        }
        self.records.push(record);
        true
    }
}
