//! The audit log: who did what, as lines of JSON in upstream's form (`audit.k8s.io/v1`).
//!
//! A policy says how much is told of which requests; without one nothing is. Events are made on
//! the request's way and written by one task, in the order in which they were made.
//!
//! # Invariants
//! - Bodies of objects that hold secrets or tokens are never told, whatever the policy says.
//! - When the queue is full a request waits for room, as with upstream's log in its default mode
//!   (`blocking`). What can't be written, and the end of a watch that finds no room, is lost and
//!   counted in `apiserver_audit_error_total`.

mod event;
mod files;
mod policy;
mod queue;

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use runtime::Tasks;

use crate::metrics::AuditMetrics;
use policy::Policy;
use queue::Queue;

pub(crate) use event::{ObjectRef, Record, Request, Stage};
pub use files::AuditLogError;
pub use policy::PolicyError;
pub(crate) use policy::{Asked, AskedResource};

/// What is logged, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditOptions {
    /// A file with an `audit.k8s.io/v1` Policy.
    pub policy: PathBuf,
    /// The file that is written; `-` is standard output.
    pub log: PathBuf,
    /// A file that would grow beyond so many megabytes is set aside; 0 for 100, as upstream.
    pub max_megabytes: u64,
    /// How many files that were set aside are kept; 0 for all.
    pub max_backups: usize,
    /// For how many days they are kept; 0 for ever.
    pub max_days: u64,
}

/// Why there is no audit log.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The policy.
    #[error("read the audit policy")]
    Policy(#[from] PolicyError),
    /// The log.
    #[error("open the audit log")]
    Log(#[from] AuditLogError),
}

/// The log of one server.
#[derive(Debug)]
pub(crate) struct Audit {
    policy: Policy,
    queue: Queue,
}

// === impl Audit ===

impl Audit {
    /// Opens the log; what is told is written by a task of `tasks`, to the end of them.
    ///
    /// # Errors
    /// When the policy is none, or the file can't be opened.
    pub(crate) fn open(
        options: &AuditOptions,
        metrics: AuditMetrics,
        tasks: &Tasks,
    ) -> Result<Self, AuditError> {
        let policy = Policy::read(&options.policy)?;
        let out = files::open(options)?;
        Ok(Self { policy, queue: Queue::start(out, metrics, tasks) })
    }

    /// Bytes that wait to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// What is to be told of a request; `None` where that is nothing.
    pub(crate) fn record(
        &self,
        asked: &Asked<'_>,
        request: impl FnOnce() -> Request,
    ) -> Option<Arc<Record>> {
        let told = self.policy.of(asked)?;
        Some(Arc::new(Record::new(told, request())))
    }

    /// Tells of a stage of a request, if the policy wants it; waits for room.
    pub(crate) async fn tell(&self, record: &Record, stage: Stage, code: u16, now: Timestamp) {
        if let Some(line) = record.line(stage, code, now) {
            self.queue.send(line).await;
        }
    }

    /// As [`tell`](Self::tell), without waiting.
    pub(crate) fn tell_now(&self, record: &Record, stage: Stage, code: u16, now: Timestamp) {
        if let Some(line) = record.line(stage, code, now) {
            self.queue.try_send(line);
        }
    }
}
