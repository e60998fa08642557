//! Roles and bindings as their stored bytes have them.

use machinery::selector::LabelSelector;
use serde::Deserialize;
use serde_json::Value;

use super::rule::{Rule, or_nothing};

/// A Role or ClusterRole.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RoleObject {
    #[serde(deserialize_with = "or_nothing")]
    pub(crate) rules: Vec<Rule>,
    aggregation_rule: Option<AggregationRule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AggregationRule {
    #[serde(deserialize_with = "or_nothing")]
    cluster_role_selectors: Vec<Value>,
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct BindingObject {
    pub(super) role_ref: RoleRef,
    #[serde(deserialize_with = "or_nothing")]
    pub(super) subjects: Vec<Subject>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RoleRef {
    pub(super) kind: Box<str>,
    pub(super) name: Box<str>,
}

/// Who gets a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Subject {
    pub(super) kind: Box<str>,
    pub(super) name: Box<str>,
    pub(super) namespace: Box<str>,
}

// === impl RoleObject ===

impl RoleObject {
    /// Reads an object. One that can't be read has no rules: it allows nothing.
    pub(crate) fn parse(json: &[u8]) -> Self {
        serde_json::from_slice(json).unwrap_or_default()
    }

    /// The selectors of the roles whose rules this one takes; `None` if its rules are its own.
    /// Selectors that make no sense select nothing.
    pub(crate) fn selectors(&self) -> Option<Vec<LabelSelector>> {
        let rule = self.aggregation_rule.as_ref()?;
        let selectors = rule.cluster_role_selectors.iter();
        let parsed = selectors.filter_map(|value| LabelSelector::from_value(value).ok());
        (!rule.cluster_role_selectors.is_empty()).then(|| parsed.collect())
    }
}

// === impl BindingObject ===

impl BindingObject {
    /// Reads an object. One that can't be read binds nobody.
    pub(super) fn parse(json: &[u8]) -> Self {
        serde_json::from_slice(json).unwrap_or_default()
    }
}
