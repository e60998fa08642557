//! Asks a server whether it is ready.

use std::time::Duration;

use anyhow::Result;

use crate::client::{Client, Request};
use crate::kubeconfig::Access;

/// How long a server may pause: health endpoints answer at once.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// GETs `path` at the root of the server, anonymously, and returns status and body.
///
/// # Errors
/// When nobody answers, or the server is not the one that `access` vouches for.
pub fn get(access: &Access, path: &str) -> Result<(u16, String)> {
    let client = Client::anonymous(access.clone(), LONGEST_PAUSE)?;
    let request = Request { method: "GET", path, headers: &[], body: None, lines: None };
    let answer = client.ask(&request)?;
    Ok((answer.status, String::from_utf8_lossy(&answer.body).into_owned()))
}
