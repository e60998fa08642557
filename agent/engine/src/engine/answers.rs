//! What answers mean.

use std::sync::Arc;
use std::time::Duration;

use contract::SYNC_TARGET_LABEL;
use serde_json::{Value, json};

use super::entry::{Adopt, Copy, Foreign, Hold, Id, Note, State, Up, Work};
use super::observe::{mark, revision, text};
use super::{Engine, RecordKey, millis, side};
use crate::digest::Digest;
use crate::{Failure, Kind, Now, Outcome, Side};

/// How long the rest of a message may be.
const LONGEST: usize = 1024;

/// The longest pause of a whole side: it may be back any time.
const LONGEST_GATE: Duration = Duration::from_secs(10);

/// What was asked, and for whom.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) subject: Subject,
    pub(super) ask: Ask,
    pub(super) side: Side,
}

/// Whom an action is for.
#[derive(Debug)]
pub(super) enum Subject {
    Entry(Id),
    /// A downstream namespace.
    Space(Arc<str>),
}

/// What was asked, with what the answer is judged by.
#[derive(Debug)]
pub(super) enum Ask {
    GetUpstream,
    GetDownstream,
    DryRun,
    /// `new`: it was not there; `first`: it was not ours before.
    Apply {
        new: bool,
        first: bool,
    },
    GiveUp,
    Orphan,
    Delete,
    Claim,
    Release,
    /// The digest of what was sent.
    Status(Digest),
    Replicas(i64),
    Record(RecordKey),
    RecordStatus(RecordKey, Digest),
    DeleteRecord(RecordKey),
    Event,
    GetNamespace,
    CreateNamespace,
    ListNamespace,
    DeleteNamespace,
}

// === impl Ask ===

impl Ask {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::GetUpstream => Kind::GetUpstream,
            Self::GetDownstream => Kind::GetDownstream,
            Self::DryRun => Kind::DryRun,
            Self::Apply { .. } => Kind::Apply,
            Self::GiveUp => Kind::GiveUp,
            Self::Orphan => Kind::Orphan,
            Self::Delete => Kind::Delete,
            Self::Claim => Kind::Claim,
            Self::Release => Kind::Release,
            Self::Status(_) => Kind::Status,
            Self::Replicas(_) => Kind::Replicas,
            Self::Record(_) | Self::RecordStatus(..) => Kind::Record,
            Self::DeleteRecord(_) => Kind::DeleteRecord,
            Self::Event => Kind::Event,
            Self::GetNamespace => Kind::GetNamespace,
            Self::CreateNamespace => Kind::CreateNamespace,
            Self::ListNamespace => Kind::ListNamespace,
            Self::DeleteNamespace => Kind::DeleteNamespace,
        }
    }

    fn work(&self) -> Work {
        match self {
            Self::GetDownstream
            | Self::DryRun
            | Self::Apply { .. }
            | Self::GiveUp
            | Self::Orphan
            | Self::Delete => Work::Down,
            Self::Record(_) | Self::RecordStatus(..) | Self::DeleteRecord(_) => Work::Record,
            _ => Work::Up,
        }
    }
}

/// What a server says, for people, bounded.
pub(super) fn message(body: &Value, status: u16) -> String {
    let text = body.get("message").and_then(Value::as_str).unwrap_or_default();
    if text.is_empty() {
        return if status == 0 { "no answer".to_owned() } else { format!("status {status}") };
    }
    text.chars().take(LONGEST).collect()
}

fn causes(body: &Value) -> impl Iterator<Item = &Value> {
    let causes = body.pointer("/details/causes").and_then(Value::as_array);
    causes.map(Vec::as_slice).unwrap_or_default().iter()
}

fn has_cause(body: &Value, reason: &str) -> bool {
    causes(body).any(|cause| cause.get("reason").and_then(Value::as_str) == Some(reason))
}

/// Whether a 404 is about an object; else the whole collection is missing.
fn names_an_object(body: &Value) -> bool {
    let name = body.pointer("/details/name").and_then(Value::as_str);
    name.is_some_and(|name| !name.is_empty())
}

// === impl Engine ===

