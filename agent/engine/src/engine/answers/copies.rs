//! Answers about copies: what is there, what was taken, what was refused.

use contract::SYNC_TARGET_LABEL;
use serde_json::Value;

use super::{Ask, causes, has_cause, message, unmarked, whole_message};
use crate::Now;
use crate::engine::entry::{Adopt, Copy, Foreign, Hold, Id, Note, Remake, Work};
use crate::engine::observe::{mark, text};
use crate::engine::{Engine, millis};

impl Engine {
    pub(super) fn found_downstream(&mut self, id: Id, body: &Value, now: Now) {
        let Some(entry) = self.index.get_mut(id) else { return };
        let kind = entry.key.kind;
        let uid = text(body, "uid");
        let lost_it = entry.lost.as_ref().is_some_and(|(lost, _)| **lost == *uid);
        let label = mark(body, "labels", SYNC_TARGET_LABEL);
        let of_other = label.is_some_and(|label| *label != *self.target.identity.target);
        let wanted = entry.up.as_ref().is_some_and(|up| up.is_wanted());
        if let Some(removal) = &mut entry.removal {
            removal.looked = true;
        }
        let taken = lost_it && of_other;
        if !taken && self.see_copy(kind, body, false) {
            let is_there = self.index.get(id).is_some_and(|entry| entry.ours().is_some());
            let of_this = self.index.get(id).is_some_and(|entry| entry.copy_of_this().is_some());
            if is_there && !of_this && wanted && self.adoption_of(id, false) == Adopt::IfSame {
                let live = body.to_string().into_bytes().into_boxed_slice();
                let foreign = Foreign { uid: uid.into(), adopt: Adopt::No, live: Some(live) };
                self.collide(id, foreign, Adopt::IfSame, "", now);
            } else if is_there {
                // With several targets the copy may be the other one's.
                let other_holds = of_other && { self.index.get(id) }.is_some_and(|entry| {
                    entry.is_going()
                        && entry.up.as_ref().is_some_and(|up| up.deleted.is_none() && up.others > 0)
                });
                if other_holds {
                    self.make_foreign(id, body, Adopt::No);
                    self.leave_removal(id);
                }
            } else if let Some(entry) = self.index.get_mut(id) {
                // It was read before it went. If it is there again, the cluster has gone back.
                entry.lost = None;
                if let Some(removal) = &mut entry.removal {
                    removal.looked = false;
                }
            }
            return;
        }
        let locator = crate::locator::Locator::of(body);
        let of_others =
            taken || locator.is_some_and(|locator| *locator.hub != *self.target.identity.hub);
        if !wanted {
            self.make_foreign(id, body, Adopt::No);
            self.leave_removal(id);
            return;
        }
        let what = match (taken, of_others) {
            (true, _) => "another SyncTarget has taken it",
            (_, true) => "it is the copy of an object of another hub",
            _ => "it was not made for this object",
        };
        let live = body.to_string().into_bytes().into_boxed_slice();
        let adopt = self.adoption_of(id, of_others);
        let foreign = Foreign { uid: uid.into(), adopt, live: Some(live) };
        self.collide(id, foreign, adopt, what, now);
    }

    pub(super) fn make_foreign(&mut self, id: Id, body: &Value, adopt: Adopt) {
        let foreign = Foreign { uid: text(body, "uid").into(), adopt, live: None };
        self.index.set_copy(id, Copy::Foreign(Box::new(foreign)));
    }

    pub(super) fn missed_downstream(&mut self, id: Id) {
        self.forget_copy(id);
        self.index.set_copy(id, Copy::Absent);
        let Some(entry) = self.index.get_mut(id) else { return };
        *entry.hold(Work::Down) = Hold::default();
        if let Some(removal) = &mut entry.removal {
            removal.looked = true;
            self.leave_removal(id);
        }
    }

    /// An apply was tried: whether it would change anything but our marks.
    pub(super) fn tried(&mut self, id: Id, body: &Value, now: Now) {
        let Some(Copy::Foreign(foreign)) = self.index.get(id).map(|entry| &entry.copy) else {
            return;
        };
        let before = foreign.live.as_ref().and_then(|live| serde_json::from_slice(live).ok());
        let same = before.is_some_and(|before: Value| unmarked(&before) == unmarked(body));
        let uid = foreign.uid.clone();
        // What is in its lists is needed once more.
        let live = foreign.live.clone().filter(|_| same);
        let foreign = Foreign { uid, adopt: Adopt::No, live };
        let adopt = if same { Adopt::Take { force: false } } else { Adopt::No };
        self.collide(id, foreign, adopt, "it is not as it would be", now);
    }

