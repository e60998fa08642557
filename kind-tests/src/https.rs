//! Asks a server whether it is ready.

use std::time::Duration;

use anyhow::Result;

use crate::client::{Client, Request};
use crate::eventually::{PATIENCE, within};
use crate::kubeconfig::Access;
use crate::process::Process;

/// How long a server may pause: health endpoints answer at once.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Waits until the server that `process` is answers that it is ready.
///
/// # Errors
/// When it ends, or is not ready in time.
pub fn until_ready(process: &mut Process, access: &Access) -> Result<()> {
    within(PATIENCE, "the server to be ready", || {
        process.check_running()?;
        let ready = get(access, "/readyz").is_ok_and(|(status, _)| status == 200);
        Ok(ready.then_some(()))
    })
}

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
