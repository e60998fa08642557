//! The folder of one run, and what a crashed run left behind.
//!
//! Flow: each harness process owns `runs/<its process id>/` in the cache folder; a run is a folder
//! in there. Processes and network namespaces are recorded in it. [`clean_leftovers`] looks at the
//! folders whose owner is gone, ends what they record, and removes them.
//!
//! Guarantees: nothing is ended that is not recorded with its start time, or that a live harness
//! owns. Namespace names hold their owner's identity, so they are never used twice.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::cluster::end_containers_below;
use crate::eventually::within;
use crate::namespace;
use crate::process::{ProcessId, tail};
use crate::progress::say;

const PROCESSES: &str = "processes";
const NAMESPACES: &str = "namespaces";

/// One run: a folder for logs and data, removed at the end unless the run failed.
#[derive(Clone, Debug)]
pub struct Run(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    owner: PathBuf,
    folder: PathBuf,
    failed: AtomicBool,
}

// === impl Run ===

impl Run {
    /// Makes the folder of a new run. The first call in a process cleans what crashed runs left.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(name: &str) -> Result<Self> {
        static CLEAN: Once = Once::new();
        CLEAN.call_once(|| match clean_leftovers() {
            Ok(0) => {}
            Ok(n) => say(format!("cleaned up after {n} earlier run(s) that ended badly")),
            Err(error) => say(format!("could not clean up after earlier runs: {error:#}")),
        });
        static NUMBER: AtomicUsize = AtomicUsize::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let owner = runs_folder()?.join(ProcessId::own()?.to_string());
        let folder = owner.join(format!("{number}-{name}"));
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        Ok(Self(Arc::new(Inner { owner, folder, failed: AtomicBool::new(false) })))
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// Makes a folder inside it, if it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn subfolder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.0.folder.join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Notes that the run failed: its folder stays until the next run, and the ends of its logs
    /// are printed.
    pub fn failed(&self) {
        self.0.failed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn record_process(&self, id: &ProcessId) -> Result<()> {
        append(&self.0.owner.join(PROCESSES), &id.to_string())
    }

    pub(crate) fn record_namespace(&self, name: &str) -> Result<()> {
        append(&self.0.owner.join(NAMESPACES), name)
    }
}

// === impl Inner ===

impl Drop for Inner {
    fn drop(&mut self) {
        if self.failed.load(Ordering::Relaxed) || std::thread::panicking() {
            print_logs(&self.folder);
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            say(format!("could not remove {}: {error}", self.folder.display()));
        }
        // The owner's folder holds records and possibly other runs; it goes with the last of them.
        let others = fs::read_dir(&self.owner).into_iter().flatten().flatten();
        if !others.into_iter().any(|entry| entry.path().is_dir()) {
            fs::remove_dir_all(&self.owner).unwrap_or_default();
        }
    }
}

/// The cache folder of this project: `$XDG_CACHE_HOME/kcp-rs`, by default `~/.cache/kcp-rs`.
///
/// # Errors
/// When neither variable is set.
pub fn cache_folder() -> Result<PathBuf> {
    let cache = match std::env::var_os("XDG_CACHE_HOME").filter(|v| !v.is_empty()) {
        Some(cache) => PathBuf::from(cache),
        None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cache"),
    };
    Ok(cache.join("kcp-rs"))
}

/// Ends what this process has started, in all its runs, and forgets it: for an interrupted program.
///
/// # Errors
/// When the folder of this process cannot be read or removed.
pub fn abandon() -> Result<()> {
    let owner = runs_folder()?.join(ProcessId::own()?.to_string());
    if owner.exists() { clean(&owner) } else { Ok(()) }
}

/// Cleans up after harness processes that are gone. Returns how many there were.
///
/// # Errors
/// When the folder of runs cannot be read, or something in it cannot be removed.
pub fn clean_leftovers() -> Result<usize> {
    let runs = runs_folder()?;
    let lock = File::create(runs.join(".lock"))?;
    lock.lock()?;
    let mut cleaned = 0;
    for entry in fs::read_dir(&runs)? {
        let entry = entry?;
        let owner = entry.file_name().to_str().and_then(|n| n.parse::<ProcessId>().ok());
        if owner.is_some_and(|owner| !owner.is_running()) {
            clean(&entry.path())?;
            cleaned += 1;
        }
    }
    Ok(cleaned)
}

fn runs_folder() -> Result<PathBuf> {
    let runs = cache_folder()?.join("runs");
    fs::create_dir_all(&runs).with_context(|| format!("make {}", runs.display()))?;
    Ok(runs)
}

fn clean(owner: &Path) -> Result<()> {
    let recorded: Vec<ProcessId> =
        records(&owner.join(PROCESSES)).iter().filter_map(|line| line.parse().ok()).collect();
    let running = || recorded.iter().rev().filter(|id| id.is_running());
    for id in running() {
        id.signal(Signal::TERM)?;
    }
    let gone = || if running().next().is_none() { Some(()) } else { None };
    if within(Duration::from_secs(5), "leftovers to end", || Ok(gone())).is_err() {
        for id in running() {
            id.signal(Signal::KILL)?;
        }
        within(Duration::from_secs(5), "killed leftovers to end", || Ok(gone()))?;
    }
    end_containers_below(owner)?;
    unmount_below(owner)?;
    for name in records(&owner.join(NAMESPACES)) {
        namespace::remove(&name)?;
    }
    match fs::remove_dir_all(owner) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", owner.display()))
        }
        _ => Ok(()),
    }
}

/// Lazily unmounts everything mounted below `folder`, innermost first.
pub(crate) fn unmount_below(folder: &Path) -> Result<()> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let mut below: Vec<&str> = points.filter(|p| Path::new(p).starts_with(folder)).collect();
    below.sort_unstable_by_key(|point| std::cmp::Reverse(point.len()));
    for point in below {
        Command::new("umount").args(["--lazy", point]).status()?;
    }
    Ok(())
}

fn append(file: &Path, line: &str) -> Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    Ok(())
}

fn records(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn print_logs(folder: &Path) {
    say(format!("the failed run's files stay until the next run: {}", folder.display()));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "log") {
            say(format!("--- the end of {}\n{}", path.display(), tail(&path, 30)));
        }
    }
}
