//! What the registry is asked, parsed and free of HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use machinery::ClusterName;
use machinery::meta::get_str;
use machinery::selector::{FieldSelector, LabelSelector};
use parking_lot::Mutex;
use schema::crd::CustomType;
use schema::resource::ResourceDef;
use serde_json::Value;
use store::Urgency;

use crate::auth::authz::Attributes;
use crate::auth::{MASTERS, UserInfo};
use crate::registry::{Error, Registry};

/// The annotation that tells the audit log of validations that failed, as upstream has it.
const VALIDATION_FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

/// Bytes after which an annotation grows no more.
const MAX_ANNOTATION: usize = 10 << 10;

/// Which logical clusters a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterScope {
    /// One logical cluster.
    One(ClusterName),
    /// All of them (`/clusters/*`): list and watch only.
    All,
}

/// The resource, and perhaps the object, that a request is about.
#[derive(Clone, Debug)]
pub struct Target {
    /// The logical cluster, or all.
    pub cluster: ClusterScope,
    /// The resource, found in the catalog.
    pub resource: Arc<ResourceDef>,
    /// Its type, unless it is built in.
    pub custom: Option<Arc<CustomType>>,
    /// The API version of the URL: one that the resource serves.
    pub version: Arc<str>,
    /// The namespace of the URL; empty for cluster-scoped resources and for all namespaces.
    pub namespace: Arc<str>,
    /// The object's name; empty for the collection.
    pub name: Arc<str>,
    /// The subresource; empty for the object itself.
    pub subresource: Arc<str>,
}

/// Who asks, and what goes along with a request on its way.
#[derive(Debug)]
pub struct Context {
    /// The authenticated caller.
    pub user: Arc<UserInfo>,
    /// The request's time: one reading of the clock for each request.
    pub now: Timestamp,
    /// The `User-Agent` up to the first `/`: the default field manager.
    pub agent: Arc<str>,
    /// Whether the server itself asks, on its own behalf: admission is for others.
    pub(crate) inside: bool,
    /// How soon what is written is wanted: the server's own housekeeping lets others go first.
    pub(crate) urgency: Urgency,
    /// Whether the caller was let in because the logical cluster did not exist and they may create
    /// it. Should it exist by now, it must belong to them.
    pub(crate) creating: bool,
    /// Texts for `Warning` headers, each once.
    warnings: Mutex<Vec<String>>,
    /// What admission tells the audit log.
    annotations: Mutex<BTreeMap<String, String>>,
}

/// The form of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// `application/json`, also when no type is given.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

/// A request's body.
#[derive(Clone, Debug)]
pub struct Body {
    /// Its form.
    pub media: Media,
    /// Its bytes, at most as many as the server takes.
    pub bytes: Bytes,
}

/// `fieldValidation`: what happens to unknown and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Dropped silently.
    Ignore,
    /// Dropped with a warning.
    #[default]
    Warn,
    /// Refused.
    Strict,
}

/// Query parameters of create, update and patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// `dryRun=All`: do everything but the write.
    pub dry_run: bool,
    /// `fieldValidation`.
    pub field_validation: FieldValidation,
    /// `fieldManager`, or empty.
    pub field_manager: Arc<str>,
    /// `force`, for apply only.
    pub force: Option<bool>,
}

/// `resourceVersionMatch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// `NotOlderThan`.
    NotOlderThan,
    /// `Exact`.
    Exact,
    /// A value that there is not; the registry refuses it, along with what else is wrong.
    Unknown(Box<str>),
}

/// Query parameters of list, watch and deletecollection, parsed but for what depends on each other.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// `labelSelector`.
    pub labels: LabelSelector,
    /// `fieldSelector`.
    pub fields: FieldSelector,
    /// `resourceVersion`, as given; empty when absent.
    pub resource_version: String,
    /// `resourceVersionMatch`.
    pub version_match: Option<VersionMatch>,
    /// `limit`; 0 for none.
    pub limit: usize,
    /// `continue`, as given; empty when absent.
    pub continue_token: String,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// `sendInitialEvents`.
    pub send_initial_events: Option<bool>,
    /// `timeoutSeconds`, of a watch.
    pub timeout_seconds: Option<u64>,
}

