//! Admission: webhooks and policies that judge and change what is written.
//!
//! Here is what they are and whether they match; how they meet the objects of a logical cluster is
//! in `registry/admission.rs`. All that is compiled of a configuration is kept with its stored
//! object, and what policies compile to is shared by all logical clusters that have the same one.
//! A logical cluster without any costs nothing but a look into the cache for each write.

mod criteria;
mod declared;
mod expression;
mod hook;
mod inputs;
mod mutation;
mod policy;
mod rules;
pub(crate) mod typecheck;

use std::sync::Arc;

use machinery::{ClusterName, Gvk, Gvr};
use serde_json::{Value, json};
use store::cache::Object;

pub(crate) use criteria::Matched;
pub(crate) use expression::Conditions;
pub(crate) use hook::{Hook, Hooks};
pub(crate) use inputs::{Caller, Inputs};
pub(crate) use mutation::Patch;
pub(crate) use policy::{Action, Binding, Denial, Policy, PolicyKind};

use crate::auth::UserInfo;

/// What a request does to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// It makes one.
    Create,
    /// It changes one.
    Update,
    /// It removes one.
    Delete,
}

/// What a request is about, as admission sees it (`admission.Attributes` upstream).
#[derive(Clone, Debug)]
pub(crate) struct Attributes {
    pub(crate) cluster: ClusterName,
    pub(crate) operation: Operation,
    pub(crate) kind: Gvk,
    pub(crate) resource: Gvr,
    pub(crate) subresource: Arc<str>,
    /// For namespaces, the namespace's own name.
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) user: Arc<UserInfo>,
    pub(crate) dry_run: bool,
    /// `CreateOptions` and the like.
    pub(crate) options: Value,
    /// The stored namespace that the object is in, if it is in one.
    pub(crate) in_namespace: Option<Arc<Object>>,
    /// The same resource under its other names, and the kinds there.
    pub(crate) equivalents: Vec<(Gvr, Gvk)>,
}

/// The object of a request before and after it, both in one version.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    /// What it is to become; none for a delete.
    pub(crate) new: Option<Value>,
    /// What it is; none for a create.
    pub(crate) old: Option<Value>,
}

// === impl Operation ===

impl Operation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

// === impl Attributes ===

impl Attributes {
    /// Whether it is about a namespace.
    pub(crate) fn is_namespace(&self) -> bool {
        self.resource.group_version.group.is_empty() && &*self.resource.resource == "namespaces"
    }

    /// The request as reviews and expressions have it, matched as `resource` and `kind`; without
    /// its objects.
    pub(crate) fn request(&self, resource: &Gvr, kind: &Gvk) -> Value {
        let user = &self.user;
        let mut user_info = json!({"username": user.name, "groups": user.groups});
        if !user.uid.is_empty() {
            user_info["uid"] = json!(user.uid);
        }
        if !user.extra.is_empty() {
            user_info["extra"] = json!(user.extra);
        }
        let mut request = json!({
            "kind": kind_of(kind),
            "resource": resource_of(resource),
            "requestKind": kind_of(&self.kind),
            "requestResource": resource_of(&self.resource),
            "operation": self.operation.name(),
            "userInfo": user_info,
            "dryRun": self.dry_run,
            "options": self.options,
        });
        let optional = [
            ("subResource", &self.subresource),
            ("requestSubResource", &self.subresource),
            ("name", &self.name),
            ("namespace", &self.namespace),
        ];
        for (field, text) in optional {
            if !text.is_empty() {
                request[field] = json!(&**text);
            }
        }
        request
    }
}

/// Whether resources of a group configure admission: they are never subject to it, so that a
/// configuration can be repaired.
pub(crate) fn is_exempt(group: &str) -> bool {
    group == "admissionregistration.k8s.io"
}

fn kind_of(kind: &Gvk) -> Value {
    let Gvk { group_version, kind } = kind;
    json!({"group": &*group_version.group, "version": &*group_version.version, "kind": &**kind})
}

fn resource_of(resource: &Gvr) -> Value {
    let Gvr { group_version, resource } = resource;
    let (group, version) = (&*group_version.group, &*group_version.version);
    json!({"group": group, "version": version, "resource": &**resource})
}

/// The text of a field; empty if there is none.
fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a field; none if there is none.
fn items<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
