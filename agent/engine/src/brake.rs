//! The brake on waves of deletes: more than usual wait for a person.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::engine::millis;
use crate::{Limits, Paused};

/// Counts deletes of copies, each named by a number.
#[derive(Debug, Default)]
pub(crate) struct Brake {
    /// Deletes that were let through: when (milliseconds), and whether they are done; oldest first.
    recent: VecDeque<(u64, u32, bool)>,
    /// Deletes that are wanted and have not been let through, and since when.
    waiting: BTreeMap<u32, u64>,
    /// Deletes that were approved.
    approved: BTreeSet<u32>,
    /// Since when more are wanted than go without approval.
    over: Option<u64>,
    /// How many are let through while it is on.
    paused: Option<u64>,
}

/// Whether a delete may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It may.
    Go,
    /// Not now: it is asked again at this time (milliseconds). Until then it may turn out that a
    /// person is deleting the whole.
    Later(u64),
    /// A person is waited for.
    Paused,
}

// === impl Brake ===

impl Brake {
    /// Whether a delete may go on. `exempt` ones always may, and count for nothing. `copies` are
    /// there, the one to delete among them.
    pub(crate) fn may(
        &mut self,
        id: u32,
        exempt: bool,
        copies: u64,
        now: u64,
        limits: &Limits,
    ) -> Turn {
        if exempt || self.approved.contains(&id) || self.is_under_way(id) {
            self.waiting.remove(&id);
            self.settle();
            return Turn::Go;
        }
        let window = millis(limits.brake_window);
        while self.recent.front().is_some_and(|(at, ..)| at.saturating_add(window) < now) {
            self.recent.pop_front();
        }
        self.waiting.entry(id).or_insert(now);
        let recent = self.recent.len() as u64;
        let gone = self.recent.iter().filter(|(.., done)| *done).count() as u64;
        let share = (copies + gone).saturating_mul(limits.brake_percent) / 100;
        let allowed = limits.brake_count.max(share);
        if self.paused.is_some() {
            return Turn::Paused;
        }
        if recent + self.waiting.len() as u64 > allowed {
            let since = *self.over.get_or_insert(now);
            let until = since.saturating_add(millis(limits.brake_patience));
            if now < until {
                return Turn::Later(until);
            }
            self.paused = Some(allowed);
            return Turn::Paused;
        }
        self.waiting.remove(&id);
        self.recent.push_back((now, id, false));
        self.over = None;
        Turn::Go
    }

    /// What nothing waits for any more is over.
    fn settle(&mut self) {
        if self.waiting.is_empty() {
            self.paused = None;
            self.over = None;
        }
    }

    /// A delete is no longer wanted, or done. `done` ones still count for a while.
    pub(crate) fn forget(&mut self, id: u32, done: bool) {
        self.approved.remove(&id);
        self.waiting.remove(&id);
        if done {
            let this = self.recent.iter_mut().filter(|(_, one, _)| *one == id);
            this.for_each(|(.., done)| *done = true);
        } else {
            self.recent.retain(|(_, one, done)| *one != id || *done);
        }
        self.settle();
    }

    fn is_under_way(&self, id: u32) -> bool {
        self.recent.iter().any(|(_, one, done)| *one == id && !*done)
    }

    /// A person approves so many deletes: if it is the number that is shown, those that wait go
    /// on, and are returned.
    pub(crate) fn approve(&mut self, number: Option<u64>) -> Vec<u32> {
        if self.paused.is_none() || number != Some(self.waiting.len() as u64) {
            return Vec::new();
        }
        let waiting: Vec<_> = std::mem::take(&mut self.waiting).into_keys().collect();
        self.settle();
        self.approved.extend(&waiting);
        waiting
    }

    /// Whether deletes are held back that may turn out to need no approval.
    pub(crate) fn is_undecided(&self) -> bool {
        self.over.is_some() && self.paused.is_none()
    }

