//! What the hub is told of an object: its status, its replicas, an ObjectSync, an Event.

use std::collections::BTreeSet;

use contract::{OBJECT_SYNCS, WORKLOAD_GROUP};
use negotiation::Difference;
use serde_json::{Value, json};

use super::answers::Ask;
use super::decide::{Step, Wake};
use super::entry::{Entry, Id, State, Work};
use super::observe::text;
use super::{Engine, millis};
use crate::digest::Digest;
use crate::status::{Generations, difference, translate};
use crate::{Event, GroupResource, Now};

pub(super) fn read(bytes: Option<&[u8]>) -> Option<Value> {
    serde_json::from_slice(bytes?).ok()
}

impl Engine {
    pub(super) fn report_step(&mut self, id: Id, now: Now, wake: &mut Wake) -> Option<Step> {
        self.index.get(id)?.up.as_ref()?;
        if let Some(step) = self.status_step(id, now, wake) {
            return Some(step);
        }
        if let Some(step) = self.replicas_step(id, now, wake) {
            return Some(step);
        }
        if let Some(step) = self.record_step(id, now, wake) {
            return Some(step);
        }
        self.note_step(id, now)
    }

    /// The copy's status as the hub is to show it, and the status that it shows.
    fn statuses(&self, entry: &Entry) -> Option<(Value, Value)> {
        let (up, down) = (entry.up.as_ref()?, entry.copy_of_this()?);
        let kind = self.kind(entry.key.kind)?;
        let status = read(down.status.as_deref())?;
        let mut status = kind.rule.status_up(&json!({"status": status}))?;
        let shown = read(up.status.as_deref()).unwrap_or_else(|| json!({}));
        let generations = Generations { copy: down.generation, applied: down.applied_generation };
        translate(&mut status, generations, &shown);
        Some((status, shown))
    }

    fn status_step(&mut self, id: Id, now: Now, wake: &mut Wake) -> Option<Step> {
        let clock = millis(now.clock);
        let entry = self.index.get(id)?;
        let up = entry.up.as_ref()?;
        let goes = entry.report.dirty
            && up.state == State::Sync
            && up.others == 0
            && self.synced(entry.key.kind).is_some_and(|synced| synced.upstream_status);
        if !goes {
            return None;
        }
        let Some((status, shown)) = self.statuses(entry) else {
            self.index.get_mut(id)?.report.dirty = false;
            return None;
        };
        // What is the hub's stays as it is there.
        let (status, patch) = match self.status_rule(entry.key.kind) {
            Some(rule) => {
                let joined = rule.joined(status, &shown);
                let patch = rule.patch(&shown, &joined);
                (joined, patch)
            }
            None => {
                let patch = difference(&shown, &status);
                (status, patch)
            }
        };
        let digests = (Digest::of(&status), Digest::of(&shown));
        let patch = patch.filter(|_| entry.report.settled != Some(digests));
        let Some(patch) = patch else {
            let entry = self.index.get_mut(id)?;
            entry.report.dirty = false;
            entry.report.settled = Some(digests);
            self.clear_problem(id, Work::Up);
            return None;
        };
        self.held(id, Work::Up, now, wake)?;
        let interval = millis(self.target.limits.status_interval);
        let entry = self.index.get_mut(id)?;
        let next = entry.report.at.saturating_add(interval);
        if entry.report.at != 0 && clock < next {
            wake.at(next);
            return None;
        }
        entry.report.at = clock.max(1);
        let request = self.patch_upstream(id, "status", json!({"status": patch}))?;
        Some((Ask::Status(digests.0), request))
    }

    /// Replicas that the target has set go up, where that is allowed.
    fn replicas_step(&mut self, id: Id, now: Now, wake: &mut Wake) -> Option<Step> {
        let entry = self.index.get(id)?;
        let up = entry.up.as_ref()?;
        let replicas = entry.copy_of_this()?.replicas?;
        let goes = up.flags.yields
            && up.is_wanted()
            && up.others == 0
            && up.replicas != Some(replicas)
            && self.synced(entry.key.kind).is_some_and(|synced| synced.upstream_scale);
        if !goes {
            return None;
        }
        self.held(id, Work::Up, now, wake)?;
        let patch = json!({"spec": {"replicas": replicas}});
        Some((Ask::Replicas(replicas), self.patch_upstream(id, "scale", patch)?))
    }

