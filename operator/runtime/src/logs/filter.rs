//! Which lines are written: what people choose, and the bound that nobody can lift.

use parking_lot::Mutex;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{FilterFn, filter_fn};
use tracing_subscriber::{EnvFilter, Registry, reload};

/// The crates of this repository that write lines, by the first part of their targets.
const OURS: [&str; 17] = [
    "agent",
    "apiserver",
    "cel_rules",
    "client",
    "contract",
    "crds",
    "engine",
    "kcp_agent",
    "kcp_apiserver",
    "kcp_operator",
    "machinery",
    "negotiation",
    "operator",
    "patch",
    "runtime",
    "schema",
    "store",
];

/// Libraries that print bodies of answers at any level, as one that can't be parsed.
const SILENT: [&str; 2] = ["kube_client", "kube_runtime"];

/// The longest text of a filter.
const MAX_LENGTH: usize = 4096;

/// The filter of a process's log, while it runs.
#[derive(Debug)]
pub struct LogFilter {
    shown: Mutex<String>,
    handle: reload::Handle<EnvFilter, Registry>,
}

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// It is neither a level nor made of directives.
    #[error("{0:?} is neither a number from 0 to 10, a level, nor TARGET=LEVEL")]
    Malformed(String),
    /// It is very long.
    #[error("a filter is no longer than {MAX_LENGTH} bytes")]
    TooLong,
    /// The log has ended.
    #[error("the log is closed")]
    Closed,
}

// === impl LogFilter ===

impl LogFilter {
    pub(super) fn new(directives: &str, handle: reload::Handle<EnvFilter, Registry>) -> Self {
        Self { shown: Mutex::new(directives.to_owned()), handle }
    }

    /// The filter as directives.
    pub fn text(&self) -> String {
        self.shown.lock().clone()
    }

    /// Filters by something else from now on: directives as `info,store=debug`, or one of klog's
    /// numbers. Returns it as directives.
    ///
    /// # Errors
    /// When it is no filter; the one before stays.
    pub fn set(&self, text: &str) -> Result<String, FilterError> {
        let directives = directives(text)?;
        let malformed = |_| FilterError::Malformed(directives.clone());
        let filter = EnvFilter::try_new(&directives).map_err(malformed)?;
        // What is shown is what is used, also when several set it at once.
        let mut shown = self.shown.lock();
        self.handle.reload(filter).map_err(|_| FilterError::Closed)?;
        shown.clone_from(&directives);
        Ok(directives)
    }
}

/// Reads a filter. Only levels and targets are taken: what the flag takes beyond them looks at the
/// fields of spans, which costs every request.
fn directives(text: &str) -> Result<String, FilterError> {
    let text = text.trim();
    if text.len() > MAX_LENGTH {
        return Err(FilterError::TooLong);
    }
    if let Some(level) = text.parse().ok().and_then(of_klog) {
        return Ok(level.to_owned());
    }
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    match parts.iter().find(|part| !is_directive(part)) {
        Some(part) => Err(FilterError::Malformed((*part).to_owned())),
        None => Ok(parts.join(",")),
    }
}

/// The level that tells about as much as a Kubernetes program with `-v` of this number: 2 is what
/// they mostly run with, from 4 on people debug, from 6 on each request is told.
fn of_klog(number: u8) -> Option<&'static str> {
    match number {
        0 => Some("warn"),
        1..=3 => Some("info"),
        4..=5 => Some("debug"),
        6..=10 => Some("trace"),
        _ => None,
    }
}

fn is_directive(text: &str) -> bool {
    let is_level = |text: &str| {
        let levels = ["off", "error", "warn", "info", "debug", "trace"];
        levels.iter().any(|level| level.eq_ignore_ascii_case(text))
    };
    let is_target = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':' | b'-'))
    };
    match text.split_once('=') {
        Some((target, level)) => is_target(target) && is_level(level),
        None => is_level(text),
    }
}

/// What may be written at all.
pub(super) fn bound() -> FilterFn {
    filter_fn(may_be_written)
}

fn may_be_written(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    let origin = target.split("::").next().unwrap_or(target);
    if SILENT.contains(&origin) {
        return false;
    }
    // Levels are greater the more they tell.
    *metadata.level() <= Level::INFO || OURS.contains(&origin)
}
