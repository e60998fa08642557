//! What was found of tokens that were seen lately, so that their signatures are not checked at
//! each request.
//!
//! Invariant: bounded, whoever sends how many tokens; what is kept is found by the digest of the
//! whole token, never by a part of it.

use std::collections::HashMap;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// Tokens of one generation. Two generations of some 700 bytes each are 3 MB at most; a token that
/// was forgotten costs one more check of its signature.
const MOST: usize = 2048;

/// The digest of a token.
pub(crate) type TokenDigest = [u8; 32];

/// Found things by the digest of their token: those of this generation and the one before.
#[derive(Debug)]
pub(crate) struct Recent<V> {
    generations: Mutex<Generations<V>>,
    most: usize,
}

#[derive(Debug)]
struct Generations<V> {
    young: HashMap<TokenDigest, V, ahash::RandomState>,
    old: HashMap<TokenDigest, V, ahash::RandomState>,
}

/// The digest of a token.
pub(crate) fn digest(token: &str) -> TokenDigest {
    Sha256::digest(token).into()
}

/// Whether two digests are equal, in a time that tells nothing of where they differ.
pub(crate) fn same(a: &TokenDigest, b: &TokenDigest) -> bool {
    a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

// === impl Recent ===

impl<V: Clone> Recent<V> {
    /// Nothing yet; at most `most` in each generation.
    fn bounded(most: usize) -> Self {
        let generations = Generations { young: HashMap::default(), old: HashMap::default() };
        Self { generations: Mutex::new(generations), most }
    }

    /// What was found of a token.
    pub(crate) fn get(&self, digest: &TokenDigest) -> Option<V> {
        let mut held = self.generations.lock();
        if let Some(found) = held.young.get(digest) {
            return Some(found.clone());
        }
        // What is used again lives on.
        let found = held.old.remove(digest)?;
        held.insert(*digest, found.clone(), self.most);
        Some(found)
    }

    /// How many are kept.
    pub(crate) fn len(&self) -> usize {
        let held = self.generations.lock();
        held.young.len() + held.old.len()
    }

    /// Keeps what was found.
    pub(crate) fn put(&self, digest: TokenDigest, found: V) {
        self.generations.lock().insert(digest, found, self.most);
    }
}

impl<V: Clone> Default for Recent<V> {
    fn default() -> Self {
        Self::bounded(MOST)
    }
}

impl<V> Generations<V> {
    fn insert(&mut self, digest: TokenDigest, found: V, most: usize) {
        if self.young.len() >= most {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(digest, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let recent = Recent::bounded(4);
        let kept = digest("kept");
        recent.put(kept, 0);
        for number in 1..100 {
            recent.put(digest(&number.to_string()), number);
            assert_eq!(recent.get(&kept), Some(0), "after {number}");
            let held = recent.generations.lock();
            assert!(held.young.len() + held.old.len() <= 8);
        }
        assert_eq!(recent.get(&digest("1")), None);
        assert_eq!(recent.get(&digest("99")), Some(99));
    }

    #[test]
    fn digests_are_compared_whole() {
        let (a, mut b) = (digest("a"), digest("a"));
        assert!(same(&a, &b));
        for place in 0..32 {
            b[place] ^= 1;
            assert!(!same(&a, &b), "{place}");
            b[place] ^= 1;
        }
    }
}