/// How dependents are treated (`propagationPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents lose their owner.
    Orphan,
    /// Dependents go after the object.
    Background,
    /// Dependents go before the object.
    Foreground,
}

/// `metav1.DeleteOptions`, from the body and the query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// `dryRun=All`.
    pub dry_run: bool,
    /// Seconds; only pods-like kinds use it.
    pub grace_period_seconds: Option<i64>,
    /// `propagationPolicy`.
    pub propagation: Option<Propagation>,
    /// `preconditions.uid`.
    pub uid: Option<String>,
    /// `preconditions.resourceVersion`.
    pub resource_version: Option<String>,
}

/// The four forms of a PATCH body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902.
    Json,
    /// RFC 7396.
    Merge,
    /// Kubernetes' strategic merge patch.
    Strategic,
    /// Server-side apply.
    Apply,
}

// === impl Context ===

impl Context {
    /// A request's context, without warnings yet.
    pub fn new(user: Arc<UserInfo>, now: Timestamp, agent: Arc<str>) -> Self {
        Self {
            user,
            now,
            agent,
            inside: false,
            urgency: Urgency::Now,
            creating: false,
            warnings: Mutex::default(),
            annotations: Mutex::default(),
        }
    }

    /// The owner of a logical cluster that this request creates, unless masters or the server
    /// itself create it. A name that is known in one logical cluster alone may mean somebody else
    /// there.
    pub(crate) fn owner(&self) -> Option<&str> {
        let name = self.user.name.as_str();
        let nobody = self.inside
            || self.user.home.is_some()
            || self.user.is_in(MASTERS)
            || name.starts_with("system:");
        (!nobody).then_some(name)
    }

    /// Adds a text for a `Warning` header, unless it is there already.
    pub fn warn(&self, text: impl Into<String>) {
        let text = text.into();
        let mut warnings = self.warnings.lock();
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    /// Tells the audit log something; different values of one key are joined by a comma.
    pub(crate) fn annotate(&self, key: &str, value: &str) {
        let mut annotations = self.annotations.lock();
        let held = annotations.entry(key.to_owned()).or_default();
        if held.is_empty() {
            value.clone_into(held);
        } else if held.len() < MAX_ANNOTATION && !held.split(", ").any(|own| own == value) {
            held.push_str(", ");
            held.push_str(value);
        }
    }

    /// Tells the audit log of a validation that failed, as JSON; all of them are one list.
    pub(crate) fn annotate_failure(&self, failure: &serde_json::Value) {
        let mut annotations = self.annotations.lock();
        let held = annotations.entry(VALIDATION_FAILURE.to_owned()).or_default();
        if held.len() < MAX_ANNOTATION {
            let joined = match held.strip_suffix(']') {
                Some(before) => format!("{before},{failure}]"),
                None => format!("[{failure}]"),
            };
            *held = joined;
        }
    }

    /// What the audit log is told, leaving nothing.
    pub(crate) fn take_annotations(&self) -> BTreeMap<String, String> {
        std::mem::take(&mut self.annotations.lock())
    }

    /// The warnings so far, leaving none.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock())
    }
}

// === impl Target ===

impl Target {
    /// The one logical cluster that the target is in, if it is not about all.
    pub fn one_cluster(&self) -> Option<&ClusterName> {
        match &self.cluster {
            ClusterScope::One(cluster) => Some(cluster),
            ClusterScope::All => None,
        }
    }

    /// What an authorizer is asked of the target.
    pub(super) fn attributes<'a>(&'a self, verb: &'a str) -> Attributes<'a> {
        Attributes::Resource {
            verb,
            group: &self.resource.group,
            resource: &self.resource.plural,
            name: &self.name,
            subresource: &self.subresource,
            namespace: &self.namespace,
        }
    }

    /// The refusal of an object that would be stored there.
    pub(super) fn forbidden(&self, object: &Value, why: &str) -> Error {
        let name = get_str(object, &["metadata", "name"]).unwrap_or_default();
        Error::forbidden(&Registry::group_resource(&self.resource), name, why)
    }
}
