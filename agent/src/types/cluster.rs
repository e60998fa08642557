//! What a physical cluster has, as far as it was read.

use std::collections::{BTreeMap, BTreeSet};

use schema::import::{self, DiscoveredGroup, VersionSource, document_path};
use serde_json::Value;

use super::describe::{Described, of_definition, of_group};
use super::hub::{Hub, HubError};
use super::report::Report;
use super::selection::{SERVED_BY_HUBS, Selection};

/// Discovery of all groups in one answer.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                          application/json";

/// Definitions that are read in one turn: between turns it is looked at what has become of them.
const PORTION: usize = 32;

/// Where CustomResourceDefinitions are.
pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A version of a type without its description: what is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) plural: String,
    pub(super) kind: String,
    pub(super) namespaced: bool,
    pub(super) status: bool,
    pub(super) schema: String,
    pub(super) losses: Vec<String>,
}

/// What was read of a cluster; it is kept as long as nothing better is read.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    /// Types by the definition that they come from, with its resourceVersion.
    definitions: BTreeMap<String, (String, Vec<Known>)>,
    /// Other types, by group.
    groups: BTreeMap<String, Vec<Known>>,
    /// The hash of each document, as they were when the groups were read.
    documents: BTreeMap<String, String>,
    selection: Option<Selection>,
    /// The names of definitions when the groups were read.
    named: BTreeSet<String>,
}

/// What a turn could not read, so that nothing follows from its absence.
#[derive(Debug, Default)]
pub(super) struct Unread {
    /// In words.
    pub(super) told: Vec<String>,
    /// How many definitions have not been looked at yet.
    pub(super) more: usize,
    /// Whether some are left to the next turn.
    pub(super) left: bool,
    /// Whether it may be anything but custom resources.
    others: bool,
    groups: BTreeSet<String>,
    /// As definitions are named.
    types: BTreeSet<String>,
}

// === impl Unread ===

impl Unread {
    /// Whether a type may be there, though it was not seen.
    pub(super) fn may_have(&self, group: &str, plural: &str) -> bool {
        let name = contract::type_name(group, plural);
        self.others || self.groups.contains(group) || self.types.contains(&name)
    }

    pub(super) fn ty(&mut self, name: &str, why: impl std::fmt::Display) {
        if self.types.insert(name.to_owned()) {
            self.told.push(format!("{name}: {why}"));
        }
    }
}

/// The types that every hub has itself and that are synced, as a hub describes them.
///
/// # Errors
/// When the hub doesn't answer.
pub async fn served_by_hub(hub: &Hub) -> Result<Vec<Described>, HubError> {
    let list = hub.get_as("/api", AGGREGATED).await?.ok_or(HubError::Unreadable)?;
    let mut made = Vec::new();
    for group in import::groups(&list) {
        let mut documents = Vec::new();
        for version in &group.versions {
            let path = document_path(&group.name, &version.version);
            documents.push(hub.get(&path).await?.ok_or(HubError::Unreadable)?);
        }
        let sources = group.versions.iter().zip(&documents);
        let sources: Vec<VersionSource<'_>> =
            sources.map(|(discovered, openapi)| VersionSource { discovered, openapi }).collect();
        let why_not = |resource: &import::DiscoveredResource| {
            let synced = SERVED_BY_HUBS.contains(&(&*group.name, &*resource.plural));
            (!synced).then_some("it is not synced")
        };
        made.extend(of_group(&group.name, &sources, &why_not).0);
    }
    Ok(made)
}

// === impl Cluster ===

impl Cluster {
    /// All that is known.
    pub(super) fn known(&self) -> impl Iterator<Item = &Known> {
        let custom = self.definitions.values().flat_map(|(_, known)| known);
        custom.chain(self.groups.values().flatten())
    }

    /// From now on, everything counts as changed. What is known stays until it was read.
    pub(super) fn forget(&mut self) {
        self.definitions.values_mut().for_each(|(version, _)| version.clear());
        self.documents.clear();
    }

