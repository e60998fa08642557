//! Lists and watches: how far they are, and what is missing in them.

use super::{DOWNSTREAM, UPSTREAM, revision, text};
use crate::engine::Engine;
use crate::engine::entry::{Hold, Id, TypeId};
use crate::{Event, Now, Side};

impl Engine {
    pub(in crate::engine) fn see_upstream(&mut self, kind: TypeId, event: Event, now: Now) {
        match event {
            Event::InitStart => self.begin_list(kind, Side::Upstream),
            Event::Applied(object) => {
                let Some(key) = self.key_of(kind, &object) else { return };
                let listing = self.kinds[usize::from(kind)].streams[UPSTREAM].listing;
                self.see_object(&key, &object, listing, now);
            }
            Event::Deleted(object) => {
                let Some(key) = self.key_of(kind, &object) else { return };
                let Some(id) = self.index.by_key(&key) else { return };
                self.hub.see(revision(&object));
                let known = self.index.get(id).and_then(|entry| entry.up.as_ref());
                let stale = known.is_some_and(|up| up.revision > revision(&object));
                if !stale {
                    self.lose_object(id);
                }
            }
            Event::InitDone { resource_version } => {
                let seen: u64 = resource_version.parse().unwrap_or(0);
                let Some(stream) = self.end_list(kind, Side::Upstream) else { return };
                let is_new = self.hub.see_whole(seen, stream.mark);
                for id in self.index.of_type(kind) {
                    let Some(entry) = self.index.get_mut(id) else { continue };
                    if entry.seen[UPSTREAM] != stream.list && entry.up.is_some() {
                        if !is_new {
                            // An old list: only a live read tells whether the object is gone.
                            entry.verify = true;
                        } else {
                            self.lose_object(id);
                        }
                    } else if entry.seen[UPSTREAM] != stream.list {
                        entry.released = None;
                    }
                    self.touch(id);
                }
            }
            Event::Bookmark { resource_version } => {
                self.hub.see(resource_version.parse().unwrap_or(0));
            }
        }
    }

    pub(in crate::engine) fn see_downstream(&mut self, kind: TypeId, event: Event, _now: Now) {
        match event {
            Event::InitStart => self.begin_list(kind, Side::Downstream),
            Event::Applied(object) => {
                self.see_copy(kind, &object, false);
            }
            Event::Deleted(object) => {
                let Some(place) = Self::place_of(kind, &object) else { return };
                let Some(id) = self.index.by_place(&place) else { return };
                self.lose_copy(id, text(&object, "uid"), revision(&object));
            }
            Event::InitDone { .. } => {
                let Some(stream) = self.end_list(kind, Side::Downstream) else { return };
                for id in self.index.of_type(kind) {
                    let Some(entry) = self.index.get(id) else { continue };
                    if entry.seen[DOWNSTREAM] != stream.list && entry.ours().is_some() {
                        // Not in the list: whether it is gone is for a live read to say.
                        self.forget_copy(id);
                    }
                    self.touch(id);
                }
            }
            Event::Bookmark { .. } => {}
        }
    }

    pub(super) fn begin_list(&mut self, kind: TypeId, side: Side) {
        let newest = self.hub.newest;
        let Some(kind) = self.kinds.get_mut(usize::from(kind)) else { return };
        kind.missing[crate::engine::side(side)] = Hold::default();
        let stream = &mut kind.streams[crate::engine::side(side)];
        stream.list = stream.list.wrapping_add(1);
        stream.listing = true;
        stream.mark = stream.asked.take().unwrap_or(newest);
    }

    pub(super) fn end_list(&mut self, kind: TypeId, side: Side) -> Option<crate::engine::Stream> {
        let kind = self.kinds.get_mut(usize::from(kind))?;
        let stream = &mut kind.streams[crate::engine::side(side)];
        stream.listing = false;
        stream.complete = true;
        Some(*stream)
    }

    pub(super) fn list_of(&self, id: Id, side: usize) -> u32 {
        let kind = self.index.get(id).and_then(|entry| self.kind(entry.key.kind));
        kind.map_or(0, |kind| kind.streams[side].list)
    }
}
