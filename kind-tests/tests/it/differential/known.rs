//! The committed list of differences that are meant.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::compare::Difference;

/// The list.
#[derive(Debug)]
pub(crate) struct Known(Vec<Entry>);

/// Differences that are meant, by patterns in which `**` stands for any text, and `*` for any
/// without a dot: one step of a path.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// The case; all if not given.
    #[serde(default = "any")]
    case: String,
    /// The step; all if not given.
    #[serde(default = "any")]
    step: String,
    /// The place in the answer.
    path: String,
    /// What the real server has there, if that matters: as JSON.
    #[serde(default)]
    real: Option<String>,
    /// What ours has there, if that matters: as JSON.
    #[serde(default)]
    ours: Option<String>,
    /// Whether it depends on how fast the real server's controllers are, so that it may be absent.
    #[serde(default)]
    sometimes: bool,
    /// Why it is meant.
    reason: String,
}

// === impl Known ===

impl Known {
    /// Reads the list.
    ///
    /// # Errors
    /// When it cannot be read, or an entry has no reason.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file)?;
        let entries: Vec<Entry> =
            serde_saphyr::from_str(&text).with_context(|| format!("parse {}", file.display()))?;
        let without = entries.iter().find(|entry| entry.reason.trim().is_empty());
        ensure!(without.is_none(), "an entry has no reason: {without:?}");
        Ok(Self(entries))
    }

    /// The differences that are not listed, and the entries that fit none.
    pub(crate) fn judge<'a>(
        &'a self,
        found: &'a [Difference],
    ) -> (Vec<&'a Difference>, Vec<&'a Entry>) {
        let unlisted = found.iter().filter(|one| !self.0.iter().any(|entry| entry.fits(one)));
        let expected = self.0.iter().filter(|entry| !entry.sometimes);
        let unused = expected.filter(|entry| !found.iter().any(|one| entry.fits(one)));
        (unlisted.collect(), unused.collect())
    }
}

// === impl Entry ===

impl Entry {
    fn fits(&self, difference: &Difference) -> bool {
        let value = |pattern: &Option<String>, value: &Option<serde_json::Value>| {
            let text = value.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
            pattern.as_ref().is_none_or(|pattern| matches(pattern, &text))
        };
        matches(&self.case, &difference.case)
            && matches(&self.step, &difference.step)
            && matches(&self.path, &difference.path)
            && value(&self.real, &difference.real)
            && value(&self.ours, &difference.ours)
    }
}

/// Whether a text fits a pattern, see [`Entry`].
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(first) else { return false };
    let (rest, within) = match rest.strip_prefix('*') {
        Some(rest) => (rest, text.len()),
        None => (rest, text.find('.').unwrap_or(text.len())),
    };
    (0..=within).filter_map(|at| text.get(at..)).any(|tail| matches(rest, tail))
}

fn any() -> String {
    "**".to_owned()
}

#[test]
fn patterns() {
    let check = |pattern: &str, text: &str, fits: bool| {
        assert_eq!(matches(pattern, text), fits, "{pattern:?} {text:?}");
    };
    check("a", "a", true);
    check("a", "ab", false);
    check("a*", "ab", true);
    check("a*", "a.b", false);
    check("a**", "a.b", true);
    check("a.*.c", "a.b.c", true);
    check("a.*.c", "a.b.b.c", false);
    check("**.c", "a.b.c", true);
    check("**.b", "a.b.c", false);
    check("", "", true);
}
