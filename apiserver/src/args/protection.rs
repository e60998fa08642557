//! Flags that bound what a server does for one logical cluster.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{ArgAction, Args};
use runtime::logs::LogFilter;
use store::{SealedStore, Store, sealed};

use crate::audit::AuditOptions;
use crate::http::fairness::InflightLimits;
use crate::profiling::ProfilingOptions;

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

    /// Serves CPU profiles, the filter of the log and the server's inner state below /debug, to
    /// administrators of root. [default: false]
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = ArgAction::Set,
        hide_default_value = true
    )]
    profiling: bool,

    /// Keys by which values are sealed in the store: an EncryptionConfiguration of
    /// apiserver.config.k8s.io/v1 with the providers aesgcm and identity.
    #[arg(long, value_name = "FILE")]
    encryption_provider_config: Option<PathBuf>,

    /// What the audit log tells of which requests: a Policy of audit.k8s.io/v1. Without one
    /// nothing is logged.
    #[arg(long, value_name = "FILE", requires = "audit_log_path")]
    audit_policy_file: Option<PathBuf>,

    /// File of the audit log; - is standard output.
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,

    /// Megabytes after which the file is set aside. [default: 100]
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    audit_log_maxsize: u64,

    /// Files set aside that are kept; 0 keeps all.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    audit_log_maxbackup: usize,

    /// Days for which they are kept; 0 is for ever.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    audit_log_maxage: u64,
}

// === impl ProtectionArgs ===

impl ProtectionArgs {
    /// The store as the server sees it: plain, where it is sealed.
    pub(super) fn open(&self, store: Arc<dyn Store>) -> anyhow::Result<Arc<dyn Store>> {
        Ok(match &self.encryption_provider_config {
            Some(path) => SealedStore::new(store, sealed::read_config(path)?),
            None => store,
        })
    }

    /// The audit log, if there is to be one.
    pub(super) fn audit(&self) -> Option<AuditOptions> {
        Some(AuditOptions {
            policy: self.audit_policy_file.clone()?,
            log: self.audit_log_path.clone()?,
            max_megabytes: self.audit_log_maxsize,
            max_backups: self.audit_log_maxbackup,
            max_days: self.audit_log_maxage,
        })
    }

    /// What is for those who debug the server, if that is wanted.
    pub(super) fn profiling(&self, logs: Arc<LogFilter>) -> Option<ProfilingOptions> {
        self.profiling.then_some(ProfilingOptions { logs: Some(logs) })
    }

    #[cfg(test)]
    pub(super) fn is_profiled(&self) -> bool {
        self.profiling
    }

    pub(super) fn inflight(&self) -> InflightLimits {
        InflightLimits {
            reads: self.max_requests_inflight,
            writes: self.max_mutating_requests_inflight,
            watches: self.max_watches_per_cluster,
        }
    }
}
