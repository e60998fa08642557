//! What an agent measures: every name once. Label sets are closed; no label holds an object, a
//! namespace or a logical cluster.

use prometheus::core::Collector;
use prometheus::{
    Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

/// The metrics of a process that syncs, one target or several.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    /// Requests of the engine that were made, by what they are for and what became of them: `ok`,
    /// `conflict`, `missing`, `refused`, `failed`, `unanswered`.
    pub requests: IntCounterVec,
    /// Requests that may have changed something, by the side they went to.
    pub writes: IntCounterVec,
    /// How long requests took, by side.
    pub request_seconds: HistogramVec,
    /// Requests under way.
    pub in_flight: IntGauge,
    /// How long what a watch has seen waited for the engine.
    pub input_seconds: Histogram,
    /// Objects, by how they are: `synced`, `failed`, `pending`, `orphan`, `copy`.
    pub objects: IntGaugeVec,
    /// Watches that are open, by side.
    pub watches: IntGaugeVec,
    /// Watches that broke or could not be begun, by side.
    pub broken_watches: IntCounterVec,
    /// How long one turn of the engine took.
    pub turn_seconds: Histogram,
    /// Events of copies that were not told at the hub because there were too many.
    pub dropped_events: IntCounter,
    /// When the certificate ends that the hub knows the agent by, in seconds since 1970; 0 for none.
    pub certificate_end: Gauge,
    /// Renewals of the Lease at the hub, by outcome: `ok`, `failed`.
    pub heartbeats: IntCounterVec,
    /// Whether this process is the one that works: 1 or 0.
    pub leader: IntGauge,
}

/// Seconds, for what is to take milliseconds and may take minutes.
const BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0];

// === impl Metrics ===

impl Metrics {
    /// All of them, in a registry of their own.
    ///
    /// # Errors
    /// When two have one name.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let add = |collector: Box<dyn Collector>| registry.register(collector);
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let made = IntCounterVec::new(Opts::new(name, help), labels)?;
            add(Box::new(made.clone()))?;
            Ok::<_, prometheus::Error>(made)
        };
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            let made = IntGaugeVec::new(Opts::new(name, help), labels)?;
            add(Box::new(made.clone()))?;
            Ok::<_, prometheus::Error>(made)
        };
        let gauge = |name: &str, help: &str| {
            let made = IntGauge::new(name, help)?;
            add(Box::new(made.clone()))?;
            Ok::<_, prometheus::Error>(made)
        };
        let histograms = |name: &str, help: &str, labels: &[&str]| {
            let options = HistogramOpts::new(name, help).buckets(BUCKETS.to_vec());
            let made = HistogramVec::new(options, labels)?;
            add(Box::new(made.clone()))?;
            Ok::<_, prometheus::Error>(made)
        };
        let waits = HistogramOpts::new("kcp_sync_input_seconds", "How long events waited.");
        let input_seconds = Histogram::with_opts(waits.buckets(BUCKETS.to_vec()))?;
        add(Box::new(input_seconds.clone()))?;
        let turns = HistogramOpts::new("kcp_sync_turn_seconds", "How long one turn took.");
        let turn_seconds = Histogram::with_opts(turns.buckets(BUCKETS.to_vec()))?;
        add(Box::new(turn_seconds.clone()))?;
        let dropped_events =
            IntCounter::new("kcp_sync_dropped_events_total", "Events that were not told.")?;
        add(Box::new(dropped_events.clone()))?;
        let certificate_end = Gauge::new(
            "kcp_agent_certificate_expiration_timestamp_seconds",
            "When the agent's certificate ends, in seconds since 1970; 0 for none.",
        )?;
        add(Box::new(certificate_end.clone()))?;
        Ok(Self {
            requests: counters(
                contract::SYNC_REQUESTS,
                "Requests, by what they are for and what became of them.",
                &["kind", "outcome"],
            )?,
            writes: counters(
                contract::SYNC_WRITES,
                "Requests that may change something.",
                &["side"],
            )?,
            request_seconds: histograms(
                "kcp_sync_request_seconds",
                "How long requests took.",
                &["side"],
            )?,
            in_flight: gauge("kcp_sync_requests_in_flight", "Requests under way.")?,
            input_seconds,
            objects: gauges(contract::SYNC_OBJECTS, "Objects, by how they are.", &["state"])?,
            watches: gauges("kcp_sync_watches", "Open watches.", &["side"])?,
            broken_watches: counters(
                "kcp_sync_broken_watches_total",
                "Watches that broke.",
                &["side"],
            )?,
            heartbeats: counters(
                "kcp_agent_heartbeats_total",
                "Renewals of the Lease at the hub.",
                &["outcome"],
            )?,
            leader: gauge("kcp_agent_leader", "Whether this process is the one that works.")?,
            turn_seconds,
            dropped_events,
            certificate_end,
            registry: registry.clone(),
        })
    }

    /// Where they are read from.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }
}
