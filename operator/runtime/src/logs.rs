//! Log output: text on a terminal, JSON elsewhere, filtered by `KCP_LOG` or a flag.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::time::SystemTime;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// One JSON object a line.
    Json,
    /// Human-readable text.
    Text,
}

/// The flags that every binary has for its logs.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// Log filter, as `info` or `apiserver=debug,store=trace`.
    #[arg(long, env = "KCP_LOG", default_value = "info")]
    pub log_filter: String,

    /// Form of the log lines.
    #[arg(long, value_enum, default_value_t)]
    pub log_format: LogFormat,
}

// === impl LogArgs ===

impl LogArgs {
    /// Installs the process's log subscriber, on standard error.
    ///
    /// # Errors
    /// When the filter does not parse, or a subscriber is installed already.
    pub fn install(&self) -> anyhow::Result<()> {
        let filter = EnvFilter::try_new(&self.log_filter)?;
        let builder = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_timer(SystemTime);
        let json = match self.log_format {
            LogFormat::Auto => !std::io::stderr().is_terminal(),
            LogFormat::Json => true,
            LogFormat::Text => false,
        };
        let installed =
            if json { builder.json().try_init() } else { builder.with_ansi(true).try_init() };
        installed.map_err(|error| anyhow::anyhow!(error))
    }
}
