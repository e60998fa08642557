//! Leases: numbers that make sense.

use machinery::meta::{get, get_i64, get_str, remove};
use machinery::{FieldError, FieldPath};
use serde_json::{Value, json};

use super::Strategy;
use crate::registry::Context;

#[derive(Debug)]
pub(super) struct Leases;

/// Fields of coordinated leader election, which upstream leaves out unless its gate is open.
const GATED: [&str; 2] = ["strategy", "preferredHolder"];

impl Strategy for Leases {
    fn prepare_create(&self, object: &mut Value, _ctx: &Context) {
        for field in GATED {
            remove(object, &["spec", field]);
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        for field in GATED {
            if get(old, &["spec", field]).is_none() {
                remove(new, &["spec", field]);
            }
        }
    }

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
