//! Flags that bound what a server does for one logical cluster.

use clap::Args;

use crate::http::fairness::InflightLimits;

#[derive(Debug, Args)]
pub(super) struct ProtectionArgs {
    /// Seats for requests that read and are worked on at a time, shared fairly over logical
    /// clusters; a large list takes up to ten. 0 is no limit.
    #[arg(long, value_name = "NUMBER", default_value_t = InflightLimits::default().reads)]
    max_requests_inflight: u32,

    /// Seats for requests that write and are worked on at a time, shared likewise; a large body
    /// takes up to ten. 0 is no limit.
    #[arg(long, value_name = "NUMBER", default_value_t = InflightLimits::default().writes)]
    max_mutating_requests_inflight: u32,

    /// Watches that may be open in one logical cluster.
    #[arg(long, value_name = "NUMBER", default_value_t = InflightLimits::default().watches)]
    max_watches_per_cluster: usize,
}

// === impl ProtectionArgs ===

impl ProtectionArgs {
    pub(super) fn inflight(&self) -> InflightLimits {
        InflightLimits {
            reads: self.max_requests_inflight,
            writes: self.max_mutating_requests_inflight,
            watches: self.max_watches_per_cluster,
        }
    }
}