    /// Whether and how many deletes wait.
    pub(crate) fn paused(&self) -> Option<Paused> {
        self.paused.map(|allowed| Paused { number: self.waiting.len() as u64, allowed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;

    fn turn(brake: &mut Brake, id: u32, copies: u64, now: u64) -> Turn {
        brake.may(id, false, copies, now, &Limits::default())
    }

    /// How many of a wave are let through, when it has been waited for who may exempt it.
    fn wanted(brake: &mut Brake, ids: std::ops::Range<u32>, copies: u64, now: u64) -> usize {
        let mut later = Vec::new();
        let mut through = 0;
        for id in ids {
            match turn(brake, id, copies, now) {
                Turn::Go => through += 1,
                Turn::Later(until) => later.push((id, until)),
                Turn::Paused => {}
            }
        }
        for (id, until) in later {
            assert_eq!(turn(brake, id, copies, until), Turn::Paused);
        }
        through
    }

    /// (copies, deletes wanted at once, let through).
    #[test]
    fn waves() {
        for (copies, wave, through) in
            [(20, 20, 20), (21, 21, 20), (1000, 100, 100), (1000, 250, 250), (1000, 251, 250)]
        {
            let mut brake = Brake::default();
            assert_eq!(wanted(&mut brake, 0..wave, copies, 0), through, "{copies} {wave}");
            assert_eq!(brake.paused().is_some(), through < wave as usize);
        }
    }

    #[test]
    fn slow_deletes_are_no_wave() {
        let mut brake = Brake::default();
        for id in 0..200 {
            let now = u64::from(id) * 4_000;
            assert_eq!(turn(&mut brake, id, 30, now), Turn::Go, "{id}");
            brake.forget(id, true);
        }
    }

    #[test]
    fn approval() {
        let mut brake = Brake::default();
        assert_eq!(wanted(&mut brake, 0..50, 50, 0), 20);
        assert_eq!(brake.paused(), Some(Paused { number: 30, allowed: 20 }));
        assert_eq!(brake.approve(None), Vec::<u32>::new());
        assert_eq!(brake.approve(Some(29)), Vec::<u32>::new());
        // It stays on, however long it takes.
        assert_eq!(wanted(&mut brake, 20..50, 50, 5 * MINUTE), 0);
        assert_eq!(brake.approve(Some(30)).len(), 30);
        assert_eq!(brake.paused(), None);
        assert_eq!(wanted(&mut brake, 20..50, 50, 5 * MINUTE), 30);
        // The approval is used up.
        (20..50).for_each(|id| brake.forget(id, true));
        assert_eq!(wanted(&mut brake, 100..150, 50, 5 * MINUTE), 20);
    }

    #[test]
    fn what_is_taken_back() {
        let mut brake = Brake::default();
        assert_eq!(wanted(&mut brake, 0..50, 50, 0), 20);
        (0..50).for_each(|id| brake.forget(id, false));
        assert_eq!(brake.paused(), None);
        assert_eq!(wanted(&mut brake, 0..20, 50, 0), 20);
    }

    #[test]
    fn exempt_ones() {
        let mut brake = Brake::default();
        let exempt = |brake: &mut Brake, id| brake.may(id, true, 100, 0, &Limits::default());
        assert!((0..100).all(|id| exempt(&mut brake, id) == Turn::Go));
        assert_eq!(wanted(&mut brake, 200..220, 100, 0), 20);
    }

    /// The word that a person is deleting the whole may come after the deletes.
    #[test]
    fn a_late_exemption() {
        let limits = Limits::default();
        let mut brake = Brake::default();
        let turns: Vec<_> = (0..30).map(|id| turn(&mut brake, id, 30, 0)).collect();
        assert_eq!(turns.iter().filter(|turn| **turn == Turn::Go).count(), 20);
        assert_eq!(turns[29], Turn::Later(15_000));
        assert!(brake.is_undecided() && brake.paused().is_none());
        assert!((20..30).all(|id| brake.may(id, true, 30, 2_000, &limits) == Turn::Go));
        assert!(!brake.is_undecided());
        // It doesn't come: a person is waited for, and may still be told of.
        assert_eq!(turn(&mut brake, 40, 30, 20_000), Turn::Later(35_000));
        assert_eq!(turn(&mut brake, 40, 30, 35_000), Turn::Paused);
        assert_eq!(brake.paused(), Some(Paused { number: 1, allowed: 20 }));
        assert_eq!(brake.may(40, true, 30, 36_000, &limits), Turn::Go);
        assert_eq!(brake.paused(), None);
    }
}
