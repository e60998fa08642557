//! The rules of an election, without I/O: what to do with the Lease, by what was seen of it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

/// A candidate's view of an election.
#[derive(Debug)]
pub struct Election {
    identity: String,
    lease: Duration,
    /// The record that was seen last, and when it was seen first.
    seen: Option<(LeaseState, Instant)>,
}

/// A Lease as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LeaseState {
    object: Value,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Decision {
    /// Create the Lease; its name and namespace are missing.
    Create(Value),
    /// Replace it by this.
    Write(Value),
    /// Look again later: another holds it.
    Wait,
}

// === impl LeaseState ===

impl LeaseState {
    pub(super) fn of(object: Value) -> Self {
        Self { object }
    }

    pub(super) fn object(&self) -> &Value {
        &self.object
    }

    pub(super) fn holder(&self) -> &str {
        self.text("holderIdentity").unwrap_or_default()
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.object.pointer("/spec")?.get(field)?.as_str()
    }

    fn number(&self, field: &str) -> Option<i64> {
        self.object.pointer("/spec")?.get(field)?.as_i64()
    }

    /// Whether two records say the same: another version alone is no sign of life.
    fn says_the_same(&self, other: &Self) -> bool {
        self.object.get("spec") == other.object.get("spec")
    }
}

// === impl Election ===

impl Election {
    /// A candidate that has seen nothing. A record of its own holds for `lease`.
    pub fn new(identity: &str, lease: Duration) -> Self {
        Self { identity: identity.to_owned(), lease, seen: None }
    }

    /// What to do with the Lease as it was just read; `None` stands for one that isn't there.
    pub(super) fn decide(
        &mut self,
        lease: Option<LeaseState>,
        now: Instant,
        wall: Timestamp,
    ) -> Decision {
        let Some(lease) = lease else {
            self.seen = None;
            return Decision::Create(json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {},
                "spec": self.record(&micro(wall), 0, wall),
            }));
        };
        let since = match &self.seen {
            Some((seen, since)) if seen.says_the_same(&lease) => *since,
            _ => now,
        };
        self.seen = Some((lease.clone(), since));
        let own = lease.holder() == self.identity;
        // A holder is believed for as long as it says; who says nothing, for as long as we would.
        let held = lease.number("leaseDurationSeconds").and_then(|s| u64::try_from(s).ok());
        let held = held.map_or(self.lease, Duration::from_secs);
        if !own && !lease.holder().is_empty() && now < since + held {
            return Decision::Wait;
        }
        let transitions = lease.number("leaseTransitions").unwrap_or(0);
        let record = if own {
            let begun = lease.text("acquireTime").unwrap_or_default();
            self.record(begun, transitions, wall)
        } else {
            self.record(&micro(wall), transitions.saturating_add(1), wall)
        };
        let mut object = lease.object;
        object["spec"] = record;
        Decision::Write(object)
    }

    /// The Lease was written.
    pub(super) fn written(&mut self, lease: LeaseState, now: Instant) {
        self.seen = Some((lease, now));
    }

    /// The Lease as it is to be when the holder ends; `None` if it was not seen to hold it.
    pub(super) fn release(&mut self, wall: Timestamp) -> Option<Value> {
        let (lease, _) = self.seen.take().filter(|(seen, _)| seen.holder() == self.identity)?;
        let transitions = lease.number("leaseTransitions").unwrap_or(0);
        let mut record = self.record(&micro(wall), transitions, wall);
        record["holderIdentity"] = "".into();
        record["leaseDurationSeconds"] = 1.into();
        let mut object = lease.object;
        object["spec"] = record;
        Some(object)
    }

    fn record(&self, acquired: &str, transitions: i64, wall: Timestamp) -> Value {
        json!({
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self.lease.as_secs(),
            "acquireTime": acquired,
            "renewTime": micro(wall),
            "leaseTransitions": transitions,
        })
    }
}

