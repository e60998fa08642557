//! The server over real HTTP and TLS on loopback, in this process, over a store in memory.
//!
//! One binary, so that it is linked once.

#![allow(clippy::unwrap_used, reason = "everything here is a test")]

mod access;
mod admission;
mod agent_tokens;
mod agents;
mod apply;
mod audit;
mod authority;
mod autoscalers;
mod certificates;
mod client;
mod clusters;
mod contents;
mod conversion;
mod crash;
mod credentials;
mod debug;
mod deeds;
mod discovery;
mod fairness;
mod forms;
mod garbage;
mod hook;
mod hostile;
mod identity;
mod isolation;
mod mutation;
mod objects;
mod oidc;
mod openapi;
mod placement;
mod program;
mod public;
mod quota;
mod token_secrets;
mod transfer;
mod types;
mod upsync;
mod webhooks;
mod yard;
