//! The brake on waves of deletes: more than usual wait for a person.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
    /// How many are let through while it is on.
    paused: Option<u64>,
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
    ) -> bool {
        if exempt || self.approved.contains(&id) || self.is_under_way(id) {
            self.waiting.remove(&id);
            return true;
        }
        let window = u64::try_from(limits.brake_window.as_millis()).unwrap_or(u64::MAX);
        while self.recent.front().is_some_and(|(at, ..)| at.saturating_add(window) < now) {
            self.recent.pop_front();
        }
        self.waiting.entry(id).or_insert(now);
        let recent = self.recent.len() as u64;
        let gone = self.recent.iter().filter(|(.., done)| *done).count() as u64;
        let share = (copies + gone).saturating_mul(limits.brake_percent) / 100;
        let allowed = limits.brake_count.max(share);
        if self.paused.is_none() && recent + self.waiting.len() as u64 > allowed {
            self.paused = Some(allowed);
        }
        if self.paused.is_some() {
            return false;
        }
        self.waiting.remove(&id);
        self.recent.push_back((now, id, false));
        true
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
        if self.waiting.is_empty() {
            self.paused = None;
        }
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
        self.paused = None;
        let waiting: Vec<_> = std::mem::take(&mut self.waiting).into_keys().collect();
        self.approved.extend(&waiting);
        waiting
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

    fn wanted(brake: &mut Brake, ids: std::ops::Range<u32>, copies: u64, now: u64) -> usize {
        ids.filter(|id| brake.may(*id, false, copies, now, &Limits::default())).count()
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
            assert!(brake.may(id, false, 30, now, &Limits::default()), "{id}");
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
        assert!((0..100).all(|id| brake.may(id, true, 100, 0, &Limits::default())));
        assert_eq!(wanted(&mut brake, 200..220, 100, 0), 20);
    }
}
