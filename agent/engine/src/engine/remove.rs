//! The way of a copy that is to go.
//!
//! # Flow
//! 1. Where the copy is not known, it is looked for, live.
//! 2. It waits for what goes before it, and for the brake.
//! 3. The upstream object is read live; what it says now is the evidence.
//! 4. The copy is deleted by UID, its own objects after it.
//! 5. When a live read says that it is gone, state label and finalizer go in one patch.
//!
//! A removal that is no longer wanted is forgotten, at any point before the delete is sent.

use std::sync::Arc;

use super::answers::Ask;
use super::decide::{Step, Wake};
use super::entry::{Copy, Entry, Id, State, Work};
use super::{Engine, millis};
use crate::rules::Class;
use crate::{Exemption, Now};

/// How long evidence counts, in milliseconds.
pub(super) const FRESH: u64 = 10_000;

/// How long what goes first is waited for, in milliseconds.
const PATIENCE: u64 = 60_000;

/// After so long a delete that isn't done is told, in milliseconds.
const SLOW: u64 = 10_000;

/// The longest time between looks at a copy that is being deleted, in milliseconds: a watch tells
/// earlier.
const LONGEST_LOOK: u64 = 30_000;

impl Engine {
    pub(super) fn removal_step(
        &mut self,
        id: Id,
        [up_open, down_open]: [bool; 2],
        now: Now,
        wake: &mut Wake,
    ) -> Option<Step> {
        let entry = self.index.get(id)?;
        let up = entry.up.as_ref()?;
        if up.finalizer.is_none() && up.state == State::None {
            // Nothing of ours is on it any more: others will finish.
            return None;
        }
        let uid = up.uid.clone();
        match &entry.copy {
            Copy::Ours(down) if down.of != uid => {}
            Copy::Ours(_) => return self.delete_step(id, [up_open, down_open], now, wake),
            // It isn't ours, whatever it is.
            Copy::Foreign(_) => {}
            Copy::Absent if entry.removal.as_ref().is_some_and(|removal| removal.looked) => {}
            Copy::Absent | Copy::Unknown => {
                self.held(id, Work::Down, now, wake)?;
                if !entry.placed && !self.index.take_place(id) {
                    // What is there is the copy of another object.
                    return self.release_step(id, up_open, now, wake);
                }
                if !down_open {
                    return None;
                }
                return Some((Ask::GetDownstream, self.get_downstream(id)?));
            }
        }
        self.release_step(id, up_open, now, wake)
    }

    fn release_step(&mut self, id: Id, up_open: bool, now: Now, wake: &mut Wake) -> Option<Step> {
        self.held(id, Work::Up, now, wake)?;
        if !up_open {
            return None;
        }
        Some((Ask::Release, self.release(id)?))
    }

    fn delete_step(
        &mut self,
        id: Id,
        [up_open, down_open]: [bool; 2],
        now: Now,
        wake: &mut Wake,
    ) -> Option<Step> {
        let clock = millis(now.clock);
        let entry = self.index.get(id)?;
        let (up, down) = (entry.up.as_ref()?, entry.ours()?);
        let removal = entry.removal.as_ref()?;
        if down.deleting || removal.sent.is_some() {
            return self.wait_step(id, down_open, now, wake);
        }
        self.held(id, Work::Down, now, wake)?;
        let copy = down.uid.clone();
        let (space, since) = (Self::space_of(entry), removal.since);
        let patience = since.saturating_add(PATIENCE);
        let class = self.class(id);
        if clock < patience && self.goes_later(&space, class) {
            wake.at(patience);
            self.removing.entry(space).or_default().waiting.insert(id);
            return None;
        }
        if !self.hub.is_trusted() {
            // Looked at again when it is.
            return None;
        }
        let exempt = self.is_exempt(entry);
        let copies = self.index.copies();
        wake.through(self.brake.may(id, exempt, copies, clock, &self.target.limits))?;
        let is_fresh = removal.evidence.is_some_and(|at| clock <= at.saturating_add(FRESH));
        if !is_fresh {
            self.held(id, Work::Up, now, wake)?;
            let request = self.get_upstream(id).filter(|_| up_open)?;
            return Some((Ask::GetUpstream, request));
        }
        if !down_open {
            return None;
        }
        let orphan = up.flags.orphan;
        self.farewell_step(id, &copy, orphan)
    }

