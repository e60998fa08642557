//! What a cluster has, as objects in the hub; only what changed is written.

use std::collections::{BTreeMap, BTreeSet};

use contract::{
    API_RESOURCE_IMPORTS, API_RESOURCE_SCHEMAS, APIRESOURCE_GROUP, SYNC_TARGET_LABEL, SYNC_TARGETS,
    TYPES_READER, TypeName, WORKLOAD_GROUP, import_name,
};
use crds::{APIResourceImport, APIResourceImportSpec};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::cluster::{Known, Unread};
use super::describe::Described;
use super::hub::{Hub, HubError};
use crate::target::TargetRef;

/// What the hub has of us.
#[derive(Debug)]
pub(super) struct Report {
    hub: Hub,
    target: TargetRef,
    /// Imports by name, as the hub has them.
    imports: BTreeMap<String, APIResourceImportSpec>,
    /// Descriptions that are there.
    schemas: BTreeSet<String>,
    /// What was told last of what could not be read.
    told: Option<String>,
}

// === impl Report ===

impl Report {
    /// Reads what the hub has.
    ///
    /// # Errors
    /// When the hub doesn't tell.
    pub(super) async fn begin(hub: Hub, target: TargetRef) -> Result<Self, HubError> {
        let mut imports = BTreeMap::new();
        let selector = format!("{SYNC_TARGET_LABEL}={}", target.uid);
        let mut schemas = BTreeSet::new();
        let each = |item: Value| {
            if let Ok(import) = serde_json::from_value::<APIResourceImport>(item) {
                // What was judged is there: nobody deletes a description that is in use.
                schemas.extend(import.status.and_then(|status| status.judged));
                imports.insert(import.metadata.name.unwrap_or_default(), import.spec);
            }
        };
        hub.list(&collection(API_RESOURCE_IMPORTS), &selector, each).await?;
        Ok(Self { hub, target, imports, schemas, told: None })
    }

    /// Makes sure that a description is there.
    ///
    /// # Errors
    /// When it isn't, and can't be written.
    pub(super) async fn describe(&mut self, described: &Described) -> Result<(), HubError> {
        if self.schemas.contains(&described.schema) {
            return Ok(());
        }
        let object = json!({
            "apiVersion": format!("{APIRESOURCE_GROUP}/v1alpha1"),
            "kind": "APIResourceSchema",
            "metadata": {"name": described.schema},
            "spec": described.spec,
        });
        match self.hub.create(&collection(API_RESOURCE_SCHEMAS), &object).await {
            // Another cluster has brought the same.
            Ok(_) | Err(HubError::Refused { status: 409, .. }) => {
                self.schemas.insert(described.schema.clone());
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Writes what has changed since; returns how many writes that took. Types that aren't in `known`
    /// are marked, but for what is `unread`.
    ///
    /// # Errors
    /// When something could not be written; the rest has been.
    pub(super) async fn write<'k>(
        &mut self,
        known: impl IntoIterator<Item = &'k Known>,
        unread: &Unread,
    ) -> Result<usize, HubError> {
        let mut wanted: BTreeMap<String, APIResourceImportSpec> = BTreeMap::new();
        for one in known {
            let spec = self.import(one);
            wanted.insert(self.name(&spec), spec);
        }
        for (name, spec) in &self.imports {
            let gone = !unread.may_have(&spec.group, &spec.plural);
            if gone && !wanted.contains_key(name) {
                let since = spec.vanished_since.clone();
                let since = since.unwrap_or_else(|| jiff::Timestamp::now().to_string());
                let marked = APIResourceImportSpec { vanished_since: Some(since), ..spec.clone() };
                wanted.insert(name.clone(), marked);
            }
        }
        let mut written = 0;
        let mut failed = None;
        for (name, spec) in wanted {
            if self.imports.get(&name) == Some(&spec) {
                continue;
            }
            match self.hub.apply(&path(&name), TYPES_READER, &self.object(&name, &spec)).await {
                Ok(_) => {
                    written += 1;
                    self.imports.insert(name, spec);
                }
                Err(error @ HubError::Unanswered(_)) => return Err(error),
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(written), Err)
    }

    /// Tells whether all could be read, if that is news.
    ///
    /// # Errors
    /// When it can't be written.
    pub(super) async fn tell(&mut self, failures: &[String]) -> Result<(), HubError> {
        const MOST: usize = 20;
        let mut message =
            failures.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join("; ");
        if failures.len() > MOST {
            message.push_str(&format!("; and {} more", failures.len() - MOST));
        }
        let message: String = message.chars().take(8_000).collect();
        if self.told.as_ref() == Some(&message) {
            return Ok(());
        }
        let (status, reason) =
            if failures.is_empty() { ("True", "Complete") } else { ("False", "Incomplete") };
        let object = json!({
            "apiVersion": format!("{WORKLOAD_GROUP}/v1alpha1"),
            "kind": "SyncTarget",
            "metadata": {"name": &*self.target.name, "uid": &*self.target.uid},
            "status": {"conditions": [{
                "type": "TypesComplete",
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": jiff::Timestamp::now().to_string(),
            }]},
        });
        let path =
            format!("/apis/{WORKLOAD_GROUP}/v1alpha1/{SYNC_TARGETS}/{}/status", self.target.name);
        self.hub.apply(&path, TYPES_READER, &object).await?;
        self.told = Some(message);
        Ok(())
    }

    fn import(&self, known: &Known) -> APIResourceImportSpec {
        APIResourceImportSpec {
            target: self.target.name.to_string(),
            group: known.group.clone(),
            version: known.version.clone(),
            plural: known.plural.clone(),
            schema: known.schema.clone(),
            losses: known.losses.clone(),
            vanished_since: None,
        }
    }

    fn name(&self, spec: &APIResourceImportSpec) -> String {
        let name = TypeName { group: &spec.group, version: &spec.version, plural: &spec.plural };
        import_name(name, &self.target.name, |whole| Sha256::digest(whole).into())
    }

    fn object(&self, name: &str, spec: &APIResourceImportSpec) -> Value {
        json!({
            "apiVersion": format!("{APIRESOURCE_GROUP}/v1alpha1"),
            "kind": "APIResourceImport",
            "metadata": {
                "name": name,
                "labels": {SYNC_TARGET_LABEL: &*self.target.uid},
                "ownerReferences": [{
                    "apiVersion": format!("{WORKLOAD_GROUP}/v1alpha1"),
                    "kind": "SyncTarget",
                    "name": &*self.target.name,
                    "uid": &*self.target.uid,
                }],
            },
            "spec": spec,
        })
    }
}

fn collection(resource: &str) -> String {
    format!("/apis/{APIRESOURCE_GROUP}/v1alpha1/{resource}")
}

fn path(name: &str) -> String {
    format!("{}/{name}", collection(API_RESOURCE_IMPORTS))
}
