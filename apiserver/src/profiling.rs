//! CPU profiles of this process, in pprof's form.
//!
//! # Guarantees
//! - Nothing is sampled, and no memory held for it, before the first profile is asked for.
//! - One profile is taken at a time, in the whole process.
//! - A profile ends early, and is thrown away, when nobody waits for it any more.
//!
//! # Assumptions
//! - Stacks are walked inside a handler of SIGPROF, which neither allocates nor takes a lock, and reads
//!   the stack only where the kernel says that it may. What has no tables of frames, or wrong ones,
//!   gives a stack that ends early.

mod form;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use pprof::{Frames, ProfilerGuard};
use runtime::logs::LogFilter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use form::Timing;

/// Samples in a second of CPU time, as Go's profiler takes them.
const FREQUENCY: i32 = 100;

/// What those who debug a server may do besides asking it; without these options, nothing.
#[derive(Clone, Debug, Default)]
pub struct ProfilingOptions {
    /// The filter of the log, which can then be changed; without it, that can't be.
    pub logs: Option<Arc<LogFilter>>,
}

/// Takes profiles.
#[derive(Debug)]
pub(crate) struct Profiler {
    place: Arc<Semaphore>,
    /// Where a folder may be made for samples that do not fit into memory, should the system have
    /// no place for temporary files.
    root: Option<PathBuf>,
    ending: CancellationToken,
}

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProfileError {
    /// Another one is being taken.
    #[error("another profile is being taken")]
    Busy,
    /// The server ends.
    #[error("the server is shutting down")]
    Ending,
    /// The sampler can't be had.
    #[error("the profiler does not start")]
    Sampler(#[source] pprof::Error),
    /// The samples can't be written down.
    #[error("a profile cannot be written")]
    Write(#[source] io::Error),
    /// There is no thread for it.
    #[error("the profiler has no thread")]
    Thread(#[source] io::Error),
    /// The work has ended without a word.
    #[error("the profiler has failed")]
    Lost(#[source] oneshot::error::RecvError),
}

// === impl Profiler ===

impl Profiler {
    /// A profiler that stops at once when the server ends.
    pub(crate) fn new(root: Option<PathBuf>, ending: CancellationToken) -> Self {
        Self { place: Arc::new(Semaphore::new(1)), root, ending }
    }

    /// Samples the process for so long, and returns the profile, compressed as its readers want it.
    /// Whoever stops waiting ends it.
    ///
    /// # Errors
    /// As [`ProfileError`] says.
    pub(crate) async fn take(&self, length: Duration) -> Result<Vec<u8>, ProfileError> {
        let place = self.place.clone().try_acquire_owned().map_err(|_| ProfileError::Busy)?;
        let (waits, gone) = channel::<()>();
        let root = self.root.clone();
        let (tell, told) = oneshot::channel();
        // A thread of its own, which ends: what the allocator keeps for it serves the next one, while
        // each of the runtime's threads would keep as much again.
        let thread = std::thread::Builder::new().name("profiler".to_owned());
        let work = move || {
            // Nobody may be waiting: then nobody is told.
            let _told = tell.send(record(length, &gone, root, place));
        };
        drop(thread.spawn(work).map_err(ProfileError::Thread)?);
        let Some(taken) = self.ending.run_until_cancelled(told).await else {
            return Err(ProfileError::Ending);
        };
        drop(waits);
        taken.map_err(ProfileError::Lost)?
    }
}

/// Samples until `length` is over, or nobody waits. The place is kept until all of it is done.
fn record(
    length: Duration,
    gone: &Receiver<()>,
    root: Option<PathBuf>,
    _place: OwnedSemaphorePermit,
) -> Result<Vec<u8>, ProfileError> {
    if let Some(root) = root {
        find_room(&root.join("profiles"));
    }
    let sampler = ProfilerGuard::new(FREQUENCY).map_err(|error| match error {
        pprof::Error::Running => ProfileError::Busy,
        error => ProfileError::Sampler(error),
    })?;
    if gone.recv_timeout(length) != Err(RecvTimeoutError::Timeout) {
        return Err(ProfileError::Ending);
    }
    let report = sampler.report().build_unresolved().map_err(ProfileError::Sampler)?;
    drop(sampler);
    let _found = Names;
    // Several stacks of addresses may be one of names.
    let mut stacks = HashMap::<Frames, i64>::new();
    for (frames, count) in report.data {
        *stacks.entry(frames.into()).or_default() += i64::try_from(count).unwrap_or(0);
    }
    let timing = Timing {
        began: report.timing.start_time,
        length: report.timing.duration,
        period: 1_000_000_000 / i64::from(FREQUENCY),
    };
    let profile = form::profile(&stacks, timing);
    form::compressed(&profile).map_err(ProfileError::Write)
}

/// The program's debug information, which is kept from the first name that was found in it on: some
/// tens of megabytes, which go with this.
struct Names;

impl Drop for Names {
    fn drop(&mut self) {
        backtrace::clear_symbol_cache();
    }
}

/// Names another place for temporary files where the system's can't be used, as in an image that
/// holds nothing but the program. What earlier processes left there goes.
fn find_room(folder: &Path) {
    if tempfile::tempfile().is_ok() {
        return;
    }
    let emptied = std::fs::remove_dir_all(folder);
    let known = emptied.is_ok() || emptied.is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
    if known && std::fs::create_dir(folder).is_ok() {
        // Named before: then it is this one, or another server's of this process.
        let _named = tempfile::env::override_temp_dir(folder);
    }
}

#[cfg(test)]
mod tests;
