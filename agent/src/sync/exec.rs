//! Making the engine's requests, and telling what became of them.

use std::time::Duration;

use client::{Error, Link, Told};
use engine::{Action, ActionId, Failure, Kind, Outcome, Side};
use serde_json::Value;
use tokio::time::Instant;

use super::side::{self, Upstream};
use crate::metrics::Metrics;

/// What became of an action.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) id: ActionId,
    pub(super) kind: Kind,
    pub(super) side: Side,
    pub(super) outcome: Outcome,
    pub(super) took: Duration,
}

/// Makes a request.
pub(super) async fn execute(upstream: Upstream, downstream: Link, action: Action) -> Done {
    let Action { id, kind, request } = action;
    let side = request.side;
    let begun = Instant::now();
    let outcome = match side::send(&upstream, &downstream, request).await {
        Ok(told) => answer(&told),
        Err(error) => Outcome::Failed(failure(&error)),
    };
    Done { id, kind, side, outcome, took: begun.elapsed() }
}

fn answer(told: &Told) -> Outcome {
    Outcome::Answer {
        status: told.status.as_u16(),
        body: serde_json::from_slice(&told.body).unwrap_or(Value::Null),
        retry_after: told.retry_after,
    }
}

/// Whether a failure is that of the server, or of one request.
fn failure(error: &Error) -> Failure {
    match error {
        Error::Late { .. } | Error::TooLarge { .. } => Failure::Timeout,
        _ => Failure::Unreachable,
    }
}

impl Done {
    /// Measures it.
    pub(super) fn measure(&self, metrics: &Metrics) {
        let outcome = match &self.outcome {
            Outcome::Answer { status: 200..=299, .. } => "ok",
            Outcome::Answer { status: 404, .. } => "missing",
            Outcome::Answer { status: 409, .. } => "conflict",
            Outcome::Answer { status: 400..=499, .. } => "refused",
            Outcome::Answer { .. } => "failed",
            Outcome::Failed(_) => "unanswered",
        };
        metrics.requests.with_label_values(&[self.kind.name(), outcome]).inc();
        let side = side::name(self.side);
        if self.kind.is_write() {
            metrics.writes.with_label_values(&[side]).inc();
        }
        metrics.request_seconds.with_label_values(&[side]).observe(self.took.as_secs_f64());
    }
}
