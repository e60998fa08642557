//! What the server must know of a resource beyond its schema, as data.
//!
//! Built-in resources are `data/resources.json`; a CRD makes the same structure. Handlers ask these
//! facts, and never what kind they hold.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::jsonpath::JsonPath;
pub use crate::known::resource as known;
use crate::table::{CellRule, Column};

/// A resource: names, versions, verbs and rules.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ResourceDef {
    /// The group, empty for core.
    pub group: Arc<str>,
    /// The plural name, which is the name in paths.
    pub plural: Arc<str>,
    /// The singular name.
    pub singular: Arc<str>,
    /// The kind of its objects.
    pub kind: Arc<str>,
    /// The kind of its lists; empty where there are none.
    #[serde(default)]
    pub list_kind: Arc<str>,
    /// Whether its objects live in namespaces.
    #[serde(default)]
    pub namespaced: bool,
    /// Short names for the command line.
    #[serde(default)]
    pub short_names: Vec<Arc<str>>,
    /// Categories, as `all`.
    #[serde(default)]
    pub categories: Vec<Arc<str>>,
    /// Its versions, the preferred one first.
    pub versions: Vec<Version>,
    /// What can be done with it, sorted.
    pub verbs: Vec<Verb>,
    /// `status` and the like.
    #[serde(default)]
    pub subresources: Vec<Subresource>,
    /// What its objects may be called.
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
    /// Field selectors beside `metadata.name` and `metadata.namespace`.
    #[serde(default)]
    pub field_selectors: Vec<FieldSelector>,
    /// The columns of its tables; empty where the resource has no tables (406).
    #[serde(default)]
    pub columns: Vec<Column>,
    /// The resource that stores its objects, when it only shows another's.
    #[serde(default)]
    pub view_of: Option<ViewOf>,
    /// The status of a new object, where it isn't the empty one.
    #[serde(default)]
    pub initial_status: Option<Arc<Value>>,
    /// What is said to every writer, as a Warning header.
    #[serde(default)]
    pub write_warning: Option<Arc<str>>,
    /// What becomes of dependents when a delete does not say.
    #[serde(default)]
    pub deletion: Deletion,
    /// Properties that some resources have.
    #[serde(default)]
    pub flags: Vec<Flag>,
}

/// What becomes of the dependents of an object that is deleted without a `propagationPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Deletion {
    /// They go after it.
    #[default]
    Background,
    /// They lose their owner, as of the oldest versions of some kinds.
    Orphan,
    /// The kind has none: no policy means anything to it.
    Plain,
}

/// One version of a resource.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Version {
    /// The name, as `v1`.
    pub name: Arc<str>,
    /// Whether clients reach it.
    #[serde(default = "yes")]
    pub served: bool,
    /// Whether objects are stored in it.
    #[serde(default)]
    pub storage: bool,
    /// The warning for those who use it, if it is deprecated.
    #[serde(default)]
    pub deprecation_warning: Option<Arc<str>>,
}

/// What can be asked of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// POST.
    Create,
    /// DELETE of one object.
    Delete,
    /// DELETE of a list.
    DeleteCollection,
    /// GET of one object.
    Get,
    /// GET of a list.
    List,
    /// PATCH.
    Patch,
    /// PUT.
    Update,
    /// GET of a list with `watch=true`.
    Watch,
}

/// A part of an object, or an action on it, with a path of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Subresource {
    /// The last path segment, as `status`.
    pub name: Arc<str>,
    /// What can be done with it, sorted.
    pub verbs: Vec<Verb>,
    /// Group, version and kind of its bodies, when they aren't the resource's.
    #[serde(default)]
    pub kind: Option<[Arc<str>; 3]>,
    /// The top-level fields that a write here may change, as `status`; `metadata` means all of it
    /// except what nobody may change.
    #[serde(default)]
    pub writes: Vec<Arc<str>>,
}

/// What objects may be called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NameRule {
    /// A DNS subdomain (RFC 1123), at most 253 bytes.
    #[default]
    Subdomain,
    /// Anything that fits into one path segment: no `/`, no `%`, not `.` or `..`.
    PathSegment,
    /// A DNS label (RFC 1123), at most 63 bytes.
    Label,
    /// A DNS label that begins with a letter (RFC 1035).
    Label1035,
    /// A logical cluster's name.
    ClusterName,
    /// `<version>.<group>`, as APIServices are called.
    VersionAndGroup,
    /// `<plural>.<group>`, as CRDs are called.
    PluralAndGroup,
}

/// When `metadata.generation` grows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Generation {
    /// Never; the field is absent.
    #[default]
    None,
    /// It is 1 at creation and grows when one of these top-level fields changes.
    Fields(Vec<Arc<str>>),
    /// It is 1 at creation and grows when anything outside metadata (and status, where that is a
    /// subresource) changes. CRDs.
    All,
}

/// A field that lists can be selected by.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FieldSelector {
    /// The name in `fieldSelector`, as `status.phase`.
    pub label: Arc<str>,
    /// Where the value is; the first path that holds a text that isn't empty counts.
    pub paths: Vec<JsonPath>,
    /// The value of an object that has none, where Go would see a number or a boolean.
    #[serde(default)]
    pub absent: Arc<str>,
}

/// The resource whose objects are shown.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ViewOf {
    /// Its group.
    pub group: Arc<str>,
    /// Its plural name.
    pub plural: Arc<str>,
    /// Fields with another name there: (here, there). Dots lead into objects.
    #[serde(default)]
    pub renamed: Vec<(Arc<str>, Arc<str>)>,
}

/// Properties that some resources have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Flag {
    /// Objects are answers: nothing is stored.
    Virtual,
    /// Objects vanish after a while (events).
    Expires,
}

// === impl ResourceDef ===

impl ResourceDef {
    /// Whether a verb is allowed.
    pub fn allows(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }

    /// Whether a property holds.
    pub fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }

    /// The version of that name, served or not.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|v| &*v.name == name)
    }

    /// The version that objects are stored in: the one marked so, else the first.
    pub fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|v| v.storage).or_else(|| self.versions.first())
    }

    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| &*s.name == name)
    }

    /// The field selector of that name.
    pub fn field_selector(&self, label: &str) -> Option<&FieldSelector> {
        self.field_selectors.iter().find(|s| &*s.label == label)
    }
}

// === impl Verb ===

impl Verb {
    /// The verb as discovery and RBAC write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }
}

// === impl FieldSelector ===

impl FieldSelector {
    /// The value that a selector compares; [`FieldSelector::absent`] when the object has none.
    pub fn value<'v>(&'v self, object: &'v Value) -> std::borrow::Cow<'v, str> {
        let texts = self.paths.iter().filter_map(|path| path.first(object)).map(crate::table::text);
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or(self.absent.as_ref().into())
    }
}

/// The resources in `data/resources.json`, with the columns of every resource completed.
pub(crate) fn builtin() -> Vec<Arc<ResourceDef>> {
    static DATA: &str = include_str!("../data/resources.json");
    let defs: Vec<Arc<ResourceDef>> =
        serde_json::from_str(DATA).expect("the resources are well formed");
    defs
}

/// The columns of a resource without columns of its own: name and time of creation.
pub fn default_columns() -> Vec<Column> {
    vec![
        Column::new("Name", "string", "name", CellRule::path(".metadata.name")),
        Column::new("Created At", "date", "", CellRule::path(".metadata.creationTimestamp")),
    ]
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests;
