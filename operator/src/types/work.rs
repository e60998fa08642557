//! A type in a logical cluster: looked at, decided, written.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::types::{Hub, HubError};
use contract::{
    API_RESOURCE_IMPORTS, APIRESOURCE_GROUP, NEGOTIATED_API_RESOURCES, TYPES_MANAGER, TypeName,
    type_name, type_object_name,
};
use crds::{NegotiatedAPIResourceSpec, UpdateStrategy};
use negotiation::Type;
use serde_json::json;
use sha2::{Digest, Sha256};
use tracing::info;

use super::decide::decide;
use super::definition::{self, DEFINITIONS, Published, definition, is_as_planned};
use super::descriptions::is_own;
use super::entries::{Import, Negotiated};
use super::hurt::Judge;
use super::situation::{Offer, Outcome, Situation, Stands, candidates};
use super::statuses::{import_status, negotiated_status};
use super::{TypeKey, TypesController, WorkError};

// === impl TypesController ===

impl TypesController {
    /// Looks at a type in a logical cluster, and does what is to be done. Answers whether a change is
    /// held back.
    pub(super) async fn negotiate(&self, key: &TypeKey) -> Result<bool, WorkError> {
        let hub = self.cluster(&key.cluster);
        let Some(mut situation) = self.situation(&hub, key).await? else { return Ok(false) };
        let mut outcomes = BTreeMap::new();
        for version in situation.versions() {
            let outcome = self.decided(&hub, key, &situation, &version).await?;
            outcomes.insert(version, outcome);
        }
        if !situation.is_enforced() {
            self.publish(&hub, key, &mut situation, &mut outcomes).await?;
        }
        for (version, outcome) in &outcomes {
            self.write_negotiated(&hub, key, &situation, version, outcome).await?;
        }
        for (target, import) in &situation.imports {
            if import.place.0 == key.cluster {
                let outcome = outcomes.get(&import.spec.version);
                self.write_import(&hub, &situation, target, import, outcome).await?;
            }
        }
        Ok(outcomes.values().any(|outcome| outcome.hurt_count > 0))
    }

    async fn situation(&self, hub: &Hub, key: &TypeKey) -> Result<Option<Situation>, WorkError> {
        let (imports, negotiated) = {
            let index = self.index.lock();
            let negotiated: BTreeMap<String, Negotiated> = { index.negotiated(key) }
                .map(|(name, negotiated)| (name.to_owned(), negotiated.clone()))
                .collect();
            (index.imports(key), negotiated)
        };
        if imports.is_empty() && negotiated.is_empty() {
            return Ok(None);
        }
        let mut offers: BTreeMap<String, Vec<Offer>> = BTreeMap::new();
        for (target, import) in &imports {
            if import.spec.vanished_since.is_some() {
                continue;
            }
            let home = self.cluster(&import.place.0);
            let found = self.descriptions.get(&home, &import.spec.schema).await?;
            let named = |ty: &Type| {
                (&ty.group, &ty.version, &ty.names.plural)
                    == (&import.spec.group, &import.spec.version, &import.spec.plural)
            };
            // One that is of another type, or missing, is no offer.
            if let Some(ty) = found.filter(|ty| named(ty)) {
                let offer = (target.clone(), import.since.clone(), ty);
                offers.entry(import.spec.version.clone()).or_default().push(offer);
            }
        }
        let own = is_own(&key.group, &key.plural);
        let object = match own {
            true => None,
            false => hub.get(&definition_path(key)).await?,
        };
        let published = object.as_ref().map(Published::read).transpose();
        let published = published.map_err(WorkError::Unreadable)?;
        Ok(Some(Situation { imports, negotiated, offers, object, published, own }))
    }

    async fn decided(
        &self,
        hub: &Hub,
        key: &TypeKey,
        situation: &Situation,
        version: &str,
    ) -> Result<Outcome, WorkError> {
        let offers = situation.offers.get(version).cloned().unwrap_or_default();
        let strategy = situation.of(version).map(|n| n.spec.strategy).unwrap_or_default();
        let published = situation.published.as_ref().and_then(|p| p.versions.get(version));
        let standing = if situation.own {
            let all = self.descriptions.own(&self.hub).await?;
            let named = |ty: &&Type| {
                (&*ty.group, &*ty.version, &*ty.names.plural)
                    == (&*key.group, version, &*key.plural)
            };
            Stands::Enforced(all.iter().find(named).cloned())
        } else if situation.is_enforced() {
            Stands::Enforced(published.cloned())
        } else if let Some(published) = published {
            Stands::Published(published.clone())
        } else {
            let before = match situation.of(version).and_then(|n| n.status.schema.as_deref()) {
                Some(name) if strategy == UpdateStrategy::UpdateNever => {
                    self.descriptions.get(hub, name).await?
                }
                _ => None,
            };
            Stands::Unpublished(before)
        };
        let offers = Arc::new(offers);
        let own = offers.clone();
        let decided = move || decide(standing.borrowed(), strategy, &candidates(&own));
        let mut decision = self.aside(decided).await?;
        let (mut hurt, mut hurt_count) = (Vec::new(), 0);
        if let Some(narrower) = &decision.narrower {
            let mut judge = Judge::new(narrower).map_err(WorkError::Unreadable)?;
            hub.list(&collection(key, version), "", |object| judge.see(&object)).await?;
            (hurt, hurt_count) = (judge.hurt, judge.count);
            if hurt_count == 0 {
                decision = self.aside(move || decision.narrowed(&candidates(&offers))).await?;
            }
        }
        Ok(Outcome { decision, hurt, hurt_count, refused: None, left: false })
    }