    /// Reads what has changed, and tells of each type as it was read: it is of use before the others
    /// are known. `definitions` are the resourceVersions of all that there are; some of many are left to
    /// the next turn.
    ///
    /// # Errors
    /// When the cluster, or the hub, doesn't answer.
    pub(super) async fn read(
        &mut self,
        cluster: &Hub,
        selection: &Selection,
        definitions: &BTreeMap<String, String>,
        report: &mut Report,
    ) -> Result<Unread, HubError> {
        let mut unread = Unread::default();
        if self.selection.as_ref() != Some(selection) {
            // What isn't asked for any more goes; the rest is read again.
            let asked = |known: &Known| selection.has_custom(&known.group, &known.plural);
            self.definitions.retain(|_, (_, known)| known.iter().all(asked));
            self.groups.retain(|group, _| selection.has_group(group));
            self.documents.clear();
            self.selection = Some(selection.clone());
        }
        self.definitions.retain(|name, _| definitions.contains_key(name));
        // What applications are made of comes first.
        self.others(cluster, selection, definitions, report, &mut unread).await?;
        // Those that fail don't count: they would keep the others from their turn.
        let mut read = 0;
        for (name, version) in definitions {
            let before = self.definitions.get(name);
            if before.is_some_and(|(known, _)| known == version) {
                continue;
            }
            if read >= PORTION {
                unread.more += usize::from(before.is_none());
                unread.left = true;
                unread.types.insert(name.clone());
                continue;
            }
            match self.definition(cluster, selection, name, report, &mut unread).await {
                Ok(()) => read += 1,
                Err(error @ HubError::Unanswered(_)) => return Err(error),
                Err(error) => unread.ty(name, error),
            }
        }
        Ok(unread)
    }

    async fn definition(
        &mut self,
        cluster: &Hub,
        selection: &Selection,
        name: &str,
        report: &mut Report,
        unread: &mut Unread,
    ) -> Result<(), HubError> {
        let Some(definition) = cluster.get(&format!("{DEFINITIONS}/{name}")).await? else {
            self.definitions.remove(name);
            return Ok(());
        };
        let version = definition.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let version = version.unwrap_or_default().to_owned();
        let group = definition.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default();
        let plural = definition.pointer("/spec/names/plural").and_then(Value::as_str);
        let plural = plural.unwrap_or_default();
        let going = definition.pointer("/metadata/deletionTimestamp").is_some();
        if going || !is_established(&definition) || !selection.has_custom(group, plural) {
            self.definitions.insert(name.to_owned(), (version, Vec::new()));
            return Ok(());
        }
        let described = of_definition(&definition);
        let described = described.map_err(|message| HubError::Refused { status: 0, message })?;
        let mut known = Vec::new();
        for one in described {
            report.describe(&one).await?;
            known.push(Known::of(one));
        }
        report.write(&known, unread).await?;
        self.definitions.insert(name.to_owned(), (version, known));
        Ok(())
    }

    /// Types that aren't custom resources.
    async fn others(
        &mut self,
        cluster: &Hub,
        selection: &Selection,
        definitions: &BTreeMap<String, String>,
        report: &mut Report,
        unread: &mut Unread,
    ) -> Result<(), HubError> {
        let Some(index) = cluster.get("/openapi/v3").await? else {
            unread.told.push("the cluster publishes no OpenAPI v3 documents".to_owned());
            unread.others = true;
            return Ok(());
        };
        let documents = hashes(&index);
        let named: BTreeSet<String> = definitions.keys().cloned().collect();
        if documents == self.documents && named == self.named {
            return Ok(());
        }
        let mut all = Vec::new();
        for path in ["/api", "/apis"] {
            let list = cluster.get_as(path, AGGREGATED).await?.ok_or(HubError::Unreadable)?;
            if list["kind"] != "APIGroupDiscoveryList" {
                unread.told.push("the cluster has no aggregated discovery".to_owned());
                unread.others = true;
                return Ok(());
            }
            all.extend(import::groups(&list));
        }
        let mut complete = true;
        let there: BTreeSet<&str> = all.iter().map(|group| &*group.name).collect();
        self.groups.retain(|group, _| there.contains(&**group));
        for group in all.iter().filter(|group| selection.has_group(&group.name)) {
            let read = self.group(cluster, selection, definitions, group, report, unread).await;
            match read {
                Ok(()) => {}
                Err(error @ HubError::Unanswered(_)) => return Err(error),
                Err(error) => {
                    complete = false;
                    let name = if group.name.is_empty() { contract::CORE } else { &group.name };
                    unread.told.push(format!("{name}: {error}"));
                    unread.groups.insert(group.name.to_string());
                }
            }
        }
        // Otherwise all is tried again at the next turn.
        if complete && unread.types.is_empty() {
            (self.documents, self.named) = (documents, named);
        }
        Ok(())
    }

