//! Where things stand in etcd, below the store's prefix.
//!
//! | key | holds |
//! |---|---|
//! | `registry/<key>` | an object's value |
//! | `registry/<key>` and a zero byte | a tombstone: the empty value at that key |
//! | `meta/identity` | whose store this is |
//! | `meta/compacted` | the revision that was compacted to |
//! | `meta/import` | an import that has not ended |
//!
//! Only one of an object and its tombstone is there at any revision. A tombstone is a key of its own
//! because what is written over one is created by that write, and etcd's creation revisions then say
//! so. It stands directly behind its object, so both are one range of two keys, a condition on that
//! range is one on whichever is there, and pages stay in the order of keys.
//!
//! A zero byte within a key is written as 0, 255, which no text contains: order is kept, and no key
//! can be mistaken for the tombstone of another.

use bytes::{BufMut, Bytes, BytesMut};

use crate::{Key, KeyPrefix};

/// The keys of one store.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// With a slash at its end.
    prefix: Bytes,
    registry: Bytes,
}

/// Keys from `start` up to but without `end`, or `start` alone if there is no end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: Bytes,
    pub(super) end: Bytes,
}

/// What a key of etcd is to the store.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// An object's.
    Object(Key),
    /// The tombstone of an object's key.
    Tombstone(Key),
    /// The revision that was compacted to.
    Compacted,
    /// Something that no reader is shown.
    Other,
}

// === impl Layout ===

impl Layout {
    /// The keys under `prefix`, as `/kcp`.
    pub(super) fn new(prefix: &str) -> Self {
        let prefix = format!("{}/", prefix.trim_end_matches('/'));
        let registry = format!("{prefix}registry/").into();
        Self { prefix: prefix.into(), registry }
    }

    /// Everything that belongs to the store.
    pub(super) fn everything(&self) -> Span {
        Span::under(&self.prefix)
    }

    /// All objects and tombstones.
    pub(super) fn registry(&self) -> Span {
        Span::under(&self.registry)
    }

    pub(super) fn identity(&self) -> Bytes {
        self.meta("identity")
    }

    pub(super) fn compacted(&self) -> Bytes {
        self.meta("compacted")
    }

    pub(super) fn import(&self) -> Bytes {
        self.meta("import")
    }

    fn meta(&self, name: &str) -> Bytes {
        [self.prefix.as_ref(), b"meta/", name.as_bytes()].concat().into()
    }

    pub(super) fn object(&self, key: &Key) -> Bytes {
        self.escaped(key, b"")
    }

    pub(super) fn tombstone(&self, key: &Key) -> Bytes {
        self.escaped(key, b"\0")
    }

    /// An object and its tombstone.
    pub(super) fn both(&self, key: &Key) -> Span {
        Span { start: self.object(key), end: self.behind(key) }
    }

    /// Objects and tombstones under a prefix, and after `after` if given.
    pub(super) fn range(&self, prefix: &KeyPrefix, after: Option<&Key>) -> Span {
        let Span { start, end } = Span::under(&self.under_registry(prefix.as_bytes(), b""));
        let start = match after {
            Some(after) => start.max(self.behind(after)),
            None => start,
        };
        Span { start, end }
    }

    /// The first place behind an object and its tombstone.
    fn behind(&self, key: &Key) -> Bytes {
        self.escaped(key, b"\0\0")
    }

    fn escaped(&self, key: &Key, end: &[u8]) -> Bytes {
        self.under_registry(key.as_bytes(), end)
    }

    fn under_registry(&self, text: &[u8], end: &[u8]) -> Bytes {
        let mut out = BytesMut::with_capacity(self.registry.len() + text.len() + end.len());
        out.put_slice(&self.registry);
        for (index, part) in text.split(|byte| *byte == 0).enumerate() {
            if index > 0 {
                out.put_slice(&[0, 255]);
            }
            out.put_slice(part);
        }
        out.put_slice(end);
        out.freeze()
    }

    /// What `raw` is.
    pub(super) fn place(&self, raw: &[u8]) -> Place {
        let Some(text) = raw.strip_prefix(self.registry.as_ref()) else {
            let compacted = raw == self.compacted().as_ref();
            return if compacted { Place::Compacted } else { Place::Other };
        };
        let object = text.strip_suffix(&[0]).unwrap_or(text);
        let Some(key) = unescaped(object).and_then(Key::parse) else { return Place::Other };
        if is_tombstone(text) { Place::Tombstone(key) } else { Place::Object(key) }
    }
}