/// A time as Leases have it, with six digits of seconds.
pub(crate) fn micro(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    /// One Lease, two candidates, a clock.
    struct Stage {
        lease: Option<Value>,
        now: Instant,
        wall: Timestamp,
        one: Election,
        two: Election,
    }

    impl Stage {
        fn new() -> Self {
            Self {
                lease: None,
                now: Instant::now(),
                wall: "2026-01-01T00:00:00Z".parse().unwrap(),
                one: Election::new("one", LEASE),
                two: Election::new("two", LEASE),
            }
        }

        fn pass(&mut self, seconds: u64) {
            self.now += Duration::from_secs(seconds);
        }

        /// One candidate's turn; whether it leads.
        fn turn(&mut self, first: bool) -> bool {
            let election = if first { &mut self.one } else { &mut self.two };
            let state = self.lease.clone().map(LeaseState::of);
            match election.decide(state, self.now, self.wall) {
                Decision::Wait => false,
                Decision::Create(object) | Decision::Write(object) => {
                    election.written(LeaseState::of(object.clone()), self.now);
                    self.lease = Some(object);
                    true
                }
            }
        }

        fn spec(&self, field: &str) -> Value {
            self.lease.as_ref().unwrap()["spec"][field].clone()
        }
    }

    #[test]
    fn the_first_leads_and_the_second_waits_for_its_silence() {
        let mut stage = Stage::new();
        assert!(stage.turn(true));
        for _ in 0..10 {
            stage.pass(2);
            stage.wall += Duration::from_secs(2);
            assert!(stage.turn(true), "it renews");
            assert!(!stage.turn(false));
        }
        assert_eq!(stage.spec("leaseTransitions"), 0);
        // The silence counts from when the last record was seen first.
        stage.pass(14);
        assert!(!stage.turn(false));
        stage.pass(1);
        assert!(stage.turn(false));
        assert_eq!(stage.spec("holderIdentity"), "two");
        assert_eq!(stage.spec("leaseTransitions"), 1);
        assert!(!stage.turn(true), "the first has lost it");
    }

    #[test]
    fn who_comes_late_waits_whatever_the_record_s_times_say() {
        let mut stage = Stage::new();
        assert!(stage.turn(true));
        // The holder's clock is years behind: only what is seen to change counts.
        stage.lease.as_mut().unwrap()["spec"]["renewTime"] = "2001-01-01T00:00:00.000000Z".into();
        stage.pass(100);
        assert!(!stage.turn(false), "seen for the first time");
        stage.pass(14);
        assert!(!stage.turn(false));
        stage.pass(1);
        assert!(stage.turn(false));
    }

    #[test]
    fn a_lease_that_is_given_back_is_taken_at_once() {
        let mut stage = Stage::new();
        assert!(stage.turn(true));
        assert!(!stage.turn(false));
        let released = stage.one.release(stage.wall).unwrap();
        stage.lease = Some(released);
        assert!(stage.turn(false));
        assert_eq!(stage.spec("leaseTransitions"), 1);
        assert_eq!(stage.one.release(stage.wall), None, "it is no longer its own");
    }

    #[test]
    fn any_record() {
        for spec in [json!(null), json!({}), json!({"holderIdentity": 1}), json!([1])] {
            let mut election = Election::new("one", LEASE);
            let lease = LeaseState::of(json!({"spec": spec}));
            let decision = election.decide(Some(lease), Instant::now(), Timestamp::now());
            assert!(matches!(decision, Decision::Write(_)));
        }
        let mut election = Election::new("one", LEASE);
        let odd = json!({"spec": {"holderIdentity": "x", "leaseDurationSeconds": -1}});
        let decision = election.decide(Some(LeaseState::of(odd)), Instant::now(), Timestamp::now());
        assert_eq!(decision, Decision::Wait);
    }

    #[test]
    fn times_have_six_digits() {
        assert_eq!(micro("2026-01-01T00:00:00.5Z".parse().unwrap()), "2026-01-01T00:00:00.500000Z");
    }
}
