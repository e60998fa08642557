//! Every metric of the operator. Label sets are closed: none holds a name of anybody's.

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

/// Turns of looking after an installation, by result.
const INSTALLATIONS: &str = "kcp_operator_installations_total";
/// Statuses of SyncTargets that were written.
const STATUSES: &str = "kcp_operator_statuses_total";
/// Changes of the marks that say where objects run, by what was done.
const ASSIGNMENTS: &str = "kcp_operator_assignments_total";

/// What waits in queues.
const WAITING: &str = "kcp_operator_queue_waiting";

/// The metrics of an operator.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) registry: Registry,
    /// Of agents that run in this process, all together.
    pub(crate) agents: agent::metrics::Metrics,
    installations: [IntCounter; 2],
    waiting: IntGaugeVec,
    pub(crate) statuses: IntCounter,
    /// Objects that were assigned, unassigned and released.
    pub(crate) assignments: [IntCounter; 3],
}

/// A whole registry as one collector.
struct Agents(Registry);

// === impl Agents ===

impl Collector for Agents {
    fn desc(&self) -> Vec<&Desc> {
        // They are checked in their own registry.
        Vec::new()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.0.gather()
    }
}

// === impl Metrics ===

impl Metrics {
    /// New ones, all at zero, with those of agents that run in this process.
    ///
    /// # Errors
    /// When a name is used twice.
    pub(crate) fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let agents = agent::metrics::Metrics::new()?;
        registry.register(Box::new(Agents(agents.registry().clone())))?;
        let by = |name: &str, help: &str, label: &str| {
            IntCounterVec::new(Opts::new(name, help), &[label])
        };
        let installations =
            by(INSTALLATIONS, "Turns of looking after an installation, by result.", "result")?;
        let statuses = IntCounter::new(STATUSES, "Statuses of SyncTargets that were written.")?;
        let assignments =
            by(ASSIGNMENTS, "Changes of marks on objects, by what was done.", "change")?;
        let waiting = Opts::new(WAITING, "What waits in queues.");
        let waiting = IntGaugeVec::new(waiting, &["queue"])?;
        registry.register(Box::new(waiting.clone()))?;
        registry.register(Box::new(installations.clone()))?;
        registry.register(Box::new(statuses.clone()))?;
        registry.register(Box::new(assignments.clone()))?;
        Ok(Self {
            installations: ["failed", "done"]
                .map(|result| installations.with_label_values(&[result])),
            assignments: ["assign", "unassign", "release"]
                .map(|change| assignments.with_label_values(&[change])),
            registry,
            agents,
            waiting,
            statuses,
        })
    }

    /// The gauge of a queue.
    pub(crate) fn waiting(&self, queue: &'static str) -> IntGauge {
        self.waiting.with_label_values(&[queue])
    }

    /// An installation was looked after.
    pub(crate) fn installed(&self, done: bool) {
        self.installations[usize::from(done)].inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_agents_are_among_them() {
        let metrics = Metrics::new().unwrap();
        metrics.installed(true);
        metrics.agents.in_flight.set(3);
        let names: Vec<String> =
            metrics.registry.gather().iter().map(|family| family.name().to_owned()).collect();
        assert!(names.iter().any(|name| name == INSTALLATIONS), "{names:?}");
        assert!(names.iter().any(|name| name.starts_with("kcp_agent_")), "{names:?}");
    }
}
