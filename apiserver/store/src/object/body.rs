//! The bytes of an object, of which large parts that many objects have in common exist once.
//!
//! A CRD is mostly its schemas, and a thousand logical clusters have the same ones. Such an object
//! is held in three parts, the middle of which, its `spec`, is shared by all that have the same
//! bytes there; it is put together when somebody reads it.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Weak};

use bytes::{BufMut, Bytes, BytesMut};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A `spec` from this size on is shared.
const LARGE: usize = 4 * 1024;

/// Bytes of one object.
#[derive(Clone)]
pub(super) enum Body {
    /// As they are.
    Whole(Bytes),
    /// With a shared part in the middle.
    Split(Box<Split>),
}

#[derive(Clone)]
pub(super) struct Split {
    head: Box<[u8]>,
    shared: Arc<[u8]>,
    tail: Box<[u8]>,
}

/// Parts that are in use, by their hash.
#[derive(Default)]
struct Shared {
    by_hash: HashMap<u64, Vec<Weak<[u8]>>, ahash::RandomState>,
    sweep_at: usize,
}

static SHARED: LazyLock<Mutex<Shared>> = LazyLock::new(Mutex::default);

// === impl Body ===

impl Body {
    /// Holds bytes in the way that costs least, if many objects are likely to be alike.
    pub(super) fn shared(json: Bytes) -> Self {
        match split(&json) {
            Some(split) => Self::Split(Box::new(split)),
            None => Self::Whole(json),
        }
    }

    /// The bytes; of a split body a copy.
    pub(super) fn bytes(&self) -> Bytes {
        match self {
            Self::Whole(json) => json.clone(),
            Self::Split(split) => {
                let Split { head, shared, tail } = &**split;
                let mut out = BytesMut::with_capacity(head.len() + shared.len() + tail.len());
                [&**head, &**shared, &**tail].into_iter().for_each(|part| out.put_slice(part));
                out.freeze()
            }
        }
    }

    /// The part that others may share, if it has one.
    pub(super) fn part(&self) -> Option<&Arc<[u8]>> {
        match self {
            Self::Whole(_) => None,
            Self::Split(split) => Some(&split.shared),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Whole(json) => json.len(),
            Self::Split(split) => split.head.len() + split.shared.len() + split.tail.len(),
        }
    }

    /// Bytes that this object alone holds.
    pub(super) fn own_len(&self) -> usize {
        match self {
            Self::Whole(json) => json.len(),
            Self::Split(split) => split.head.len() + split.tail.len(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Body").field(&self.bytes()).finish()
    }
}

fn split(json: &Bytes) -> Option<Split> {
    let range = large_spec(json)?;
    let (head, rest) = json.split_at_checked(range.start)?;
    let (spec, tail) = rest.split_at_checked(range.len())?;
    Some(Split { head: head.into(), shared: SHARED.lock().intern(spec), tail: tail.into() })
}

/// Where the `spec` of an object is, if it is large.
pub(super) fn large_spec(json: &[u8]) -> Option<Range<usize>> {
    #[derive(Deserialize)]
    struct Outer<'a> {
        #[serde(borrow)]
        spec: Option<&'a RawValue>,
    }
    if json.len() < LARGE {
        return None;
    }
    let spec = serde_json::from_slice::<Outer<'_>>(json).ok()?.spec?.get().as_bytes();
    if spec.len() < LARGE {
        return None;
    }
    // The part lies within the bytes that it was read from.
    let start = (spec.as_ptr() as usize).checked_sub(json.as_ptr() as usize)?;
    Some(start..start.checked_add(spec.len())?)
}

// === impl Shared ===

impl Shared {
    fn intern(&mut self, part: &[u8]) -> Arc<[u8]> {
        let hash = self.by_hash.hasher().hash_one(part);
        let same = self.by_hash.entry(hash).or_default();
        if let Some(found) = same.iter().filter_map(Weak::upgrade).find(|held| **held == *part) {
            return found;
        }
        let made: Arc<[u8]> = part.into();
        same.retain(|held| held.strong_count() > 0);
        same.push(Arc::downgrade(&made));
        if self.by_hash.len() > self.sweep_at {
            self.by_hash.retain(|_, held| held.iter().any(|held| held.strong_count() > 0));
            self.sweep_at = 2 * self.by_hash.len() + 64;
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(uid: &str, filling: &str) -> Bytes {
        let text = format!(
            r#"{{"apiVersion":"a/v1","kind":"K","metadata":{{"uid":"{uid}"}},"spec":{{"x":"{filling}"}},"status":{{"u":"{uid}"}}}}"#
        );
        text.into()
    }

    #[test]
    fn large_specs_are_held_once() {
        let filling = "x".repeat(LARGE);
        let bodies = ["a", "b"].map(|uid| Body::shared(body(uid, &filling)));
        for (held, uid) in bodies.iter().zip(["a", "b"]) {
            assert_eq!(held.bytes(), body(uid, &filling));
            assert_eq!(held.len(), body(uid, &filling).len());
            assert!(held.own_len() < 200, "{}", held.own_len());
        }
        let [Body::Split(a), Body::Split(b)] = &bodies else { panic!("both are split") };
        assert!(Arc::ptr_eq(&a.shared, &b.shared));
        let small = Body::shared(body("a", "x"));
        assert!(matches!(small, Body::Whole(_)));
        let broken = Bytes::from("{".repeat(2 * LARGE));
        assert_eq!(Body::shared(broken.clone()).bytes(), broken);
    }
}
