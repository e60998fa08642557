//! A change as watchers see it, with its encoded frames.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::object::Object;
use crate::{Key, Revision};

/// One key's change: what was visible before and what is now.
///
/// At least one of the two is there. Both are as the overlay shows them, so the first write to a
/// virtual object is a modification.
#[derive(Debug)]
pub struct Event {
    /// The key.
    pub key: Key,
    /// The revision of the change.
    pub revision: Revision,
    /// What was visible before.
    pub previous: Option<Arc<Object>>,
    /// What is visible now.
    pub current: Option<Arc<Object>>,
    deleted: OnceLock<Arc<Object>>,
    frames: Mutex<Vec<(FrameKey, Bytes)>>,
}

/// What distinguishes the frames of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameKey {
    /// Kind of the event as the watcher sees it; the caller's numbers.
    pub kind: u8,
    /// Wire encoding; the caller's numbers.
    pub encoding: u8,
    /// API version of the object in the frame.
    pub version: Arc<str>,
}

// === impl Event ===

impl Event {
    /// An event without frames yet.
    pub fn new(
        key: Key,
        revision: Revision,
        previous: Option<Arc<Object>>,
        current: Option<Arc<Object>>,
    ) -> Self {
        let (deleted, frames) = (OnceLock::new(), Mutex::default());
        Self { key, revision, previous, current, deleted, frames }
    }

    /// The last state, with the revision of this event: what a `DELETED` event shows.
    ///
    /// `None` when nothing was visible before.
    pub fn deleted(&self, rv_base: u64) -> Option<Arc<Object>> {
        let previous = self.previous.as_ref()?;
        let make = || Arc::new(previous.at(self.revision, rv_base));
        Some(self.deleted.get_or_init(make).clone())
    }

    /// The encoded frame for `key`, made at its first use and shared by all later watchers.
    pub fn frame(&self, key: &FrameKey, make: impl FnOnce() -> Bytes) -> Bytes {
        let mut frames = self.frames.lock();
        if let Some((_, frame)) = frames.iter().find(|(known, _)| known == key) {
            return frame.clone();
        }
        let frame = make();
        frames.push((key.clone(), frame.clone()));
        frame
    }

    /// Forgets the frames: by now every prompt watcher has had them.
    pub(super) fn forget_frames(&self) {
        *self.frames.lock() = Vec::new();
    }

    /// Bytes that this event alone keeps in memory, roughly.
    pub(super) fn cost(&self) -> usize {
        let object = self.previous.as_ref().map_or(0, |object| object.cost());
        object + 256
    }
}