impl Engine {
    pub(super) fn land(&mut self, flight: Flight, outcome: Outcome, now: Now) {
        self.see_gate(flight.side, &outcome, now);
        let Flight { subject, ask, side: which } = flight;
        let id = match subject {
            Subject::Space(name) => return self.land_space(&name, &ask, &outcome, now),
            Subject::Entry(id) => id,
        };
        let Some(entry) = self.index.get_mut(id) else { return };
        entry.in_flight = false;
        match outcome {
            // The side pauses as a whole.
            Outcome::Answer { status: 401 | 429, .. } => self.unsure(id, &ask),
            Outcome::Answer { status, body, .. } => self.judge(id, which, &ask, status, &body, now),
            Outcome::Failed(failure) => {
                self.unsure(id, &ask);
                if failure == Failure::Timeout {
                    self.fail(id, &ask, "it took too long".to_owned(), now);
                }
            }
        }
        self.touch(id);
    }

    /// Pauses a side that doesn't answer, and ends the pause of one that does.
    fn see_gate(&mut self, which: Side, outcome: &Outcome, now: Now) {
        let mut gate = self.gates[side(which)];
        match outcome {
            Outcome::Failed(Failure::Unreachable) | Outcome::Answer { status: 401, .. } => {
                // What was under way together fails together: that is one failure.
                if gate.until <= millis(now.clock) {
                    self.lengthen(&mut gate, millis(now.clock), LONGEST_GATE);
                }
            }
            Outcome::Answer { status: 429, retry_after, .. } => {
                let pause = retry_after.unwrap_or(Duration::from_secs(1)).min(LONGEST_GATE);
                gate.until = gate.until.max(millis(now.clock).saturating_add(millis(pause)));
            }
            Outcome::Answer { .. } => gate = Hold::default(),
            Outcome::Failed(_) => {}
        }
        self.gates[side(which)] = gate;
    }

    /// Nobody knows whether it was done.
    fn unsure(&mut self, id: Id, ask: &Ask) {
        if matches!(ask, Ask::Apply { new: true, .. } | Ask::GiveUp | Ask::Orphan | Ask::Delete) {
            self.forget_copy(id);
            if let Some(entry) = self.index.get_mut(id)
                && !matches!(entry.copy, Copy::Ours(_))
            {
                entry.copy = Copy::Unknown;
            }
        }
        if matches!(ask, Ask::Delete) {
            self.unsend(id);
        }
    }

    /// Something failed for an entry alone: it pauses, and after some failures it is told.
    fn fail(&mut self, id: Id, ask: &Ask, why: String, now: Now) {
        let work = ask.work();
        self.pause(id, work, now);
        let failures = self.index.get_mut(id).map_or(0, |entry| entry.hold(work).failures);
        if failures > 2 && work != Work::Record {
            let reason = match ask {
                Ask::Claim | Ask::Release => "MarksFailed",
                Ask::Status(_) | Ask::Replicas(_) => "StatusFailed",
                Ask::GetUpstream => "ReadFailed",
                _ => "ApplyFailed",
            };
            self.set_problem(id, work, reason, why, now);
        }
    }

