//! The keys of tokens: one signs, all of them are believed.
//!
//! Without files from the operator the server has keys of its own under its root directory:
//! `pki/sa.key` signs, and whatever is in `pki/sa-*.key` and `pki/sa-*.pub` is believed, too. To
//! change keys, rename `sa.key` to `sa-old.key` (any name of that form) and start again: a new key
//! signs, tokens of the old one stay good until that file is taken away.

use std::path::{Path, PathBuf};

use crate::auth::jwt::{PemKey, PublicKey, SigningKey, Token, read_keys};
use crate::pki::{PkiError, files};

/// Files of keys, from the operator.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyFiles {
    /// The private key that signs; our own if there is none.
    pub(crate) signing: Option<PathBuf>,
    /// Files of keys that are believed; beside our own if there is no file that signs.
    pub(crate) verifying: Vec<PathBuf>,
}

/// A key that signs, and all that are believed.
#[derive(Debug)]
pub(crate) struct Keys {
    signing: SigningKey,
    verifying: Vec<(String, PublicKey)>,
}

/// Where our own key is kept, under the root directory.
const OWN: &str = "pki/sa.key";

// === impl Keys ===

impl Keys {
    /// The keys of files, or our own under `root`; without a directory a key in memory.
    ///
    /// # Errors
    /// When a file can't be read or has no key.
    pub(crate) fn open(root: Option<&Path>, files: &KeyFiles) -> Result<Self, PkiError> {
        let mut believed = Vec::new();
        let signing = match (&files.signing, root) {
            (Some(path), _) => private_key(path)?,
            (None, Some(root)) => {
                for path in retired(root)? {
                    believed.extend(public_keys(&path)?);
                }
                own_key(&root.join(OWN))?
            }
            (None, None) => {
                let pem = new_key()?;
                only_private(&pem).ok_or_else(|| unusable(Path::new(OWN)))?
            }
        };
        for path in &files.verifying {
            believed.extend(public_keys(path)?);
        }
        // Upstream believes only the files named for it, which must then hold the signing key's.
        // Ours believes what it has signed itself in any case.
        let mut verifying = vec![(signing.id().to_owned(), signing.public().clone())];
        for (id, key) in believed {
            if verifying.iter().all(|(known, _)| *known != id) {
                verifying.push((id, key));
            }
        }
        Ok(Self { signing, verifying })
    }

    /// The key that signs.
    pub(crate) fn signing(&self) -> &SigningKey {
        &self.signing
    }

    /// The keys that are believed, by their ids.
    pub(crate) fn verifying(&self) -> impl Iterator<Item = (&str, &PublicKey)> {
        self.verifying.iter().map(|(id, key)| (&**id, key))
    }

    /// Whether one of the keys has signed a token: the one that it names, or any if it names none.
    pub(super) fn have_signed(&self, token: &Token<'_>) -> bool {
        let named = |id: &str| token.key_id().is_none_or(|named| named == id);
        self.verifying()
            .filter(|(id, _)| named(id))
            .any(|(_, key)| token.is_signed_by(key, key.algorithm()))
    }
}

/// Our own key, made if it is not there.
fn own_key(path: &Path) -> Result<SigningKey, PkiError> {
    if !path.exists() {
        files::write_private(path, &new_key()?)?;
    }
    private_key(path)
}

/// A new key on P-256, as PEM.
fn new_key() -> Result<String, PkiError> {
    Ok(rcgen::KeyPair::generate().map_err(PkiError::Issue)?.serialize_pem())
}

/// Keys that our own tokens were signed with before, in order of their names.
fn retired(root: &Path) -> Result<Vec<PathBuf>, PkiError> {
    let directory = root.join("pki");
    let failed = |source| PkiError::File { path: directory.display().to_string(), source };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let ends = path.extension().is_some_and(|end| end == "key" || end == "pub");
        if ends && name.starts_with("sa-") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn private_key(path: &Path) -> Result<SigningKey, PkiError> {
    only_private(&files::read(path)?).ok_or_else(|| unusable(path))
}

fn only_private(pem: &str) -> Option<SigningKey> {
    read_keys(pem).ok()?.into_iter().find_map(|key| match key {
        PemKey::Private(key) => Some(*key),
        PemKey::Public(..) => None,
    })
}

fn public_keys(path: &Path) -> Result<Vec<(String, PublicKey)>, PkiError> {
    let keys = read_keys(&files::read(path)?).unwrap_or_default();
    if keys.is_empty() {
        return Err(unusable(path));
    }
    let public = keys.iter().map(PemKey::verifying);
    Ok(public.map(|(id, key)| (id.to_owned(), key.clone())).collect())
}

fn unusable(path: &Path) -> PkiError {
    PkiError::Content {
        path: path.display().to_string(),
        what: "key of RSA, P-256, P-384 or P-521",
    }
}
