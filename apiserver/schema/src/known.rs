//! What clients expect of the resource types that a server may have imported, beyond their schemas.
//!
//! A type of a physical cluster is held as a CRD, which can't say how names are checked, when the
//! generation grows, which fields lists are selected by, or what `kubectl get` prints. For types of
//! the Kubernetes release that this server follows, those facts are `data/known-resources.json`;
//! whoever makes a [`ResourceDef`](crate::ResourceDef) of a CRD merges them in. They hold by group
//! and plural name, so a CRD written by hand for such a type has them too.
//!
//! What a client sends of such a type passes, in this order:
//! [`coerce`](crate::Schema::coerce) by the Go type ([`Types::known`](crate::Types::known)) with
//! [`CoerceMode::Keep`](crate::CoerceMode::Keep), which reads it as Go would and leaves alone what a
//! cluster of another release added; pruning, defaults and validation by the CRD's schema; and
//! `coerce` again, as Go leaves out most zero values that defaults fill in. Upstream never checks
//! that items of its own types' lists differ in their keys (two variables of one name in a
//! container, say), so neither does the server for these types.
//!
//! The file is read when the first of them is asked for.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::Value;

use crate::resource::{Deletion, FieldSelector, Generation, NameRule};
use crate::table::Column;

/// Facts of one resource.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct KnownResource {
    /// The group, empty for core.
    pub group: Arc<str>,
    /// The plural name.
    pub plural: Arc<str>,
    /// The kind of its objects.
    pub kind: Arc<str>,
    /// The versions that the facts hold for, the preferred one first.
    pub versions: Vec<Arc<str>>,
    /// What objects may be called.
    #[serde(default)]
    pub name_rule: NameRule,
    /// Whether an update may come without a resourceVersion.
    #[serde(default)]
    pub allow_unconditional_update: bool,
    /// Whether PUT creates what is missing.
    #[serde(default)]
    pub allow_create_on_update: bool,
    /// When `metadata.generation` grows.
    #[serde(default)]
    pub generation: Generation,
    /// What a write to `status` may change, as [`Subresource::writes`](crate::resource::Subresource)
    /// has it: of most of these kinds the metadata, too, which custom resources never allow.
    #[serde(default = "status_and_metadata")]
    pub status_writes: Vec<Arc<str>>,
    /// What becomes of dependents when a delete does not say.
    #[serde(default)]
    pub deletion: Deletion,
    /// The status of a new object.
    #[serde(default)]
    pub initial_status: Option<Arc<Value>>,
    /// Field selectors beside `metadata.name` and `metadata.namespace`.
    #[serde(default)]
    pub field_selectors: Vec<FieldSelector>,
    /// The columns of its tables.
    pub columns: Arc<[Column]>,
}

fn status_and_metadata() -> Vec<Arc<str>> {
    vec!["status".into(), "metadata".into()]
}

/// The facts of a resource type; `None` for types that the release doesn't have, and for most of
/// those that this server serves by itself.
pub fn resource(group: &str, plural: &str) -> Option<Arc<KnownResource>> {
    let found = all().iter().find(|r| &*r.group == group && &*r.plural == plural);
    found.cloned()
}

/// Whether the server converts objects of a kind between two versions whose fields differ. What is made
/// of them is in the API server's registry.
pub fn converts(group: &str, kind: &str, versions: [&str; 2]) -> bool {
    (group, kind) == ("autoscaling", "HorizontalPodAutoscaler")
        && versions.iter().all(|version| matches!(*version, "v1" | "v2"))
}

/// The facts of all resource types.
pub fn all() -> &'static [Arc<KnownResource>] {
    static ALL: LazyLock<Vec<Arc<KnownResource>>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("../data/known-resources.json"))
            .expect("the known resources are well formed")
    });
    &ALL
}

#[cfg(test)]
mod tests;