    /// Thinks where it delays nobody: schemas may be large, and come from anywhere.
    async fn aside<T: Send + 'static>(
        &self,
        think: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkError> {
        let thought = self.tasks.spawn_blocking(think).await;
        thought.map_err(|error| WorkError::Unreadable(error.to_string()))
    }

    /// Writes the definition, if it isn't there as it should be.
    async fn publish(
        &self,
        hub: &Hub,
        key: &TypeKey,
        situation: &mut Situation,
        outcomes: &mut BTreeMap<String, Outcome>,
    ) -> Result<(), WorkError> {
        let there = |version: &str| {
            situation.published.as_ref().is_some_and(|p| p.versions.contains_key(version))
        };
        let wanted = |version: &str| situation.of(version).is_none_or(|n| n.spec.publish);
        let types: BTreeMap<String, Type> = { outcomes.iter() }
            .filter(|(version, _)| there(version) || wanted(version))
            .filter_map(|(version, outcome)| Some((version.clone(), outcome.decision.ty.clone()?)))
            .collect();
        let Some(plan) = definition::plan(&types, situation.published.as_ref()) else {
            return Ok(());
        };
        for left in &plan.left {
            if let Some(outcome) = outcomes.get_mut(left) {
                outcome.left = true;
            }
        }
        if situation.published.as_ref().is_some_and(|current| is_as_planned(current, &plan)) {
            return Ok(());
        }
        let object = definition(&key.group, &key.plural, &plan, situation.object.as_ref());
        let written = match &situation.object {
            Some(_) => hub.replace(&definition_path(key), &object).await,
            None => hub.create(DEFINITIONS, &object).await,
        };
        match written {
            Ok(written) => {
                info!(cluster = key.cluster, group = key.group, plural = key.plural, "published");
                situation.published =
                    Some(Published::read(&written).map_err(WorkError::Unreadable)?);
                situation.object = Some(written);
                Ok(())
            }
            // The hub says what is wrong with it; trying again changes nothing.
            Err(HubError::Refused { status: 403 | 422, message }) => {
                for (version, outcome) in outcomes.iter_mut() {
                    if plan.versions.iter().any(|(name, _)| name == version) {
                        outcome.refused = Some(message.clone());
                    }
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn write_negotiated(
        &self,
        hub: &Hub,
        key: &TypeKey,
        situation: &Situation,
        version: &str,
        outcome: &Outcome,
    ) -> Result<(), WorkError> {
        let TypeKey { group, plural, .. } = key;
        let name = type_object_name(TypeName { group, version, plural }, |whole| {
            Sha256::digest(whole).into()
        });
        let (api, kind) = (format!("{APIRESOURCE_GROUP}/v1alpha1"), "NegotiatedAPIResource");
        let resources = format!("/apis/{api}/{NEGOTIATED_API_RESOURCES}");
        let known = situation.negotiated.get(&name);
        if known.is_none() {
            let spec = NegotiatedAPIResourceSpec {
                group: group.clone(),
                version: version.to_owned(),
                plural: plural.clone(),
                publish: true,
                strategy: UpdateStrategy::default(),
            };
            let object =
                json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec});
            match hub.create(&resources, &object).await {
                Ok(_) | Err(HubError::Refused { status: 409, .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let before = known.map(|known| known.status.clone()).unwrap_or_default();
        let schema = match &outcome.decision.ty {
            Some(ty) => Some(self.descriptions.put(hub, ty).await?),
            None => None,
        };
        let status = negotiated_status(&before, situation, version, outcome, schema);
        if known.is_some() && before == status {
            return Ok(());
        }
        let object =
            json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "status": status});
        hub.apply(&format!("{resources}/{name}/status"), TYPES_MANAGER, &object).await?;
        Ok(())
    }

    async fn write_import(
        &self,
        hub: &Hub,
        situation: &Situation,
        target: &str,
        import: &Import,
        outcome: Option<&Outcome>,
    ) -> Result<(), WorkError> {
        let status = import_status(situation, target, import, outcome);
        if status == import.status {
            return Ok(());
        }
        let api = format!("{APIRESOURCE_GROUP}/v1alpha1");
        let name = &import.place.1;
        let object = json!({
            "apiVersion": api,
            "kind": "APIResourceImport",
            "metadata": {"name": name},
            "status": status,
        });
        let path = format!("/apis/{api}/{API_RESOURCE_IMPORTS}/{name}/status");
        match hub.apply(&path, TYPES_MANAGER, &object).await {
            Ok(_) => Ok(()),
            // It went with its target meanwhile: a status creates nothing.
            Err(HubError::Refused { status: 404, .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn definition_path(key: &TypeKey) -> String {
    format!("{DEFINITIONS}/{}", type_name(&key.group, &key.plural))
}

/// Where objects of a type are.
fn collection(key: &TypeKey, version: &str) -> String {
    match &*key.group {
        "" => format!("/api/{version}/{}", key.plural),
        group => format!("/apis/{group}/{version}/{}", key.plural),
    }
}
