//! From etcd's watch answers to whole commits.
//!
//! etcd may split what belongs to one revision, tells of objects and tombstones as of different
//! keys, and says in messages of their own how far a watch has come. Here it becomes what
//! [`Store::watch`] promises.
//!
//! # Guarantees
//! - Changes of one revision come together, each key once.
//! - Progress is never told before a change that it covers.
//!
//! [`Store::watch`]: crate::Store::watch

use super::layout::{Layout, Place};
use super::proto::{Event, EventType, WatchResponse};
use super::{Error, record, revision_of};
use crate::{Change, Revision, WatchMessage};

/// Puts a watch's answers together.
#[derive(Debug)]
pub(super) struct Assembler {
    layout: Layout,
    /// Everything up to here has been delivered.
    reached: Revision,
    /// The last revision of an answer of which more is to come.
    held: Vec<Change>,
    /// Whether more of an answer is to come.
    fragmented: bool,
}

/// What one answer brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Assembled {
    /// To be delivered, in order.
    pub(super) messages: Vec<WatchMessage>,
    /// What a replica has noted that history was forgotten up to.
    pub(super) compacted: Option<Revision>,
}

/// Why a watch ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// etcd has forgotten what was to come, up to this revision.
    Compacted(Revision),
    /// What a change replaced is forgotten already.
    PreviousCompacted,
    /// etcd has ended it.
    Cancelled(String),
    /// What came breaks etcd's own rules: nothing that was told before can be relied on.
    Broken(String),
}

// === impl Assembler ===

impl Assembler {
    pub(super) fn new(layout: Layout, after: Revision) -> Self {
        Self { layout, reached: after, held: Vec::new(), fragmented: false }
    }

    /// The revision up to which everything has been delivered.
    pub(super) fn reached(&self) -> Revision {
        self.reached
    }

    pub(super) fn take(&mut self, answer: WatchResponse) -> Result<Assembled, Ended> {
        if answer.compact_revision > 0 {
            return Err(Ended::Compacted(revision_of(answer.compact_revision)?));
        }
        if answer.canceled {
            return Err(Ended::Cancelled(answer.cancel_reason));
        }
        let mut assembled = Assembled::default();
        if answer.created {
            return Ok(assembled);
        }
        if answer.events.is_empty() && !answer.fragment && !self.fragmented {
            let header = answer.header.map_or(0, |header| header.revision);
            let revision = revision_of(header)?;
            if revision > self.reached {
                self.reached = revision;
                assembled.messages.push(WatchMessage::Progress(revision));
            }
            return Ok(assembled);
        }
        // An empty answer between fragments is progress that would overtake: it is asked for anew.
        if answer.events.is_empty() && !answer.fragment {
            return Ok(assembled);
        }
        let before = self.reached;
        let mut changes = std::mem::take(&mut self.held);
        // Revisions of other keys of the store count as reached, too.
        let mut last = changes.last().map_or(self.reached, |change| change.revision);
        for event in answer.events {
            last = self.take_event(event, last, &mut changes, &mut assembled)?;
        }
        self.fragmented = answer.fragment;
        if answer.fragment {
            // The rest of the last revision may be yet to come.
            let whole = changes.partition_point(|change| change.revision < last);
            self.held = changes.split_off(whole);
            last = Revision(last.0.saturating_sub(1));
        }
        self.reached = self.reached.max(last);
        match changes.last().map(|change| change.revision) {
            None if self.reached == before => {}
            None => assembled.messages.push(WatchMessage::Progress(self.reached)),
            Some(revision) => {
                assembled.messages.push(WatchMessage::Changes(changes));
                if self.reached > revision {
                    assembled.messages.push(WatchMessage::Progress(self.reached));
                }
            }
        }
        Ok(assembled)
    }

    /// Adds what an event says to the changes of its revision, which it gives.
    fn take_event(
        &self,
        event: Event,
        last: Revision,
        changes: &mut Vec<Change>,
        assembled: &mut Assembled,
    ) -> Result<Revision, Ended> {
        let broken = |what: &str| Ended::Broken(what.to_owned());
        let Event { kind, kv, prev_kv } = event;
        let kv = kv.ok_or_else(|| broken("an event has no key"))?;
        let revision = revision_of(kv.mod_revision)?;
        if revision <= self.reached || revision < last {
            return Err(Ended::Broken(format!(
                "a change of revision {revision} came after all up to {}",
                last.max(self.reached)
            )));
        }
        let (key, tombstone) = match self.layout.place(&kv.key) {
            Place::Object(key) => (key, false),
            Place::Tombstone(key) => (key, true),
            Place::Compacted => {
                assembled.compacted = assembled.compacted.max(noted(&kv.value));
                return Ok(revision);
            }
            Place::Other => return Ok(revision),
        };
        let deleted = kind == EventType::Delete as i32;
        // Only what creates a key replaces nothing.
        let replaces = deleted || kv.version != 1;
        let previous = match prev_kv {
            Some(kv) => Some(record(key.clone(), kv)?),
            None if replaces => return Err(Ended::PreviousCompacted),
            None => None,
        };
        let value = match (deleted, tombstone) {
            (true, _) => None,
            (false, true) => Some(bytes::Bytes::new()),
            (false, false) => Some(kv.value.into()),
        };
        add(changes, Change { key, value, previous, revision });
        Ok(revision)
    }
}

/// Adds a change, or joins it with the other half of an object that becomes a tombstone, or of a
/// tombstone that becomes an object.
fn add(changes: &mut Vec<Change>, change: Change) {
    let same =
        |earlier: &&mut Change| earlier.revision == change.revision && earlier.key == change.key;
    match changes.iter_mut().rev().take_while(|c| c.revision == change.revision).find(same) {
        Some(earlier) => {
            earlier.value = earlier.value.take().or(change.value);
            earlier.previous = earlier.previous.take().or(change.previous);
        }
        None => changes.push(change),
    }
}

/// The revision in the value of the key that tells what was compacted to.
pub(super) fn noted(value: &[u8]) -> Option<Revision> {
    std::str::from_utf8(value).ok()?.parse::<u64>().ok().map(Revision)
}

// === impl Ended ===

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Broken(error.to_string())
    }
}

#[cfg(test)]
mod tests;
