//! Flags for a store in etcd.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use store::EtcdOptions;
use store::etcd::TlsFiles;

/// Where etcd is, if the store is there.
#[derive(Debug, Args)]
#[command(next_help_heading = "Store in etcd")]
pub(super) struct EtcdArgs {
    /// Endpoints of an etcd cluster, as http://127.0.0.1:2379, separated by commas: the store is
    /// there instead of in a file, and several servers may share it.
    #[arg(long, value_name = "URL", value_delimiter = ',', global = true)]
    etcd_servers: Vec<String>,

    /// Authorities of etcd's certificates, as PEM, instead of the system's.
    #[arg(long, value_name = "FILE", requires = "etcd_servers", global = true)]
    etcd_cafile: Option<PathBuf>,

    /// Certificate to show to etcd, as PEM.
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile", global = true)]
    etcd_certfile: Option<PathBuf>,

    /// Key of that certificate, as PEM.
    #[arg(long, value_name = "FILE", requires = "etcd_certfile", global = true)]
    etcd_keyfile: Option<PathBuf>,

    /// What all keys in etcd begin with.
    #[arg(long, value_name = "PREFIX", default_value = EtcdOptions::PREFIX, global = true)]
    etcd_prefix: String,

    /// How often older revisions are forgotten, as 5m, by one of the servers for all; 0 leaves that
    /// to others. Never more often than `--history` allows.
    #[arg(long, default_value = "5m", value_parser = duration_or_zero, global = true)]
    etcd_compaction_interval: Duration,
}

// === impl EtcdArgs ===

impl EtcdArgs {
    /// How a server uses etcd, if it does; revisions can be read for at least `history`.
    pub(super) fn server(&self, history: Duration) -> Option<EtcdOptions> {
        let interval = self.etcd_compaction_interval;
        let compaction_interval = (!interval.is_zero()).then(|| interval.max(history));
        Some(EtcdOptions { compaction_interval, ..self.options()? })
    }

    /// Where etcd is, if it is used.
    pub(super) fn options(&self) -> Option<EtcdOptions> {
        (!self.etcd_servers.is_empty()).then(|| EtcdOptions {
            endpoints: self.etcd_servers.clone(),
            tls: TlsFiles {
                authorities: self.etcd_cafile.clone(),
                client: self.etcd_certfile.clone().zip(self.etcd_keyfile.clone()),
            },
            prefix: self.etcd_prefix.clone(),
            compaction_interval: None,
        })
    }
}

fn duration_or_zero(text: &str) -> Result<Duration, String> {
    let parsed = if text == "0" { Some(Duration::ZERO) } else { crate::http::parse_duration(text) };
    parsed.ok_or_else(|| "not a duration, as 90s or 5m, or 0".to_owned())
}