    fn judge(&mut self, id: Id, which: Side, ask: &Ask, status: u16, body: &Value, now: Now) {
        match (ask, status) {
            (Ask::GetUpstream, 200) => self.found_upstream(id, body, now),
            (Ask::GetUpstream, 403 | 404) => self.missed_upstream(id, status, body, now),
            (Ask::GetDownstream, 200) => self.found_downstream(id, body, now),
            (Ask::DryRun, 200) => self.tried(id, body, now),
            (Ask::Apply { new, first }, 200 | 201) => {
                self.applied(id, *new, *first, body, now);
            }
            (Ask::Apply { .. } | Ask::DryRun, 409 | 422 | 400 | 413 | 403) => {
                self.refused(id, status, body, now);
            }
            (Ask::Apply { .. } | Ask::DryRun, 500..) if is_too_large(body) => {
                self.refused(id, 413, body, now);
            }
            (Ask::Delete, 200 | 202) => self.deleted(id, now),
            (Ask::GiveUp | Ask::Orphan, 200) => self.let_go(id),
            (Ask::Delete | Ask::GiveUp | Ask::Orphan, 404 | 409) => {
                // Another one is there, or none: a live read tells.
                self.unsend(id);
                self.forget_copy(id);
            }
            (Ask::GetDownstream, 404) if names_an_object(body) => self.missed_downstream(id),
            (Ask::Apply { .. } | Ask::DryRun, 404) if names_an_object(body) => {
                self.lost_namespace(id, now);
            }
            (Ask::Claim | Ask::Status(_), 200) => self.written(id, ask, body, now),
            (Ask::Release, 200) => self.released(id, revision(body), now),
            (Ask::Release, 403 | 404) => {
                // It has gone with all that is ours on it.
                let known = self.index.get(id).and_then(|entry| entry.up.as_ref());
                let known = known.map_or(0, |up| up.revision);
                self.released(id, known, now);
            }
            (Ask::Claim | Ask::Release | Ask::Status(_), 403 | 404 | 409 | 422) => {
                if let Some(entry) = self.index.get_mut(id) {
                    entry.verify = true;
                }
                self.fail(id, ask, message(body, status), now);
            }
            (Ask::Replicas(replicas), 200) => {
                if let Some(up) = self.index.get_mut(id).and_then(|entry| entry.up.as_mut()) {
                    up.replicas = Some(*replicas);
                }
            }
            (Ask::Record(key) | Ask::RecordStatus(key, _), 200 | 201) => {
                self.records.insert(key.clone());
                let digest =
                    if let Ask::RecordStatus(_, digest) = ask { Some(*digest) } else { None };
                if let Some(entry) = self.index.get_mut(id) {
                    entry.recorded = digest;
                    *entry.hold(Work::Record) = Hold::default();
                }
            }
            (Ask::RecordStatus(key, _), 404) => {
                self.records.remove(key);
                self.pause(id, Work::Record, now);
            }
            (Ask::DeleteRecord(key), 200 | 202 | 404) => {
                self.records.remove(key);
                if let Some(entry) = self.index.get_mut(id) {
                    entry.recorded = None;
                    *entry.hold(Work::Record) = Hold::default();
                }
            }
            (Ask::Event, _) => {}
            (_, 404) if matches!(which, Side::Downstream) => self.miss_type(id, which, now),
            _ => self.fail(id, ask, message(body, status), now),
        }
    }

