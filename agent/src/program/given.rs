//! Types that the user names, or the usual ones: those that both API servers serve.

use std::sync::Arc;
use std::time::Duration;

use client::Link;
use engine::{GroupResource, Scope, SyncedType};
use tokio::sync::watch;
use tracing::{debug, info};

use crate::sync::{Resource, Upstream, discover};
use crate::types::Selection;

/// How often both servers are asked what they serve.
const PERIOD: Duration = Duration::from_secs(30);

/// How soon again when one does not answer.
const AGAIN: Duration = Duration::from_secs(3);

/// What syncing does with objects.
const VERBS: [&str; 4] = ["get", "list", "watch", "patch"];

/// Groups whose types are Kubernetes' own, beside those of `k8s.io`.
const BUILT_IN: [&str; 5] = ["", "apps", "autoscaling", "batch", "policy"];

/// Finds the types for ever.
pub(super) async fn run(
    upstream: &Upstream,
    cluster: &str,
    downstream: &Link,
    resources: &[String],
    types: &watch::Sender<Arc<[SyncedType]>>,
) {
    let selection = Selection::of_named(resources.iter().map(String::as_str));
    loop {
        let base = upstream.base(cluster);
        let both = tokio::join!(discover(&upstream.link, &base), discover(downstream, ""));
        let pause = match both {
            (Ok(upstream), Ok(downstream)) => {
                let found: Arc<[SyncedType]> = common(&selection, &upstream, &downstream).into();
                types.send_if_modified(|present| {
                    let changed = *present != found;
                    if changed {
                        info!(types = found.len(), "the types that are synced");
                        *present = found;
                    }
                    changed
                });
                PERIOD
            }
            (Err(error), _) | (_, Err(error)) => {
                // What was known stays.
                debug!(%error, "the types are not known");
                AGAIN
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// The types that both serve in one version, in the order of their names. Of several versions it is
/// the physical cluster's first.
fn common(
    selection: &Selection,
    upstream: &[Resource],
    downstream: &[Resource],
) -> Vec<SyncedType> {
    let mut types: Vec<SyncedType> = Vec::new();
    for there in downstream {
        let resource = GroupResource::new(&there.group, &there.plural);
        let known = types.iter().any(|known| known.resource == resource);
        let here = upstream.iter().find(|here| {
            (&here.group, &here.version, &here.plural)
                == (&there.group, &there.version, &there.plural)
        });
        let Some(here) = here.filter(|_| !known && is_wanted(selection, there)) else {
            continue;
        };
        let whole =
            |resource: &Resource| VERBS.iter().all(|v| resource.verbs.iter().any(|w| w == v));
        if here.kind != there.kind || !whole(here) || !whole(there) {
            continue;
        }
        types.push(SyncedType {
            resource,
            version: there.version.as_str().into(),
            kind: there.kind.as_str().into(),
            scope: if there.namespaced { Scope::Namespaced } else { Scope::Cluster },
            upstream_status: here.status,
            downstream_status: there.status,
            upstream_scale: here.scale,
        });
    }
    types.sort_by(|one, other| one.resource.cmp(&other.resource));
    types
}

fn is_wanted(selection: &Selection, resource: &Resource) -> bool {
    let (group, plural) = (&*resource.group, &*resource.plural);
    if BUILT_IN.contains(&group) || group.ends_with(".k8s.io") {
        selection.has(group, plural)
    } else {
        selection.has_custom(group, plural)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(group: &str, version: &str, plural: &str) -> Resource {
        Resource {
            group: group.into(),
            version: version.into(),
            plural: plural.into(),
            kind: "Kind".into(),
            namespaced: true,
            verbs: VERBS.map(str::to_owned).to_vec(),
            status: true,
            scale: false,
        }
    }

    #[test]
    fn what_both_serve() {
        let mut deaf = resource("x.io", "v1", "deaf");
        deaf.verbs.retain(|verb| verb != "watch");
        let upstream = [
            resource("", "v1", "configmaps"),
            resource("apps", "v1", "deployments"),
            resource("x.io", "v1", "things"),
            resource("x.io", "v2", "things"),
            resource("x.io", "v1", "others"),
            resource("rbac.authorization.k8s.io", "v1", "roles"),
            resource("x.io", "v1", "deaf"),
        ];
        let downstream = [
            resource("x.io", "v1", "others"),
            resource("apps", "v1", "deployments"),
            resource("", "v1", "configmaps"),
            resource("x.io", "v3", "things"),
            resource("x.io", "v2", "things"),
            resource("x.io", "v1", "things"),
            resource("rbac.authorization.k8s.io", "v1", "roles"),
            deaf,
        ];
        let check = |named: &[&str], expect: &[&str]| {
            let selection = Selection::of(named.iter().copied(), false);
            let types = common(&selection, &upstream, &downstream);
            let found: Vec<_> =
                types.iter().map(|t| format!("{} {}", t.resource, t.version)).collect();
            assert_eq!(found, expect, "{named:?}");
        };
        check(&[], &["configmaps v1", "deployments.apps v1", "others.x.io v1", "things.x.io v2"]);
        check(&["things.x.io"], &["things.x.io v2"]);
        check(&["*.x.io", "services"], &["others.x.io v1", "things.x.io v2"]);
        check(&["nothing.x.io"], &[]);
    }
}