    pub(super) fn applied(&mut self, id: Id, new: bool, first: bool, body: &Value, now: Now) {
        let Some(entry) = self.index.get(id) else { return };
        let kind = entry.key.kind;
        if !self.see_copy(kind, body, true) {
            self.fail(id, &Ask::Apply { new, first }, "the copy is not as applied".to_owned(), now);
            self.forget_copy(id);
            return;
        }
        let global = self.target.global_name();
        let Some(entry) = self.index.get_mut(id) else { return };
        *entry.hold(Work::Down) = Hold::default();
        let digest = entry.up.as_ref().map(|up| up.digest);
        let keep = self.target.limits.kept_body;
        if let Some(down) = entry.ours_mut()
            && *down.uid == *text(body, "uid")
            && down.digest == digest
            && let Some(up) = &mut entry.up
            && up.body.as_ref().is_some_and(|body| body.len() > keep)
        {
            up.body = None;
        }
        if first && entry.note.is_none() {
            let message = format!("copied to {global}");
            let reason = "Synced".to_owned();
            entry.note = Some(Box::new(Note { warning: false, reason, message }));
        }
        self.clear_problem(id, Work::Down);
    }

    /// The physical cluster doesn't take a copy.
    pub(super) fn refused(&mut self, id: Id, status: u16, body: &Value, now: Now) {
        let conflicts = has_cause(body, "FieldManagerConflict");
        let why = self.explain(id, status, body);
        if status == 409 && !conflicts {
            // Another UID: what was there has gone.
            self.forget_copy(id);
            if let Some(entry) = self.index.get_mut(id)
                && !matches!(entry.copy, Copy::Ours(_))
            {
                entry.copy = Copy::Unknown;
            }
            self.pause(id, Work::Down, now);
            return;
        }
        let text = whole_message(body).to_ascii_lowercase();
        let reason = match status {
            409 => {
                let uid = match self.index.get(id).map(|entry| &entry.copy) {
                    Some(Copy::Foreign(foreign)) => foreign.uid.clone(),
                    _ => "".into(),
                };
                let foreign = Foreign { uid, adopt: Adopt::No, live: None };
                return self.collide(id, foreign, Adopt::No, &why, now);
            }
            403 if text.contains("being terminated") || has_cause(body, "NamespaceTerminating") => {
                self.doubt_namespace(id);
                "NamespaceTerminating"
            }
            403 => "ApplyForbidden",
            413 => "ApplyTooLarge",
            _ if text.contains("immutable")
                || text.contains("may not change")
                || text.contains("updates to statefulset spec")
                || text.contains("field can not be changed")
                || text.contains("may not be changed") =>
            {
                "ApplyImmutable"
            }
            _ => "ApplyInvalid",
        };
        self.set_problem(id, Work::Down, reason, why, now);
        self.pause(id, Work::Down, now);
        if reason == "ApplyImmutable"
            && self.is_deletable(id)
            && let Some(entry) = self.index.get_mut(id)
            && entry.copy_of_this().is_some()
            && entry.up.as_ref().is_some_and(|up| up.flags.recreate)
        {
            entry.remake = Remake::Wanted;
            *entry.hold(Work::Down) = Hold::default();
        }
    }

    /// A refusal for people. What is said of a Secret may hold what is in it: only the fields are
    /// told.
    pub(in crate::engine) fn explain(&self, id: Id, status: u16, body: &Value) -> String {
        let secret = { self.index.get(id) }
            .and_then(|entry| self.kind(entry.key.kind))
            .is_some_and(|kind| &*kind.resource.resource == "secrets");
        if !secret {
            return message(body, status);
        }
        let reason = body.get("reason").and_then(Value::as_str).unwrap_or("refused");
        let fields = causes(body).filter_map(|cause| cause.get("field")?.as_str());
        let fields: Vec<_> = fields.take(16).collect();
        let immutable = causes(body).filter_map(|cause| cause.get("message")?.as_str());
        let immutable = immutable.into_iter().any(|text| text.contains("immutable"));
        let immutable = if immutable { " (immutable)" } else { "" };
        format!("{reason}: {}{immutable}", fields.join(", "))
    }

    pub(super) fn doubt_namespace(&mut self, id: Id) {
        if let Some(name) = self.index.get(id).map(|entry| entry.place.namespace.clone()) {
            self.spaces.doubt(&name);
        }
    }

    pub(super) fn lost_namespace(&mut self, id: Id, now: Now) {
        self.doubt_namespace(id);
        self.forget_copy(id);
        if let Some(entry) = self.index.get_mut(id)
            && !matches!(entry.copy, Copy::Absent)
        {
            entry.copy = Copy::Unknown;
        }
        self.pause(id, Work::Down, now);
    }

    pub(super) fn deleted(&mut self, id: Id, now: Now) {
        let Some(entry) = self.index.get_mut(id) else { return };
        if let Some(removal) = &mut entry.removal {
            removal.sent = Some(millis(now.clock));
        } else {
            self.brake.forget(id, true);
        }
        entry.remake = Remake::No;
        *entry.hold(Work::Down) = Hold::default();
    }

    /// A copy stays, without our marks.
    pub(super) fn let_go(&mut self, id: Id) {
        self.missed_downstream(id);
    }
}
