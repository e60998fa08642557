//! CustomResourceDefinitions.

use machinery::FieldError;
use machinery::meta::{get, set};
use schema::crd::{self, Condition};
use serde_json::{Value, json};

use super::Strategy;
use crate::registry::Context;

/// The finalizer that keeps a CRD while there are objects of its type.
pub(in crate::registry) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

#[derive(Debug)]
pub(super) struct Definitions;

impl Strategy for Definitions {
    fn complete(&self, object: &mut Value) {
        crd::complete(object);
    }

    fn prepare_create(&self, object: &mut Value, _ctx: &Context) {
        set(object, &["status"], json!({}));
        crd::record_storage_version(object);
    }

    fn prepare_update(&self, new: &mut Value, _old: &Value) {
        crd::record_storage_version(new);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        crd::validate_create(object)
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        crd::validate_update(new, old)
    }

    fn validate_part(&self, part: &str, new: &Value, old: &Value) -> Vec<FieldError> {
        // The spec was judged when it was written, which for large schemas is not little work.
        if part == "status" { crd::validate_status(new) } else { self.validate_update(new, old) }
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        crd::warnings(new, old)
    }

    fn begin_delete(&self, object: &mut Value) {
        let finalizers = get(object, &["metadata", "finalizers"]).and_then(Value::as_array);
        let mut finalizers = finalizers.cloned().unwrap_or_default();
        if !finalizers.contains(&json!(FINALIZER)) {
            finalizers.push(json!(FINALIZER));
        }
        set(object, &["metadata", "finalizers"], json!(finalizers));
        let now = get(object, &["metadata", "deletionTimestamp"]).and_then(Value::as_str);
        let now = now.unwrap_or_default().to_owned();
        let pending = Condition {
            kind: "Terminating",
            status: "True",
            reason: "InstanceDeletionPending".into(),
            message: "CustomResourceDefinition marked for deletion; CustomResource deletion will \
                      begin soon"
                .into(),
        };
        crd::set_condition(object, &pending, &now);
    }

    fn is_marked_first(&self) -> bool {
        true
    }
}
