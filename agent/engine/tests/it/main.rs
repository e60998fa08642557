//! The engine between two modelled API servers.

#![allow(clippy::needless_pass_by_value, reason = "objects are written where they are used")]
#![allow(clippy::unwrap_used, reason = "this is a test")]

mod any;
mod definitions;
mod deletes;
mod failures;
mod lists;
mod model;
mod objects;
mod places;
mod simulation;
mod status_down;
mod steady;
mod threads;
mod upsync;
mod world;
