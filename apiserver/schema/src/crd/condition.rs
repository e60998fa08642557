//! Conditions of a CRD's status.

use serde_json::{Value, json};

/// One condition, without its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// `NamesAccepted`, `Established` and the like.
    pub kind: &'static str,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// One word in CamelCase.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

// === impl Condition ===

impl Condition {
    pub(super) fn new(
        kind: &'static str,
        status: &'static str,
        reason: &str,
        message: impl Into<String>,
    ) -> Self {
        Self { kind, status, reason: reason.into(), message: message.into() }
    }

    /// Whether the CRD's status has this condition already, whatever its time.
    pub fn holds(&self, crd: &Value) -> bool {
        find(crd, self.kind).is_some_and(|old| {
            let is = |field: &str, value: &str| {
                old.get(field).and_then(Value::as_str).unwrap_or_default() == value
            };
            is("status", self.status) && is("reason", &self.reason) && is("message", &self.message)
        })
    }
}

/// Puts a condition into a CRD's status. Its time is `now` if its status changed.
pub fn set_condition(crd: &mut Value, condition: &Condition, now: &str) {
    let old = find(crd, condition.kind);
    let since = old
        .filter(|old| old.get("status").and_then(Value::as_str) == Some(condition.status))
        .and_then(|old| old.get("lastTransitionTime"))
        .filter(|time| !time.is_null())
        .cloned();
    let new = json!({
        "type": condition.kind,
        "status": condition.status,
        "lastTransitionTime": since.unwrap_or_else(|| now.into()),
        "reason": condition.reason,
        "message": condition.message,
    });
    let list = crd.pointer("/status/conditions").and_then(Value::as_array);
    let mut list = list.cloned().unwrap_or_default();
    match list.iter_mut().find(|c| is_kind(c, condition.kind)) {
        Some(place) => *place = new,
        None => list.push(new),
    }
    machinery::meta::set(crd, &["status", "conditions"], list.into());
}

/// Whether a condition of a CRD is `True`.
pub fn is_condition_true(crd: &Value, kind: &str) -> bool {
    find(crd, kind).and_then(|c| c.get("status")).and_then(Value::as_str) == Some("True")
}

pub(super) fn find<'v>(crd: &'v Value, kind: &str) -> Option<&'v Value> {
    let list = crd.pointer("/status/conditions").and_then(Value::as_array);
    list.into_iter().flatten().find(|condition| is_kind(condition, kind))
}

fn is_kind(condition: &Value, kind: &str) -> bool {
    condition.get("type").and_then(Value::as_str) == Some(kind)
}
