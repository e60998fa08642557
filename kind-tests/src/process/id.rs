//! Which process exactly: a number alone can be reused by a stranger.

use std::fmt;
use std::fs;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// A process by number, start time (in clock ticks since boot) and boot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProcessId {
    pid: u32,
    start: u64,
    boot: String,
}

/// Resident memory of a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Bytes resident now.
    pub resident: u64,
    /// The most bytes that were ever resident.
    pub peak: u64,
}

/// The fields of `/proc/<pid>/stat` that the harness reads.
struct Stat {
    state: char,
    cpu_ticks: u64,
    start: u64,
}

// === impl ProcessId ===

impl ProcessId {
    /// The running process with this number.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(pid: u32) -> Result<Self> {
        let stat = Stat::read(pid).with_context(|| format!("no process {pid}"))?;
        Ok(Self { pid, start: stat.start, boot: boot_id()? })
    }

    /// This process.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn own() -> Result<Self> {
        Self::of(std::process::id())
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether exactly this process still runs. A zombie does not.
    pub fn is_running(&self) -> bool {
        let same_boot = boot_id().is_ok_and(|boot| boot == self.boot);
        let stat = Stat::read(self.pid);
        same_boot && stat.is_ok_and(|s| s.start == self.start && !matches!(s.state, 'Z' | 'X'))
    }

    /// Sends `signal`, unless the process is gone. Never reaches a process that took its number.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        if !self.is_running() {
            return Ok(());
        }
        let pid =
            i32::try_from(self.pid).ok().and_then(Pid::from_raw).context("pid out of range")?;
        match kill_process(pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("signal process {}", self.pid)),
        }
    }

    /// User and system time that the process has used.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn cpu(&self) -> Result<Duration> {
        let ticks = Stat::read(self.pid)?.cpu_ticks;
        let per_second = rustix::param::clock_ticks_per_second();
        Ok(Duration::from_micros(ticks * 1_000_000 / per_second))
    }

    /// Its resident memory, now and at most.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn memory(&self) -> Result<Memory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let bytes = |field: &str| -> Result<u64> {
            let line = status.lines().find_map(|l| l.strip_prefix(field));
            let kib = line.and_then(|l| l.split_whitespace().next()).context("no such field")?;
            Ok(kib.parse::<u64>()? * 1024)
        };
        Ok(Memory { resident: bytes("VmRSS:")?, peak: bytes("VmHWM:")? })
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}_{}", self.pid, self.start, self.boot)
    }
}

impl FromStr for ProcessId {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.splitn(3, '_');
        let (Some(pid), Some(start), Some(boot)) = (parts.next(), parts.next(), parts.next())
        else {
            bail!("not a process id: {text:?}");
        };
        Ok(Self { pid: pid.parse()?, start: start.parse()?, boot: boot.to_owned() })
    }
}

// === impl Stat ===

impl Stat {
    fn read(pid: u32) -> Result<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The command in parentheses may hold anything; what follows the last one is regular.
        let (_, rest) = text.rsplit_once(')').context("malformed stat")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number =
            |i: usize| -> Result<u64> { Ok(fields.get(i).context("short stat")?.parse::<u64>()?) };
        let state = fields.first().and_then(|s| s.chars().next()).context("short stat")?;
        Ok(Self { state, cpu_ticks: number(11)? + number(12)?, start: number(19)? })
    }
}

fn boot_id() -> Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_process_runs_and_survives_a_round_trip() {
        let own = ProcessId::own().unwrap();
        assert!(own.is_running());
        assert_eq!(own.to_string().parse::<ProcessId>().unwrap(), own);
        assert!(own.memory().unwrap().peak > 0);
    }

    #[test]
    fn a_reused_number_is_another_process() {
        let mut stranger = ProcessId::own().unwrap();
        stranger.start += 1;
        assert!(!stranger.is_running());
        stranger.signal(Signal::KILL).unwrap();
    }
}
