//! Every metric of the API server: names, labels, and handles that are looked up once.
//!
//! Names are upstream's where upstream has them, so that stock dashboards work. Label sets are
//! closed: no label holds a logical cluster, a namespace, an object or a client, and resources
//! that tenants define share one label, so no series exists for each of them.

mod audit;
mod flow;
mod process;

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use ahash::RandomState;
use machinery::GroupResource;
use parking_lot::RwLock;
use prometheus::core::Collector;
use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, TextEncoder,
};

pub(crate) use audit::AuditMetrics;
pub(crate) use flow::{FlowMetrics, LevelMetrics};
pub(crate) use process::figures;

/// Requests answered.
pub const REQUEST_TOTAL: &str = "apiserver_request_total";
/// Seconds until a request was answered.
pub const REQUEST_DURATION: &str = "apiserver_request_duration_seconds";
/// Requests being worked on.
pub const INFLIGHT: &str = "apiserver_current_inflight_requests";
/// Watches that are open.
pub const LONGRUNNING: &str = "apiserver_longrunning_requests";
/// Events sent to watchers.
pub const WATCH_EVENTS: &str = "apiserver_watch_events_total";
/// Objects in the store, by resource.
pub const OBJECTS: &str = "apiserver_resource_objects";
/// Connections that are open.
pub const CONNECTIONS: &str = "kcp_apiserver_connections";
/// Keys that housekeeping still has to look at, by controller.
pub const QUEUES: &str = "workqueue_depth";
/// Requests that ended in a panic.
pub const PANICS: &str = "kcp_apiserver_request_panics_total";

/// Resources with a label of their own; a bound that only a bug could reach, as the built-in
/// resources are few.
const MAX_SERIES: usize = 2000;

/// The label for every resource that is not built in.
const CUSTOM: &str = "customresources";

const LABELS: [&str; 7] =
    ["verb", "group", "version", "resource", "subresource", "scope", "component"];

/// The codes that are answered, each with a handle of its own; others share the last.
const CODES: [u16; 20] = [
    200, 201, 202, 301, 304, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 500, 503,
    504,
];

/// The metrics of one server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    durations: HistogramVec,
    longrunning: IntGaugeVec,
    watch_events: IntCounterVec,
    objects: IntGaugeVec,
    queues: IntGaugeVec,
    series: RwLock<std::collections::HashMap<u64, Vec<Arc<Series>>, RandomState>>,
    hasher: RandomState,
    /// Reads being worked on.
    pub(crate) reading: IntGauge,
    /// Writes being worked on.
    pub(crate) mutating: IntGauge,
    /// Connections that are open.
    pub(crate) connections: IntGauge,
    /// Requests that panicked.
    pub(crate) panics: IntCounter,
    /// What is told to the audit log.
    pub(crate) audit: AuditMetrics,
    /// Requests that wait for their turn.
    pub(crate) flow: FlowMetrics,
}

/// What a request is counted under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Labels<'a> {
    /// As upstream has it: `GET`, `LIST`, `POST`.
    pub(crate) verb: &'a str,
    /// The group of a built-in resource.
    pub(crate) group: &'a str,
    /// The version of a built-in resource.
    pub(crate) version: &'a str,
    /// A built-in resource.
    pub(crate) resource: &'a str,
    /// One of its subresources.
    pub(crate) subresource: &'a str,
    /// `resource`, `namespace`, `cluster`, or empty.
    pub(crate) scope: &'static str,
    /// Whether nothing is to be written.
    pub(crate) dry_run: bool,
}

/// The handles of one set of labels.
#[derive(Debug)]
pub(crate) struct Series {
    labels: [String; 6],
    dry_run: &'static str,
    requests: IntCounterVec,
    codes: [OnceLock<IntCounter>; CODES.len() + 1],
    /// Seconds until the answer.
    pub(crate) duration: Histogram,
    /// Open watches.
    pub(crate) open: IntGauge,
    /// Events sent.
    pub(crate) events: IntCounter,
}

