//! What the harness tells the person who waits.

use std::fmt::Display;
use std::io::Write;

/// Prints one line to standard error.
///
/// It writes to the stream itself, so that the line also shows while a test runner captures
/// the output of tests: a skipped test or a long build is nothing to be silent about.
pub fn say(line: impl Display) {
    // Nobody reads standard error any more: there is no one left to tell.
    writeln!(std::io::stderr().lock(), "{line}").unwrap_or_default();
}
