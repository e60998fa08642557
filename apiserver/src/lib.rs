//! A minimal Kubernetes API server with many cheap, isolated logical clusters.
//!
//! It is a library first: [`Server::builder`] takes a store and gives a running server; the
//! program `kcp-apiserver` only reads flags ([`Args`]). A request enters at `http.rs`, is told
//! apart by `http/request_info.rs`, let in by `auth`, and answered by `registry` out of the
//! store's cache. Dependencies point one way: `http` to `auth` and `registry`, these to `catalog`
//! and `clusters`, and all of them to the crates below.

mod admission;
mod args;
mod audit;
pub mod auth;
pub mod catalog;
mod certificates;
pub mod clusters;
mod controllers;
mod dialer;
mod discovery;
mod http;
mod import;
pub mod metrics;
mod openapi;
mod pki;
mod profiling;
pub mod registry;
mod serve;
mod webhook;

pub use args::Args;
pub use audit::{AuditError, AuditLogError, AuditOptions, PolicyError};
pub use auth::{
    AuthOptions, FrontProxies, OidcOptionError, OidcOptions, ServiceAccountOptions, TokenFileError,
};
pub use dialer::Network;
pub use http::fairness::InflightLimits;
pub use http::reading;
pub use pki::{CipherSuite, NamedCertificate, PkiError, TlsOptions, TlsVersion};
pub use profiling::ProfilingOptions;
pub use serve::{Builder, Running, Server, StartError};
