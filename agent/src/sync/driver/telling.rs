//! How it goes, told to probes, metrics, and in the SyncTarget's status; and what the next process is
//! to know.

use std::time::Duration;

use engine::Memory;
use futures::future::{BoxFuture, FutureExt};
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;
use tracing::debug;

use super::Driver;
use crate::identity::Standing;
use crate::sync::Progress;
use crate::sync::side::Shape;
use crate::sync::status::{self, Facts};

/// The shortest time between two writes of the status.
const STATUS_INTERVAL: Duration = Duration::from_secs(5);

/// How long after it could not be written the status is written again.
const STATUS_AGAIN: Duration = Duration::from_secs(10);

/// What a sync waits for at first.
pub(super) const HUB: &str = "the hub";

/// The states of objects that are counted.
const GAUGES: [&str; 5] = ["synced", "failed", "pending", "orphan", "copy"];

/// Writes the status now and then, one write at a time.
#[derive(Default)]
pub(super) struct StatusWriter {
    written: Option<Value>,
    pub(super) due: Option<Instant>,
    pub(super) running: Option<BoxFuture<'static, Option<Value>>>,
}

// === impl Driver ===

impl Driver {
    /// Tells how it goes: to probes, metrics, and the SyncTarget's status.
    pub(super) fn report(&mut self) {
        self.hand_over();
        let mut summary = self.engine.summary();
        // What a person has accepted is told when it is kept, lest the next process asks again.
        let is_kept = self.settings.handover.as_ref().is_none_or(|handover| !handover.is_urgent());
        if summary.upstream_changed.is_none() && !is_kept {
            summary.upstream_changed = self.told_change;
        }
        self.told_change = summary.upstream_changed;
        self.following.poke.often(summary.undecided);
        let waits_for = if !self.known {
            HUB
        } else if self.following.reach.borrow().answers != Some(true) {
            "the physical cluster"
        } else if !summary.complete {
            "the first lists"
        } else {
            ""
        };
        let told = Progress { complete: summary.complete, waits_for: waits_for.to_owned() };
        self.progress.send_if_modified(|present| {
            let changed = *present != told;
            *present = told;
            changed
        });
        let counts =
            [summary.synced, summary.failed, summary.pending, summary.orphans, summary.copies];
        for ((name, count), gauged) in GAUGES.iter().zip(counts).zip(&mut self.gauged) {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            if count != *gauged {
                self.settings.metrics.objects.with_label_values(&[name]).add(count - *gauged);
                *gauged = count;
            }
        }
        let dropped = summary.dropped_events.saturating_sub(self.dropped_events);
        self.settings.metrics.dropped_events.inc_by(dropped);
        self.dropped_events = summary.dropped_events;
        if self.settings.upstream.shape == Shape::Hub && self.known {
            let standing = self.settings.standing.as_ref().map(|s| s.borrow().clone());
            let facts = Facts {
                standing: standing.filter(|standing| *standing != Standing::Unknown),
                reach: self.following.reach.borrow().clone(),
                summary,
                agent_version: self.settings.version.to_owned(),
            };
            self.write_status(&facts);
        }
    }

    /// Keeps what was seen of the hub for the next process: at once, if it is more than a revision.
    fn hand_over(&mut self) {
        let Some(handover) = &self.settings.handover else { return };
        let Some(memory) = self.engine.memory() else { return };
        let Ok(text) = serde_json::to_string(&memory) else { return };
        let rest = |memory: &Memory| Memory { revision: 0, ..memory.clone() };
        if self.handed.as_ref().map(rest) == Some(rest(&memory)) {
            handover.set(text);
        } else {
            handover.set_now(text);
        }
        self.handed = Some(memory);
    }

    fn write_status(&mut self, facts: &Facts) {
        let now = Instant::now();
        let writer = &mut self.status;
        if writer.running.is_some() || self.object.is_null() {
            return;
        }
        // What was written is what is there; before, what the SyncTarget says.
        let present = match &writer.written {
            Some(written) => written,
            None => &*self.object,
        };
        let wanted = status::body(facts, present, Timestamp::now());
        let written = writer.written.as_ref().and_then(|written| written.get("status"));
        if written == Some(&wanted) {
            writer.due = None;
            return;
        }
        if writer.due.is_some_and(|due| due > now) {
            return;
        }
        if written.is_none() && says(&self.object, &wanted) {
            // As the agent before has left it: nothing is written.
            writer.written = Some(status::object(&self.settings.target.name, &wanted));
            return;
        }
        let object = status::object(&self.settings.target.name, &wanted);
        let hub = self.settings.upstream.link.clone();
        let path = format!(
            "{}/status?fieldManager={}&force=true",
            self.settings.target.path(),
            contract::AGENT
        );
        writer.due = Some(now + STATUS_INTERVAL);
        writer.running = Some(
            async move {
                let apply = "application/apply-patch+yaml";
                let body = object.to_string().into_bytes();
                let ask = client::Ask::with(http::Method::PATCH, &path, apply, body);
                match hub.ask(ask).await {
                    Ok(told) if told.status.is_success() => Some(object),
                    Ok(told) => {
                        debug!(status = told.status.as_u16(), "the status is not written");
                        None
                    }
                    Err(error) => {
                        debug!(%error, "the status is not written");
                        None
                    }
                }
            }
            .boxed(),
        );
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.hand_over();
        for (name, gauged) in GAUGES.iter().zip(self.gauged) {
            self.settings.metrics.objects.with_label_values(&[name]).sub(gauged);
        }
        self.settings.metrics.in_flight.set(0);
    }
}

// === impl StatusWriter ===

impl StatusWriter {
    pub(super) fn done(&mut self, written: Option<Value>) {
        self.running = None;
        match written {
            Some(written) => self.written = Some(written),
            None => self.due = Some(Instant::now() + STATUS_AGAIN),
        }
    }
}

/// Whether an object's status says all of this already.
fn says(object: &Value, wanted: &Value) -> bool {
    let Some(status) = object.get("status") else { return false };
    let Some(wanted) = wanted.as_object() else { return false };
    wanted.iter().all(|(field, value)| match (field.as_str(), value) {
        ("conditions", Value::Array(conditions)) => {
            let there = status.get("conditions").and_then(Value::as_array);
            conditions.iter().all(|condition| there.is_some_and(|all| all.contains(condition)))
        }
        _ => status.get(field) == Some(value),
    })
}
