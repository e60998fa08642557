//! The agent of a SyncTarget: a library that the operator links for mode `Push`, and a program.

pub mod manifest;
pub mod target;
pub mod types;