    fn record_step(&mut self, id: Id, now: Now, wake: &mut Wake) -> Option<Step> {
        let entry = self.index.get(id)?;
        let up = entry.up.as_ref()?;
        let copied = up.others > 0 && up.is_wanted() && entry.copy_of_this().is_some();
        let wanted = entry.problem.is_some() || copied;
        if !self.knows_records {
            return None;
        }
        if !wanted && (self.records.is_empty() || self.is_busy(entry)) {
            return None;
        }
        let (namespace, name) = self.record_name(entry)?;
        let key = (entry.key.cluster.clone(), namespace.into(), name.into());
        let is_there = self.records.contains(&key);
        if !wanted {
            if !is_there {
                return None;
            }
            self.held(id, Work::Record, now, wake)?;
            return Some((Ask::DeleteRecord(key), self.delete_record(id)?));
        }
        let status = self.record_status(entry, now);
        let digest = Digest::of(&without_times(&status));
        if is_there && entry.recorded == Some(digest) {
            return None;
        }
        self.held(id, Work::Record, now, wake)?;
        if !is_there {
            return Some((Ask::Record(key), self.record(id, None)?));
        }
        Some((Ask::RecordStatus(key, digest), self.record(id, Some(&status))?))
    }

    /// Whether it is still open how an object is: its record stays as it is until then.
    fn is_busy(&self, entry: &Entry) -> bool {
        !entry.is_going()
            && !Self::is_current(entry)
            && entry.up.as_ref().is_some_and(|up| up.is_wanted())
    }

    fn record_status(&self, entry: &Entry, now: Now) -> Value {
        let generation = entry.up.as_ref().map_or(0, |up| up.generation);
        let condition = |kind: &str, status: &str, reason: &str, message: &str| {
            let since = entry.problem.as_ref().filter(|_| status != "Unknown");
            let since = since.map_or(now.wall, |problem| problem.since);
            json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "observedGeneration": generation, "lastTransitionTime": seconds(since),
            })
        };
        let problem = entry.problem.as_ref();
        let applied = match problem {
            Some(problem) if problem.of == Work::Down && problem.reason == "Deleting" => {
                condition("Applied", "True", problem.reason, &problem.message)
            }
            Some(problem) if problem.of == Work::Down => {
                condition("Applied", "False", problem.reason, &problem.message)
            }
            Some(problem) => condition("Applied", "True", problem.reason, &problem.message),
            None if Self::is_current(entry) => condition("Applied", "True", "Applied", ""),
            None => condition("Applied", "Unknown", "Pending", ""),
        };
        let drifted = if problem.is_some_and(|problem| problem.reason == "Drifted") {
            condition("Drifted", "True", "Drifted", "")
        } else {
            condition("Drifted", "False", "AsApplied", "")
        };
        let drift: Vec<_> = { entry.drift.iter() }
            .filter(|_| problem.is_some_and(|problem| problem.reason == "Drifted"))
            .map(|field| {
                json!({
                    "path": field.path, "desired": field.desired, "live": field.live,
                    "manager": field.manager,
                    "firstSeen": seconds(problem.map_or(now.wall, |problem| problem.since)),
                    "lastSeen": seconds(now.wall),
                })
            })
            .collect();
        let statuses = self.statuses(entry).map(|(status, _)| status);
        let (healthy, reason) = health(statuses.as_ref());
        let mut status = json!({
            "conditions": [applied, condition("Healthy", healthy, reason, ""), drifted],
            "lastReported": seconds(now.wall),
        });
        if !drift.is_empty() {
            status["drift"] = drift.into();
        }
        let hurts = entry.checked.as_ref().map(|checked| &*checked.hurts).unwrap_or_default();
        if problem.is_some_and(|problem| problem.reason == "Incompatible") && !hurts.is_empty() {
            status["differences"] = hurts.iter().map(difference_of).collect();
        }
        if let Some(down) = entry.copy_of_this() {
            status["upstreamGeneration"] = down.applied_generation.into();
            status["downstreamGeneration"] = down.generation.into();
            let own = read(down.status.as_deref());
            if let Some(observed) = own.as_ref().and_then(|own| own.get("observedGeneration")) {
                status["downstreamObservedGeneration"] = observed.clone();
            }
        }
        if let Some(raw) = statuses {
            status["raw"] = raw;
        }
        status
    }

    pub(super) fn see_record(&mut self, event: Event) {
        let key = |engine: &Self, object: &Value| {
            let cluster = if engine.target.wildcard {
                super::observe::mark(object, "annotations", contract::CLUSTER_ANNOTATION)?
            } else {
                &engine.target.cluster
            };
            let (namespace, name) = (text(object, "namespace"), text(object, "name"));
            Some((cluster.into(), namespace.into(), name.into()))
        };
        match event {
            Event::InitStart => self.listed_records = Some(BTreeSet::new()),
            Event::Applied(object) => {
                let key = key(self, &object);
                if let Some(listed) = &mut self.listed_records {
                    listed.extend(key);
                } else {
                    self.records.extend(key);
                }
            }
            Event::Deleted(object) => {
                if let Some(key) = key(self, &object) {
                    self.records.remove(&key);
                }
            }
            Event::InitDone { .. } => {
                self.knows_records = true;
                self.records = self.listed_records.take().unwrap_or_default();
                // What is healthy again has none; what has a problem has one.
                let all: Vec<_> = self.index.iter().map(|(id, _)| id).collect();
                all.into_iter().for_each(|id| self.touch(id));
            }
            Event::Bookmark { .. } => {}
        }
    }

    /// The type of ObjectSyncs, which the driver watches with the label of the target.
    pub fn record_type() -> (GroupResource, &'static str) {
        (GroupResource::new(WORKLOAD_GROUP, OBJECT_SYNCS), "v1alpha1")
    }
}

