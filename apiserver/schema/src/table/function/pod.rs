//! Cells of pods: the state of the whole, as it follows from the states of the containers.

use std::fmt::Write as _;

use jiff::Timestamp;
use machinery::time::Time;
use serde_json::Value;

use super::{ENDLESS, NONE, at, get, has_condition, items, number, str_at};
use crate::table::age;

/// What the columns `Ready`, `Status` and `Restarts` show.
struct Summary<'v> {
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<&'v Value>,
    reason: String,
}

/// How often containers were restarted, and when the last of them ended.
#[derive(Clone, Copy, Default)]
struct Restarts<'v> {
    count: i64,
    last: Option<(Timestamp, &'v Value)>,
}

pub(super) fn ready(pod: &Value) -> String {
    let summary = summary(pod);
    format!("{}/{}", summary.ready, summary.total)
}

pub(super) fn status(pod: &Value) -> String {
    summary(pod).reason
}

pub(super) fn restarts(pod: &Value, now: Timestamp) -> String {
    let summary = summary(pod);
    match summary.last_restart {
        Some(_) if summary.restarts != 0 => {
            format!("{} ({} ago)", summary.restarts, age::since(summary.last_restart, now))
        }
        _ => summary.restarts.to_string(),
    }
}

pub(super) fn readiness_gates(pod: &Value) -> String {
    let gates = items(at(at(pod, "spec"), "readinessGates"));
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let holds = |gate: &&Value| has_condition(pod, str_at(gate, "conditionType"));
    format!("{}/{}", gates.iter().filter(holds).count(), gates.len())
}

fn summary(pod: &Value) -> Summary<'_> {
    let (spec, status) = (at(pod, "spec"), at(pod, "status"));
    let mut summary = Summary {
        ready: 0,
        total: items(at(spec, "containers")).len(),
        restarts: 0,
        last_restart: None,
        reason: first_reason(status),
    };
    let initializing = summary.add_init_containers(spec, status);
    if !initializing {
        summary.add_containers(status);
    }
    if get(at(pod, "metadata"), "deletionTimestamp").is_some() {
        let ended = matches!(str_at(status, "phase"), "Succeeded" | "Failed");
        if str_at(status, "reason") == "NodeLost" {
            summary.reason = "Unknown".to_owned();
        } else if !ended {
            summary.reason = "Terminating".to_owned();
        }
    }
    summary
}

/// What is said of a pod whose containers have nothing to tell.
fn first_reason(status: &Value) -> String {
    const GATED: &str = "SchedulingGated";
    let gated = |condition: &Value| {
        str_at(condition, "type") == "PodScheduled" && str_at(condition, "reason") == GATED
    };
    if items(at(status, "conditions")).iter().any(gated) {
        return GATED.to_owned();
    }
    match str_at(status, "reason") {
        "" => str_at(status, "phase").to_owned(),
        reason => reason.to_owned(),
    }
}

/// Whether an init container runs beside the others (a sidecar).
fn is_sidecar(container: &Value) -> bool {
    str_at(container, "restartPolicy") == "Always"
}

// === impl Summary ===

impl<'v> Summary<'v> {
    /// Takes in the init containers; whether the pod is still initializing.
    fn add_init_containers(&mut self, spec: &Value, status: &'v Value) -> bool {
        let declared = items(at(spec, "initContainers"));
        self.total += declared.iter().filter(|c| is_sidecar(c)).count();
        let (mut all, mut sidecars) = (Restarts::default(), Restarts::default());
        let mut initializing = false;
        for (index, container) in items(at(status, "initContainerStatuses")).iter().enumerate() {
            let name = str_at(container, "name");
            let sidecar =
                declared.iter().rfind(|c| str_at(c, "name") == name).is_some_and(is_sidecar);
            all.add(container);
            if sidecar {
                sidecars.add(container);
            }
            let state = at(container, "state");
            let ended = get(state, "terminated");
            if ended.is_some_and(|ended| number(ended, "exitCode") == 0) {
                continue;
            }
            if sidecar && flag(container, "started") {
                self.ready += usize::from(flag(container, "ready"));
                continue;
            }
            let waiting = str_at(at(state, "waiting"), "reason");
            self.reason = match ended {
                Some(ended) => format!("Init:{}", why_ended(ended)),
                None if !matches!(waiting, "" | "PodInitializing") => format!("Init:{waiting}"),
                None => format!("Init:{index}/{}", declared.len()),
            };
            initializing = true;
            break;
        }
        let initialized = items(at(status, "conditions"))
            .iter()
            .find(|c| str_at(c, "type") == "Initialized")
            .is_some_and(|c| str_at(c, "status") == "True");
        let still = initializing && !initialized;
        self.set_restarts(if still { all } else { sidecars });
        still
    }

    fn add_containers(&mut self, status: &'v Value) {
        let mut restarts = Restarts { count: self.restarts, last: None };
        restarts.see(self.last_restart);
        let (mut running, mut error) = (false, None);
        for container in items(at(status, "containerStatuses")).iter().rev() {
            restarts.add(container);
            let state = at(container, "state");
            let waiting = str_at(at(state, "waiting"), "reason");
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if let Some(ended) = get(state, "terminated") {
                self.reason = why_ended(ended);
                if number(ended, "exitCode") != 0 {
                    error = Some(self.reason.clone());
                }
            } else if flag(container, "ready") && get(state, "running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        // A pod isn't over as long as one of its containers runs.
        if self.reason == "Completed" {
            let mut conditions = items(at(status, "conditions")).iter();
            let ready =
                conditions.any(|c| str_at(c, "type") == "Ready" && str_at(c, "status") == "True");
            if running && ready {
                self.reason = "Running".to_owned();
            } else if let Some(error) = error {
                self.reason = error;
            } else if running {
                self.reason = "NotReady".to_owned();
            }
        }
        self.set_restarts(restarts);
    }

    fn set_restarts(&mut self, restarts: Restarts<'v>) {
        self.restarts = restarts.count;
        self.last_restart = restarts.last.map(|(_, time)| time);
    }
}

// === impl Restarts ===

impl<'v> Restarts<'v> {
    fn add(&mut self, container: &'v Value) {
        self.count = self.count.saturating_add(number(container, "restartCount"));
        let before = at(at(container, "lastState"), "terminated");
        self.see(get(before, "finishedAt"));
    }

    fn see(&mut self, time: Option<&'v Value>) {
        let parsed = time.and_then(Value::as_str).and_then(|text| Time::parse(text).ok());
        if let (Some(time), Some(parsed)) = (time, parsed) {
            let at = parsed.timestamp();
            if self.last.is_none_or(|(last, _)| last < at) {
                self.last = Some((at, time));
            }
        }
    }
}

fn flag(value: &Value, name: &str) -> bool {
    at(value, name).as_bool().unwrap_or_default()
}

/// Why a container ended: its reason, else its signal, else its exit code.
fn why_ended(ended: &Value) -> String {
    let mut text = str_at(ended, "reason").to_owned();
    if text.is_empty() {
        match number(ended, "signal") {
            0 => write!(text, "ExitCode:{}", number(ended, "exitCode")),
            signal => write!(text, "Signal:{signal}"),
        }
        .expect(ENDLESS);
    }
    text
}
