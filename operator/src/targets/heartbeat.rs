//! Whether agents live: by when their Leases were seen to change, on this machine's clock.
//!
//! Invariants: the clocks of agents decide nothing; a Lease that has not been seen to change since
//! this process began says nothing until its time is over; a pure state.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long an agent lives after it was last seen to renew its Lease; it does so every ten seconds.
pub(crate) const LIFETIME: Duration = Duration::from_secs(40);

/// What is known of an agent's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pulse {
    /// There is no Lease: it has never come.
    Never,
    /// There is a Lease, and this process has not been watching for long enough to tell. In so long
    /// it will be.
    Unsure(Duration),
    /// It lives, and will for so long without another renewal.
    Alive(Duration),
    /// Its Lease was not renewed in time.
    Silent,
}

/// The Leases of all agents.
#[derive(Debug, Default)]
pub(crate) struct Heartbeats {
    /// By logical cluster and the SyncTarget's UID.
    seen: Mutex<HashMap<(String, String), Seen>>,
}

#[derive(Debug)]
struct Seen {
    renewed: String,
    at: Instant,
    /// Whether it was seen to change, and not only seen.
    changed: bool,
}

// === impl Pulse ===

impl Pulse {
    /// Whether it is known to live.
    pub(crate) fn is_alive(self) -> bool {
        matches!(self, Self::Alive(_))
    }
}

// === impl Heartbeats ===

impl Heartbeats {
    /// A Lease was seen. Returns whether its agent was not known to live before.
    pub(crate) fn see(&self, cluster: &str, uid: &str, renewed: &str, now: Instant) -> bool {
        let mut seen = self.seen.lock();
        let place = (cluster.to_owned(), uid.to_owned());
        match seen.get_mut(&place) {
            None => {
                let first = Seen { renewed: renewed.to_owned(), at: now, changed: false };
                seen.insert(place, first);
                true
            }
            Some(known) if known.renewed == renewed => false,
            Some(known) => {
                let lived = known.changed && now.saturating_duration_since(known.at) < LIFETIME;
                *known = Seen { renewed: renewed.to_owned(), at: now, changed: true };
                !lived
            }
        }
    }

    /// A Lease that was not there before was made while this process was watching.
    pub(crate) fn begin(&self, cluster: &str, uid: &str, renewed: &str, now: Instant) -> bool {
        let mut seen = self.seen.lock();
        let place = (cluster.to_owned(), uid.to_owned());
        if seen.contains_key(&place) {
            drop(seen);
            return self.see(cluster, uid, renewed, now);
        }
        seen.insert(place, Seen { renewed: renewed.to_owned(), at: now, changed: true });
        true
    }

    /// A Lease is gone.
    pub(crate) fn forget(&self, cluster: &str, uid: &str) {
        self.seen.lock().remove(&(cluster.to_owned(), uid.to_owned()));
    }

    /// All Leases were listed: there are no others. Returns those that are gone.
    pub(crate) fn keep(&self, listed: &BTreeSet<(String, String)>) -> Vec<(String, String)> {
        let mut gone = Vec::new();
        self.seen.lock().retain(|place, _| {
            let stays = listed.contains(place);
            if !stays {
                gone.push(place.clone());
            }
            stays
        });
        gone
    }

    /// What is known of the agent of a SyncTarget.
    pub(crate) fn pulse(&self, cluster: &str, uid: &str, now: Instant) -> Pulse {
        let seen = self.seen.lock();
        let Some(known) = seen.get(&(cluster.to_owned(), uid.to_owned())) else {
            return Pulse::Never;
        };
        let left = LIFETIME.saturating_sub(now.saturating_duration_since(known.at));
        match (left.is_zero(), known.changed) {
            (true, _) => Pulse::Silent,
            (false, true) => Pulse::Alive(left),
            (false, false) => Pulse::Unsure(left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life() {
        let (beats, start) = (Heartbeats::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let pulse = |seconds| beats.pulse("a", "u", at(seconds));
        let left = Duration::from_secs;
        assert_eq!(pulse(0), Pulse::Never);
        // It was there before us: neither alive nor silent.
        assert!(beats.see("a", "u", "t0", at(0)));
        assert_eq!(pulse(10), Pulse::Unsure(left(30)));
        assert!(!beats.see("a", "u", "t0", at(20)), "listed again");
        assert_eq!(pulse(40), Pulse::Silent);
        // However wrong its clock is.
        assert!(beats.see("a", "u", "a year ago", at(50)));
        assert_eq!(pulse(60), Pulse::Alive(left(30)));
        assert!(!beats.see("a", "u", "t2", at(60)), "nothing new");
        assert_eq!(pulse(99), Pulse::Alive(left(1)));
        assert_eq!(pulse(100), Pulse::Silent);
        assert!(beats.see("a", "u", "t3", at(101)), "back again");
        assert_eq!(beats.pulse("b", "u", at(101)), Pulse::Never, "of another logical cluster");
        beats.forget("a", "u");
        assert_eq!(pulse(101), Pulse::Never);
    }

    #[test]
    fn one_that_begins_now_is_alive() {
        let (beats, now) = (Heartbeats::default(), Instant::now());
        assert!(beats.begin("a", "u", "t0", now));
        assert!(beats.pulse("a", "u", now).is_alive());
        assert!(!beats.begin("a", "u", "t1", now + Duration::from_secs(1)));
    }
}
