//! The agent of a SyncTarget: a library that the operator links for mode `Push`, and a program.

pub mod args;
pub mod heartbeat;
pub mod identity;
pub mod leader;
pub mod manifest;
pub mod metrics;
pub mod program;
pub mod sync;
pub mod target;
pub mod types;