    /// What takes a copy away; one that stays, or is shared with others, loses what is ours.
    pub(super) fn farewell_step(&self, id: Id, copy: &str, orphan: bool) -> Option<Step> {
        let entry = self.index.get(id)?;
        let rule = &self.kind(entry.key.kind)?.rule;
        if orphan || rule.stays {
            return Some((Ask::Orphan, self.orphan(id, copy)?));
        }
        if rule.is_shared(&entry.place.name) {
            return Some((Ask::GiveUp, self.give_up(id, copy)?));
        }
        Some((Ask::Delete, self.delete(id, copy)?))
    }

    /// Whether a copy may be deleted at all.
    pub(super) fn is_deletable(&self, id: Id) -> bool {
        let Some(entry) = self.index.get(id) else { return false };
        let rule = self.kind(entry.key.kind).map(|kind| &kind.rule);
        rule.is_some_and(|rule| !rule.stays && !rule.is_shared(&entry.place.name))
    }

    /// A delete is on its way: looks after it now and then, and says what holds it up.
    fn wait_step(&mut self, id: Id, down_open: bool, now: Now, wake: &mut Wake) -> Option<Step> {
        let clock = millis(now.clock);
        let entry = self.index.get_mut(id)?;
        let finalizers = entry.ours().map(|down| down.finalizers.clone()).unwrap_or_default();
        let removal = entry.removal.as_mut()?;
        let sent = *removal.sent.get_or_insert(clock);
        let slow = clock >= sent.saturating_add(SLOW);
        let pause = (1000_u64 << removal.polls.min(10)).min(LONGEST_LOOK);
        let looks = sent.saturating_add(pause.saturating_mul(u64::from(removal.polls) + 1));
        if slow {
            let message = if finalizers.is_empty() {
                "the copy has not gone yet".to_owned()
            } else {
                format!("the copy waits for its finalizers {}", finalizers.join(", "))
            };
            self.set_problem(id, Work::Down, "Deleting", message, now);
        }
        if clock < looks {
            wake.at(looks);
            return None;
        }
        if !down_open {
            return None;
        }
        if let Some(removal) = self.index.get_mut(id)?.removal.as_mut() {
            removal.polls += 1;
        }
        Some((Ask::GetDownstream, self.get_downstream(id)?))
    }

    fn space_of(entry: &Entry) -> (Arc<str>, Arc<str>) {
        (entry.key.cluster.clone(), entry.key.namespace.clone())
    }

    /// Whether a person has deleted what the object is in.
    fn is_exempt(&self, entry: &Entry) -> bool {
        let (cluster, namespace) = Self::space_of(entry);
        [
            Exemption::Target,
            Exemption::Cluster(cluster.clone()),
            Exemption::Namespace(cluster, namespace),
        ]
        .iter()
        .any(|one| self.exemptions.contains(one))
    }

    /// Whether something of a later class is still to go before what is of `class`.
    fn goes_later(&self, space: &(Arc<str>, Arc<str>), class: Class) -> bool {
        let Some(removing) = self.removing.get(space) else { return false };
        let later = removing.classes.iter().filter(|(other, _)| **other > class);
        later.flat_map(|(_, ids)| ids).any(|id| {
            let entry = self.index.get(*id);
            entry.is_some_and(|entry| entry.ours().is_some() && !self.is_stuck(entry))
        })
    }

    /// Whether a removal isn't going to end soon, so that others needn't wait for it.
    fn is_stuck(&self, entry: &Entry) -> bool {
        entry.problem.is_some() || self.synced(entry.key.kind).is_none()
    }

    /// An entry no longer holds up others.
    pub(super) fn leave_class(&mut self, space: &(Arc<str>, Arc<str>), class: Class, id: Id) {
        let Some(removing) = self.removing.get_mut(space) else { return };
        if let Some(ids) = removing.classes.get_mut(&class) {
            ids.remove(&id);
            if ids.is_empty() {
                removing.classes.remove(&class);
            }
        }
        removing.waiting.remove(&id);
        let waiting = std::mem::take(&mut removing.waiting);
        if removing.classes.is_empty() {
            self.removing.remove(space);
        }
        for id in waiting {
            self.touch(id);
        }
    }

    /// The copy of a removal is gone.
    pub(super) fn leave_removal(&mut self, id: Id) {
        let class = self.class(id);
        let Some(space) = self.index.get(id).map(Self::space_of) else { return };
        self.leave_class(&space, class, id);
        self.brake.forget(id, true);
        self.clear_problem(id, Work::Down);
    }

    /// A delete may be repeated only after its copy was looked at again: what is not sent is not
    /// done.
    pub(super) fn unsend(&mut self, id: Id) {
        if let Some(removal) = self.index.get_mut(id).and_then(|entry| entry.removal.as_mut()) {
            removal.sent = None;
            removal.evidence = None;
        }
    }
}
