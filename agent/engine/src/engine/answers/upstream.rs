//! Answers about upstream objects: what they say now, and whether that is evidence.

use serde_json::{Value, json};

use super::{Ask, names_an_object};
use crate::Now;
use crate::digest::Digest;
use crate::engine::entry::{Id, Remake, State, Up, Work};
use crate::engine::{Engine, millis};

impl Engine {
    pub(super) fn found_upstream(&mut self, id: Id, body: &Value, now: Now) {
        let Some(entry) = self.index.get(id) else { return };
        let (kind, cluster) = (entry.key.kind, entry.key.cluster.clone());
        let Some(up) = self.read_object(kind, &cluster, body) else { return };
        let Some(entry) = self.index.get(id) else { return };
        let of_copy = entry.ours().filter(|down| down.of == up.uid);
        let released = entry.released.map_or(0, |(revision, _)| revision);
        let known = entry.up.as_ref().map_or(released, |up| up.revision);
        let known = known.max(of_copy.map_or(0, |down| down.applied_revision));
        if up.revision < known && !self.hub.is_current(up.revision, known) {
            self.hub.go_back(up.revision);
        }
        let older = self.index.get(id).and_then(|entry| entry.ours());
        if older.is_some_and(|down| self.hub.is_older(&up, down)) {
            self.hub.go_back(up.revision);
        }
        let evidence = self.is_evidence(id, &up, known);
        let given_up = self.given_up.contains(&id) && up.state == State::None;
        if !up.is_going() && up.state == State::None {
            // It is no longer ours to sync; without a mark that says so, its copy stays.
            self.lose_object(id);
            if given_up && let Some(entry) = self.index.get_mut(id) {
                entry.removal.get_or_insert_default().evidence = Some(millis(now.clock));
            }
            return;
        }
        let body_needed = self
            .index
            .get(id)
            .is_some_and(|entry| entry.up.as_ref().is_some_and(|known| known.body.is_none()));
        let mut up = up;
        if body_needed && up.body.is_none() {
            up.body = self.wanted(kind, &cluster, body).map(|(body, _)| body);
        }
        let has_other_uid = { self.index.get(id) }
            .and_then(|entry| entry.ours())
            .is_some_and(|down| down.of != up.uid);
        self.set_object(id, up, now);
        if has_other_uid && self.given_up.contains(&id) {
            // What the copy was made of is gone: another object has its name.
            if let Some(entry) = self.index.get_mut(id) {
                entry.removal.get_or_insert_default().evidence = Some(millis(now.clock));
            }
            return;
        }
        let trusted = self.hub.is_trusted();
        if let Some(entry) = self.index.get_mut(id)
            && entry.remake != Remake::No
        {
            let wanted = entry.up.as_ref().is_some_and(|up| up.is_wanted() && up.flags.recreate);
            let proven = wanted && trusted && !entry.verify && entry.copy_of_this().is_some();
            entry.remake = if proven { Remake::Proven(millis(now.clock)) } else { Remake::No };
        }
        if let Some(removal) = self.index.get_mut(id).and_then(|entry| entry.removal.as_mut()) {
            removal.evidence = evidence.then_some(millis(now.clock));
            if !evidence {
                self.pause(id, Work::Up, now);
            }
        }
    }

    /// Whether a live object says, beyond doubt, that its copy is to go.
    pub(super) fn is_evidence(&self, id: Id, up: &Up, known: u64) -> bool {
        let Some(down) = self.index.get(id).and_then(|entry| entry.ours()) else { return false };
        up.is_going()
            && up.uid == down.of
            && self.hub.is_trusted()
            && self.hub.is_current(up.revision, known)
            && !self.hub.is_older(up, down)
    }

    pub(super) fn missed_upstream(&mut self, id: Id, status: u16, body: &Value, now: Now) {
        let clock = millis(now.clock);
        let given_up = self.given_up.contains(&id);
        let Some(entry) = self.index.get_mut(id) else { return };
        if entry.up.is_none() {
            entry.verify = false;
            if given_up {
                entry.removal.get_or_insert_default().evidence = Some(clock);
            }
        } else if entry.verify {
            self.lose_object(id);
        } else {
            // The watch will tell more. It is no evidence.
            entry.verify = status == 404 && names_an_object(body);
            self.pause(id, Work::Up, now);
        }
    }

    pub(super) fn written(&mut self, id: Id, ask: &Ask, body: &Value, now: Now) {
        let Some(entry) = self.index.get(id) else { return };
        let (kind, cluster) = (entry.key.kind, entry.key.cluster.clone());
        if let Some(up) = self.read_object(kind, &cluster, body) {
            let known = self.index.get(id).and_then(|entry| entry.up.as_ref());
            if known.is_none_or(|known| known.revision <= up.revision) {
                self.set_object(id, up, now);
            }
        }
        if let Ask::Status(sent) = ask
            && let Some(entry) = self.index.get_mut(id)
        {
            let shown = entry.up.as_ref().and_then(|up| up.status.as_deref());
            let shown = shown.and_then(|shown| serde_json::from_slice::<Value>(shown).ok());
            let shown = shown.unwrap_or_else(|| json!({}));
            entry.report.settled = Some((*sent, Digest::of(&shown)));
            // The copy may have changed while it was under way.
            entry.report.dirty = true;
        }
        self.clear_problem(id, Work::Up);
    }

    /// Nothing of ours is left on an object.
    pub(super) fn released(&mut self, id: Id, at: u64, now: Now) {
        self.end_removal(id, true);
        self.lose_object(id);
        self.index.leave_place(id);
        self.leave_space(id);
        if let Some(entry) = self.index.get_mut(id) {
            entry.released = Some((at, millis(now.clock)));
        }
    }
}
