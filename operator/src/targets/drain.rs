//! Emptying a SyncTarget that is being deleted, and releasing what it may still hold.
//!
//! Invariants: a copy is removed by its agent alone, which is asked by the state label; finalizers are
//! released only when nobody is left who could remove a copy; every logical cluster and every resource
//! is looked at, and while one can't be, the SyncTarget stays.

use std::collections::BTreeMap;

use contract::state_label;
use futures::StreamExt;
use futures::future::BoxFuture;
use serde_json::Value;

use super::index::CLUSTER;
use crate::api::{Api, CallError};
use crate::assign::index::label;
use crate::discovery::{Listed, Versions, resources};
use crate::marks::{Change, Marks, patch};

/// Patches at a time.
const AT_A_TIME: usize = 16;

/// Objects that are named in a message.
const MOST_NAMED: usize = 5;

/// An object that has marks of a target.
#[derive(Clone, Debug)]
pub(crate) struct Marked {
    pub(crate) cluster: String,
    pub(crate) listed: Listed,
    pub(crate) metadata: Value,
}

// === impl Marked ===

impl Marked {
    fn text(&self, field: &str) -> &str {
        self.metadata[field].as_str().unwrap_or_default()
    }

    /// Its path in its logical cluster.
    fn path(&self) -> String {
        self.listed.object(self.text("namespace"), self.text("name"))
    }

    /// As [`label`] has it.
    pub(super) fn name(&self) -> String {
        let (namespace, name) = (self.text("namespace"), self.text("name"));
        label(&self.listed.resource, &self.cluster, namespace, name)
    }
}

/// Which objects are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// Those with the state label: quick.
    Labelled,
    /// Those with a finalizer and no label, too: everything is read.
    Everything,
}

/// All objects of all logical clusters that have marks of the target with that global name.
///
/// # Errors
/// When something can't be looked at.
pub(crate) async fn marked(
    hub: &Api,
    global: &str,
    search: Search,
) -> Result<Vec<Marked>, CallError> {
    let all = hub.cluster("*");
    let resources = resources(&all, Versions::All).await?;
    if !resources.complete {
        return Err(CallError::Unreachable("not all resources of the hub can be looked at".into()));
    }
    let selector = match search {
        Search::Labelled => state_label(global),
        Search::Everything => String::new(),
    };
    // Objects that several versions show are there once.
    let mut found = BTreeMap::new();
    for listed in resources.listed {
        let passes = |object: &Value| Marks::of(&object["metadata"]).targets().contains(global);
        let objects = match all.list_those(&listed.path(""), &selector, passes).await {
            // The type went meanwhile, and its objects with it; or it can't be listed over all.
            Err(CallError::Refused { code: 404 | 405, .. }) => continue,
            objects => objects?,
        };
        for mut object in objects {
            let metadata = object["metadata"].take();
            let cluster = metadata["annotations"][CLUSTER].as_str().unwrap_or_default().to_owned();
            let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
            found.insert(uid, Marked { cluster, listed: listed.clone(), metadata });
        }
    }
    Ok(found.into_values().collect())
}

/// Makes a change of the target's marks on objects. Returns how many it could not be made on, as they
/// were changed at the same time: they come again.
///
/// # Errors
/// When the hub does not answer.
pub(crate) async fn change(
    hub: &Api,
    global: &str,
    objects: &[Marked],
    change: Change,
) -> Result<usize, CallError> {
    let changes = BTreeMap::from([(global.to_owned(), change)]);
    let mut asked: Vec<BoxFuture<'static, Result<usize, CallError>>> = Vec::new();
    for object in objects {
        let Some(patch) = patch(&object.metadata, &changes) else { continue };
        let (hub, path) = (hub.cluster(&object.cluster), object.path());
        asked.push(Box::pin(async move {
            match hub.merge(&path, &patch).await {
                Ok(_) | Err(CallError::Refused { code: 404, .. }) => Ok(0),
                Err(CallError::Refused { code: 409 | 422, .. }) => Ok(1),
                Err(error) => Err(error),
            }
        }));
    }
    let results: Vec<_> = futures::stream::iter(asked).buffer_unordered(AT_A_TIME).collect().await;
    results.into_iter().sum()
}

/// Some of the objects, for people.
pub(super) fn some_of(objects: &[String]) -> String {
    let more = match objects.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = objects.get(..MOST_NAMED).unwrap_or(objects);
    format!("{}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_named_up_to_a_bound() {
        let marked = |name: &str, namespace: &str| Marked {
            cluster: "team".into(),
            listed: Listed {
                group: "apps".into(),
                version: "v1".into(),
                resource: "deployments".into(),
                namespaced: true,
            },
            metadata: json!({"name": name, "namespace": namespace}),
        };
        let one = marked("web", "default");
        assert_eq!(one.path(), "/apis/apps/v1/namespaces/default/deployments/web");
        let name = one.name();
        assert_eq!(name, "deployments team/default/web");
        assert_eq!(some_of(std::slice::from_ref(&name)), name);
        assert!(some_of(&vec![name; 7]).ends_with("web and 2 more"));
    }
}
