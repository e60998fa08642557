//! Digests of JSON: what was applied and what is there are compared by them, so that bodies need
//! not be kept.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The first 128 bits of a SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Digest(u128);

/// Makes a digest of parts that can't run into each other.
pub(crate) struct Hasher(Sha256);

// === impl Digest ===

impl Digest {
    /// Of a value; keys of maps are sorted, so equal values have equal digests.
    pub(crate) fn of(value: &Value) -> Self {
        let mut hasher = Hasher::new();
        hasher.value(value);
        hasher.end()
    }

    /// Reads what [`Display`](std::fmt::Display) writes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if plain { u128::from_str_radix(text, 16).ok().map(Self) } else { None }
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}", self.0 >> 96)
    }
}

// === impl Hasher ===

impl Hasher {
    pub(crate) fn new() -> Self {
        Self(Sha256::new())
    }

    /// Adds a text.
    pub(crate) fn text(&mut self, text: &str) {
        self.0.update(text.len().to_be_bytes());
        self.0.update(text.as_bytes());
    }

    /// Adds a value.
    pub(crate) fn value(&mut self, value: &Value) {
        self.text(&value.to_string());
    }

    pub(crate) fn end(self) -> Digest {
        let bytes = self.0.finalize();
        let (head, _) = bytes.split_at(16);
        Digest(head.iter().fold(0, |sum, byte| (sum << 8) | u128::from(*byte)))
    }
}

/// The lowercase hexadecimal SHA-256 of parts with a byte between them that names don't have.
pub(crate) fn hex(parts: &[&str]) -> String {
    use std::fmt::Write as _;
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_bytes());
        hasher.update([b'|']);
    }
    hasher.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string does not fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn digests_come_back(text in ".{0,40}") {
            let digest = Digest::of(&json!(text));
            prop_assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        }

        #[test]
        fn any_text(text in ".{0,40}") {
            if let Some(digest) = Digest::parse(&text) {
                prop_assert_eq!(digest.to_string(), text.to_lowercase());
            }
        }
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let of = |parts: &[&str]| {
            let mut hasher = Hasher::new();
            parts.iter().for_each(|part| hasher.text(part));
            hasher.end()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(hex(&["ab", "c"]), hex(&["a", "bc"]));
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
    }
}
