//! Answers about mirrors and their sources.

use serde_json::{Value, json};

use super::{Mirror, There};
use crate::digest::Digest;
use crate::engine::answers::{Ask, message, names_an_object};
use crate::engine::entry::{Hold, Place};
use crate::engine::observe::{revision, text};
use crate::engine::{Engine, millis};
use crate::{Failure, Now, Outcome};

/// What a live list says of a source.
enum Found {
    /// It is gone, or going.
    Gone,
    /// It is there.
    There,
    /// Nobody can tell.
    Unsure(&'static str),
}

impl Engine {
    pub(in crate::engine) fn land_mirror(
        &mut self,
        place: &Place,
        ask: &Ask,
        outcome: &Outcome,
        now: Now,
    ) {
        if *ask == Ask::Identify && std::mem::take(&mut self.mirrors.identifying) {
            self.mirrors.touch_all();
        }
        let Some(mirror) = self.mirrors.all.get_mut(place) else { return };
        mirror.in_flight = false;
        let (status, body) = match outcome {
            // The side pauses as a whole.
            Outcome::Answer { status: 401 | 429, .. } => (0, &Value::Null),
            Outcome::Answer { status, body, .. } => (*status, body),
            Outcome::Failed(failure) => {
                if *failure == Failure::Timeout {
                    self.refuse_mirror(place, "UpsyncFailed", "it took too long", now);
                }
                (0, &Value::Null)
            }
        };
        if status == 0 {
            if matches!(ask, Ask::MirrorApply | Ask::MirrorDelete)
                && let Some(mirror) = self.mirrors.all.get_mut(place)
            {
                // Nobody knows whether it was done.
                mirror.there.doubt();
                (mirror.gone, mirror.proven) = (None, None);
            }
        } else {
            self.judge_mirror(place, ask, status, body, now);
        }
        self.mirrors.touch(place);
    }

    fn judge_mirror(&mut self, place: &Place, ask: &Ask, status: u16, body: &Value, now: Now) {
        let why = message(body, status);
        match (ask, status) {
            (Ask::MirrorGet, 200) => {
                let body = self.of_cluster(place, body);
                if !self.see_mirror(place.kind, &body, false) {
                    self.set_there(place, There::Foreign);
                    let why =
                        "an object of that name is at the hub, which was not made of this one";
                    self.refuse_mirror(place, "Collision", why, now);
                }
            }
            (Ask::MirrorGet | Ask::MirrorDelete, 404) if names_an_object(body) => {
                self.set_there(place, There::Absent);
            }
            // Where nothing is, an agent is told so: this is somebody else's.
            (Ask::MirrorGet, 403) => {
                self.set_there(place, There::Foreign);
                self.refuse_mirror(place, "Collision", &why, now);
            }
            (Ask::MirrorApply, 200 | 201) => {
                let body = self.of_cluster(place, body);
                if self.see_mirror(place.kind, &body, true) {
                    self.settle_mirror(place, 0);
                } else {
                    self.set_there(place, There::Unknown);
                    self.refuse_mirror(place, "UpsyncFailed", "it is not as applied", now);
                }
            }
            (Ask::MirrorApply, 409) => {
                self.set_there(place, There::Unknown);
                self.refuse_mirror(place, "Collision", &why, now);
            }
            (Ask::MirrorApply, 403) => {
                self.set_there(place, There::Foreign);
                self.refuse_mirror(place, "UpsyncForbidden", &why, now);
            }
            (Ask::MirrorStatus(sent), 200) => self.told_status(place, *sent, body, now),
            (Ask::FindSource, 200) => self.found_source(place, body, now),
            (Ask::Identify, 200) => self.identified(place, text(body, "uid"), now),
            (Ask::MirrorDelete, 200 | 202) => {
                self.set_there(place, There::Unknown);
                self.settle_mirror(place, 0);
                if let Some(mirror) = self.mirrors.all.get_mut(place) {
                    self.mirrors.brake.forget(mirror.id, true);
                    (mirror.gone, mirror.proven) = (None, None);
                }
            }
            (Ask::MirrorDelete, 403 | 409) => self.set_there(place, There::Unknown),
            _ => {
                let reason = if *ask == Ask::FindSource || *ask == Ask::Identify {
                    "SourceUnknown"
                } else {
                    "UpsyncFailed"
                };
                self.refuse_mirror(place, reason, &why, now);
            }
        }
    }