// === impl Span ===

impl Span {
    /// A single key: to etcd that is a range without an end.
    pub(super) fn one(key: Bytes) -> Self {
        Self { start: key, end: Bytes::new() }
    }

    /// All keys that begin with `prefix`, which is not empty and not only of bytes 255.
    pub(super) fn under(prefix: &Bytes) -> Self {
        let mut end = BytesMut::from(prefix.as_ref());
        while let Some(last) = end.last_mut() {
            if *last < 255 {
                *last += 1;
                break;
            }
            end.truncate(end.len() - 1);
        }
        Self { start: prefix.clone(), end: end.freeze() }
    }

    /// Whether no key can be in it.
    pub(super) fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

/// Whether a key of an object or of its tombstone is the latter: no other has a zero byte at its end.
pub(super) fn is_tombstone(raw: &[u8]) -> bool {
    raw.last() == Some(&0)
}

/// Of its own memory, unlike the message that it came in.
fn unescaped(text: &[u8]) -> Option<Bytes> {
    if !text.contains(&0) {
        return Some(Bytes::copy_from_slice(text));
    }
    let mut out = BytesMut::with_capacity(text.len());
    for (index, part) in text.split(|byte| *byte == 0).enumerate() {
        let part = if index == 0 {
            part
        } else {
            out.put_u8(0);
            part.strip_prefix(&[255])?
        };
        out.put_slice(part);
    }
    Some(out.freeze())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, proptest};

    use super::*;

    fn key(name: &str) -> Key {
        Key::parse(format!("core/things/root/ns/{name}")).unwrap()
    }

    fn names() -> impl Strategy<Value = String> {
        // Few different characters, so that names are often prefixes of each other.
        proptest::collection::vec(
            proptest::sample::select(vec!['\0', '\u{1}', '-', 'a', 'ÿ']),
            1..6,
        )
        .prop_map(|name| name.into_iter().collect())
    }

    #[test]
    fn places() {
        let layout = Layout::new("/kcp/");
        assert_eq!(layout.object(&key("a")).as_ref(), b"/kcp/registry/core/things/root/ns/a");
        assert_eq!(layout.place(b"/kcp/meta/compacted"), Place::Compacted);
        for other in ["/kcp/meta/identity", "/kcp/registry/x", "/kcp/registry/", "/kcq/registry/x"]
        {
            assert_eq!(layout.place(other.as_bytes()), Place::Other, "{other}");
        }
        let Span { start, end } = layout.everything();
        assert_eq!((start.as_ref(), end.as_ref()), (b"/kcp/".as_ref(), b"/kcp0".as_ref()));
    }

    proptest! {
        #[test]
        fn keys_round_trip_and_keep_their_order(a in names(), b in names()) {
            let layout = Layout::new("/kcp");
            let (a, b) = (key(&a), key(&b));
            assert_eq!(layout.place(&layout.object(&a)), Place::Object(a.clone()));
            assert_eq!(layout.place(&layout.tombstone(&a)), Place::Tombstone(a.clone()));
            if a < b {
                for (a, b) in [
                    (layout.object(&a), layout.object(&b)),
                    (layout.tombstone(&a), layout.object(&b)),
                    (layout.behind(&a), layout.object(&b)),
                ] {
                    assert!(a < b);
                }
            }
            // A pair's range holds no other key, and the range after a key not the key.
            let Span { start, end } = layout.both(&a);
            for other in [layout.object(&b), layout.tombstone(&b)] {
                assert_eq!(other >= start && other < end, a == b);
            }
            let after = layout.range(&KeyPrefix::everything(), Some(&a));
            assert_eq!(layout.object(&b) >= after.start, b > a);
            assert_eq!(layout.tombstone(&b) >= after.start, b > a);
        }

        #[test]
        fn no_bytes_are_a_panic(raw in proptest::collection::vec(any::<u8>(), 0..40)) {
            let layout = Layout::new("");
            let raw = [b"/registry/core/things/root/ns/".as_ref(), &raw].concat();
            if let Place::Object(key) = layout.place(&raw) {
                assert_eq!(layout.object(&key).as_ref(), raw);
            }
        }
    }
}
