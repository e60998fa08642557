//! Who has how much, for those who debug a server.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::Fairness;
use super::gate::Gate;
use super::shares::Shares;

/// Logical clusters by their digests, which is all that is kept of those that have something.
struct Names<'n>(HashMap<u64, &'n str>);

// === impl Fairness ===

impl Fairness {
    /// Seats, bytes of bodies and watches, with so many of the logical clusters that have most of
    /// them; `clusters` are those that there are.
    pub(crate) fn state<'n>(&self, clusters: impl Iterator<Item = &'n str>, most: usize) -> Value {
        let known = clusters.chain(["*"]).map(|name| (self.digests.hash_one(name), name));
        let names = Names(known.collect());
        json!({
            "reads": names.seats(&self.reads, most),
            "writes": names.seats(&self.writes, most),
            "bodyBytes": names.amounts(&self.bodies, most),
            "watches": names.amounts(&self.watches, most),
        })
    }
}

// === impl Names ===

impl Names<'_> {
    /// The name of a logical cluster that is there.
    fn of(&self, digest: u64) -> Value {
        self.0.get(&digest).map_or(Value::Null, |name| Value::from(*name))
    }

    fn seats(&self, gate: &Gate, most: usize) -> Value {
        // The lock is held for a copy alone: requests wait for it.
        let (seats, used, waiting, mut standings) = gate.look(|scheduler| {
            let standings: Vec<_> = scheduler.standings().collect();
            (scheduler.seats(), scheduler.used(), scheduler.waiting(), standings)
        });
        standings.sort_unstable_by_key(|(_, held, waiting)| {
            std::cmp::Reverse(waiting.saturating_add(*held as usize))
        });
        let largest: Vec<Value> = standings
            .iter()
            .take(most)
            .map(|(cluster, held, waiting)| {
                json!({"cluster": self.of(*cluster), "taken": held, "waiting": waiting})
            })
            .collect();
        json!({
            "seats": seats,
            "taken": used,
            "waiting": waiting,
            "clusters": standings.len(),
            "largest": largest,
        })
    }

    fn amounts(&self, shares: &Shares, most: usize) -> Value {
        let (all, mut standings) = shares.standings();
        standings.sort_unstable_by_key(|(_, amount)| std::cmp::Reverse(*amount));
        let largest: Vec<Value> = standings
            .iter()
            .take(most)
            .map(|(cluster, amount)| json!({"cluster": self.of(*cluster), "taken": amount}))
            .collect();
        json!({"taken": all, "clusters": standings.len(), "largest": largest})
    }
}