    async fn group(
        &mut self,
        cluster: &Hub,
        selection: &Selection,
        definitions: &BTreeMap<String, String>,
        group: &DiscoveredGroup,
        report: &mut Report,
        unread: &mut Unread,
    ) -> Result<(), HubError> {
        let why_not = |resource: &import::DiscoveredResource| {
            let name = contract::type_name(&group.name, &resource.plural);
            if definitions.contains_key(&name) {
                return Some("it is a custom resource");
            }
            selection.why_not(&group.name, resource)
        };
        if group.versions.iter().any(|version| version.stale) {
            let message = "the server behind it doesn't answer".to_owned();
            return Err(HubError::Refused { status: 503, message });
        }
        let wanted: Vec<_> = { group.versions.iter() }
            .filter(|version| version.resources.iter().any(|one| why_not(one).is_none()))
            .collect();
        let mut documents = Vec::new();
        for version in &wanted {
            let path = document_path(&group.name, &version.version);
            documents.push(cluster.get(&path).await?.unwrap_or_default());
        }
        let sources = wanted.iter().zip(&documents);
        let sources: Vec<VersionSource<'_>> =
            sources.map(|(discovered, openapi)| VersionSource { discovered, openapi }).collect();
        let (described, failed) = of_group(&group.name, &sources, &why_not);
        failed.iter().for_each(|(name, why)| unread.ty(name, why));
        let mut known = Vec::new();
        for one in described {
            match report.describe(&one).await {
                Ok(()) => known.push(Known::of(one)),
                Err(error @ HubError::Unanswered(_)) => return Err(error),
                // It keeps no other out, and comes again when it changes.
                Err(error) => unread.ty(&contract::type_name(&one.group, &one.plural), error),
            }
        }
        // What could not be described now is known as it was.
        let before = self.groups.remove(&*group.name).unwrap_or_default();
        let seen = |old: &Known| known.iter().any(|new| new.plural == old.plural);
        let kept: Vec<Known> = { before.into_iter() }
            .filter(|old| !seen(old) && unread.types.contains(&old.name()))
            .collect();
        report.write(&known, unread).await?;
        known.extend(kept);
        self.groups.insert(group.name.to_string(), known);
        Ok(())
    }
}

// === impl Known ===

impl Known {
    /// As definitions are named.
    fn name(&self) -> String {
        contract::type_name(&self.group, &self.plural)
    }

    fn of(described: Described) -> Self {
        let Described { group, version, plural, kind, namespaced, status, schema, losses, .. } =
            described;
        Self { group, version, plural, kind, namespaced, status, schema, losses }
    }
}

/// Whether a definition's type is served.
pub fn is_established(definition: &Value) -> bool {
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
    let is =
        |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(is))
}

/// The address of each document, which holds a hash of it, by its path.
fn hashes(index: &Value) -> BTreeMap<String, String> {
    let paths = index.get("paths").and_then(Value::as_object).into_iter().flatten();
    let url = |value: &Value| {
        value.get("serverRelativeURL").and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    paths.map(|(path, value)| (path.clone(), url(value))).collect()
}
