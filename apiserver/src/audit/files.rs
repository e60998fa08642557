//! Where events go: standard output, or a file that is set aside when it is large.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use tracing::warn;

use super::AuditOptions;

/// Megabytes of a file, where no size is given.
const MEGABYTES: u64 = 100;

/// Why a log can't be opened.
#[derive(Debug, thiserror::Error)]
#[error("open {path}")]
pub struct AuditLogError {
    path: String,
    #[source]
    source: io::Error,
}

/// A place for lines.
#[derive(Debug)]
pub(super) enum Out {
    /// Standard output.
    Stdout,
    /// A file.
    File(Box<Rotating>),
}

/// A file that is set aside when it has grown.
#[derive(Debug)]
pub(super) struct Rotating {
    path: PathBuf,
    file: File,
    size: u64,
    max_bytes: u64,
    backups: usize,
    age: Option<Duration>,
}

/// Opens what the options name.
pub(super) fn open(options: &AuditOptions) -> Result<Out, AuditLogError> {
    if options.log == Path::new("-") {
        return Ok(Out::Stdout);
    }
    let megabytes = if options.max_megabytes == 0 { MEGABYTES } else { options.max_megabytes };
    Out::file(
        &options.log,
        megabytes.saturating_mul(1 << 20),
        options.max_backups,
        options.max_days,
    )
    .map_err(|source| AuditLogError { path: options.log.display().to_string(), source })
}

// === impl Out ===

impl Out {
    pub(super) fn file(path: &Path, max_bytes: u64, backups: usize, days: u64) -> io::Result<Self> {
        let file = append(path)?;
        let size = file.metadata()?.len();
        let age = (days > 0).then(|| Duration::from_secs(days.saturating_mul(86_400)));
        let path = path.to_owned();
        Ok(Self::File(Box::new(Rotating { path, file, size, max_bytes, backups, age })))
    }

    /// Writes one line.
    pub(super) fn write(&mut self, line: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => io::stdout().lock().write_all(line),
            Self::File(file) => file.write(line, SystemTime::now()),
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout => io::stdout().lock().flush(),
            Self::File(file) => file.file.flush(),
        }
    }
}

// === impl Rotating ===

impl Rotating {
    fn write(&mut self, line: &[u8], now: SystemTime) -> io::Result<()> {
        let after = self.size.saturating_add(line.len() as u64);
        if self.size > 0
            && after > self.max_bytes
            && let Err(error) = self.set_aside(now)
        {
            // Better a large file than none.
            warn!(%error, "the audit log could not be set aside");
        }
        self.file.write_all(line)?;
        self.size = self.size.saturating_add(line.len() as u64);
        Ok(())
    }

    /// Gives the file a name with the time in it, and begins a new one.
    fn set_aside(&mut self, now: SystemTime) -> io::Result<()> {
        let mut aside = self.named(now, 0);
        // Two within a millisecond must not overwrite each other.
        let mut number = 1;
        while aside.try_exists()? && number < 1000 {
            aside = self.named(now, number);
            number += 1;
        }
        std::fs::rename(&self.path, &aside)?;
        self.file = append(&self.path)?;
        self.size = 0;
        self.forget(now)
    }

    /// `audit-2026-01-02T03-04-05.000.log`, as upstream names them.
    fn named(&self, now: SystemTime, number: u32) -> PathBuf {
        let time = Timestamp::try_from(now).unwrap_or_default();
        let mut name = format!("{}-{}", self.stem(), time.strftime("%Y-%m-%dT%H-%M-%S.%3f"));
        if number > 0 {
            name.push_str(&format!("-{number}"));
        }
        if let Some(extension) = self.path.extension() {
            name.push('.');
            name.push_str(&extension.to_string_lossy());
        }
        self.path.with_file_name(name)
    }

    fn stem(&self) -> String {
        self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Removes files that were set aside and are too many or too old.
    fn forget(&self, now: SystemTime) -> io::Result<()> {
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let prefix = format!("{}-2", self.stem());
        let mut aside = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            let ours = entry.file_name().to_string_lossy().starts_with(&prefix)
                && path.extension() == self.path.extension();
            if ours {
                aside.push((entry.metadata()?.modified()?, path));
            }
        }
        // The youngest first; names grow with time where times are equal.
        aside.sort_unstable_by(|one, other| other.cmp(one));
        for (index, (written, path)) in aside.iter().enumerate() {
            let old = |age| now.duration_since(*written).is_ok_and(|passed| passed > age);
            let many = self.backups > 0 && index >= self.backups;
            if many || self.age.is_some_and(old) {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

/// Others can't read it.
fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let name = |entry: io::Result<std::fs::DirEntry>| {
            entry.unwrap().file_name().into_string().unwrap()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn large_files_are_set_aside_and_few_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        std::fs::write(folder.path().join("audit-notes.log"), "not ours").unwrap();
        let Out::File(mut file) = Out::file(&path, 10, 2, 1).unwrap() else { unreachable!() };
        let start = SystemTime::now();
        for number in 0..5_u64 {
            file.write(b"seven!\n", start + Duration::from_secs(number)).unwrap();
        }
        let kept = names(folder.path());
        assert_eq!(kept.len(), 4, "{kept:?}");
        assert!(kept.contains(&"audit.log".to_owned()) && kept.contains(&"audit-notes.log".into()));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "seven!\n");
        // Two days later they are too old.
        file.write(b"seven!\n", start + Duration::from_secs(2 * 86_400)).unwrap();
        assert_eq!(names(folder.path()), ["audit-notes.log", "audit.log"]);
        // What is there is appended to; a line larger than the limit is written whole.
        drop(file);
        let mut again = Out::file(&path, 100, 0, 0).unwrap();
        again.write(&[b'x'; 200]).unwrap();
        again.flush().unwrap();
        let sizes = names(folder.path()).len();
        assert_eq!(sizes, 3);
        assert!(Out::file(folder.path(), 1, 0, 0).is_err());
    }
}
