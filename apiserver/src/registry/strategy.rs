//! What is particular about some kinds: rules that no schema states.
//!
//! A strategy sees whole objects and knows neither the store nor HTTP. Kinds without one here
//! follow their schema alone.

mod config;
mod event;
mod lease;
mod limits;
mod namespace;

use std::fmt;

use machinery::{FieldError, name};
use schema::resource::{NameRule, ResourceDef};
use serde_json::Value;

pub(super) use namespace::FINALIZER as NAMESPACE_FINALIZER;

use crate::registry::{Context, Error};

/// The rules of one kind.
pub(super) trait Strategy: fmt::Debug + Send + Sync {
    /// Fills in what the server sets at creation.
    fn prepare_create(&self, _object: &mut Value, _ctx: &Context) {}

    /// Restores what an update through the main endpoint may not change.
    fn prepare_update(&self, _new: &mut Value, _old: &Value) {}

    /// What is wrong with an object, new or changed.
    fn validate(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// What is wrong with a change, beside what is wrong with the new object itself.
    fn validate_update(&self, _new: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// What a writer should know.
    fn warnings(&self, _object: &Value) -> Vec<String> {
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

    /// Finalizers outside metadata keep an object, too.
    fn is_held(&self, _object: &Value) -> bool {
        false
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
        ("core.kcp.io", "logicalclusters") => &namespace::LogicalClusters,
        ("", "configmaps") => &config::ConfigMaps,
        ("", "secrets") => &config::Secrets,
        ("", "events") => &event::CoreEvents,
        ("events.k8s.io", "events") => &event::Events,
        ("", "limitranges") => &limits::LimitRanges,
        ("coordination.k8s.io", "leases") => &lease::Leases,
        _ => &Plain,
    }
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
