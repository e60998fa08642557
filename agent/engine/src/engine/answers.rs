//! What answers mean.

mod copies;
mod upstream;

use std::sync::Arc;
use std::time::Duration;

use contract::SYNC_TARGET_LABEL;
use serde_json::Value;

use super::entry::{Copy, Hold, Id, Place, Work};
use super::observe::revision;
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
    /// The place of a downstream object that has a mirror.
    Mirror(Place),
}

/// What was asked, with what the answer is judged by.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ask {
    GetUpstream,
    GetDownstream,
    Check,
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
    /// The digest of what is to be there.
    StatusDown(Digest),
    Replicas(i64),
    Record(RecordKey),
    RecordStatus(RecordKey, Digest),
    DeleteRecord(RecordKey),
    Event,
    GetNamespace,
    CreateNamespace,
    ListNamespace,
    DeleteNamespace,
    Identify,
    MirrorGet,
    MirrorApply,
    /// The digest of what was sent.
    MirrorStatus(Digest),
    FindSource,
    MirrorDelete,
}

// === impl Ask ===

impl Ask {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::GetUpstream => Kind::GetUpstream,
            Self::GetDownstream => Kind::GetDownstream,
            Self::Check => Kind::Check,
            Self::DryRun => Kind::DryRun,
            Self::Apply { .. } => Kind::Apply,
            Self::GiveUp => Kind::GiveUp,
            Self::Orphan => Kind::Orphan,
            Self::Delete => Kind::Delete,
            Self::Claim => Kind::Claim,
            Self::Release => Kind::Release,
            Self::Status(_) => Kind::Status,
            Self::StatusDown(_) => Kind::StatusDown,
            Self::Replicas(_) => Kind::Replicas,
            Self::Record(_) | Self::RecordStatus(..) => Kind::Record,
            Self::DeleteRecord(_) => Kind::DeleteRecord,
            Self::Event => Kind::Event,
            Self::GetNamespace => Kind::GetNamespace,
            Self::CreateNamespace => Kind::CreateNamespace,
            Self::ListNamespace => Kind::ListNamespace,
            Self::DeleteNamespace => Kind::DeleteNamespace,
            Self::Identify => Kind::Identify,
            Self::MirrorGet => Kind::MirrorGet,
            Self::MirrorApply => Kind::MirrorApply,
            Self::MirrorStatus(_) => Kind::MirrorStatus,
            Self::FindSource => Kind::FindSource,
            Self::MirrorDelete => Kind::MirrorDelete,
        }
    }

    fn work(&self) -> Work {
        match self {
            Self::GetDownstream
            | Self::Check
            | Self::DryRun
            | Self::Apply { .. }
            | Self::GiveUp
            | Self::Orphan
            | Self::Delete => Work::Down,
            Self::Record(_) | Self::RecordStatus(..) | Self::DeleteRecord(_) => Work::Record,
            Self::StatusDown(_) => Work::Status,
            _ => Work::Up,
        }
    }
}

/// What a server says, for people, bounded. Why something is refused stands at the end, after the
/// value, which may be long.
pub(super) fn message(body: &Value, status: u16) -> String {
    let text = body.get("message").and_then(Value::as_str).unwrap_or_default();
    if text.is_empty() {
        return if status == 0 { "no answer".to_owned() } else { format!("status {status}") };
    }
    let count = text.chars().count();
    if count <= LONGEST {
        return text.to_owned();
    }
    let head: String = text.chars().take(LONGEST / 2).collect();
    let tail: String = text.chars().skip(count - LONGEST / 2).collect();
    format!("{head} … {tail}")
}

/// All that a server says, for programs: never told, as it may hold what is in an object.
pub(super) fn whole_message(body: &Value) -> &str {
    body.get("message").and_then(Value::as_str).unwrap_or_default()
}

fn causes(body: &Value) -> impl Iterator<Item = &Value> {
    let causes = body.pointer("/details/causes").and_then(Value::as_array);
    causes.map(Vec::as_slice).unwrap_or_default().iter()
}

fn has_cause(body: &Value, reason: &str) -> bool {
    causes(body).any(|cause| cause.get("reason").and_then(Value::as_str) == Some(reason))
}

/// Whether a 404 is about an object; else the whole collection is missing.
pub(super) fn names_an_object(body: &Value) -> bool {
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
            Subject::Mirror(place) => return self.land_mirror(&place, &ask, &outcome, now),
            Subject::Entry(id) => id,
        };
        let Some(entry) = self.index.get_mut(id) else { return };
        entry.in_flight = false;
        entry.applying = false;
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
                Ask::Status(_) | Ask::StatusDown(_) | Ask::Replicas(_) => "StatusFailed",
                Ask::GetUpstream => "ReadFailed",
                Ask::Delete | Ask::GiveUp | Ask::Orphan => "DeleteFailed",
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
            (Ask::Check, 200) => self.checked(id, body, now),
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
            (Ask::GetDownstream | Ask::Check, 404) if names_an_object(body) => {
                self.missed_downstream(id)
            }
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
            (Ask::StatusDown(digest), 200) => self.status_applied(id, *digest, body),
            (Ask::StatusDown(_), 400..500) => self.status_refused(id, status, body, now),
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
