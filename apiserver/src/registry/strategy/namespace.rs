//! Namespaces and logical clusters: what holds other objects.

use machinery::meta::{get, get_str, remove, set};
use machinery::{FieldError, FieldPath, name};
use serde_json::{Value, json};

use super::Strategy;
use crate::clusters::record::CONTENT_FINALIZER;
use crate::registry::{Context, Error, Reason};

/// The finalizer of every namespace, in its spec.
pub(in crate::registry) const FINALIZER: &str = "kubernetes";

/// The label by which selectors find a namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Namespaces that cannot be deleted, as upstream's NamespaceLifecycle has it.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

#[derive(Debug)]
pub(super) struct Namespaces;

#[derive(Debug)]
pub(super) struct LogicalClusters;

impl Strategy for Namespaces {
    fn prepare_create(&self, object: &mut Value, _ctx: &Context) {
        set(object, &["status"], json!({"phase": "Active"}));
        let mut finalizers = get(object, &["spec", "finalizers"])
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if !finalizers.contains(&json!(FINALIZER)) {
            finalizers.push(json!(FINALIZER));
        }
        set(object, &["spec", "finalizers"], json!(finalizers));
    }

    fn complete(&self, object: &mut Value) {
        let name = get_str(object, &["metadata", "name"]).unwrap_or_default().to_owned();
        set(object, &["metadata", "labels", NAME_LABEL], json!(name));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        match get(old, &["spec", "finalizers"]) {
            Some(finalizers) => {
                set(new, &["spec", "finalizers"], finalizers.clone());
            }
            None => {
                remove(new, &["spec", "finalizers"]);
            }
        }
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let path = FieldPath::root("spec").child("finalizers");
        let finalizers = get(object, &["spec", "finalizers"]).and_then(Value::as_array);
        let mut problems = Vec::new();
        for finalizer in finalizers.into_iter().flatten() {
            let text = finalizer.as_str().unwrap_or_default();
            for problem in name::qualified_name(text) {
                problems.push(FieldError::invalid(&path, finalizer, problem));
            }
            if !text.contains('/') && text != FINALIZER {
                let why = "name is neither a standard finalizer name nor is it fully qualified";
                problems.push(FieldError::invalid(&path, finalizer, why));
            }
        }
        problems
    }

    fn validate_update(&self, new: &Value, _old: &Value) -> Vec<FieldError> {
        let phase = get_str(new, &["status", "phase"]).unwrap_or_default();
        let deleting = get_str(new, &["metadata", "deletionTimestamp"]).is_some();
        let (fits, why) = if deleting {
            (
                phase == "Terminating",
                "may only be 'Terminating' if `deletionTimestamp` is not empty",
            )
        } else {
            (phase == "Active", "may only be 'Active' if `deletionTimestamp` is empty")
        };
        let path = FieldPath::root("status").child("Phase");
        if fits || phase.is_empty() {
            return Vec::new();
        }
        vec![FieldError::invalid(&path, &json!(phase), why)]
    }

    fn check_delete(&self, name: &str) -> Result<(), Error> {
        if !IMMORTAL.contains(&name) {
            return Ok(());
        }
        let resource = machinery::GroupResource::new("", "namespaces");
        Err(Error::forbidden(&resource, name, "this namespace may not be deleted"))
    }

    fn begin_delete(&self, object: &mut Value) {
        set(object, &["status", "phase"], json!("Terminating"));
    }

    fn is_marked_first(&self) -> bool {
        true
    }

    fn is_held(&self, object: &Value) -> bool {
        let finalizers = get(object, &["spec", "finalizers"]).and_then(Value::as_array);
        finalizers.is_some_and(|finalizers| !finalizers.is_empty())
    }
}

impl Strategy for LogicalClusters {
    fn prepare_create(&self, object: &mut Value, ctx: &Context) {
        match ctx.owner() {
            Some(owner) => set(object, &["spec", "owner"], json!(owner)),
            None => remove(object, &["spec", "owner"]).is_some(),
        };
        let mut finalizers = get(object, &["metadata", "finalizers"])
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if !finalizers.contains(&json!(CONTENT_FINALIZER)) {
            finalizers.push(json!(CONTENT_FINALIZER));
        }
        set(object, &["metadata", "finalizers"], json!(finalizers));
        set(object, &["status"], json!({"phase": "Ready"}));
    }

    /// Nobody makes somebody else the owner, or themselves.
    fn prepare_update(&self, new: &mut Value, old: &Value) {
        match get(old, &["spec", "owner"]) {
            Some(owner) => set(new, &["spec", "owner"], owner.clone()),
            None => remove(new, &["spec", "owner"]).is_some(),
        };
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let name = get_str(object, &["metadata", "name"]).unwrap_or_default();
        let ours = name.starts_with("system:") && name != "system:crds";
        if ours {
            let path = FieldPath::root("metadata").child("name");
            let why = "names that begin with \"system:\" are the server's own";
            return vec![FieldError::invalid(&path, &json!(name), why)];
        }
        Vec::new()
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let holds = |object: &Value| {
            get(object, &["metadata", "finalizers"])
                .and_then(Value::as_array)
                .is_some_and(|finalizers| finalizers.contains(&json!(CONTENT_FINALIZER)))
        };
        // Without it the content would outlive its logical cluster. The server removes it by
        // deleting the object once the content is gone.
        if holds(old) && !holds(new) {
            let path = FieldPath::root("metadata").child("finalizers");
            let why = format!("{CONTENT_FINALIZER} is removed by the server once nothing is left");
            return vec![FieldError::forbidden(&path, why)];
        }
        Vec::new()
    }

    fn check_delete(&self, name: &str) -> Result<(), Error> {
        if name != "root" && !name.starts_with("system:") {
            return Ok(());
        }
        let why = "this logical cluster may not be deleted";
        Err(Error::new(
            Reason::Forbidden,
            format!("logicalclusters.core.kcp.io {name:?} is forbidden: {why}"),
        )
        .about(&crate::clusters::logical_clusters(), name))
    }

    fn begin_delete(&self, object: &mut Value) {
        set(object, &["status", "phase"], json!("Deleting"));
    }
}
