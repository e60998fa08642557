//! What a request is expected to cost, in seats and in memory.

use crate::registry::Media;

/// Objects of a list that make one seat, as upstream's estimate has it.
const LIST_OBJECTS: usize = 100;

/// Bytes of a body that make one seat: what takes as long to read, judge and write as some small
/// ones.
const WRITE_BYTES: usize = 128 << 10;

/// The widest that a request can be, as upstream has it.
const WIDEST: usize = 10;

/// Objects after which a list is as wide as any: no more need be counted.
pub(crate) const COUNTED: usize = LIST_OBJECTS * WIDEST;

/// Memory of one value in a parsed document beside its text, at most: the entry of a map with its
/// key, and spare room of the map.
const VALUE: usize = 80;

/// Seats of a request that goes through so many objects.
pub(crate) fn list_seats(objects: usize) -> u32 {
    seats(objects.div_ceil(LIST_OBJECTS))
}

/// Seats of a request whose body has so many bytes.
pub(crate) fn write_seats(bytes: usize) -> u32 {
    seats(1 + bytes / WRITE_BYTES)
}

fn seats(wanted: usize) -> u32 {
    u32::try_from(wanted.clamp(1, WIDEST)).unwrap_or(1)
}

/// The most memory that a body takes when it is read, in bytes, beside its own.
pub(crate) fn body_memory(media: Media, body: &[u8]) -> usize {
    let values = match media {
        // Every value but the first follows one of these; an empty object takes room, too.
        Media::Json => count(body, b",:[{{"),
        Media::Yaml => count(body, b",:[{{\n-?"),
        // A field is a tag and a length at least.
        Media::Protobuf => body.len() / 2,
    };
    body.len().saturating_add(values.saturating_mul(VALUE))
}

/// How often the bytes of `marks` are in `body`; one that is named twice counts twice.
fn count(body: &[u8], marks: &[u8]) -> usize {
    let mut weights = [0_u8; 256];
    for mark in marks {
        if let Some(weight) = weights.get_mut(usize::from(*mark)) {
            *weight += 1;
        }
    }
    let weight = |byte: &u8| weights.get(usize::from(*byte)).copied().map_or(0, usize::from);
    body.iter().map(weight).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates() {
        let check = |objects, expect| assert_eq!(list_seats(objects), expect, "{objects}");
        check(0, 1);
        check(100, 1);
        check(101, 2);
        check(1000, 10);
        check(usize::MAX, 10);
        let check = |bytes, expect| assert_eq!(write_seats(bytes), expect, "{bytes}");
        check(0, 1);
        check(1000, 1);
        check(300 << 10, 3);
        check(3 << 20, 10);
        let check = |media, body: &str, values| {
            let expect = body.len() + values * VALUE;
            assert_eq!(body_memory(media, body.as_bytes()), expect, "{body}");
        };
        check(Media::Json, r#"{"a":[1,2]}"#, 5);
        check(Media::Yaml, "a: 1\nb:\n- 2\n", 6);
        check(Media::Protobuf, "k8s\0abcd", 4);
        // The worst body fits into the share of one logical cluster.
        let worst = "{},".repeat(1 << 20);
        assert!(body_memory(Media::Json, worst.as_bytes()) <= super::super::BODY_MEMORY / 2);
    }
}
