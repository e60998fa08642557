//! The agent between two API servers in this process, over real TLS: a hub with logical clusters,
//! and another server that stands for a physical cluster's API.
#![allow(clippy::unwrap_used, reason = "everything here is a test")]

mod definitions;
mod identity;
mod proxy;
mod restored;
mod sync;
mod takeover;
mod upsync;
mod world;
