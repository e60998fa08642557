//! Status that goes down: what controllers write at the hub, in the copy's status.
//!
//! # Guarantees
//! - Each field of a status has one owner, by the SyncTarget's rule ([`StatusDown`]): the hub's are
//!   applied to the copy, and never come up; all others come up, and never go down.
//! - They are applied to the subresource alone, with the UID of the known copy, when the copy itself
//!   is as it is to be. What others change of them is put back, as any other field that is ours.
//! - A rule that is taken back takes nothing out of the copies.

use serde_json::{Value, json};

use super::Engine;
use super::answers::Ask;
use super::decide::{Step, Wake};
use super::entry::{Hold, Id, TypeId, Work};
use super::report::read;
use crate::digest::Digest;
use crate::fields::OfStatus;
use crate::status::{Generations, translate};
use crate::{Now, StatusDown};

impl Engine {
    /// What of the statuses of a type is the hub's, if anything is. Without the subresource there is
    /// nothing that it could be applied to.
    pub(super) fn status_rule(&self, kind: TypeId) -> Option<&StatusDown> {
        let synced = self.synced(kind).filter(|synced| synced.downstream_status)?;
        self.target.status_down.iter().find(|rule| rule.resource == synced.resource)
    }

    /// What the status of a copy that is otherwise as it is to be needs.
    pub(super) fn status_down_step(&mut self, id: Id, now: Now, wake: &mut Wake) -> Option<Step> {
        let entry = self.index.get(id)?;
        let rule = self.status_rule(entry.key.kind)?;
        let (up, down) = (entry.up.as_ref()?, entry.copy_of_this()?);
        let empty = || json!({});
        let there = read(down.status.as_deref()).unwrap_or_else(empty);
        let mut desired = rule.part(&read(up.status.as_deref()).unwrap_or_else(empty));
        // The other way round: what has observed the generation that was applied has observed the
        // copy as it is.
        let generations = Generations { copy: down.applied_generation, applied: down.generation };
        translate(&mut desired, generations, &there);
        let ours = down.status_ours.as_ref();
        let settled = (Digest::of(&desired), ours.map(|ours| ours.view));
        let is_there = match ours {
            None => desired.as_object().is_none_or(serde_json::Map::is_empty),
            Some(ours) => ours.matches(&desired, &there),
        };
        if is_there || entry.status_down == Some(settled) {
            self.index.get_mut(id)?.status_down = Some(settled);
            self.clear_problem(id, Work::Status);
            return None;
        }
        let drifted = entry.status_down.is_some_and(|(known, _)| known == settled.0);
        let uid = down.uid.clone();
        self.held(id, Work::Status, now, wake)?;
        if drifted {
            self.may_repair(id, Work::Status, now, wake)?;
            self.index.get_mut(id)?.repairs.0 += 1;
        }
        let request = self.apply_status(id, &uid, &desired)?;
        Some((Ask::StatusDown(settled.0), request))
    }

    /// Other fields of the status are the hub's by now.
    pub(super) fn share_anew(&mut self, id: Id) {
        self.clear_problem(id, Work::Status);
        if let Some(entry) = self.index.get_mut(id) {
            entry.status_down = None;
            entry.report.dirty = true;
            *entry.hold(Work::Status) = Hold::default();
        }
    }

    /// The cluster has taken a status.
    pub(super) fn status_applied(&mut self, id: Id, desired: Digest, body: &Value) {
        let Some(kind) = self.index.get(id).map(|entry| entry.key.kind) else { return };
        self.see_copy(kind, body, false);
        if let Some(entry) = self.index.get_mut(id) {
            entry.status_down = Some((desired, OfStatus::of(body).map(|ours| ours.view)));
            *entry.hold(Work::Status) = Hold::default();
        }
        self.clear_problem(id, Work::Status);
    }

    /// The cluster doesn't take a status. If the copy has gone, a watch says so.
    pub(super) fn status_refused(&mut self, id: Id, status: u16, body: &Value, now: Now) {
        self.pause(id, Work::Status, now);
        if !matches!(status, 404 | 409) {
            let why = self.explain(id, status, body);
            let message = format!("the status of the copy is not taken: {why}");
            self.set_problem(id, Work::Status, "StatusRefused", message, now);
        }
    }
}
