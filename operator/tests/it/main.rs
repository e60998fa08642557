//! The operator against a hub and physical clusters in this process: our own API server stands for
//! both, over real TLS.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod assignment;
mod installation;
mod removal;
mod several;
mod types;
mod yard;