    /// An object of the hub with the logical cluster that it was asked for in: single objects may not
    /// say it.
    fn of_cluster(&self, place: &Place, body: &Value) -> Value {
        let mut body = body.clone();
        if self.target.wildcard
            && let Some(key) = self.mirrors.all.get(place).and_then(|mirror| mirror.key.as_ref())
            && let Some(Value::Object(metadata)) = body.get_mut("metadata")
        {
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            annotations[contract::CLUSTER_ANNOTATION] = (&*key.cluster).into();
        }
        body
    }

    fn set_there(&mut self, place: &Place, there: There) {
        if let Some(mirror) = self.mirrors.all.get_mut(place) {
            mirror.there = there;
        }
    }

    /// Something went well; the next look is not before `until`.
    fn settle_mirror(&mut self, place: &Place, until: u64) {
        if let Some(mirror) = self.mirrors.all.get_mut(place) {
            mirror.hold = Hold { failures: 0, until };
            mirror.problem = None;
        }
    }

    fn refuse_mirror(&mut self, place: &Place, reason: &'static str, why: &str, now: Now) {
        self.keep_mirror(place, reason, why, millis(now.clock));
    }

    fn told_status(&mut self, place: &Place, sent: Digest, body: &Value, now: Now) {
        let body = self.of_cluster(place, body);
        self.see_mirror(place.kind, &body, false);
        let shown = body.get("status").cloned().unwrap_or_else(|| json!({}));
        let next = millis(now.clock).saturating_add(millis(self.target.limits.status_interval));
        self.settle_mirror(place, next);
        if let Some(mirror) = self.mirrors.all.get_mut(place) {
            mirror.settled = Some((sent, Digest::of(&shown)));
        }
    }

    fn found_source(&mut self, place: &Place, list: &Value, now: Now) {
        let Some(mirror) = self.mirrors.all.get(place) else { return };
        match look(place, mirror, list) {
            Found::Gone => {
                if let Some(mirror) = self.mirrors.all.get_mut(place) {
                    mirror.gone = Some(millis(now.clock));
                    mirror.proven = None;
                }
            }
            Found::Unsure(why) => self.refuse_mirror(place, "SourceUnknown", why, now),
            Found::There => {
                // A watch that is late, or somebody has taken the label off.
                for item in list.get("items").and_then(Value::as_array).into_iter().flatten() {
                    self.see_source(place.kind, item);
                }
                let goes = self.mirrors.all.get(place).is_some_and(|one| one.source.is_some());
                if !goes {
                    let why = "its source is there, and is no longer to go up";
                    self.refuse_mirror(place, "NoLongerUpsynced", why, now);
                }
            }
        }
    }

    fn identified(&mut self, place: &Place, uid: &str, now: Now) {
        self.mirrors.cluster = Some(uid.into());
        let Some(mirror) = self.mirrors.all.get_mut(place) else { return };
        let There::Ours(risen) = &mirror.there else { return };
        if *risen.locator.cluster == *uid {
            mirror.proven = mirror.gone.is_some().then(|| millis(now.clock));
        } else if mirror.source.as_ref().is_none_or(|source| source.deleting) {
            let why = "it was made of an object of another physical cluster";
            self.refuse_mirror(place, "OtherCluster", why, now);
        }
    }
}

/// What a live list of the one object says of the source that a mirror was made of.
fn look(place: &Place, mirror: &Mirror, list: &Value) -> Found {
    let There::Ours(risen) = &mirror.there else { return Found::Unsure("it is not known") };
    let Some(items) = list.get("items").and_then(Value::as_array) else {
        return Found::Unsure("the physical cluster gives no list");
    };
    // A cluster that was restored from an old backup doesn't know what came after it.
    if revision(list) < risen.locator.revision() {
        return Found::Unsure("the physical cluster has gone back in time");
    }
    let more = list.pointer("/metadata/continue").and_then(Value::as_str).unwrap_or_default();
    let mut named = items.iter().filter(|item| text(item, "name") == &*place.name);
    match (named.next(), named.next()) {
        (None, None) if more.is_empty() => Found::Gone,
        (Some(item), None) if text(item, "namespace") == &*place.namespace => {
            let same = text(item, "uid") == risen.locator.uid;
            let going = !text(item, "deletionTimestamp").is_empty();
            if same && !going { Found::There } else { Found::Gone }
        }
        _ => Found::Unsure("the physical cluster's list is not what was asked for"),
    }
}

// === impl There ===

impl There {
    /// It has to be looked at.
    fn doubt(&mut self) {
        if !matches!(self, Self::Ours(_)) {
            *self = Self::Unknown;
        }
    }
}
