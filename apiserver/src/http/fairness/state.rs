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

#[cfg(test)]
mod tests {
    use machinery::ClusterName;

    use super::*;
    use crate::auth::UserInfo;
    use crate::http::fairness::{InflightLimits, Seats};
    use crate::metrics::Metrics;
    use crate::registry::ClusterScope;

    #[tokio::test]
    async fn those_that_have_most_are_named() {
        let limits = InflightLimits { reads: 400, writes: 200, watches: 5000 };
        let fairness = Fairness::new(limits, &Metrics::new().flow);
        let user = UserInfo::known("eve", &[]);
        let caller = |cluster: &str| {
            let scope = ClusterScope::One(ClusterName::parse(cluster).unwrap());
            fairness.caller(&user, &scope)
        };
        let mut held = Vec::new();
        for (cluster, weight) in [("a", 1), ("b", 3), ("gone", 2)] {
            held.push(fairness.seat(Seats::Read, caller(cluster), weight).await.unwrap());
        }
        let place = fairness.watch(caller("a")).unwrap();
        let state = fairness.state(["a", "b"].into_iter(), 2);
        let reads = json!({
            "seats": 400,
            "taken": 6,
            "waiting": 0,
            "clusters": 3,
            "largest": [
                {"cluster": "b", "taken": 3, "waiting": 0},
                {"cluster": null, "taken": 2, "waiting": 0},
            ],
        });
        assert_eq!(state["reads"], reads);
        assert_eq!(state["writes"]["clusters"], 0);
        let watches = json!({
            "taken": 1, "clusters": 1, "largest": [{"cluster": "a", "taken": 1}],
        });
        assert_eq!(state["watches"], watches);
        drop((held, place));
        assert_eq!(fairness.state(["a"].into_iter(), 2)["reads"]["taken"], 0);
    }
}
