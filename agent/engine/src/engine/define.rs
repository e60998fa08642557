//! Definitions of types: whether one may be applied to what is there, and who waits for it.
//!
//! # Guarantees
//! - A definition that is there is read, live, before it is changed, and changed only if that hurts
//!   nothing that is stored under it ([`hurts`]); the apply names the version that was compared.
//! - Objects of a type whose definition goes down are applied when the physical cluster serves it.

use serde_json::Value;

use super::entry::{Checked, Copy, Down, Hold, Id, Place, TypeId, Work};
use super::observe::text;
use super::{Engine, side};
use crate::definitions::{Labels, hurts};
use crate::{Now, Side};

/// What the differences call the hub's own definition.
const HUB: &str = "hub";

/// How often it is looked at whether a definition still holds up objects, in milliseconds: mostly a
/// watch tells earlier.
pub(super) const LOOK: u64 = 5_000;

/// The most differences that a message names.
const NAMED: usize = 3;

impl Engine {
    pub(super) fn defines(&self, id: Id) -> bool {
        let kind = self.index.get(id).and_then(|entry| self.kind(entry.key.kind));
        kind.is_some_and(|kind| kind.rule.defines)
    }

    /// Whether what is there has to be compared first. What would have hurt is looked at again: it is
    /// asked only when its pause is over.
    pub(super) fn needs_check(&mut self, id: Id, uid: &str) -> bool {
        if !self.defines(id) {
            return false;
        }
        let Some(entry) = self.index.get_mut(id) else { return false };
        let digest = entry.up.as_ref().map(|up| up.digest);
        let is_good = entry.checked.as_ref().is_some_and(|checked| {
            Some(checked.digest) == digest && *checked.uid == *uid && checked.hurts.is_empty()
        });
        if !is_good {
            entry.checked = None;
        }
        !is_good
    }

    /// A definition was read, to be compared with what is to be there.
    pub(super) fn checked(&mut self, id: Id, body: &Value, now: Now) {
        let Some(entry) = self.index.get(id) else { return };
        let is_known = match &entry.copy {
            Copy::Ours(down) => *down.uid == *text(body, "uid"),
            Copy::Foreign(foreign) => *foreign.uid == *text(body, "uid"),
            Copy::Unknown | Copy::Absent => false,
        };
        if !is_known {
            // Another one has come: it is a first contact.
            self.forget_copy(id);
            self.index.set_copy(id, Copy::Unknown);
            return;
        }
        let Some(up) = self.index.get(id).and_then(|entry| entry.up.as_ref()) else { return };
        let digest = up.digest;
        let desired = up.body.as_ref().and_then(|body| serde_json::from_slice::<Value>(body).ok());
        let Some(desired) = desired else { return };
        let name = self.target.name.clone();
        let found = hurts(body, &desired, Labels { live: &name, desired: HUB });
        let named: Vec<_> = { found.iter().take(NAMED) }
            .map(|one| format!("{} ({}: {})", one.path, one.what, one.message))
            .collect();
        let rest = found.len().saturating_sub(NAMED);
        let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
        let is_bad = !found.is_empty();
        if let Some(entry) = self.index.get_mut(id) {
            entry.checked = Some(Box::new(Checked {
                digest,
                uid: text(body, "uid").into(),
                resource_version: text(body, "resourceVersion").into(),
                hurts: found,
            }));
        }
        if is_bad {
            let what = "the type that is there would lose what is stored or in use";
            let message = format!("{what}: {}{more}", named.join("; "));
            self.set_problem(id, Work::Down, "Incompatible", message, now);
            self.pause(id, Work::Down, now);
        }
    }

    /// A copy was seen; if it is a definition, others may wait for it. `known` is what it was.
    pub(super) fn see_definition(&mut self, id: Id, known: Option<&Down>) {
        if !self.defines(id) {
            return;
        }
        let Some(entry) = self.index.get_mut(id) else { return };
        let Some(down) = entry.ours() else { return };
        let (generation, established) = (down.generation, down.established);
        let name = entry.place.name.clone();
        let is_other = known.is_none_or(|known| known.generation != generation);
        if is_other && entry.checked.as_ref().is_some_and(|checked| !checked.hurts.is_empty()) {
            // Somebody has changed it: perhaps it fits now.
            entry.checked = None;
            *entry.hold(Work::Down) = Hold::default();
        }
        if known.is_some_and(|known| known.established == established) {
            return;
        }
        let of = self.kinds.iter().position(|kind| kind.resource.to_string() == *name);
        let Some(kind) = of.and_then(|of| TypeId::try_from(of).ok()) else { return };
        if established {
            self.kinds[usize::from(kind)].missing[side(Side::Downstream)] = Hold::default();
        }
        for waiting in self.index.of_type(kind) {
            self.touch(waiting);
        }
    }

    /// Whether the definition of an object's type is on its way down. One that can't be applied holds
    /// up nobody: what is there decides.
    pub(super) fn waits_for_definition(&self, id: Id) -> bool {
        let Some(kind) = self.index.get(id).and_then(|entry| self.kind(entry.key.kind)) else {
            return false;
        };
        if kind.rule.defines {
            return false;
        }
        let mut defining = (0..).zip(&self.kinds).filter(|(_, kind)| kind.rule.defines);
        let Some((definitions, _)) = defining.next() else { return false };
        let name = kind.resource.to_string().into();
        let place = Place { namespace: "".into(), kind: definitions, name };
        let holder = self.index.by_place(&place).and_then(|id| self.index.get(id));
        let Some(holder) = holder else { return false };
        let wanted = holder.up.as_ref().is_some_and(|up| up.is_wanted());
        wanted
            && holder.problem.is_none()
            && match &holder.copy {
                Copy::Ours(down) => !down.established,
                Copy::Absent | Copy::Unknown => true,
                // It is there by others' doing.
                Copy::Foreign(_) => false,
            }
    }
}
