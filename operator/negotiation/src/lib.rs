//! Schemas of one type from many clusters: whether one takes what another takes, and the largest
//! that all take.
//!
//! # Flow
//! [`Type`] is one version of a type as a cluster serves it. [`differences`] tells what keeps objects
//! of one from being objects of another; [`agree`] finds what several have in common, and says of
//! whom it can't be said; [`missing`] tells which fields of one object a type lacks.
//!
//! # Guarantees
//! - Every keyword is understood, or reported where it differs. If nothing that is blocking is
//!   reported, each object that is valid under the first type and loses nothing by pruning is valid
//!   under the second, and loses nothing. What the second fills in is taken to be right there.
//! - What is agreed on is accepted by all who agree; it is the same, byte for byte, in whatever order
//!   they come.
//! - Depth, size and work are bounded: [`MAX_DEPTH`], [`MAX_NODES`], [`MAX_STEPS`]
//!   ([`MAX_STEPS_TOGETHER`] where some don't fit).
//!
//! It knows no clients and no clusters.

mod compare;
mod fields;
mod kind;
mod merge;
mod node;
mod report;
mod types;
mod view;

pub use fields::missing;
pub use node::{MAX_DEPTH, MAX_NODES};
pub use report::{Difference, MAX_DIFFERENCES, Said};
pub use types::{Agreement, Column, Left, Names, Scale, Subresources, Type, agree, differences};
pub use view::{MAX_STEPS, MAX_STEPS_TOGETHER};

#[cfg(test)]
mod tests;