/// Whether a copy works, by its conditions `Available` or `Ready`. Without them nobody knows: that
/// is not the same as healthy.
fn health(status: Option<&Value>) -> (&'static str, &'static str) {
    let conditions = status.and_then(|status| status.get("conditions")).and_then(Value::as_array);
    for kind in ["Available", "Ready"] {
        let is = |condition: &&Value| condition.get("type").and_then(Value::as_str) == Some(kind);
        let found = conditions.into_iter().flatten().find(is);
        match found.and_then(|condition| condition.get("status")).and_then(Value::as_str) {
            Some("True") => return ("True", kind),
            Some("False") => return ("False", "Unhealthy"),
            _ => {}
        }
    }
    ("Unknown", "NoCondition")
}

/// A difference between definitions, as ObjectSyncs have it.
fn difference_of(difference: &Difference) -> Value {
    let said = { difference.said.iter() }
        .map(|said| json!({"value": said.value, "targets": said.targets}));
    json!({
        "path": difference.path, "what": difference.what, "message": difference.message,
        "blocking": difference.blocking, "said": said.collect::<Vec<_>>(),
    })
}

fn seconds(moment: jiff::Timestamp) -> String {
    let whole = jiff::Timestamp::from_second(moment.as_second());
    whole.unwrap_or(moment).to_string()
}

/// A record's status without what changes by itself.
fn without_times(status: &Value) -> Value {
    let mut rest = status.clone();
    if let Value::Object(members) = &mut rest {
        members.remove("lastReported");
        let drift = members.get_mut("drift").and_then(Value::as_array_mut);
        for field in drift.into_iter().flatten() {
            if let Value::Object(members) = field {
                members.remove("lastSeen");
            }
        }
        let conditions = members.get_mut("conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            if let Value::Object(members) = condition {
                members.remove("lastTransitionTime");
            }
        }
    }
    rest
}
