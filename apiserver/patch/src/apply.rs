//! Server-side apply: who owns which field of an object, and what an applied configuration does.
//!
//! Every write is recorded in `metadata.managedFields`: who changed which fields. Whoever applies a
//! configuration owns all fields in it; what it applied before and doesn't any more goes, unless
//! somebody else owns it; and to change what others own is a conflict that has to be forced.
//! [`Tracker`] is the entry: it sees whole objects. What it knows of a kind comes through
//! [`Versions`] and [`ApplySchema`].
//!
//! Results are those of structured-merge-diff and of the field manager of apimachinery above it
//! (KEP-555), byte for byte, texts of errors included; the tests run both as an oracle.
//! Time is that of sorting the fields; nesting is bounded by [`MAX_DEPTH`](crate::MAX_DEPTH).

mod ancient;
mod compare;
mod conflict;
mod element;
mod items;
mod last_applied;
mod managers;
mod merge;
mod overlay;
mod owned;
mod problem;
mod reconcile;
mod remove;
mod scale;
mod schema;
mod set;
mod shown;
mod times;
mod tracker;
mod updater;
mod validate;
mod value;

pub use conflict::{Conflict, Conflicts};
pub use element::{Element, InvalidElement};
pub use managers::{InvalidManagers, ManagerId, Managers, Operation, Owner};
pub use overlay::overlay;
pub use scale::{Replicas, from_scale, to_scale};
pub use schema::{ApplySchema, Forms, ListForm, MapForm, Scalar, Type};
pub use set::{FieldSet, InvalidSet};
pub use times::keep_times;
pub use tracker::{ApplyError, Tracker, Write, is_reset};
pub use updater::Versions;
