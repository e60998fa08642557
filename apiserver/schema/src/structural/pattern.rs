//! Regular expressions of schemas: Go's syntax (RE2), run by Rust's `regex`.
//!
//! Both match in linear time. Where the same text means something else, it is rewritten: Go's
//! `\d`, `\w`, `\s` and `\b` know ASCII only; `{` that counts nothing, `[` in a class and `\<` are
//! plain characters. What Go refuses is refused with Go's words. Groups capture nothing here.

mod go;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};

/// A compiled pattern, shared by all schemas in the process that have it.
pub(super) struct Pattern {
    source: Box<str>,
    regex: Regex,
}

/// Most bytes of a compiled expression; larger ones are refused as too large. Go's own limit
/// (1,000 repetitions) allows expressions of about this size.
const MAX_COMPILED: usize = 2 << 20;
/// Most bytes that a thread keeps to match an expression faster.
const MAX_CACHE: usize = 128 << 10;

type Known = HashMap<Box<str>, Weak<Pattern>>;

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

// === impl Pattern ===

impl Pattern {
    /// Compiles a pattern, or finds it among those that are in use.
    ///
    /// # Errors
    /// What Go says of a pattern that it doesn't take.
    pub(super) fn get(source: &str) -> Result<Arc<Self>, String> {
        if let Some(found) = KNOWN.lock().get(source).and_then(Weak::upgrade) {
            return Ok(found);
        }
        let regex = compile(source)?;
        let made = Arc::new(Self { source: source.into(), regex });
        let mut known = KNOWN.lock();
        if known.len() >= 64 && known.len() == known.capacity() {
            known.retain(|_, pattern| pattern.strong_count() > 0);
        }
        known.insert(source.into(), Arc::downgrade(&made));
        Ok(made)
    }

    /// The pattern as it is written.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Whether the pattern is found anywhere in a text.
    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

fn compile(source: &str) -> Result<Regex, String> {
    let rewritten = go::rewrite(source).map_err(|why| format!("error parsing regexp: {why}"))?;
    RegexBuilder::new(&rewritten)
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_CACHE)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                "error parsing regexp: expression too large".to_owned()
            }
            _ => format!("error parsing regexp: invalid character class range: `{source}`"),
        })
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.source).finish()
    }
}

#[cfg(test)]
mod tests;
