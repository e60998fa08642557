//! Rules: which operations on which resources something is about (`RuleWithOperations`).

use machinery::Gvr;
use serde_json::Value;

use super::{Attributes, items, text};

/// One rule.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    operations: Box<[Box<str>]>,
    groups: Box<[Box<str>]>,
    versions: Box<[Box<str>]>,
    /// Resources with their subresources.
    resources: Box<[(Box<str>, Box<str>)]>,
    scope: Scope,
    /// The names of objects; all if empty. Rules of webhooks have none.
    names: Box<[Box<str>]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    All,
    Namespaced,
    Cluster,
    /// One that nothing is of.
    Unknown,
}

// === impl Rule ===

impl Rule {
    pub(super) fn of(rule: &Value) -> Self {
        let list = |field: &str| -> Box<[Box<str>]> {
            items(rule, field).iter().filter_map(Value::as_str).map(Into::into).collect()
        };
        let resources = items(rule, "resources").iter().filter_map(Value::as_str);
        let resources = resources.map(|resource| {
            let (resource, sub) = resource.split_once('/').unwrap_or((resource, ""));
            (resource.into(), sub.into())
        });
        let scope = match text(rule, "scope") {
            "" | "*" => Scope::All,
            "Namespaced" => Scope::Namespaced,
            "Cluster" => Scope::Cluster,
            _ => Scope::Unknown,
        };
        Self {
            operations: list("operations"),
            groups: list("apiGroups"),
            versions: list("apiVersions"),
            resources: resources.collect(),
            scope,
            names: list("resourceNames"),
        }
    }

    /// Whether the rule is about a request, taken as one for `resource`.
    pub(super) fn matches(&self, attributes: &Attributes, resource: &Gvr) -> bool {
        let any = |list: &[Box<str>], wanted: &str| {
            list.iter().any(|item| matches!(&**item, "*") || **item == *wanted)
        };
        let part = |pattern: &str, wanted: &str| pattern == "*" || pattern == wanted;
        let in_scope = || {
            let of_cluster = attributes.is_namespace() || attributes.namespace.is_empty();
            match self.scope {
                Scope::All => true,
                Scope::Namespaced => !of_cluster,
                Scope::Cluster => of_cluster,
                Scope::Unknown => false,
            }
        };
        any(&self.operations, attributes.operation.name())
            && any(&self.groups, &resource.group_version.group)
            && any(&self.versions, &resource.group_version.version)
            && self.resources.iter().any(|(name, sub)| {
                part(name, &resource.resource) && part(sub, &attributes.subresource)
            })
            && in_scope()
            && (self.names.is_empty() || self.names.iter().any(|name| **name == *attributes.name))
    }
}
