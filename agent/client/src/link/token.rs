//! Bearer tokens, and files that they are in.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::settings::{Credentials, SettingsError};
use crate::{Error, settings};

/// How long what a file held is taken for what it holds: kubelets renew tokens long before their
/// end, at 80 % of their life.
const FRESH: Duration = Duration::from_secs(10);

/// The longest token that is read.
const LONGEST: u64 = 64 << 10;

/// A bearer token.
pub(crate) enum Token {
    /// One that does not change.
    Fixed(HeaderValue),
    /// One in a file.
    File { path: PathBuf, read: Mutex<Option<(Instant, HeaderValue)>> },
}

// === impl Token ===

impl Token {
    /// The token among credentials, if they are one.
    pub(crate) fn of(credentials: &Credentials) -> Result<Option<Self>, SettingsError> {
        match credentials {
            Credentials::None | Credentials::Certificate { .. } => Ok(None),
            Credentials::Token(token) => {
                let header = header(token).ok_or_else(|| settings::SettingsError::Material {
                    what: "token",
                    why: "it has characters that no token has".to_owned(),
                })?;
                Ok(Some(Self::Fixed(header)))
            }
            Credentials::TokenFile(path) => {
                Ok(Some(Self::File { path: path.clone(), read: Mutex::new(None) }))
            }
        }
    }

    /// The header that shows it. A file that can't be read any more is taken to hold what it held.
    pub(crate) async fn header(&self) -> Result<HeaderValue, Error> {
        let (path, held) = match self {
            Self::Fixed(header) => return Ok(header.clone()),
            Self::File { path, read } => (path, read),
        };
        let known = held.lock().clone();
        let now = Instant::now();
        if let Some((read, header)) = &known
            && now.duration_since(*read) < FRESH
        {
            return Ok(header.clone());
        }
        let error = match read_file(path).await {
            Ok(text) => match header(text.trim()) {
                Some(header) => {
                    *held.lock() = Some((now, header.clone()));
                    return Ok(header);
                }
                None => "it holds no token".to_owned(),
            },
            Err(error) => error.to_string(),
        };
        match known {
            Some((_, header)) => Ok(header),
            None => Err(Error::Material { what: "token's file", why: error.into() }),
        }
    }

    /// The server refused it: it is read again for the next request.
    pub(crate) fn refused(&self) {
        if let Self::File { read, .. } = self
            && let Some((at, _)) = &mut *read.lock()
        {
            *at = at.checked_sub(FRESH).unwrap_or(*at);
        }
    }
}

async fn read_file(path: &std::path::Path) -> std::io::Result<String> {
    let size = tokio::fs::metadata(path).await?.len();
    if size > LONGEST {
        return Err(std::io::Error::other("it is too large for a token"));
    }
    tokio::fs::read_to_string(path).await
}

fn header(token: &str) -> Option<HeaderValue> {
    if token.is_empty() {
        return None;
    }
    let mut header = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    header.set_sensitive(true);
    Some(header)
}
