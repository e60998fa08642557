//! Compressed lists, put together from objects that are compressed one by one and once.
//!
//! A gzip stream may be made of pieces that were compressed apart, each ended at a byte boundary
//! (RFC 1951 §3.2.3, a sync flush), and the checksum of a whole follows from those of its parts.
//! So a list costs its clients' bytes and no compression, however often it is asked for: an object
//! is compressed when it is first listed and keeps its piece as long as it lives. Pieces know
//! nothing of each other, which costs some of the ratio.

use std::any::Any;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use flate2::{Compress, Compression, FlushCompress};
use store::cache::Object;

use super::checksum::Checksum;
use super::list::Glue;
use crate::http::body::Pieces;
use crate::registry::View;

/// Bytes that are passed on at once.
const PIECE: usize = 32 * 1024;

/// Magic, deflate, no flags, no time, fastest, unknown system (RFC 1952).
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

/// The last block, which is empty.
const END: [u8; 5] = [1, 0, 0, 0xff, 0xff];

/// Bytes compressed apart from all others.
struct Packed {
    bytes: Box<[u8]>,
    /// Of the bytes as they were.
    sum: Checksum,
    /// Of what stands between items and the bytes.
    after_glue: Checksum,
}

/// A list on its way: `head`, the items with commas between them, `tail`.
pub(super) struct PackedList<I> {
    items: I,
    head: Option<Bytes>,
    tail: &'static [u8],
    begun: bool,
    ended: bool,
    packer: Packer,
    sum: Checksum,
    glue: Glue,
}

/// Compresses pieces one after the other.
struct Packer(Compress);

// === impl PackedList ===

impl<I: Iterator<Item = View>> PackedList<I> {
    pub(super) fn new(head: Bytes, items: I, tail: &'static [u8], glue: Glue) -> Self {
        let packer = Packer(Compress::new(Compression::fast(), false));
        let (begun, ended) = (false, false);
        let (head, sum) = (Some(head), Checksum::default());
        Self { items, head, tail, begun, ended, packer, sum, glue }
    }

    fn add(&mut self, out: &mut BytesMut, packed: &Packed) {
        out.put_slice(&packed.bytes);
        self.sum.append(packed.sum);
    }

    fn add_item(&mut self, out: &mut BytesMut, view: &View) {
        let object: &Arc<Object> = &view.object;
        let packed: Arc<dyn Any + Send + Sync> = if object.is_own(&view.json) {
            let part = || self.glue.part(&object.json());
            let between = self.glue.between();
            object.memo.get_or_init(|| Arc::new(self.packer.pack(&part(), between))).clone()
        } else {
            // Other versions and marked objects have bytes of their own.
            Arc::new(self.packer.pack(&self.glue.part(&view.json), self.glue.between()))
        };
        let Some(packed) = packed.downcast_ref::<Packed>() else {
            return;
        };
        if std::mem::replace(&mut self.begun, true) {
            put_stored(out, self.glue.between());
            out.put_slice(&packed.bytes);
            self.sum.append(packed.after_glue);
        } else {
            put_stored(out, self.glue.first());
            self.sum.append(Checksum::of(self.glue.first()));
            self.add(out, packed);
        }
    }
}