// === impl Metrics ===

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All metrics, at zero.
    pub fn new() -> Self {
        let registry = Registry::new();
        let opts = |name: &str, help: &str| Opts::new(name, help);
        let fixed = "metric names and labels are fixed and valid";
        let requests = IntCounterVec::new(
            opts(REQUEST_TOTAL, "Requests answered, by verb, resource and code."),
            &[LABELS.as_slice(), &["dry_run", "code"]].concat(),
        )
        .expect(fixed);
        let durations = HistogramVec::new(
            HistogramOpts::new(REQUEST_DURATION, "Seconds until a request was answered.").buckets(
                vec![
                    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0,
                    1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0,
                ],
            ),
            &[LABELS.as_slice(), &["dry_run"]].concat(),
        )
        .expect(fixed);
        let longrunning =
            IntGaugeVec::new(opts(LONGRUNNING, "Watches that are open."), &LABELS).expect(fixed);
        let watch_events = IntCounterVec::new(
            opts(WATCH_EVENTS, "Events sent to watchers."),
            &["group", "version", "resource"],
        )
        .expect(fixed);
        let objects = IntGaugeVec::new(
            opts(OBJECTS, "Objects in the store, over all logical clusters."),
            &["group", "resource"],
        )
        .expect(fixed);
        let inflight =
            IntGaugeVec::new(opts(INFLIGHT, "Requests being worked on."), &["request_kind"])
                .expect(fixed);
        let queues = IntGaugeVec::new(opts(QUEUES, "Keys that wait to be looked at."), &["name"])
            .expect(fixed);
        let connections =
            IntGauge::with_opts(opts(CONNECTIONS, "Connections that are open.")).expect(fixed);
        let panics =
            IntCounter::with_opts(opts(PANICS, "Requests that ended in a panic.")).expect(fixed);
        let collectors: [Box<dyn prometheus::core::Collector>; 9] = [
            Box::new(objects.clone()),
            Box::new(queues.clone()),
            Box::new(connections.clone()),
            Box::new(requests.clone()),
            Box::new(durations.clone()),
            Box::new(longrunning.clone()),
            Box::new(watch_events.clone()),
            Box::new(inflight.clone()),
            Box::new(panics.clone()),
        ];
        for collector in collectors {
            registry.register(collector).expect("each name is registered once");
        }
        Self {
            audit: AuditMetrics::new(&registry),
            flow: FlowMetrics::new(&registry),
            registry,
            requests,
            durations,
            longrunning,
            watch_events,
            objects,
            queues,
            connections,
            series: RwLock::default(),
            hasher: RandomState::new(),
            reading: inflight.with_label_values(&["readOnly"]),
            mutating: inflight.with_label_values(&["mutating"]),
            panics,
        }
    }

    /// Where other parts of the server register what they count.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The handles for `labels`; made at the first request of that kind.
    pub(crate) fn series(&self, labels: &Labels<'_>) -> Arc<Series> {
        let hash = self.hasher.hash_one(labels);
        if let Some(held) = find(self.series.read().get(&hash), labels) {
            return held;
        }
        let mut map = self.series.write();
        if let Some(held) = find(map.get(&hash), labels) {
            return held;
        }
        let made = Arc::new(self.make(labels));
        if map.len() < MAX_SERIES {
            map.entry(hash).or_default().push(made.clone());
        }
        made
    }

    /// As [`series`](Self::series), for a resource: one that is not built in is counted among all
    /// of its kind. It is asked only at the first request.
    pub(crate) fn resource_series(
        &self,
        labels: &Labels<'_>,
        builtin: impl FnOnce() -> bool,
    ) -> Arc<Series> {
        let hash = self.hasher.hash_one(labels);
        if let Some(held) = find(self.series.read().get(&hash), labels) {
            return held;
        }
        if builtin() { self.series(labels) } else { self.series(&labels.custom()) }
    }

    /// Takes over how many objects there are; `builtin` tells resources with a label of their own.
    pub(crate) fn count_objects(
        &self,
        counts: impl IntoIterator<Item = (GroupResource, usize)>,
        builtin: impl Fn(&GroupResource) -> bool,
    ) {
        let mut custom = 0;
        for (resource, count) in counts {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            if builtin(&resource) {
                let labels = [&*resource.group, &*resource.resource];
                self.objects.with_label_values(&labels).set(count);
            } else {
                custom += count;
            }
        }
        if custom > 0 {
            self.objects.with_label_values(&[CUSTOM, CUSTOM]).set(custom);
        }
    }

    /// The depth of a controller's queue.
    pub(crate) fn queue(&self, name: &'static str) -> IntGauge {
        self.queues.with_label_values(&[name])
    }

    /// The depths of all queues.
    pub(crate) fn queue_depths(&self) -> Vec<(String, i64)> {
        let families = self.queues.collect();
        let depths = families.iter().flat_map(|family| family.get_metric()).map(|metric| {
            let name = metric.get_label().first().map(|label| label.value().to_owned());
            (name.unwrap_or_default(), metric.get_gauge().get_value() as i64)
        });
        depths.collect()
    }

    /// The sets of labels that requests were counted under.
    pub(crate) fn series_held(&self) -> usize {
        self.series.read().values().map(Vec::len).sum()
    }

    /// Everything in Prometheus' text form.
    pub(crate) fn text(&self) -> String {
        let mut text = Vec::with_capacity(64 * 1024);
        let families = self.registry.gather();
        // Writing to memory fails only for a family without metrics, which is left out then.
        if let Err(error) = TextEncoder::new().encode(&families, &mut text) {
            tracing::warn!(%error, "metrics could not be written");
        }
        let mut text = String::from_utf8(text).unwrap_or_default();
        for (name, kind, help, value) in process::figures() {
            // Writing to a String does not fail.
            let _written =
                write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
        text
    }

    fn make(&self, labels: &Labels<'_>) -> Series {
        let Labels { verb, group, version, resource, subresource, scope, dry_run } = *labels;
        let dry_run = if dry_run { "All" } else { "" };
        let all = [verb, group, version, resource, subresource, scope, "apiserver"];
        let timed = [verb, group, version, resource, subresource, scope, "apiserver", dry_run];
        Series {
            labels: [verb, group, version, resource, subresource, scope].map(str::to_owned),
            dry_run,
            requests: self.requests.clone(),
            codes: [const { OnceLock::new() }; CODES.len() + 1],
            duration: self.durations.with_label_values(&timed),
            open: self.longrunning.with_label_values(&all),
            events: self.watch_events.with_label_values(&[group, version, resource]),
        }
    }
}

