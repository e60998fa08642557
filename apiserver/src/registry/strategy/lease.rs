//! Leases: numbers that make sense.

use machinery::meta::get_i64;
use machinery::meta::{get, get_str};
use machinery::{FieldError, FieldPath};
use serde_json::{Value, json};

use super::Strategy;

#[derive(Debug)]
pub(super) struct Leases;

impl Strategy for Leases {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = FieldPath::root("spec");
        let mut problems = Vec::new();
        if let Some(seconds) = get_i64(object, &["spec", "leaseDurationSeconds"])
            && seconds <= 0
        {
            let path = spec.child("leaseDurationSeconds");
            problems.push(FieldError::invalid(&path, &json!(seconds), "must be greater than 0"));
        }
        if let Some(count) = get_i64(object, &["spec", "leaseTransitions"])
            && count < 0
        {
            let path = spec.child("leaseTransitions");
            let why = "must be greater than or equal to 0";
            problems.push(FieldError::invalid(&path, &json!(count), why));
        }
        let strategy = get_str(object, &["spec", "strategy"]).unwrap_or_default();
        let preferred = get(object, &["spec", "preferredHolder"]).is_some();
        if preferred && strategy.is_empty() {
            let why = "may only be specified if `strategy` is defined";
            problems.push(FieldError::forbidden(&spec.child("preferredHolder"), why));
        }
        problems
    }
}
