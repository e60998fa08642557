//! Amounts of one thing that logical clusters share without waiting: bytes, or places.
//!
//! # Guarantees
//! - What is held never exceeds the capacity.
//! - A logical cluster gets more only while it holds no more than what is then left for others
//!   (dynamic thresholds: Choudhury, Hahne, 1998), so one of them has at most a half, two have at
//!   most a third each, and a newcomer always finds something.
//! - Memory is held for those that hold something, and for no others.

use std::collections::HashMap;
use std::sync::Arc;

use ahash::RandomState;
use machinery::room::GiveRoomBack as _;
use parking_lot::Mutex;

/// A capacity, and who holds how much of it.
#[derive(Debug)]
pub(crate) struct Shares {
    capacity: usize,
    /// Nobody holds more than this.
    most: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    each: HashMap<u64, usize, RandomState>,
}

/// What one request holds; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<Shares>,
    cluster: u64,
    amount: usize,
}

// === impl Shares ===

impl Shares {
    /// So much, of which one logical cluster holds at most `most`.
    pub(crate) fn new(capacity: usize, most: usize) -> Arc<Self> {
        Arc::new(Self { capacity, most, held: Mutex::default() })
    }

    /// Nothing yet, for a logical cluster.
    pub(crate) fn open(self: &Arc<Self>, cluster: u64) -> Share {
        Share { shares: self.clone(), cluster, amount: 0 }
    }

    /// What is held, and what of it by each logical cluster that holds something.
    pub(crate) fn standings(&self) -> (usize, Vec<(u64, usize)>) {
        let held = self.held.lock();
        (held.all, held.each.iter().map(|(cluster, amount)| (*cluster, *amount)).collect())
    }

    fn take(&self, cluster: u64, more: usize) -> bool {
        let mut held = self.held.lock();
        let own = held.each.get(&cluster).copied().unwrap_or_default();
        let (Some(all), Some(own)) = (held.all.checked_add(more), own.checked_add(more)) else {
            return false;
        };
        let Some(left) = self.capacity.checked_sub(all) else { return false };
        if own > left.min(self.most) {
            return false;
        }
        held.all = all;
        held.each.insert(cluster, own);
        true
    }

    fn give_back(&self, cluster: u64, amount: usize) {
        let mut held = self.held.lock();
        held.all = held.all.saturating_sub(amount);
        let Some(own) = held.each.get_mut(&cluster) else { return };
        *own = own.saturating_sub(amount);
        if *own == 0 {
            held.each.remove(&cluster);
            held.each.give_room_back();
        }
    }
}

// === impl Share ===

impl Share {
    /// Takes more; `false`, and nothing, when there is not enough for this logical cluster.
    #[must_use]
    pub(crate) fn grow(&mut self, more: usize) -> bool {
        if more == 0 {
            return true;
        }
        let taken = self.shares.take(self.cluster, more);
        if taken {
            self.amount += more;
        }
        taken
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.amount > 0 {
            self.shares.give_back(self.cluster, self.amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_has_a_half_and_a_newcomer_finds_some() {
        let shares = Shares::new(100, usize::MAX);
        let mut first = shares.open(1);
        assert!(!first.grow(51) && first.grow(50) && !first.grow(1) && first.grow(0));
        let mut second = shares.open(2);
        assert!(!second.grow(26) && second.grow(25));
        let mut again = shares.open(1);
        assert!(!again.grow(1));
        assert!(shares.open(3).grow(12));
        drop(first);
        assert!(again.grow(37) && !again.grow(1));
        drop((again, second));
        let few = Shares::new(100, 2);
        let mut third = few.open(1);
        assert!(!third.grow(3) && third.grow(2) && !few.open(1).grow(1) && few.open(2).grow(2));
        assert!(!third.grow(usize::MAX));
    }

    proptest! {
        /// The capacity holds, nobody who came last is turned away while most is free, and in the
        /// end nothing is kept.
        #[test]
        fn sound(steps in proptest::collection::vec((0_u64..6, 0_usize..40, any::<bool>()), 1..200)) {
            let shares = Shares::new(200, 90);
            let mut open = Vec::<Share>::new();
            for (cluster, amount, end) in steps {
                if end && !open.is_empty() {
                    open.swap_remove(amount % open.len());
                    continue;
                }
                let mut share = shares.open(cluster);
                let own: usize =
                    open.iter().filter(|share| share.cluster == cluster).map(|s| s.amount).sum();
                let all: usize = open.iter().map(|share| share.amount).sum();
                let expect = amount == 0
                    || (all + amount <= 200 && own + amount <= 90.min(200 - all - amount));
                prop_assert_eq!(share.grow(amount), expect);
                open.push(share);
                let all: usize = open.iter().map(|share| share.amount).sum();
                prop_assert_eq!(shares.held.lock().all, all);
            }
            drop(open);
            prop_assert!(shares.held.lock().each.is_empty());
        }
    }
}
