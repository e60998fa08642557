//! The types that the hub serves and no SyncTarget syncs: who assigns an object of one is told.
//!
//! A watch of such a type shows only what carries the label, so it costs the hub and us next to nothing
//! where nobody has set it. What the hub serves by itself is read once; of the rest a watch of definitions
//! tells, by their names: one that isn't known, or that has gone somewhere, is looked for once, over all
//! logical clusters. Nothing is remembered of a definition but its type.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::{Config, Event};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, warn};

use super::Assigner;
use super::index::{Type, latest};
use super::plan::GroupResource;
use crate::api::CallError;
use crate::discovery::{self, Resources, Versions};
use crate::watching;

/// How long news of definitions are gathered before these are looked for.
const GATHERED: Duration = Duration::from_secs(2);

/// The same for news that most likely change nothing, and after a failure.
const LATER: Duration = Duration::from_secs(60);

/// The most types that are watched beside those that are synced: each is an open request at the hub.
const MOST: usize = 1000;

/// Where definitions are.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Types whose objects nobody assigns, and that change all the time; and namespaces, whose label is
/// meant for what is in them.
const OTHERS: [(&str, &str); 4] = [
    ("", "namespaces"),
    ("", "events"),
    ("events.k8s.io", "events"),
    ("coordination.k8s.io", "leases"),
];

/// What is to be looked for.
#[derive(Debug, Default)]
struct Doubts {
    /// Names of definitions.
    names: BTreeSet<String>,
    /// What the hub serves by itself, and whether that is all.
    basic: (BTreeSet<GroupResource>, bool),
    due: Option<Instant>,
    /// The names of the list that is being told.
    listed: BTreeSet<String>,
}

// === impl Doubts ===

impl Doubts {
    fn add(&mut self, name: &str, pause: Duration) {
        self.names.insert(name.to_owned());
        self.look_in(pause);
    }

    fn look_in(&mut self, pause: Duration) {
        let then = Instant::now() + pause;
        self.due = Some(self.due.map_or(then, |due| due.min(then)));
    }
}

impl Assigner {
    /// Keeps the types of the hub known.
    pub(super) async fn follow_served(self: Arc<Self>, client: kube::Client) {
        let kind = watching::resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        let mut definitions = pin!(watching::metadata(client, &kind, Config::default()));
        let mut doubts = Doubts { due: Some(Instant::now()), ..Doubts::default() };
        loop {
            let due = doubts.due;
            tokio::select! {
                event = definitions.next() => {
                    let Some(event) = event else { return };
                    self.doubt(&event, &mut doubts);
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    doubts.due = None;
                    self.look(&mut doubts).await;
                }
            }
        }
    }

    /// What is to be looked for because of what a watch has shown.
    fn doubt(&self, event: &Event<PartialObjectMeta<DynamicObject>>, doubts: &mut Doubts) {
        match event {
            Event::Init => doubts.listed.clear(),
            Event::InitApply(object) | Event::Apply(object) => {
                let name = object.metadata.name.as_deref().unwrap_or_default();
                let listing = matches!(event, Event::InitApply(_));
                if listing && !doubts.listed.contains(name) {
                    doubts.listed.insert(name.to_owned());
                }
                if !self.served.borrow().contains_key(&resource(name)) {
                    doubts.add(name, GATHERED);
                } else if !listing {
                    // Perhaps of other versions.
                    doubts.add(name, LATER);
                }
            }
            Event::Delete(object) => {
                doubts.add(object.metadata.name.as_deref().unwrap_or_default(), GATHERED);
            }
            Event::InitDone => {
                // Some may have gone unseen.
                let listed = std::mem::take(&mut doubts.listed);
                let listed: BTreeSet<_> = listed.iter().map(|name| resource(name)).collect();
                let served = self.served.borrow();
                let basic = doubts.basic.0.clone();
                let is_there =
                    |known: &GroupResource| listed.contains(known) || basic.contains(known);
                for (group, plural) in served.keys().filter(|known| !is_there(known)) {
                    doubts.add(&contract::type_name(group, plural), GATHERED);
                }
            }
        }
    }

