//! Role-based access control of one logical cluster: what its roles and bindings allow.
//!
//! [`Policy`] is what the objects of one logical cluster come to, [`Held`] keeps those that are in
//! use. Invariants: a policy is made of the records of its own logical cluster alone; it is dropped
//! before anybody can see that the cache has a later one.

mod covers;
mod held;
mod objects;
mod policy;
mod rule;

pub(crate) use covers::{compact, uncovered};
pub(crate) use held::Held;
pub(crate) use objects::RoleObject;
pub(crate) use policy::{Binding, Missing, Policy, RoleKind, all};
pub(crate) use rule::{Rule, Rules, quoted};
