//! The operator against a hub and physical clusters in this process: our own API server stands for
//! both, over real TLS.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod assignment;
mod definitions;
mod deletions;
mod following;
mod former;
mod installation;
mod joining;
mod modes;
mod pod;
mod removal;
mod restored;
mod several;
mod statuses;
mod types;
mod yard;
