//! What a SyncTarget is told about its types: which are synced, and whether all are known.

use std::collections::BTreeMap;

use contract::{SYNC_TARGETS, TYPES_MANAGER, WORKLOAD_GROUP};
use crds::{Condition, ConditionStatus, SyncedResource, SyncedState};
use serde_json::json;

use super::entries::{Import, Target};
use super::status::{condition, find, first_of, is_true};
use super::{NOT_SERVED_YET, TypeKey, TypesController, WorkError};

// === impl TypesController ===

impl TypesController {
    /// Tells a SyncTarget, if there is news.
    pub(super) async fn tell(&self, cluster: &str, name: &str) -> Result<(), WorkError> {
        let place = (cluster.to_owned(), name.to_owned());
        let Some((target, imports)) = self.index.lock().target(&place) else { return Ok(()) };
        let untold = imports.is_empty();
        let mut by_type: BTreeMap<(String, String), Vec<Import>> = BTreeMap::new();
        for import in imports {
            let name = (import.spec.group.clone(), import.spec.plural.clone());
            by_type.entry(name).or_default().push(import);
        }
        let mut synced = Vec::new();
        for ((group, plural), mut imports) in by_type {
            imports.sort_by(|a, b| machinery::version::compare(&a.spec.version, &b.spec.version));
            let mut resource = resource(&group, &plural, &imports);
            let key = TypeKey { cluster: cluster.to_owned(), group, plural };
            self.complete(&key, &mut resource).await?;
            synced.push(resource);
        }
        if untold {
            // Nobody tells of its types: what was said of them stays.
            synced.clone_from(&target.synced);
        }
        with_definitions(&mut synced, target.definitions);
        if untold && !target.definitions && target.synced == synced {
            return Ok(());
        }
        let imported = types_imported(&target, &synced);
        let told = find(&target.conditions, "TypesImported");
        if target.synced == synced && told == Some(&imported) {
            return Ok(());
        }
        let api = format!("{WORKLOAD_GROUP}/v1alpha1");
        let object = json!({
            "apiVersion": api,
            "kind": "SyncTarget",
            "metadata": {"name": name, "uid": target.uid},
            "status": {"conditions": [imported], "syncedResources": synced},
        });
        let path = format!("/apis/{api}/{SYNC_TARGETS}/{name}/status");
        let applied = self.cluster(cluster).apply(&path, TYPES_MANAGER, &object).await;
        match applied {
            Ok(_) => Ok(()),
            // It went meanwhile, or another one has its name: a status creates nothing.
            Err(error) if matches!(error.status(), Some(404 | 409)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What the hub says of the type: its kind, and what is written apart.
    async fn complete(
        &self,
        key: &TypeKey,
        resource: &mut SyncedResource,
    ) -> Result<(), WorkError> {
        let Some(version) = resource.versions.first() else { return Ok(()) };
        let schema = {
            let index = self.index.lock();
            let mut all = index.negotiated(key);
            let found = all.find(|(_, negotiated)| negotiated.spec.version == *version);
            found.and_then(|(_, negotiated)| negotiated.status.schema.clone())
        };
        let Some(schema) = schema else { return Ok(()) };
        let hub = self.cluster(&key.cluster);
        let Some(ty) = self.descriptions.get(&hub, &schema).await? else { return Ok(()) };
        resource.kind.clone_from(&ty.names.kind);
        if let Some(parts) = &ty.subresources {
            let status = parts.status.then(|| "status".to_owned());
            let scale = parts.scale.as_ref().map(|_| "scale".to_owned());
            resource.subresources = status.into_iter().chain(scale).collect();
        }
        Ok(())
    }
}

/// Definitions of types are synced where they are asked for, and nowhere else. Every hub and every
/// cluster has that type itself, so it is neither imported nor negotiated.
fn with_definitions(synced: &mut Vec<SyncedResource>, asked: bool) {
    let (group, resource) = contract::DEFINITIONS;
    let name = |one: &SyncedResource| (one.group.clone(), one.resource.clone());
    synced.retain(|one| (&*one.group, &*one.resource) != (group, resource));
    if asked {
        synced.push(SyncedResource {
            group: group.to_owned(),
            resource: resource.to_owned(),
            versions: vec!["v1".to_owned()],
            kind: "CustomResourceDefinition".to_owned(),
            subresources: Vec::new(),
            state: SyncedState::Accepted,
            message: None,
        });
        synced.sort_by_key(name);
    }
}

/// How far a resource is, from its imports, the most preferred version first.
fn resource(group: &str, plural: &str, imports: &[Import]) -> SyncedResource {
    let current = || imports.iter().filter(|import| import.spec.vanished_since.is_none());
    let good = |import: &&Import| {
        let conditions = &import.status.conditions;
        // A verdict on what it was before is none.
        import.status.judged.as_ref() == Some(&import.spec.schema)
            && is_true(conditions, "Compatible")
            && is_true(conditions, "Available")
    };
    let versions: Vec<String> =
        current().filter(good).map(|import| import.spec.version.clone()).collect();
    let bad = current().find(|import| {
        find(&import.status.conditions, "Compatible")
            .is_some_and(|found| found.status == ConditionStatus::False)
    });
    let stuck = || {
        let available = current().filter_map(|import| find(&import.status.conditions, "Available"));
        let not = |found: &&Condition| {
            found.status == ConditionStatus::False && found.reason != NOT_SERVED_YET
        };
        available.filter(not).map(|found| format!("{}: {}", found.reason, found.message)).next()
    };
    let (state, message) = if !versions.is_empty() {
        (SyncedState::Accepted, None)
    } else if let Some(bad) = bad {
        (SyncedState::Incompatible, first_of(&bad.status.differences))
    } else if let Some(message) = stuck() {
        // The hub doesn't serve it, and won't by waiting: it keeps no other type waiting.
        (SyncedState::Incompatible, Some(message))
    } else if current().next().is_none() {
        (SyncedState::Pending, Some("the cluster doesn't serve it any more".to_owned()))
    } else {
        (SyncedState::Pending, None)
    };
    SyncedResource {
        group: group.to_owned(),
        resource: plural.to_owned(),
        versions,
        kind: String::new(),
        subresources: Vec::new(),
        state,
        message,
    }
}

/// Whether the types of a target are known. What can't be read for a while leaves the others as they
/// are, and an incompatible type is nothing that it lacks.
fn types_imported(target: &Target, synced: &[SyncedResource]) -> Condition {
    let count = |state| synced.iter().filter(|resource| resource.state == state).count();
    let names = |state| {
        let some = synced.iter().filter(|resource| resource.state == state);
        let name = |one: &SyncedResource| match &*one.group {
            "" => one.resource.clone(),
            group => format!("{}.{group}", one.resource),
        };
        some.take(10).map(name).collect::<Vec<_>>().join(", ")
    };
    let complete = find(&target.conditions, "TypesComplete");
    let incomplete = complete.filter(|found| found.status == ConditionStatus::False);
    // Nobody has looked at all of them yet.
    let reading = incomplete.filter(|found| found.reason == contract::TYPES_READING);
    let waiting = { synced.iter() }
        .any(|resource| resource.state == SyncedState::Pending && resource.message.is_none());
    let accepted = count(SyncedState::Accepted);
    let incompatible = count(SyncedState::Incompatible);
    // Once they are known, a type that comes later is nothing that the target lacks.
    let known = find(&target.conditions, "TypesImported")
        .is_some_and(|found| found.status == ConditionStatus::True);
    let going = waiting || reading.is_some() || complete.is_none();
    let (status, reason, message) = if (waiting && accepted == 0) || (going && !known) {
        let mut message = format!("{accepted} of {} types are synced so far", synced.len());
        if waiting {
            message.push_str(&format!("; waiting for {}", names(SyncedState::Pending)));
        }
        if let Some(reading) = reading {
            message.push_str(&format!("; {}", reading.message));
        }
        (ConditionStatus::False, "Incomplete", message)
    } else if let Some(incomplete) = incomplete {
        (ConditionStatus::True, "Incomplete", incomplete.message.clone())
    } else if incompatible > 0 {
        let names = names(SyncedState::Incompatible);
        let message = format!("{accepted} types are synced, {incompatible} are not: {names}");
        (ConditionStatus::True, "SomeIncompatible", message)
    } else {
        (ConditionStatus::True, "Imported", format!("{accepted} types are synced"))
    };
    condition(&target.conditions, "TypesImported", status, reason, &message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, state: SyncedState) -> SyncedResource {
        let (group, resource) = contract::parse_type_name(name);
        SyncedResource {
            group: group.to_owned(),
            resource: resource.to_owned(),
            versions: Vec::new(),
            kind: String::new(),
            subresources: Vec::new(),
            state,
            message: None,
        }
    }

    #[test]
    fn definitions_are_synced_where_they_are_asked_for() {
        let name = |one: &SyncedResource| contract::type_name(&one.group, &one.resource);
        let definitions = contract::type_name(contract::DEFINITIONS.0, contract::DEFINITIONS.1);
        let check = |before: &[&str], asked: bool, expect: &[&str]| {
            let mut synced: Vec<_> =
                before.iter().map(|name| named(name, SyncedState::Pending)).collect();
            with_definitions(&mut synced, asked);
            assert_eq!(synced.iter().map(name).collect::<Vec<_>>(), expect);
            let ours = synced.iter().find(|one| name(one) == definitions);
            assert!(ours.is_none_or(|one| one.state == SyncedState::Accepted));
        };
        check(&[], false, &[]);
        check(&[], true, &[&definitions]);
        check(&["pods.core", "things.x.io"], true, &["pods.core", &definitions, "things.x.io"]);
        // Whoever else says so.
        check(&[&definitions, "things.x.io"], false, &["things.x.io"]);
        check(&[&definitions], true, &[&definitions]);
    }
}
