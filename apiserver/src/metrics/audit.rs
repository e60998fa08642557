//! What the audit log counts.

use prometheus::{IntCounter, IntCounterVec, Opts, Registry};

/// Events that were handed to the log.
pub(crate) const EVENTS: &str = "apiserver_audit_event_total";
/// Events that were lost.
pub(crate) const LOST: &str = "apiserver_audit_error_total";

/// The counters.
#[derive(Clone, Debug)]
pub(crate) struct AuditMetrics {
    /// Handed to the log.
    pub(crate) events: IntCounter,
    /// Lost: there was no room, or they could not be written.
    pub(crate) lost: IntCounter,
}

// === impl AuditMetrics ===

impl AuditMetrics {
    /// All of it at zero.
    pub(super) fn new(registry: &Registry) -> Self {
        let fixed = "metric names and labels are fixed and valid";
        let events = IntCounter::with_opts(Opts::new(EVENTS, "Events handed to the audit log."))
            .expect(fixed);
        let lost = IntCounterVec::new(Opts::new(LOST, "Audit events that were lost."), &["plugin"])
            .expect(fixed);
        let once = "each name is registered once";
        registry.register(Box::new(events.clone())).expect(once);
        registry.register(Box::new(lost.clone())).expect(once);
        Self { events, lost: lost.with_label_values(&["log"]) }
    }
}