    /// The collection of a type is missing: its objects wait together.
    fn miss_type(&mut self, id: Id, which: Side, now: Now) {
        let Some(kind) = self.index.get(id).map(|entry| usize::from(entry.key.kind)) else {
            return;
        };
        let Some(mut hold) = self.kinds.get(kind).map(|kind| kind.missing[side(which)]) else {
            return;
        };
        if hold.until <= millis(now.clock) {
            let longest = self.target.limits.longest_backoff.min(Duration::from_secs(30));
            self.lengthen(&mut hold, millis(now.clock), longest);
        }
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.missing[side(which)] = hold;
        }
    }

    fn found_upstream(&mut self, id: Id, body: &Value, now: Now) {
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
            up.body = self.whole_body(kind, &cluster, body);
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
        if let Some(removal) = self.index.get_mut(id).and_then(|entry| entry.removal.as_mut()) {
            removal.evidence = evidence.then_some(millis(now.clock));
            if !evidence {
                self.pause(id, Work::Up, now);
            }
        }
    }

    /// What is to be there, of an object that is too large to be kept.
    fn whole_body(
        &self,
        kind: super::entry::TypeId,
        cluster: &str,
        object: &Value,
    ) -> Option<Box<[u8]>> {
        let kind = self.kind(kind)?;
        let synced = kind.synced.as_ref()?;
        let namespace = |name: &str| crate::names::namespace(&self.target, cluster, name);
        let mut desired = self.rules.desired(&kind.rule, object, &namespace);
        desired["apiVersion"] = synced.api_version().into();
        desired["kind"] = (&*synced.kind).into();
        Some(desired.to_string().into_bytes().into_boxed_slice())
    }

    /// Whether a live object says, beyond doubt, that its copy is to go.
    fn is_evidence(&self, id: Id, up: &Up, known: u64) -> bool {
        let Some(down) = self.index.get(id).and_then(|entry| entry.ours()) else { return false };
        let newest = known.max(down.applied_revision);
        up.is_going()
            && up.uid == down.of
            && self.hub.is_trusted()
            && self.hub.is_current(up.revision, newest)
            && (up.generation >= down.applied_generation || self.hub.was_accepted())
    }

    fn missed_upstream(&mut self, id: Id, status: u16, body: &Value, now: Now) {
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

    fn found_downstream(&mut self, id: Id, body: &Value, now: Now) {
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
        if !taken && self.see_copy(kind, body) {
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
            } else if let Some(removal) =
                self.index.get_mut(id).and_then(|entry| entry.removal.as_mut())
            {
                // It was read before it went.
                removal.looked = false;
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

    fn make_foreign(&mut self, id: Id, body: &Value, adopt: Adopt) {
        let foreign = Foreign { uid: text(body, "uid").into(), adopt, live: None };
        self.index.set_copy(id, Copy::Foreign(Box::new(foreign)));
    }

    fn missed_downstream(&mut self, id: Id) {
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
    fn tried(&mut self, id: Id, body: &Value, now: Now) {
        let Some(Copy::Foreign(foreign)) = self.index.get(id).map(|entry| &entry.copy) else {
            return;
        };
        let before = foreign.live.as_ref().and_then(|live| serde_json::from_slice(live).ok());
        let same = before.is_some_and(|before: Value| unmarked(&before) == unmarked(body));
        let uid = foreign.uid.clone();
        let foreign = Foreign { uid, adopt: Adopt::No, live: None };
        let adopt = if same { Adopt::Take { force: false } } else { Adopt::No };
        self.collide(id, foreign, adopt, "it is not as it would be", now);
    }

    fn applied(&mut self, id: Id, new: bool, first: bool, body: &Value, now: Now) {
        let Some(entry) = self.index.get(id) else { return };
        let kind = entry.key.kind;
        if !self.see_copy(kind, body) {
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
            && down.revision == revision(body)
        {
            down.good = Some(down.view);
            down.live = None;
            if down.digest == digest
                && let Some(up) = &mut entry.up
                && up.body.as_ref().is_some_and(|body| body.len() > keep)
            {
                up.body = None;
            }
        }
        if first && entry.note.is_none() {
            let message = format!("copied to {global}");
            let reason = "Synced".to_owned();
            entry.note = Some(Box::new(Note { warning: false, reason, message }));
        }
        self.clear_problem(id, Work::Down);
    }

    /// The physical cluster doesn't take a copy.
    fn refused(&mut self, id: Id, status: u16, body: &Value, now: Now) {
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
        let text = why.to_ascii_lowercase();
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
    }

    /// A refusal for people. What is said of a Secret may hold what is in it: only the fields are
    /// told.
    fn explain(&self, id: Id, status: u16, body: &Value) -> String {
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

    fn doubt_namespace(&mut self, id: Id) {
        if let Some(name) = self.index.get(id).map(|entry| entry.place.namespace.clone()) {
            self.spaces.doubt(&name);
        }
    }

    fn lost_namespace(&mut self, id: Id, now: Now) {
        self.doubt_namespace(id);
        self.forget_copy(id);
        if let Some(entry) = self.index.get_mut(id)
            && !matches!(entry.copy, Copy::Absent)
        {
            entry.copy = Copy::Unknown;
        }
        self.pause(id, Work::Down, now);
    }

    fn deleted(&mut self, id: Id, now: Now) {
        let Some(entry) = self.index.get_mut(id) else { return };
        if let Some(removal) = &mut entry.removal {
            removal.sent = Some(millis(now.clock));
        }
        *entry.hold(Work::Down) = Hold::default();
    }

    /// A copy stays, without our marks.
    fn let_go(&mut self, id: Id) {
        self.missed_downstream(id);
    }

    fn written(&mut self, id: Id, ask: &Ask, body: &Value, now: Now) {
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
    fn released(&mut self, id: Id, at: u64, now: Now) {
        self.end_removal(id, true);
        self.lose_object(id);
        self.index.leave_place(id);
        self.leave_space(id);
        if let Some(entry) = self.index.get_mut(id) {
            entry.released = Some((at, millis(now.clock)));
        }
    }
}

/// An object without what an adoption changes in any case.
fn unmarked(object: &Value) -> Value {
    let mut rest = object.clone();
    if let Some(Value::Object(metadata)) = rest.get_mut("metadata") {
        for key in ["managedFields", "resourceVersion", "generation"] {
            metadata.remove(key);
        }
        for (place, key) in [("labels", SYNC_TARGET_LABEL), ("annotations", contract::UPSTREAM)] {
            if let Some(Value::Object(all)) = metadata.get_mut(place) {
                all.remove(key);
                if all.is_empty() {
                    metadata.remove(place);
                }
            }
        }
    }
    rest
}

fn is_too_large(body: &Value) -> bool {
    let text = body.get("message").and_then(Value::as_str).unwrap_or_default();
    text.contains("too large") || text.contains("larger than max")
}
