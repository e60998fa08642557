//! What is particular about some kinds: rules that no schema states.
//!
//! A strategy sees whole objects and knows neither the store nor HTTP. Kinds without one here
//! follow their schema alone.

mod certificate;
mod check;
mod condition;
mod config;
mod definition;
mod event;
mod flow;
mod flow_schema;
mod lease;
mod limits;
mod namespace;
mod policy;
mod quota;
mod rbac;
mod webhook;

use std::fmt;

use machinery::meta::get;
use machinery::{FieldError, FieldPath, GroupVersion, Gvk, name};
use schema::resource::{NameRule, ResourceDef};
use serde_json::Value;

pub(super) use definition::FINALIZER as DEFINITION_FINALIZER;
pub(super) use namespace::FINALIZER as NAMESPACE_FINALIZER;

use crate::registry::{Context, Error};

/// The rules of one kind.
pub(super) trait Strategy: fmt::Debug + Send + Sync {
    /// Completes an object beyond the defaults of its schema, whenever it is written.
    fn complete(&self, _object: &mut Value) {}

    /// Fills in what the server sets at creation.
    fn prepare_create(&self, _object: &mut Value, _ctx: &Context) {}

    /// Restores what an update through the main endpoint may not change.
    fn prepare_update(&self, _new: &mut Value, _old: &Value) {}

    /// Completes a change that is made through a subresource, and restores what that may not
    /// change.
    fn prepare_part(&self, _part: &str, _new: &mut Value, _old: &Value, _ctx: &Context) {}

    /// What is wrong with an object, new or changed.
    fn validate(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// What is wrong with a new object alone.
    fn validate_create(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// What is wrong with a change, beside what is wrong with the new object itself.
    fn validate_update(&self, _new: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// What is wrong with a change that was made through a subresource, or the main endpoint if
    /// `part` is empty.
    fn validate_part(&self, part: &str, new: &Value, old: &Value) -> Vec<FieldError> {
        let _ = part;
        self.validate_update(new, old)
    }

    /// What a writer should know; `old` is what the object was, unless it is new.
    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// Whether the object may be deleted at all.
    ///
    /// # Errors
    /// The refusal.
    fn check_delete(&self, _name: &str) -> Result<(), Error> {
        Ok(())
    }

    /// Marks an object as being deleted, beyond its metadata.
    fn begin_delete(&self, _object: &mut Value) {}

    /// Whether a delete is answered with the object also when it is gone.
    fn returns_deleted(&self) -> bool {
        false
    }

    /// Whether a first delete only marks the object, also when nothing holds it.
    fn is_marked_first(&self) -> bool {
        false
    }

    /// Finalizers outside metadata keep an object, too. Only kinds that are marked first have them.
    fn is_held(&self, _object: &Value) -> bool {
        false
    }
}

/// ServiceAccounts: a delete shows what is gone, as it always has.
#[derive(Debug)]
struct ServiceAccounts;

impl Strategy for ServiceAccounts {
    fn returns_deleted(&self) -> bool {
        true
    }
}

/// A kind without rules of its own.
#[derive(Debug)]
struct Plain;

impl Strategy for Plain {}

/// The strategy of a resource; views have that of the resource that stores them.
pub(super) fn of(resource: &ResourceDef) -> &'static dyn Strategy {
    match (&*resource.group, &*resource.plural) {
        ("", "namespaces") => &namespace::Namespaces,
        ("apiextensions.k8s.io", "customresourcedefinitions") => &definition::Definitions,
        ("core.kcp.io", "logicalclusters") => &namespace::LogicalClusters,
        ("", "configmaps") => &config::ConfigMaps,
        ("", "secrets") => &config::Secrets,
        ("", "serviceaccounts") => &ServiceAccounts,
        ("", "events") => &event::CoreEvents,
        ("events.k8s.io", "events") => &event::Events,
        ("", "limitranges") => &limits::LimitRanges,
        ("", "resourcequotas") => &quota::ResourceQuotas,
        ("certificates.k8s.io", "certificatesigningrequests") => &certificate::Requests,
        ("coordination.k8s.io", "leases") => &lease::Leases,
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => &flow_schema::FlowSchemas,
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => &flow::PriorityLevels,
        ("rbac.authorization.k8s.io", plural) => of_rbac(plural),
        ("admissionregistration.k8s.io", plural) => of_admission(plural),
        _ => &Plain,
    }
}

fn of_rbac(plural: &str) -> &'static dyn Strategy {
    match plural {
        "roles" => &rbac::Roles { namespaced: true },
        "clusterroles" => &rbac::Roles { namespaced: false },
        "rolebindings" => &rbac::Bindings { namespaced: true },
        "clusterrolebindings" => &rbac::Bindings { namespaced: false },
        _ => &Plain,
    }
}

fn of_admission(plural: &str) -> &'static dyn Strategy {
    match plural {
        "validatingwebhookconfigurations" => &webhook::Webhooks { mutating: false },
        "mutatingwebhookconfigurations" => &webhook::Webhooks { mutating: true },
        "validatingadmissionpolicies" => &policy::Policies { mutating: false },
        "mutatingadmissionpolicies" => &policy::Policies { mutating: true },
        "validatingadmissionpolicybindings" => &policy::Bindings { mutating: false },
        "mutatingadmissionpolicybindings" => &policy::Bindings { mutating: true },
        _ => &Plain,
    }
}

/// The kind that problems name. Upstream judges views as what they are views of.
pub(super) fn judged_kind(resource: &ResourceDef, kind: &Gvk) -> Gvk {
    match &resource.view_of {
        Some(view) => GroupVersion::new(&view.group, &kind.group_version.version).kind(&kind.kind),
        None => kind.clone(),
    }
}

/// Finalizers that are neither upstream's own nor have a domain. Kinds of the first groups refuse
/// them; later ones, and custom resources, do not.
pub(super) fn unqualified_finalizers(resource: &ResourceDef, object: &Value) -> Vec<FieldError> {
    const STANDARD: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
    let strict = match &*resource.group {
        "" => &*resource.plural != "events",
        group => group == "flowcontrol.apiserver.k8s.io",
    };
    let finalizers = get(object, &["metadata", "finalizers"]).filter(|_| strict);
    let finalizers = finalizers.and_then(Value::as_array).into_iter().flatten().enumerate();
    let path = FieldPath::root("metadata").child("finalizers");
    let unqualified = finalizers.filter(|(_, finalizer)| {
        let name = finalizer.as_str().unwrap_or_default();
        !name.contains('/') && !STANDARD.contains(&name)
    });
    unqualified
        .map(|(index, finalizer)| {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            FieldError::invalid(&path.index(index), finalizer, why)
        })
        .collect()
}

/// What names of a resource must look like.
pub(super) fn name_rule(rule: NameRule) -> fn(&str) -> Vec<String> {
    match rule {
        NameRule::Subdomain | NameRule::PluralAndGroup => name::dns1123_subdomain,
        NameRule::PathSegment | NameRule::VersionAndGroup => name::path_segment,
        NameRule::Label => name::dns1123_label,
        NameRule::Label1035 => name::dns1035_label,
        NameRule::ClusterName => cluster_name,
    }
}

fn cluster_name(value: &str) -> Vec<String> {
    match machinery::ClusterName::parse(value) {
        Ok(_) => Vec::new(),
        Err(error) => vec![error.to_string()],
    }
}