    /// Looks for what is doubted.
    async fn look(&self, doubts: &mut Doubts) {
        if !doubts.basic.1 {
            match discovery::resources(&self.hub.cluster("root"), Versions::All).await {
                Ok(found) => {
                    let complete = found.complete;
                    let found = latest(types(found));
                    doubts.basic.0.extend(found.keys().cloned());
                    doubts.basic.1 = complete;
                    self.serve(found, []);
                }
                Err(error) => debug!(%error, "the hub's own types are not known"),
            }
        }
        let (mut found, mut gone) = (BTreeMap::new(), Vec::new());
        for name in std::mem::take(&mut doubts.names) {
            match self.version_of(&name).await {
                Ok(Some(version)) => drop(found.insert(resource(&name), version)),
                Ok(None) => gone.push(resource(&name)),
                Err(error) => {
                    debug!(name, %error, "a definition is not looked for");
                    doubts.names.insert(name);
                }
            }
        }
        self.serve(found, gone);
        if !doubts.basic.1 || !doubts.names.is_empty() {
            doubts.look_in(LATER);
        }
    }

    /// The latest version that a definition of that name has in any logical cluster; `None` if there is
    /// none.
    async fn version_of(&self, name: &str) -> Result<Option<String>, CallError> {
        let path = format!("{DEFINITIONS}?fieldSelector=metadata.name%3D{name}&limit=1");
        let list = self.hub.cluster("*").get(&path).await?.ok_or(CallError::Nonsense)?;
        let Some(definition) = list["items"].get(0) else { return Ok(None) };
        let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
        let served = versions.filter(|version| version["served"] == true);
        let names = served.filter_map(|version| version["name"].as_str());
        let latest = names.min_by(|a, b| machinery::version::compare(a, b));
        Ok(latest.filter(|_| agent::types::is_established(definition)).map(str::to_owned))
    }

    /// Some types are served, and some not any more.
    fn serve(
        &self,
        found: BTreeMap<GroupResource, String>,
        gone: impl IntoIterator<Item = GroupResource>,
    ) {
        self.served.send_if_modified(|served| {
            let before = served.clone();
            for resource in gone {
                served.remove(&resource);
            }
            for (resource, version) in found {
                let (group, plural) = &resource;
                if OTHERS.contains(&(group, plural)) {
                    continue;
                }
                if served.len() >= MOST && !served.contains_key(&resource) {
                    warn!(
                        most = MOST,
                        group, plural, "who assigns objects of this type is not told"
                    );
                    continue;
                }
                served.insert(resource, version);
            }
            *served != before
        });
    }
}

/// The resource that a definition of that name defines.
fn resource(name: &str) -> GroupResource {
    let (group, plural) = contract::parse_type_name(name);
    (group.to_owned(), plural.to_owned())
}

/// The types that discovery lists.
fn types(found: Resources) -> impl Iterator<Item = Type> {
    let listed = found.listed.into_iter();
    listed.map(|one| Type { resource: (one.group, one.resource), version: one.version })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::Listed;

    #[test]
    fn types_of_a_hub() {
        let listed = |group: &str, version: &str, resource: &str| Listed {
            group: group.into(),
            version: version.into(),
            resource: resource.into(),
            namespaced: true,
        };
        let found = Resources {
            listed: vec![
                listed("", "v1", "secrets"),
                listed("apps", "v1beta1", "deployments"),
                listed("apps", "v1", "deployments"),
            ],
            complete: true,
        };
        let found: Vec<_> = latest(types(found)).into_iter().collect();
        let expect = [(("", "secrets"), "v1"), (("apps", "deployments"), "v1")];
        let expect = expect.map(|((group, plural), version)| {
            ((group.to_owned(), plural.to_owned()), version.to_owned())
        });
        assert_eq!(found, expect);
        assert_eq!(resource("services.core"), (String::new(), "services".to_owned()));
    }
}
