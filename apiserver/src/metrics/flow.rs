//! Requests that wait for their turn, as upstream's flow control counts them.

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};

/// Requests that got a seat.
pub(crate) const DISPATCHED: &str = "apiserver_flowcontrol_dispatched_requests_total";
/// Requests that were answered 429.
pub(crate) const REJECTED: &str = "apiserver_flowcontrol_rejected_requests_total";
/// Requests that wait for a seat.
pub(crate) const INQUEUE: &str = "apiserver_flowcontrol_current_inqueue_requests";
/// Seats taken.
pub(crate) const SEATS: &str = "apiserver_flowcontrol_current_executing_seats";
/// Seconds of waiting, of those who had to.
pub(crate) const WAIT: &str = "apiserver_flowcontrol_request_wait_duration_seconds";

/// The families.
#[derive(Clone, Debug)]
pub(crate) struct FlowMetrics {
    dispatched: IntCounterVec,
    rejected: IntCounterVec,
    waiting: IntGaugeVec,
    seats: IntGaugeVec,
    waited: HistogramVec,
}

/// The handles of one kind of seats.
#[derive(Debug)]
pub(crate) struct LevelMetrics {
    /// Seated.
    pub(crate) dispatched: IntCounter,
    /// Seated without a limit.
    pub(crate) exempt: IntCounter,
    /// Refused, as too many waited.
    pub(crate) full: IntCounter,
    /// Refused after a wait.
    pub(crate) timed_out: IntCounter,
    /// Waiting.
    pub(crate) waiting: IntGauge,
    /// Seats taken.
    pub(crate) seats: IntGauge,
    /// Seconds of waiting.
    pub(crate) waited: Histogram,
}

// === impl FlowMetrics ===

impl FlowMetrics {
    /// All of it at zero.
    pub(super) fn new(registry: &Registry) -> Self {
        let fixed = "metric names and labels are fixed and valid";
        let level: &[&str] = &["priority_level"];
        let opts = |name: &str, help: &str| Opts::new(name, help);
        let made = Self {
            dispatched: IntCounterVec::new(opts(DISPATCHED, "Requests that got a seat."), level)
                .expect(fixed),
            rejected: IntCounterVec::new(
                opts(REJECTED, "Requests that were answered 429."),
                &["priority_level", "reason"],
            )
            .expect(fixed),
            waiting: IntGaugeVec::new(opts(INQUEUE, "Requests that wait for a seat."), level)
                .expect(fixed),
            seats: IntGaugeVec::new(opts(SEATS, "Seats taken."), level).expect(fixed),
            waited: HistogramVec::new(
                HistogramOpts::new(WAIT, "Seconds of waiting for a seat, of those who had to.")
                    .buckets(vec![0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 15.0]),
                level,
            )
            .expect(fixed),
        };
        let collectors: [Box<dyn prometheus::core::Collector>; 5] = [
            Box::new(made.dispatched.clone()),
            Box::new(made.rejected.clone()),
            Box::new(made.waiting.clone()),
            Box::new(made.seats.clone()),
            Box::new(made.waited.clone()),
        ];
        for collector in collectors {
            registry.register(collector).expect("each name is registered once");
        }
        made
    }

    /// The handles of one kind of seats.
    pub(crate) fn level(&self, level: &'static str) -> LevelMetrics {
        LevelMetrics {
            dispatched: self.dispatched.with_label_values(&[level]),
            exempt: self.dispatched.with_label_values(&["exempt"]),
            full: self.rejected.with_label_values(&[level, "queue-full"]),
            timed_out: self.rejected.with_label_values(&[level, "time-out"]),
            waiting: self.waiting.with_label_values(&[level]),
            seats: self.seats.with_label_values(&[level]),
            waited: self.waited.with_label_values(&[level]),
        }
    }

    /// Counts a request that is refused for another reason.
    pub(crate) fn rejected(&self, level: &'static str, reason: &'static str) {
        self.rejected.with_label_values(&[level, reason]).inc();
    }
}
