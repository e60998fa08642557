//! What a cluster has, as objects in the hub; only what changed is written.

use std::collections::{BTreeMap, BTreeSet};

use contract::{
    API_RESOURCE_IMPORTS, API_RESOURCE_SCHEMAS, APIRESOURCE_GROUP, SYNC_TARGET_LABEL, SYNC_TARGETS,
    TYPES_READER, TYPES_READING, TypeName, WORKLOAD_GROUP, import_name,
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
    /// What was told last of what could not be read: reason and message.
    told: Option<(&'static str, String)>,
    /// How many imports were written.
    written: usize,
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
        Ok(Self { hub, target, imports, schemas, told: None, written: 0 })
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

    /// Writes types that are new or have changed. One that the hub refuses is noted, and keeps no other
    /// out.
    ///
    /// # Errors
    /// When the hub doesn't answer.
    pub(super) async fn write<'k>(
        &mut self,
        known: impl IntoIterator<Item = &'k Known>,
        unread: &mut Unread,
    ) -> Result<(), HubError> {
        for one in known {
            let spec = self.import(one);
            if let Err(error) = self.put(spec).await? {
                unread.ty(&contract::type_name(&one.group, &one.plural), error);
            }
        }
        Ok(())
    }

    /// Marks types that are not `known` as gone, but for what is `unread`.
    ///
    /// # Errors
    /// When the hub doesn't answer.
    pub(super) async fn mark_gone<'k>(
        &mut self,
        known: impl IntoIterator<Item = &'k Known>,
        unread: &mut Unread,
    ) -> Result<(), HubError> {
        let there: BTreeSet<String> =
            known.into_iter().map(|one| self.name(&self.import(one))).collect();
        let gone = self.imports.iter().filter(|(name, spec)| {
            spec.vanished_since.is_none()
                && !there.contains(*name)
                && !unread.may_have(&spec.group, &spec.plural)
        });
        let gone: Vec<APIResourceImportSpec> = gone.map(|(_, spec)| spec.clone()).collect();
        for spec in gone {
            let name = contract::type_name(&spec.group, &spec.plural);
            let vanished_since = Some(jiff::Timestamp::now().to_string());
            if let Err(error) = self.put(APIResourceImportSpec { vanished_since, ..spec }).await? {
                unread.ty(&name, error);
            }
        }
        Ok(())
    }

    /// Writes an import, if the hub doesn't have it so. The inner error is what the hub has against it.
    async fn put(&mut self, spec: APIResourceImportSpec) -> Result<Result<(), HubError>, HubError> {
        let name = self.name(&spec);
        if self.imports.get(&name) == Some(&spec) {
            return Ok(Ok(()));
        }
        match self.hub.apply(&path(&name), TYPES_READER, &self.object(&name, &spec)).await {
            Ok(_) => {
                self.written += 1;
                self.imports.insert(name, spec);
                Ok(Ok(()))
            }
            // What the hub has against it won't pass by waiting.
            Err(error) if matches!(error.status(), Some(400 | 403 | 413 | 422)) => Ok(Err(error)),
            Err(error) => Err(error),
        }
    }

    /// How many imports were written since this was asked last.
    pub(super) fn take_written(&mut self) -> usize {
        std::mem::take(&mut self.written)
    }

    /// Tells whether all could be read, if that is news.
    ///
    /// # Errors
    /// When it can't be written.
    pub(super) async fn tell(&mut self, unread: &Unread) -> Result<(), HubError> {
        const MOST: usize = 20;
        let failures = &unread.told;
        let mut message =
            failures.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join("; ");
        if failures.len() > MOST {
            message.push_str(&format!("; and {} more", failures.len() - MOST));
        }
        if unread.more > 0 {
            let more = format!("{} definitions are still to be read", unread.more);
            message = if message.is_empty() { more } else { format!("{more}; {message}") };
        }
        let message: String = message.chars().take(8_000).collect();
        let (status, reason) = match (unread.more, failures.is_empty()) {
            (0, true) => ("True", "Complete"),
            (0, false) => ("False", "Incomplete"),
            _ => ("False", TYPES_READING),
        };
        if self.told.as_ref() == Some(&(reason, message.clone())) {
            return Ok(());
        }
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
        self.told = Some((reason, message));
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
