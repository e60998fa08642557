//! The sync engine: decides what to do next from what was seen.
//!
//! A machine without I/O, clock, tasks and randomness. A driver feeds it what both API servers show
//! ([`Engine::upstream`], [`Engine::downstream`]), asks for requests to make ([`Engine::plan`]),
//! makes them, and tells what was answered ([`Engine::outcome`]). Everything between is here, so
//! that agent, operator and tests run the same thing.
//!
//! # Flow
//! 1. An upstream object with the target's state label `Sync` gets the target's finalizer, if it
//!    has none; then its copy is looked for downstream. What isn't there is applied without force;
//!    what is there and not ours is a collision, which [`Adoption`] decides.
//! 2. A copy is applied with force, with its UID, when the object changed or when somebody changed
//!    fields that are ours. What others own is left alone, and lists that are sets are merged.
//! 3. The copy's status goes upstream, as a patch of what differs; what of it is the hub's
//!    ([`StatusDown`]) goes the other way, and only that.
//! 4. An object that is to go (deleted, or state label `Remove`) is read once more, live; the copy
//!    is deleted by UID; when it is gone, state label and finalizer are removed in one patch.
//!
//! # Guarantees
//! - A copy is deleted only on evidence read from the live upstream object: its deletion timestamp
//!   or its state label `Remove`, with the copy's recorded UID, not older than what was processed
//!   before, while the hub is known to be the same ([`Engine::identity`]). That an object is missing
//!   in a list, a watch or an answer is never evidence: such copies are counted as orphans.
//! - More deletes than usual in a minute wait for a person ([`Paused`]).
//! - An object that we did not create is never changed or deleted without being told to.
//! - At most one request is under way for an object, and an answer is judged by what was asked.
//! - Nothing is written when nothing changed.
//! - What is wrong with one object never holds up another.
//!
//! # Assumptions
//! - The driver's watches show whole objects, `managedFields` included.
//! - Resource versions of one server grow.

mod action;
mod brake;
mod definitions;
mod digest;
mod drift;
mod engine;
mod fields;
#[cfg(test)]
mod fixtures;
mod input;
mod lists;
mod locator;
mod names;
mod rules;
mod status;
mod status_down;
mod summary;
mod target;
mod types;

pub use action::{Action, ActionId, Kind, Method, Request, Side};
pub use engine::Engine;
pub use input::{Event, Failure, Now, Outcome};
pub use status_down::StatusDown;
pub use summary::{Paused, Summary, UpstreamChange};
pub use target::{
    Adoption, Approvals, Exemption, Identity, Limits, Mapping, Memory, Target, Upsync,
};
pub use types::{GroupResource, Scope, SyncedType};
