//! How programs of kcp-rs reach a Kubernetes API server.
//!
//! A [`Link`] leads to one server and gives [`kube::Client`]s for any path below it; requests and
//! answers as bytes are had by [`Link::ask`] and [`Link::follow`]. It speaks HTTP/2 where the
//! server does, and HTTP/1.1 elsewhere.
//!
//! # Guarantees
//! - Watches, other calls and Leases have connections of their own: nothing that a watch brings, and
//!   no list however large, delays a heartbeat. A connection has at most [`MOST_STREAMS`] streams,
//!   and fewer where the server allows fewer; as many connections are opened as that takes.
//! - Credentials and authorities are replaced while it runs: from then on every request goes over
//!   connections that are made with the new ones, and the old end with the last of their streams.
//!   Files of tokens and of authorities are read again when they change.
//! - A server that stops answering is noticed: connecting, the head of an answer and, between two
//!   pieces, its body have time-outs, and connections are pinged.
//! - Proxies are not asked and redirects not followed. Answers and single lines of watches are
//!   bounded. With [`Settings::reachable`] only addresses that pass the rule are connected to.
//! - Secrets are in no text that it gives, nor is anything that a server answers.

mod error;
mod link;
mod settings;

pub use error::Error;
pub use link::{Ask, JSON, Lines, Link, MOST_STREAMS, Told};
pub use settings::{Authorities, Credentials, Server, Settings, SettingsError};
