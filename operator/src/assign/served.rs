//! The types that the hub serves and no SyncTarget syncs: who assigns an object of one is told.
//!
//! A watch of such a type shows only what carries the label, so it costs the hub and us next to nothing
//! where nobody has set it. Which types there are follows from discovery over all logical clusters,
//! which is read again when a definition comes or goes.

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
use super::index::Type;
use super::plan::GroupResource;
use crate::discovery::{self, Resources, Versions};
use crate::watching;

/// How long news of definitions are gathered before the types are read.
const GATHERED: Duration = Duration::from_secs(2);

/// When the types are read again after a change that most likely changes none, and after a failure.
const LATER: Duration = Duration::from_secs(60);

/// The most types that are watched beside those that are synced: each is an open request at the hub.
const MOST: usize = 1000;

/// Types whose objects nobody assigns, and that change all the time; and namespaces, whose label is
/// meant for what is in them.
const OTHERS: [(&str, &str); 4] = [
    ("", "namespaces"),
    ("", "events"),
    ("events.k8s.io", "events"),
    ("coordination.k8s.io", "leases"),
];

impl Assigner {
    /// Keeps the types of the hub known.
    pub(super) async fn follow_served(self: Arc<Self>, client: kube::Client) {
        let kind = watching::resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        let mut definitions = pin!(watching::metadata(client, &kind, Config::default()));
        let mut due = Some(Instant::now());
        loop {
            let at = due.unwrap_or_else(|| Instant::now() + LATER);
            tokio::select! {
                event = definitions.next() => {
                    let Some(event) = event else { return };
                    let pause = self.news_of(&event);
                    let then = pause.map(|pause| Instant::now() + pause);
                    due = [due, then].into_iter().flatten().min();
                }
                () = sleep_until(at), if due.is_some() => {
                    due = match self.read_served().await {
                        true => None,
                        false => Some(Instant::now() + LATER),
                    };
                }
            }
        }
    }

    /// How soon the types are to be read because of a definition.
    fn news_of(&self, event: &Event<PartialObjectMeta<DynamicObject>>) -> Option<Duration> {
        match event {
            Event::Init | Event::InitDone => None,
            Event::Delete(_) => Some(GATHERED),
            Event::InitApply(object) | Event::Apply(object) => {
                let (group, plural) =
                    contract::parse_type_name(object.metadata.name.as_deref().unwrap_or_default());
                let known = self.served.borrow();
                let resource = (group.to_owned(), plural.to_owned());
                let is_known = known.iter().any(|kind| kind.resource == resource);
                match event {
                    _ if !is_known => Some(GATHERED),
                    // Perhaps of other versions.
                    Event::Apply(_) => Some(LATER),
                    _ => None,
                }
            }
        }
    }

    /// Reads which types there are. Whether all could be read.
    async fn read_served(&self) -> bool {
        let found = match discovery::resources(&self.hub.cluster("*"), Versions::All).await {
            Ok(found) => found,
            Err(error) => {
                debug!(%error, "the hub's types are not known");
                return false;
            }
        };
        let complete = found.complete;
        let types = latest(found);
        if types.len() > MOST {
            warn!(types = types.len(), most = MOST, "objects of some types are not looked at");
        }
        self.served.send_if_modified(|known| {
            let mut next: BTreeSet<Type> = types.into_iter().take(MOST).collect();
            if !complete {
                // What could not be read is no less there than before.
                let read: BTreeSet<_> = next.iter().map(|kind| kind.resource.clone()).collect();
                next.extend(known.iter().filter(|kind| !read.contains(&kind.resource)).cloned());
            }
            let changed = *known != next;
            *known = next;
            changed
        });
        complete
    }
}

/// Each type once: the latest version shows all objects.
fn latest(found: Resources) -> BTreeSet<Type> {
    let mut latest: BTreeMap<GroupResource, String> = BTreeMap::new();
    for one in found.listed {
        if OTHERS.contains(&(one.group.as_str(), one.resource.as_str())) {
            continue;
        }
        let version =
            latest.entry((one.group, one.resource)).or_insert_with(|| one.version.clone());
        if machinery::version::compare(&one.version, version).is_lt() {
            *version = one.version;
        }
    }
    latest.into_iter().map(|(resource, version)| Type { resource, version }).collect()
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
                listed("", "v1", "events"),
                listed("", "v1", "namespaces"),
                listed("", "v1", "secrets"),
                listed("apps", "v1beta1", "deployments"),
                listed("apps", "v1", "deployments"),
                listed("events.k8s.io", "v1", "events"),
            ],
            complete: true,
        };
        let found: Vec<_> = latest(found).into_iter().map(|kind| kind.path("n")).collect();
        assert_eq!(
            found,
            ["/api/v1/namespaces/n/secrets", "/apis/apps/v1/namespaces/n/deployments"]
        );
    }
}
