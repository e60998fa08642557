//! Imports, negotiated types and targets, as the hub shows them. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crds::{
    APIResourceImport, APIResourceImportSpec, APIResourceImportStatus, Condition,
    NegotiatedAPIResource, NegotiatedAPIResourceSpec, NegotiatedAPIResourceStatus, SyncTarget,
    SyncedResource,
};
use machinery::selector::LabelSelector;
use serde_json::Value;

use super::TypeKey;

/// Where an object is: its logical cluster and its name.
pub(super) type Place = (String, String);

/// What a target serves.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Import {
    pub(super) place: Place,
    pub(super) uid: String,
    /// Since when (RFC 3339) the target has the type.
    pub(super) since: String,
    pub(super) spec: APIResourceImportSpec,
    pub(super) status: APIResourceImportStatus,
}

/// What was negotiated.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Negotiated {
    pub(super) spec: NegotiatedAPIResourceSpec,
    pub(super) status: NegotiatedAPIResourceStatus,
}

/// A target.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) uid: String,
    /// Other logical clusters that it serves, by name and by labels.
    pub(super) allowed: BTreeSet<String>,
    pub(super) selector: Option<LabelSelector>,
    /// Whether it asks for definitions of types.
    pub(super) definitions: bool,
    pub(super) conditions: Vec<Condition>,
    pub(super) synced: Vec<SyncedResource>,
}

// === impl Target ===

impl Target {
    /// Reads one; `None` if it isn't one that this program understands.
    pub(super) fn read(object: &Value) -> Option<Self> {
        let read: SyncTarget = serde_json::from_value(object.clone()).ok()?;
        let allowed = read.spec.allowed_clusters.unwrap_or_default();
        let selector = match allowed.selector {
            Some(selector) => {
                let value = serde_json::to_value(selector).ok()?;
                Some(LabelSelector::from_value(&value).ok()?)
            }
            None => None,
        };
        let resources = read.spec.resources.iter().map(String::as_str);
        let status = read.status.unwrap_or_default();
        Some(Self {
            uid: read.metadata.uid?,
            definitions: contract::asks_for_definitions(resources),
            allowed: allowed.names.into_iter().collect(),
            selector,
            conditions: status.conditions,
            synced: status.synced_resources,
        })
    }

    /// The other logical clusters that it serves.
    pub(super) fn clusters(
        &self,
        labels: &BTreeMap<String, BTreeMap<String, String>>,
    ) -> BTreeSet<String> {
        let selected = labels.keys().filter(|name| self.serves(name, labels));
        self.allowed.iter().chain(selected).cloned().collect()
    }

    /// Whether it serves another logical cluster than its own.
    pub(super) fn serves(
        &self,
        cluster: &str,
        labels: &BTreeMap<String, BTreeMap<String, String>>,
    ) -> bool {
        let selected = || {
            let (Some(selector), Some(labels)) = (&self.selector, labels.get(cluster)) else {
                return false;
            };
            selector.matches(|key| labels.get(key).map(String::as_str))
        };
        self.allowed.contains(cluster) || selected()
    }
}

// === impl Import ===

impl Import {
    /// Reads one; `None` if it isn't one that this program understands.
    pub(super) fn read(place: Place, object: &Value) -> Option<Self> {
        let read: APIResourceImport = serde_json::from_value(object.clone()).ok()?;
        let labels = read.metadata.labels.unwrap_or_default();
        let uid = labels.get(contract::SYNC_TARGET_LABEL)?.clone();
        let since = object.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
        Some(Self {
            place,
            uid,
            since: since.unwrap_or_default().to_owned(),
            spec: read.spec,
            status: read.status.unwrap_or_default(),
        })
    }
}

// === impl Negotiated ===

impl Negotiated {
    /// Reads one; `None` if it isn't one that this program understands.
    pub(super) fn read(object: &Value) -> Option<Self> {
        let read: NegotiatedAPIResource = serde_json::from_value(object.clone()).ok()?;
        Some(Self { spec: read.spec, status: read.status.unwrap_or_default() })
    }

    /// The type that it is of.
    pub(super) fn key(&self, cluster: &str) -> TypeKey {
        let NegotiatedAPIResourceSpec { group, plural, .. } = &self.spec;
        TypeKey { cluster: cluster.to_owned(), group: group.clone(), plural: plural.clone() }
    }
}
