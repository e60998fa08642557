//! Metrics of agents that others read.

/// Requests that the sync engine has made, by `kind` and `outcome`.
pub const SYNC_REQUESTS: &str = "kcp_sync_requests_total";

/// Requests of the sync engine that may have changed something, by `side`.
pub const SYNC_WRITES: &str = "kcp_sync_writes_total";

/// Objects that are synced, by `state`.
pub const SYNC_OBJECTS: &str = "kcp_sync_objects";
