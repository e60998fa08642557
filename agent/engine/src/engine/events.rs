//! Kubernetes Events: those of copies, and our own.

use serde_json::Value;

use super::answers::Ask;
use super::decide::Step;
use super::entry::{Id, Note, Place, TypeId};
use super::{Engine, millis};
use crate::Now;
use crate::digest::{Digest, Hasher};

/// A minute, in milliseconds.
const MINUTE: u64 = 60_000;

impl Engine {
    /// What is to be told of an object when an Event of its copy is seen.
    pub(super) fn see_event(&mut self, event: &Value) {
        let involved = |field: &str| {
            let value = event.get("involvedObject").and_then(|involved| involved.get(field));
            value.and_then(Value::as_str).unwrap_or_default()
        };
        let field = |field: &str| event.get(field).and_then(Value::as_str).unwrap_or_default();
        let kind = self.kinds.iter().position(|kind| {
            kind.synced.as_ref().is_some_and(|synced| {
                *synced.kind == *involved("kind") && synced.api_version() == involved("apiVersion")
            })
        });
        let Some(kind) = kind.and_then(|kind| TypeId::try_from(kind).ok()) else { return };
        let place =
            Place { namespace: involved("namespace").into(), kind, name: involved("name").into() };
        let Some(id) = self.index.by_place(&place) else { return };
        let Some(entry) = self.index.get_mut(id) else { return };
        if entry.ours().is_none_or(|down| *down.uid != *involved("uid")) || entry.note.is_some() {
            return;
        }
        let note = Note {
            warning: field("type") == "Warning",
            reason: field("reason").chars().take(128).collect(),
            message: field("message").chars().take(1024).collect(),
        };
        if entry.told != Some(note.digest()) {
            entry.note = Some(Box::new(note));
            self.touch(id);
        }
    }

    /// Tells an Event, unless there were too many.
    pub(super) fn note_step(&mut self, id: Id, now: Now) -> Option<Step> {
        let clock = millis(now.clock);
        let entry = self.index.get_mut(id)?;
        let digest = entry.note.as_ref()?.digest();
        if entry.told == Some(digest) {
            entry.note = None;
            return None;
        }
        if clock >= self.told.1.saturating_add(MINUTE) {
            self.told = (0, clock);
        }
        let warning = entry.note.as_ref().is_some_and(|note| note.warning);
        // What goes well doesn't take the room of what doesn't.
        let room = self.target.limits.events / if warning { 1 } else { 2 };
        if self.told.0 >= room {
            self.dropped_events += 1;
            entry.note = None;
            return None;
        }
        self.told.0 += 1;
        let request = self.tell(id, now);
        let entry = self.index.get_mut(id)?;
        entry.note = None;
        entry.told = Some(digest);
        Some((Ask::Event, request?))
    }
}

// === impl Note ===

impl Note {
    pub(super) fn digest(&self) -> Digest {
        let mut hasher = Hasher::new();
        hasher.text(&self.reason);
        hasher.text(&self.message);
        hasher.end()
    }
}
