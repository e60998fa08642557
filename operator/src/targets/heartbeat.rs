//! Whether agents live: by when their Leases were seen to change, on this machine's clock.
//!
//! Invariants: the clocks of agents decide nothing; a Lease that has not been seen to change since
//! this process began says nothing until its time is over; what was renewed before the agents of a
//! target were retired says nothing of those that follow; a pure state.

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

/// A Lease, as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Renewal {
    /// What changes when it is renewed.
    pub(crate) text: String,
    /// The resourceVersion at which it was so.
    pub(crate) revision: u64,
}

/// The Leases of all agents.
#[derive(Debug, Default)]
pub(crate) struct Heartbeats {
    known: Mutex<Known>,
}

/// A Lease: the logical cluster and the UID of its SyncTarget.
type Place = (String, String);

#[derive(Debug, Default)]
struct Known {
    seen: HashMap<Place, Seen>,
    /// The resourceVersion up to which renewals are those of agents that were retired.
    retired: HashMap<Place, u64>,
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

// === impl Known ===

impl Known {
    fn is_former(&self, place: &Place, renewed: &Renewal) -> bool {
        self.retired.get(place).is_some_and(|retired| renewed.revision <= *retired)
    }
}

// === impl Heartbeats ===

impl Heartbeats {
    /// A Lease was seen. Returns whether its agent was not known to live before.
    pub(crate) fn see(&self, cluster: &str, uid: &str, renewed: &Renewal, now: Instant) -> bool {
        self.note(cluster, uid, renewed, now, false)
    }

    /// A Lease that was not there before was made while this process was watching.
    pub(crate) fn begin(&self, cluster: &str, uid: &str, renewed: &Renewal, now: Instant) -> bool {
        self.note(cluster, uid, renewed, now, true)
    }

    /// `watched` says that a Lease which was not known is one that has changed.
    fn note(
        &self,
        cluster: &str,
        uid: &str,
        renewed: &Renewal,
        now: Instant,
        watched: bool,
    ) -> bool {
        let mut known = self.known.lock();
        let place = (cluster.to_owned(), uid.to_owned());
        if known.is_former(&place, renewed) {
            return false;
        }
        let text = renewed.text.clone();
        match known.seen.get_mut(&place) {
            None => {
                known.seen.insert(place, Seen { renewed: text, at: now, changed: watched });
                true
            }
            Some(known) if known.renewed == text => false,
            Some(known) => {
                let lived = known.changed && now.saturating_duration_since(known.at) < LIFETIME;
                *known = Seen { renewed: text, at: now, changed: true };
                !lived
            }
        }
    }

    /// The agents that a SyncTarget has had are none of its any more: what renewed their Lease up to
    /// that resourceVersion says nothing.
    pub(crate) fn retire(&self, cluster: &str, uid: &str, revision: u64) {
        let mut known = self.known.lock();
        let place = (cluster.to_owned(), uid.to_owned());
        known.seen.remove(&place);
        known.retired.insert(place, revision);
    }

    /// A Lease is gone.
    pub(crate) fn forget(&self, cluster: &str, uid: &str) {
        let mut known = self.known.lock();
        let place = (cluster.to_owned(), uid.to_owned());
        known.seen.remove(&place);
        known.retired.remove(&place);
    }

    /// All Leases were listed: there are no others. Returns those that are gone.
    pub(crate) fn keep(&self, listed: &BTreeSet<Place>) -> Vec<Place> {
        let mut known = self.known.lock();
        known.retired.retain(|place, _| listed.contains(place));
        let mut gone = Vec::new();
        known.seen.retain(|place, _| {
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
        let known = self.known.lock();
        let Some(seen) = known.seen.get(&(cluster.to_owned(), uid.to_owned())) else {
            return Pulse::Never;
        };
        let left = LIFETIME.saturating_sub(now.saturating_duration_since(seen.at));
        match (left.is_zero(), seen.changed) {
            (true, _) => Pulse::Silent,
            (false, true) => Pulse::Alive(left),
            (false, false) => Pulse::Unsure(left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renewed(text: &str) -> Renewal {
        Renewal { text: text.to_owned(), revision: 1 }
    }

    #[test]
    fn a_life() {
        let (beats, start) = (Heartbeats::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let pulse = |seconds| beats.pulse("a", "u", at(seconds));
        let left = Duration::from_secs;
        assert_eq!(pulse(0), Pulse::Never);
        // It was there before us: neither alive nor silent.
        assert!(beats.see("a", "u", &renewed("t0"), at(0)));
        assert_eq!(pulse(10), Pulse::Unsure(left(30)));
        assert!(!beats.see("a", "u", &renewed("t0"), at(20)), "listed again");
        assert_eq!(pulse(40), Pulse::Silent);
        // However wrong its clock is.
        assert!(beats.see("a", "u", &renewed("a year ago"), at(50)));
        assert_eq!(pulse(60), Pulse::Alive(left(30)));
        assert!(!beats.see("a", "u", &renewed("t2"), at(60)), "nothing new");
        assert_eq!(pulse(99), Pulse::Alive(left(1)));
        assert_eq!(pulse(100), Pulse::Silent);
        assert!(beats.see("a", "u", &renewed("t3"), at(101)), "back again");
        assert_eq!(beats.pulse("b", "u", at(101)), Pulse::Never, "of another logical cluster");
        beats.forget("a", "u");
        assert_eq!(pulse(101), Pulse::Never);
    }

    #[test]
    fn one_that_begins_now_is_alive() {
        let (beats, now) = (Heartbeats::default(), Instant::now());
        assert!(beats.begin("a", "u", &renewed("t0"), now));
        assert!(beats.pulse("a", "u", now).is_alive());
        assert!(!beats.begin("a", "u", &renewed("t1"), now + Duration::from_secs(1)));
    }

    /// What the agents before have renewed is no sign of life of the next one, however late it is seen.
    #[test]
    fn those_that_were_retired() {
        let (beats, now) = (Heartbeats::default(), Instant::now());
        let at = |revision| Renewal { text: format!("t{revision}"), revision };
        let pulse = || beats.pulse("a", "u", now);
        assert!(beats.begin("a", "u", &at(5), now));
        assert!(pulse().is_alive());
        beats.retire("a", "u", 8);
        assert_eq!(pulse(), Pulse::Never);
        assert!(!beats.begin("a", "u", &at(7), now), "on its way when it was retired");
        assert!(!beats.see("a", "u", &at(7), now), "listed again");
        beats.keep(&BTreeSet::from([("a".to_owned(), "u".to_owned())]));
        assert!(!beats.see("a", "u", &at(7), now));
        assert_eq!(pulse(), Pulse::Never);
        assert!(beats.begin("a", "u", &at(9), now), "the next one");
        assert!(pulse().is_alive());
        // Made again, the Lease is another one.
        beats.retire("a", "u", 12);
        beats.forget("a", "u");
        assert!(beats.known.lock().retired.is_empty());
    }
}
