//! Memory of collections that were much larger: the standard ones never give theirs back.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};

/// Entries whose room is kept in any case: it is little, and asking for it again costs time.
const KEPT: usize = 64;

/// A collection whose room can become far more than it needs.
pub trait GiveRoomBack {
    /// Gives back most of the room if only a small part of it is used. To be called after what may
    /// have removed much, or after each removal: over many, it costs next to nothing.
    fn give_room_back(&mut self);
}

/// How much room to keep for so many entries, if there is far too much.
fn kept(len: usize, capacity: usize) -> Option<usize> {
    (capacity > KEPT && len < capacity / 8).then_some(2 * len)
}

impl<T> GiveRoomBack for VecDeque<T> {
    fn give_room_back(&mut self) {
        if let Some(room) = kept(self.len(), self.capacity()) {
            self.shrink_to(room);
        }
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> GiveRoomBack for HashMap<K, V, S> {
    fn give_room_back(&mut self) {
        if let Some(room) = kept(self.len(), self.capacity()) {
            self.shrink_to(room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_small_gives_its_room_back_and_loses_nothing() {
        let mut queue = (0..1000).collect::<VecDeque<_>>();
        let mut map = (0..1000).map(|n| (n, n)).collect::<HashMap<_, _>>();
        let full = queue.capacity();
        for n in 0..1000 {
            assert_eq!((queue.pop_front(), map.remove(&n)), (Some(n), Some(n)));
            queue.give_room_back();
            map.give_room_back();
            assert_eq!((queue.len(), map.len()), (999 - n, 999 - n));
            // A map may have twice the places that it needs, and take some free ones for used.
            let is_kept = queue.capacity() == full && map.capacity() > 500;
            assert!(is_kept || n > 700, "{n}: {}, {}", queue.capacity(), map.capacity());
        }
        assert!(queue.capacity() <= KEPT && map.capacity() <= KEPT);
    }

    #[test]
    fn little_room_is_kept() {
        let mut queue = VecDeque::<u8>::with_capacity(KEPT);
        queue.give_room_back();
        assert_eq!(queue.capacity(), KEPT);
    }
}
