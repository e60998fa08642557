//! Waiting for a condition, never for a time.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use crate::clock::Stopwatch;

/// How long anything may take that should be quick. A busy machine needs most of it; a failing
/// test waits it out once.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The pause between two looks at a condition.
const STEP: Duration = Duration::from_millis(15);

/// Looks again and again until `check` succeeds, at most [`PATIENCE`]. Its errors mean "not yet".
///
/// # Errors
/// The last error of `check`, when patience runs out.
pub fn eventually<T>(what: &str, check: impl FnMut() -> Result<T>) -> Result<T> {
    eventually_within(PATIENCE, what, check)
}

/// The same with another patience.
///
/// # Errors
/// As [`eventually`].
pub fn eventually_within<T>(
    patience: Duration,
    what: &str,
    mut check: impl FnMut() -> Result<T>,
) -> Result<T> {
    let mut last = None;
    let outcome = within(patience, what, || match check() {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            last = Some(error);
            Ok(None)
        }
    });
    match (outcome, last) {
        (Err(timeout), Some(last)) => Err(last).context(timeout.to_string()),
        (outcome, _) => outcome,
    }
}

/// Looks again and again until `check` gives a value; `None` means "not yet", an error ends it.
///
/// # Errors
/// The error of `check`, or a time-out that names `what`.
pub fn within<T>(
    patience: Duration,
    what: &str,
    mut check: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let watch = Stopwatch::start();
    loop {
        if let Some(value) = check().with_context(|| format!("waiting for {what}"))? {
            return Ok(value);
        }
        if watch.elapsed() >= patience {
            return Err(anyhow!("gave up waiting for {what} after {} s", patience.as_secs()));
        }
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that pauses between two looks")]
fn pause() {
    std::thread::sleep(STEP);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_errors_and_returns_the_value() {
        let mut looks = 0;
        let value = eventually("three looks", || {
            looks += 1;
            if looks < 3 { Err(anyhow!("only {looks}")) } else { Ok(looks) }
        });
        assert_eq!(value.unwrap(), 3);
    }

    #[test]
    fn a_time_out_names_the_condition() {
        let error = within::<()>(Duration::ZERO, "the impossible", || Ok(None)).unwrap_err();
        assert!(error.to_string().contains("the impossible"), "{error}");
    }
}