fn find(held: Option<&Vec<Arc<Series>>>, labels: &Labels<'_>) -> Option<Arc<Series>> {
    held?.iter().find(|series| series.is(labels)).cloned()
}

// === impl Labels ===

impl<'a> Labels<'a> {
    /// The labels of what has no resource, by the method.
    pub(crate) fn path(verb: &'a str) -> Self {
        Self {
            verb,
            group: "",
            version: "",
            resource: "",
            subresource: "",
            scope: "",
            dry_run: false,
        }
    }

    /// The same labels for a resource that a tenant named.
    #[must_use]
    pub(crate) fn custom(self) -> Self {
        Self { group: "", version: "", resource: CUSTOM, ..self }
    }
}

// === impl Series ===

impl Series {
    /// Counts an answer.
    pub(crate) fn answered(&self, code: u16) {
        let index = CODES.iter().position(|known| *known == code).unwrap_or(CODES.len());
        let Some(counter) = self.codes.get(index) else { return };
        let make = || {
            let code = CODES.get(index).map_or_else(|| "other".to_owned(), u16::to_string);
            let [verb, group, version, resource, subresource, scope] = &self.labels;
            let values = [
                verb,
                group,
                version,
                resource,
                subresource,
                scope,
                "apiserver",
                self.dry_run,
                code.as_str(),
            ];
            self.requests.with_label_values(&values)
        };
        counter.get_or_init(make).inc();
    }

    fn is(&self, labels: &Labels<'_>) -> bool {
        let Labels { verb, group, version, resource, subresource, scope, dry_run } = *labels;
        self.labels == [verb, group, version, resource, subresource, scope]
            && self.dry_run.is_empty() != dry_run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_shared_and_shown() {
        let metrics = Metrics::new();
        let labels = Labels { resource: "configmaps", version: "v1", ..Labels::path("GET") };
        let series = metrics.series(&labels);
        series.answered(200);
        series.answered(418);
        assert!(Arc::ptr_eq(&series, &metrics.series(&labels)));
        assert!(!Arc::ptr_eq(&series, &metrics.series(&Labels { dry_run: true, ..labels })));
        metrics.series(&Labels { resource: "x", ..labels }.custom()).answered(200);
        let text = metrics.text();
        for line in [
            "apiserver_request_total{code=\"200\",component=\"apiserver\",dry_run=\"\",group=\"\",\
             resource=\"configmaps\",scope=\"\",subresource=\"\",verb=\"GET\",version=\"v1\"} 1",
            "apiserver_current_inflight_requests{request_kind=\"mutating\"} 0",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(text.contains("code=\"other\"") && text.contains("resource=\"customresources\""));
        assert!(text.contains("\nprocess_resident_memory_bytes "));
    }
}
