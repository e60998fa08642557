//! The operator: one process for the SyncTargets of all logical clusters.
//!
//! It is a plain client of the hub, by [`Operator::start`]; the program `kcp-operator` only reads flags
//! ([`Args`]). `targets` installs agents in physical clusters and tells the truth about them, `assign`
//! turns what people want of their objects into what agents see, `types` makes what clusters serve into
//! what the hub serves. All are fed by watches over all logical clusters, decide by pure functions, and act through queues that are fair to logical
//! clusters.
//!
//! Invariants: nothing exists for a logical cluster that has no SyncTarget and no assigned object; a
//! link that breaks, a restart or an empty cache never removes anything.

mod api;
mod args;
mod assign;
mod definitions;
mod discovery;
mod events;
mod marks;
mod metrics;
mod push;
mod queue;
mod serve;
mod targets;
mod types;
mod watching;

pub use args::{AgentOptions, Args, DefaultMode, Options};
pub use serve::{Operator, StartError};
