//! How everything is, in numbers.

use super::Engine;
use super::Kind;
use super::entry::Entry;
use crate::{GroupResource, Summary};

// === impl Engine ===

impl Engine {
    /// Counts and conditions as of now.
    pub fn summary(&self) -> Summary {
        let (mirrors, failed_mirrors, mirror_problem) = self.mirrors.counts();
        let mut summary = Summary {
            copies: self.index.copies(),
            paused: self.brake.paused().or_else(|| self.mirrors.paused()),
            undecided: self.brake.is_undecided() || self.mirrors.is_undecided(),
            mirrors,
            failed_mirrors,
            mirror_problem,
            upstream_changed: self.hub.change(),
            missing_types: self.missing_types(),
            dropped_events: self.dropped_events,
            complete: { self.kinds.iter() }
                .filter(|kind| kind.synced.is_some() && !kind.rule.never)
                .all(|kind| kind.streams.iter().all(|stream| stream.complete)),
            ..Summary::default()
        };
        for (_, entry) in self.index.iter() {
            summary.orphans += u64::from(entry.is_orphan());
            if let Some(problem) = &entry.problem {
                summary.failed += 1;
                *summary.problems.entry(problem.reason).or_default() += 1;
            } else if entry.up.as_ref().is_some_and(|up| up.is_wanted()) {
                let is_there = Self::is_current(entry);
                summary.synced += u64::from(is_there);
                summary.pending += u64::from(!is_there);
            }
        }
        summary
    }

    /// Whether a copy is there as it is to be.
    pub(super) fn is_current(entry: &Entry) -> bool {
        let (Some(up), Some(down)) = (&entry.up, entry.ours()) else { return false };
        down.of == up.uid && down.digest == Some(up.digest) && down.good == Some(down.view)
    }

    fn missing_types(&self) -> Vec<GroupResource> {
        let missing = |kind: &&Kind| {
            kind.synced.is_some() && kind.missing.iter().any(|hold| hold.failures > 0)
        };
        self.kinds.iter().filter(missing).map(|kind| kind.resource.clone()).collect()
    }
}
