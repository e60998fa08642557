//! Where pairs are kept: a directory, or nowhere.

use std::fs::Metadata;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Pair, PkiError};

/// What tells that a file has changed: when it was written, and its size.
pub(crate) type Version = (SystemTime, u64);

/// The version of a file; `None` for one that is not there, or can't be looked at.
pub(crate) fn version(metadata: std::io::Result<Metadata>) -> Option<Version> {
    let metadata = metadata.ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// The place where pairs are kept.
pub(super) struct Keep(Option<PathBuf>);

// === impl Keep ===

impl Keep {
    /// `pki/` under `root`, made if it is not there; or nowhere.
    pub(super) fn open(root: Option<&Path>) -> Result<Self, PkiError> {
        let Some(root) = root else { return Ok(Self(None)) };
        let directory = root.join("pki");
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(|source| file_error(&directory, source))?;
        Ok(Self(Some(directory)))
    }

    /// The pair of that name, if both of its files are there.
    pub(super) fn load(&self, name: &str) -> Result<Option<Pair>, PkiError> {
        let Some(directory) = &self.0 else { return Ok(None) };
        let certificate = read_if_there(&directory.join(format!("{name}.crt")))?;
        let key = read_if_there(&directory.join(format!("{name}.key")))?;
        Ok(certificate.zip(key).map(|(certificate, key)| Pair { certificate, key }))
    }

    /// Keeps a pair, replacing any of that name.
    pub(super) fn store(&self, name: &str, pair: Pair) -> Result<Pair, PkiError> {
        if let Some(directory) = &self.0 {
            write_private(&directory.join(format!("{name}.key")), &pair.key)?;
            write_private(&directory.join(format!("{name}.crt")), &pair.certificate)?;
        }
        Ok(pair)
    }

    /// Says that a kept file is of no use.
    pub(super) fn unusable(&self, name: &str, what: &'static str) -> PkiError {
        let path = self.0.as_ref().map_or_else(|| PathBuf::from(name), |held| held.join(name));
        PkiError::Content { path: path.display().to_string(), what }
    }
}

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String, PkiError> {
    std::fs::read_to_string(path).map_err(|source| file_error(path, source))
}

/// Writes a file for the owner alone, whole or not at all.
pub(crate) fn write_private(path: &Path, content: &str) -> Result<(), PkiError> {
    let mut part = path.as_os_str().to_owned();
    part.push(".new");
    let part = PathBuf::from(part);
    let write = || {
        // A leftover of a crash may have other permissions.
        match std::fs::remove_file(&part) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&part, path)
    };
    write().map_err(|source| file_error(path, source))
}

fn read_if_there(path: &Path) -> Result<Option<String>, PkiError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(file_error(path, source)),
    }
}

fn file_error(path: &Path, source: std::io::Error) -> PkiError {
    PkiError::File { path: path.display().to_string(), source }
}
