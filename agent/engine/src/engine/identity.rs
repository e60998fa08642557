//! Whether the hub is the one that it was.
//!
//! A hub goes back in time in two ways. A file of its store that is put back shows revisions again
//! that it has shown before: a list, or a live read, is older than what is known. A backup that is
//! imported shows only higher ones: it is another incarnation of the hub, whose number stands above
//! all revisions from before ([`Identity::incarnation`]).

use std::sync::Arc;

use crate::{Approvals, Identity, Memory, UpstreamChange};

use super::Engine;
use super::entry::{Copy, Down, Id, Up};

/// What is known of the hub.
#[derive(Debug, Default)]
pub(super) struct Upstream {
    /// Whether it is the known one, as far as was seen.
    known: bool,
    /// It is another one.
    other: bool,
    /// It has been known before.
    met: bool,
    /// The newest revision that it, or a copy, has shown.
    pub(super) newest: u64,
    /// The newest revision that it has shown itself.
    shown: u64,
    /// The newest revision of a whole list.
    listed: Option<u64>,
    /// The newest revision that a copy says it was made of: before this process, or by it.
    copied: u64,
    /// The oldest revision that a copy says it was made of.
    oldest: Option<u64>,
    /// What a former process was shown.
    remembered: u64,
    /// It has shown older revisions since; the newest from before.
    older: Option<u64>,
    /// That was more than one old list.
    definite: bool,
    /// A person has accepted that it has gone back to this revision.
    accepted: Option<u64>,
    /// The revision up to which it had gone back.
    back_at: u64,
    /// The incarnation that it has, or had before, as this process or a former one knows it.
    incarnation: Option<u64>,
    /// It was restored since something was seen or copied.
    restored: bool,
    /// The incarnation that a person has accepted.
    accepted_incarnation: Option<u64>,
}

// === impl Upstream ===

impl Upstream {
    /// Whether what it says counts as evidence.
    pub(super) fn is_trusted(&self) -> bool {
        self.known && !self.other && self.older.is_none() && !self.restored
    }

    /// Whether nothing may be done at all: it is another one, or nobody knows yet.
    pub(super) fn is_strange(&self) -> bool {
        self.other || !self.met
    }

    pub(super) fn change(&self) -> Option<UpstreamChange> {
        if self.other {
            return Some(UpstreamChange::Identity);
        }
        if let Some(incarnation) = self.incarnation.filter(|_| self.restored) {
            return Some(UpstreamChange::Restored(incarnation));
        }
        self.older.map(UpstreamChange::Older)
    }

    /// It has shown a revision.
    pub(super) fn see(&mut self, revision: u64) {
        self.newest = self.newest.max(revision);
        self.shown = self.shown.max(revision);
        if !self.definite && self.older.is_some_and(|older| revision >= older) {
            // It was a slow cache, or a list that was asked for before the newest was shown.
            self.older = None;
        }
    }

    /// A former process was shown this much. Lists come later, so each has to be newer.
    pub(super) fn remember(&mut self, memory: &Memory) {
        self.remembered = self.remembered.max(memory.revision);
        self.newest = self.newest.max(memory.revision);
        if memory.gone_back.is_some() {
            self.older = memory.gone_back;
            self.back_at = memory.back_at;
            self.definite = true;
            // What it shows since then is older, as everybody knows.
            self.remembered = 0;
        }
        self.accepted = memory.accepted;
        self.accepted_incarnation = memory.accepted_incarnation;
        self.incarnation = Some(memory.incarnation);
    }

    /// What the next process is to know, as long as it is certain.
    fn memory(&self, hub: &Arc<str>, target: &Arc<str>) -> Option<Memory> {
        let is_sure = self.older.is_none() || self.definite;
        let is_known = self.known && !self.other && !self.restored;
        (is_known && is_sure && self.newest > 0).then(|| Memory {
            hub: hub.clone(),
            target: target.clone(),
            incarnation: self.incarnation.unwrap_or_default(),
            revision: self.newest,
            gone_back: self.older,
            back_at: self.back_at,
            accepted: self.accepted,
            accepted_incarnation: self.accepted_incarnation,
        })
    }

    /// It is of this incarnation.
    fn enter(&mut self, incarnation: u64) {
        let before = self.incarnation.replace(incarnation);
        let is_other = before.is_some_and(|before| before != incarnation);
        if is_other && self.accepted_incarnation != Some(incarnation) {
            self.restored = true;
        }
        self.compare_copies();
    }

    /// Whether a revision is from before the hub was made of a backup.
    fn is_before(&self, revision: u64) -> bool {
        self.incarnation.is_some_and(|incarnation| revision <= incarnation)
    }

    fn compare_copies(&mut self) {
        let before = self.oldest.is_some_and(|oldest| oldest > 0 && self.is_before(oldest));
        self.restored |= before && self.accepted_incarnation != self.incarnation;
    }

    /// A list that should have seen `mark` shows `revision` as its newest. Whether it has.
    ///
    /// An old list alone may come from a slow cache: that is over as soon as something newer is
    /// shown. What live reads show is not, nor a list that is older than what was remembered.
    pub(super) fn see_whole(&mut self, revision: u64, mark: u64) -> bool {
        // What a copy was made of while this list was on its way, the hub has shown elsewhere.
        let is_told = self.accepted.is_some() || self.copied <= self.shown;
        let mark = if is_told { mark } else { mark.max(self.copied) };
        self.listed = self.listed.max(Some(revision));
        let is_new = revision >= mark;
        if revision < self.remembered {
            self.go_back(revision);
            return false;
        }
        if !is_new {
            self.doubt(revision);
        }
        self.see(revision);
        is_new
    }

