//! Groups of the Kubernetes project need an approval: an annotation that says where it is.

use machinery::field::go_quote;
use machinery::{FieldError, FieldPath};
use serde_json::Value;

use super::{Condition, groups};
use crate::structural::uri;

/// The annotation with the URL of the approval, or `unapproved` and why.
const ANNOTATION: &str = "api-approved.kubernetes.io";
const CONDITION: &str = "KubernetesAPIApprovalPolicyConformant";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Invalid,
    Approved,
    Bypassed,
    Missing,
}

/// The condition of a CRD in a protected group; `None` for other groups and for Kubernetes' own
/// types.
pub fn approval(crd: &Value) -> Option<Condition> {
    if !is_protected(crd) {
        return None;
    }
    let (state, why) = judge(crd);
    let (status, reason) = match state {
        State::Invalid => ("False", "InvalidAnnotation"),
        State::Missing => ("False", "MissingAnnotation"),
        State::Approved => ("True", "ApprovedAnnotation"),
        State::Bypassed => ("False", "UnapprovedAnnotation"),
    };
    Some(Condition::new(CONDITION, status, reason, why))
}

/// Refuses a CRD without approval, unless it had none before.
pub(super) fn validate(crd: &Value, old: Option<&Value>) -> Option<FieldError> {
    if !is_protected(crd) {
        return None;
    }
    let (state, why) = judge(crd);
    if old.is_some_and(|old| judge(old).0 == state) {
        return None;
    }
    let at = FieldPath::root("metadata").child("annotations").key(ANNOTATION);
    match state {
        State::Invalid => Some(FieldError::invalid_str(&at, annotation(crd), why)),
        State::Missing => Some(FieldError::required(&at, why)),
        State::Approved | State::Bypassed => None,
    }
}

fn is_protected(crd: &Value) -> bool {
    let group = super::text(crd, &["spec", "group"]);
    let within = |domain: &str| {
        group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    (within("k8s.io") || within("kubernetes.io")) && !groups::is_builtin(group)
}

fn judge(crd: &Value) -> (State, String) {
    const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    let text = annotation(crd);
    let name = go_quote(ANNOTATION);
    if text.is_empty() {
        let why = format!("protected groups must have approval annotation {name}, {SEE}");
        return (State::Missing, why);
    }
    if text.starts_with("unapproved") {
        return (State::Bypassed, format!("not approved: {}", go_quote(text)));
    }
    if uri::parse_request(text).is_some_and(|u| !u.host.is_empty() && !u.scheme.is_empty()) {
        return (State::Approved, format!("approved in {text}"));
    }
    let why = format!(
        "protected groups must have approval annotation {name} with either a URL or a reason \
         starting with \"unapproved\", {SEE}"
    );
    (State::Invalid, why)
}

fn annotation(crd: &Value) -> &str {
    super::text(crd, &["metadata", "annotations", ANNOTATION])
}
