//! Log output: text on a terminal, JSON elsewhere, filtered by `KCP_LOG` or a flag, and by whoever
//! holds the [`LogFilter`] of a running process.
//!
//! Invariant: whatever the filter says, libraries tell nothing below INFO, and those that tell what
//! they are answered tell nothing at all: bodies and headers are theirs to print, and hold secrets.
//! Our own lines never do.

mod filter;

use std::io::IsTerminal;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use tracing::Subscriber;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::time::SystemTime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

pub use filter::{FilterError, LogFilter};

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
    /// Installs the process's log subscriber, on standard error. The filter can be changed by what
    /// is returned.
    ///
    /// # Errors
    /// When the filter does not parse, or a subscriber is installed already.
    pub fn install(&self) -> anyhow::Result<Arc<LogFilter>> {
        let json = match self.log_format {
            LogFormat::Auto => !std::io::stderr().is_terminal(),
            LogFormat::Json => true,
            LogFormat::Text => false,
        };
        let (subscriber, filter) = subscriber(&self.log_filter, json, std::io::stderr)?;
        subscriber.try_init()?;
        Ok(filter)
    }
}

/// What writes lines to `writer`, and what changes its filter.
fn subscriber<W>(
    directives: &str,
    json: bool,
    writer: W,
) -> anyhow::Result<(impl Subscriber + Send + Sync, Arc<LogFilter>)>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let (chosen, handle) = reload::Layer::<_, Registry>::new(EnvFilter::try_new(directives)?);
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_timer(SystemTime);
    let lines = if json { lines.json().boxed() } else { lines.with_ansi(true).boxed() };
    let subscriber = Registry::default().with(chosen).with(filter::bound()).with(lines);
    Ok((subscriber, Arc::new(LogFilter::new(directives, handle))))
}

#[cfg(test)]
mod tests;