impl<I: Iterator<Item = View> + Send> Pieces for PackedList<I> {
    fn next_piece(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let mut out = BytesMut::with_capacity(PIECE + 8 * 1024);
        if let Some(head) = self.head.take() {
            out.put_slice(&HEADER);
            let packed = self.packer.pack(&head, b"");
            self.add(&mut out, &packed);
        }
        while out.len() < PIECE {
            let Some(view) = self.items.next() else {
                let packed = self.packer.pack(self.tail, b"");
                self.add(&mut out, &packed);
                out.put_slice(&END);
                out.put_u32_le(self.sum.sum());
                out.put_u32_le(self.sum.length());
                self.ended = true;
                break;
            };
            self.add_item(&mut out, &view);
        }
        Some(out.freeze())
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}

/// A block of a few bytes that are not compressed.
fn put_stored(out: &mut BytesMut, bytes: &[u8]) {
    if let (false, Ok(length)) = (bytes.is_empty(), u16::try_from(bytes.len())) {
        out.put_u8(0);
        out.put_u16_le(length);
        out.put_u16_le(!length);
        out.put_slice(bytes);
    }
}

// === impl Packer ===

impl Packer {
    fn pack(&mut self, bytes: &[u8], between: &[u8]) -> Packed {
        self.0.reset();
        let mut out = Vec::with_capacity(bytes.len() / 3 + 64);
        let mut rest = bytes;
        loop {
            let before = self.0.total_in();
            // Only a wrong state is an error, and the state has just been made new.
            let status = self.0.compress_vec(rest, &mut out, FlushCompress::Sync);
            let taken = usize::try_from(self.0.total_in() - before).unwrap_or(rest.len());
            rest = rest.get(taken..).unwrap_or_default();
            let room = out.capacity() - out.len();
            if status.is_err() || rest.is_empty() && room > 0 {
                break;
            }
            out.reserve(bytes.len() / 2 + 64);
        }
        let sum = Checksum::of(bytes);
        let mut after_glue = Checksum::of(between);
        after_glue.append(sum);
        Packed { bytes: out.into_boxed_slice(), sum, after_glue }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use machinery::{ClusterName, GroupResource, ObjectKey};
    use proptest::prelude::*;
    use store::cache::Origin;
    use store::{Key, Revision};

    use super::*;

    fn view(at: usize, text: &str, plain: bool) -> View {
        let resource = GroupResource::new("", "configmaps");
        let key = ObjectKey::new(ClusterName::root(), "ns", &format!("cm-{at}"));
        let value = serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"t": text},
        });
        let encoded = store::object::encode(&value);
        let key = Key::new(&resource, &key);
        let object = Object::new(key, &encoded, Revision(7), 0, Origin::Stored).unwrap();
        let object = Arc::new(object);
        let json = if plain { object.json() } else { encoded };
        View { json, object }
    }

    fn unpacked(mut list: PackedList<impl Iterator<Item = View> + Send>) -> String {
        let mut compressed = Vec::new();
        while let Some(piece) = list.next_piece() {
            assert!(!piece.is_empty());
            compressed.extend_from_slice(&piece);
        }
        let mut text = String::new();
        flate2::read::GzDecoder::new(compressed.as_slice()).read_to_string(&mut text).unwrap();
        text
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// What a client unpacks is the list, the first time and from kept pieces.
        #[test]
        fn lists_unpack_to_themselves(
            texts in prop::collection::vec(("[a-z ]{0,3000}", any::<bool>()), 0..20),
        ) {
            let views = texts.iter().enumerate().map(|(at, (text, plain))| view(at, text, *plain));
            let views = views.collect::<Vec<_>>();
            let joined = views.iter().map(|view| std::str::from_utf8(&view.json).unwrap());
            let expected = format!("[{}]", joined.collect::<Vec<_>>().join(","));
            for _ in 0..2 {
                let list = PackedList::new(Bytes::from_static(b"["), views.clone().into_iter(), b"]", Glue::Comma);
                prop_assert_eq!(unpacked(list), expected.clone());
            }
        }
    }

    #[test]
    fn an_incompressible_object_unpacks() {
        let mut seed = 1_u64;
        let noise = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'!' + u8::try_from(seed >> 57).unwrap() % 90)
        });
        let text = noise.take(1 << 20).collect::<String>();
        let one = view(0, &text, true);
        let expected = format!("[{}]", std::str::from_utf8(&one.json).unwrap());
        let list =
            PackedList::new(Bytes::from_static(b"["), std::iter::once(one), b"]", Glue::Comma);
        assert_eq!(unpacked(list), expected);
    }
}
