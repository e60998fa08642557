//! When history is old enough to be forgotten.
//!
//! Two clocks are used, as neither alone is right. While the process runs, marks by its monotonic
//! clock say which revision was the last how long ago. What an earlier process wrote is judged by
//! the time in its log entries; a wall clock that was set back keeps history longer, one that was
//! set forward between two runs may keep it shorter, which costs watches a fresh list.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::snapshot::Snapshot;
use crate::{ReadError, Revision};

/// Knows what may be forgotten.
#[derive(Debug)]
pub(crate) struct Schedule {
    history: Duration,
    interval: Duration,
    /// When to look next.
    pub(crate) next: Instant,
    /// Which revision was the last at which time; one for each interval that history spans.
    marks: VecDeque<(Instant, Revision)>,
    /// The last revision of an earlier process.
    inherited: Revision,
}

// === impl Schedule ===

impl Schedule {
    /// Keeps `history`, and looks every `interval`.
    pub(crate) fn new(
        history: Duration,
        interval: Duration,
        now: Instant,
        inherited: Revision,
    ) -> Self {
        let marks = VecDeque::from([(now, inherited)]);
        Self { history, interval, next: now + interval, marks, inherited }
    }

    /// The revision before which everything is old enough, at a monotonic and a wall time; `None`
    /// when nothing more is.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub(crate) fn tick(
        &mut self,
        now: Instant,
        wall_millis: u64,
        revision: Revision,
        snapshot: &Snapshot,
    ) -> Result<Option<Revision>, ReadError> {
        self.next = now + self.interval;
        let mut due = None;
        while let Some((_, marked)) =
            self.marks.pop_front_if(|(at, _)| now.saturating_duration_since(*at) >= self.history)
        {
            due = Some(marked);
        }
        self.marks.push_back((now, revision));
        if due.is_some() || snapshot.oldest >= self.inherited {
            return Ok(due);
        }
        let history = u64::try_from(self.history.as_millis()).unwrap_or(u64::MAX);
        let old = wall_millis.saturating_sub(history);
        let reached = last_until(snapshot, self.inherited, old)?;
        Ok((reached > snapshot.oldest).then_some(reached))
    }
}

/// The last revision up to `end` whose commit is not younger than `time`, in milliseconds since
/// 1970; times are taken to rise with revisions.
fn last_until(snapshot: &Snapshot, end: Revision, time: u64) -> Result<Revision, ReadError> {
    let (mut low, mut high) = (snapshot.oldest.0, end.0);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let old = snapshot.time(Revision(middle))?.is_some_and(|committed| committed <= time);
        if old {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Ok(Revision(low))
}