    /// A copy says that it was made of this revision.
    pub(super) fn see_copy(&mut self, revision: u64) {
        self.copied = self.copied.max(revision);
        self.oldest = Some(self.oldest.map_or(revision, |oldest| oldest.min(revision)));
        let shown = self.newest;
        if self.accepted.is_none() && revision > shown && self.listed.is_some() {
            self.doubt(shown);
        }
        self.newest = self.newest.max(revision);
        self.compare_copies();
    }

    fn doubt(&mut self, revision: u64) {
        self.older = self.older.max(Some(self.newest.max(self.copied)));
        self.back_at = revision;
    }

    /// A live read has shown an object as it was at a revision, after a later one was known.
    pub(super) fn go_back(&mut self, revision: u64) {
        self.doubt(revision);
        self.definite = true;
    }

    /// Whether it is known to have gone back.
    pub(super) fn is_back(&self) -> bool {
        self.definite || self.restored
    }

    /// Whether what was processed at a revision is no measure any more: the hub has gone back behind
    /// it, and this was accepted.
    fn is_void(&self, known: u64) -> bool {
        let of_before = self.accepted_incarnation.is_some_and(|accepted| known <= accepted);
        of_before || self.accepted.is_some_and(|accepted| known > accepted)
    }

    /// Whether an object of `revision` may not be older than what was processed at `known`.
    pub(super) fn is_current(&self, revision: u64, known: u64) -> bool {
        revision >= known || self.is_void(known)
    }

    /// Whether an object is older than what its copy was made of: generations never go down, not
    /// even if a restored hub counts its revisions from above those that it had. Once a person has
    /// accepted that it has gone back, generations from before say nothing.
    pub(super) fn is_older(&self, up: &Up, down: &Down) -> bool {
        let void = self.accepted.is_some() || self.is_void(down.applied_revision);
        up.uid == down.of
            && (!self.is_current(up.revision, down.applied_revision)
                || (!void && up.generation < down.applied_generation))
    }

    /// A person accepts it as it is, by the number that was shown. Whether that changes anything.
    fn accept(&mut self, number: Option<u64>) -> bool {
        if self.restored && number.is_some() && number == self.incarnation {
            self.accepted_incarnation = self.incarnation;
            self.restored = false;
            // What showed that is explained by it.
            self.older = None;
            self.definite = false;
            return true;
        }
        if self.older.is_none() || self.older != number {
            return false;
        }
        self.accepted = Some(self.listed.unwrap_or(self.back_at).min(self.back_at));
        self.older = None;
        self.definite = false;
        self.remembered = 0;
        self.newest = self.back_at;
        true
    }
}

// === impl Engine ===

impl Engine {
    pub(super) fn see_identity(&mut self, identity: Option<&Identity>) {
        let Some(identity) = identity else {
            self.hub.known = false;
            // What was read over a connection that has broken since is no evidence.
            let all: Vec<_> = self.index.iter().map(|(id, _)| id).collect();
            for id in all {
                if let Some(removal) = self.index.get_mut(id).and_then(|one| one.removal.as_mut()) {
                    removal.evidence = None;
                }
            }
            return;
        };
        let is_same = identity.is(&self.target.identity);
        if is_same {
            self.hub.enter(identity.incarnation);
        }
        self.hub.other = !is_same;
        self.hub.met |= is_same;
        if !std::mem::replace(&mut self.hub.known, is_same) && is_same {
            self.touch_removals();
        }
    }

    pub(super) fn hub_memory(&self) -> Option<Memory> {
        let Identity { hub, target, .. } = &self.target.identity;
        self.hub.memory(hub, target)
    }

    /// Approvals of deletes count when they are given: one that was there before, or that a former
    /// process may have used, doesn't approve the next wave of the same number.
    pub(super) fn see_approvals(&mut self, before: Option<Approvals>, exempted: bool) {
        let Some(approvals) = self.approvals else { return };
        if self.hub.accept(approvals.upstream) || exempted {
            self.touch_removals();
        }
        let Some(before) = before else { return };
        if approvals.deletions != before.deletions {
            for id in self.brake.approve(approvals.deletions) {
                self.touch(id);
            }
            if !self.mirrors.brake().approve(approvals.deletions).is_empty() {
                self.mirrors.touch_all();
            }
        }
        let orphans = self.orphans();
        let number = approvals.orphans.filter(|_| approvals.orphans != before.orphans);
        if number.is_some_and(|number| number > 0 && number == orphans.len() as u64) {
            for id in orphans {
                self.given_up.insert(id);
                self.touch(id);
            }
        }
    }

    /// Copies whose objects the hub doesn't show.
    pub(super) fn orphans(&self) -> Vec<Id> {
        let orphans = self.index.iter().filter(|(_, entry)| entry.is_orphan());
        orphans.map(|(id, _)| id).collect()
    }

    pub(super) fn touch_removals(&mut self) {
        let going = self.index.iter().filter(|(_, entry)| {
            entry.is_going() || (entry.up.is_none() && matches!(entry.copy, Copy::Ours(_)))
        });
        let going: Vec<_> = going.map(|(id, _)| id).collect();
        for id in going {
            self.touch(id);
        }
    }
}

#[cfg(test)]
mod tests;
