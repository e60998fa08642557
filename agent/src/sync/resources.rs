//! What an API server serves, from its discovery documents.

use client::{Ask, Error, Link, Told};
use serde::Deserialize;
use serde_json::Value;

/// A resource in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The group; empty for core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural.
    pub plural: String,
    /// The kind.
    pub kind: String,
    /// Whether objects are in namespaces.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Vec<String>,
    /// Whether it has the subresource `status`.
    pub status: bool,
    /// Whether it has the subresource `scale`.
    pub scale: bool,
}

/// Why nothing is known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// The server gives no answer.
    #[error("reach the server")]
    Unreachable(#[source] Error),
    /// It gives another one than hoped for.
    #[error("the server answers {code} to {path}")]
    Answer {
        /// The status code.
        code: u16,
        /// What was asked.
        path: String,
    },
    /// What came is no such document.
    #[error("{0} is no discovery document")]
    Unreadable(String),
}

/// Documents of all groups at once, where the server has them.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Groups beyond this many are not looked at one by one.
const MOST_GROUPS: usize = 1000;

#[derive(Deserialize)]
struct Aggregated {
    #[serde(default)]
    items: Vec<AggregatedGroup>,
}

#[derive(Deserialize)]
struct AggregatedGroup {
    #[serde(default)]
    metadata: AggregatedName,
    #[serde(default)]
    versions: Vec<AggregatedVersion>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AggregatedName {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregatedVersion {
    version: String,
    #[serde(default)]
    resources: Vec<AggregatedResource>,
    #[serde(default)]
    freshness: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregatedResource {
    resource: String,
    #[serde(default)]
    response_kind: Kind,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    subresources: Vec<AggregatedSubresource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Kind {
    kind: String,
}

#[derive(Deserialize)]
struct AggregatedSubresource {
    subresource: String,
}

#[derive(Deserialize)]
struct Groups {
    #[serde(default)]
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    #[serde(default)]
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    verbs: Vec<String>,
}

/// All resources of a server, below `base`; versions of a group in the server's order. A group whose
/// own server is away is left out.
///
/// # Errors
/// When the server's list of groups can't be had. A group that can't be read is no failure.
pub async fn discover(link: &Link, base: &str) -> Result<Vec<Resource>, DiscoverError> {
    let mut found = Vec::new();
    for root in ["/api", "/apis"] {
        let path = format!("{base}{root}");
        let told = get(link, &path, AGGREGATED).await?;
        let document: Value = serde_json::from_slice(&told.body)
            .map_err(|_| DiscoverError::Unreadable(path.clone()))?;
        if document.get("kind").is_some_and(|kind| kind == "APIGroupDiscoveryList") {
            let document = serde_json::from_value(document)
                .map_err(|_| DiscoverError::Unreadable(path.clone()))?;
            found.extend(of_aggregated(document));
        } else if root == "/api" {
            found.extend(legacy(link, &format!("{path}/v1"), "", "v1").await);
        } else {
            let groups: Groups = serde_json::from_value(document)
                .map_err(|_| DiscoverError::Unreadable(path.clone()))?;
            for group in groups.groups.iter().take(MOST_GROUPS) {
                for version in &group.versions {
                    let path = format!("{path}/{}/{}", group.name, version.version);
                    found.extend(legacy(link, &path, &group.name, &version.version).await);
                }
            }
        }
    }
    Ok(found)
}

fn of_aggregated(document: Aggregated) -> Vec<Resource> {
    let mut found = Vec::new();
    for group in document.items {
        for version in group.versions.into_iter().filter(|v| v.freshness != "Stale") {
            for resource in version.resources {
                let has = |name: &str| resource.subresources.iter().any(|s| s.subresource == name);
                let (status, scale) = (has("status"), has("scale"));
                found.push(Resource {
                    group: group.metadata.name.clone(),
                    version: version.version.clone(),
                    plural: resource.resource,
                    kind: resource.response_kind.kind,
                    namespaced: resource.scope == "Namespaced",
                    verbs: resource.verbs,
                    status,
                    scale,
                });
            }
        }
    }
    found
}

/// The resources of one group and version, of a server without aggregated discovery.
async fn legacy(link: &Link, path: &str, group: &str, version: &str) -> Vec<Resource> {
    let Ok(told) = get(link, path, client::JSON).await else { return Vec::new() };
    let Ok(list) = serde_json::from_slice::<Resources>(&told.body) else { return Vec::new() };
    of_legacy(&list, group, version)
}

fn of_legacy(list: &Resources, group: &str, version: &str) -> Vec<Resource> {
    let has = |name: &str, subresource: &str| {
        let full = format!("{name}/{subresource}");
        list.resources.iter().any(|resource| resource.name == full)
    };
    let own = list.resources.iter().filter(|resource| !resource.name.contains('/'));
    own.map(|resource| Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: resource.name.clone(),
        kind: resource.kind.clone(),
        namespaced: resource.namespaced,
        verbs: resource.verbs.clone(),
        status: has(&resource.name, "status"),
        scale: has(&resource.name, "scale"),
    })
    .collect()
}

async fn get(link: &Link, path: &str, accept: &str) -> Result<Told, DiscoverError> {
    let told = link.ask(Ask { accept, ..Ask::get(path) }).await;
    let told = told.map_err(DiscoverError::Unreachable)?;
    match told.status.as_u16() {
        200 => Ok(told),
        code => Err(DiscoverError::Answer { code, path: path.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let aggregated = serde_json::from_value(json!({
            "kind": "APIGroupDiscoveryList",
            "items": [
                {"metadata": {"name": "apps"}, "versions": [{
                    "version": "v1", "freshness": "Current",
                    "resources": [{
                        "resource": "deployments", "responseKind": {"kind": "Deployment"},
                        "scope": "Namespaced", "verbs": ["get", "list"],
                        "subresources": [{"subresource": "status"}, {"subresource": "scale"}],
                    }],
                }]},
                {"metadata": {"name": "away"}, "versions": [{"version": "v1", "freshness": "Stale",
                    "resources": [{"resource": "things"}]}]},
            ],
        }));
        let legacy = serde_json::from_value(json!({"resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": true, "verbs": ["get", "list"]},
            {"name": "deployments/status"}, {"name": "deployments/scale"},
        ]}));
        let expect = Resource {
            group: "apps".into(),
            version: "v1".into(),
            plural: "deployments".into(),
            kind: "Deployment".into(),
            namespaced: true,
            verbs: vec!["get".into(), "list".into()],
            status: true,
            scale: true,
        };
        let legacy = of_legacy(&legacy.unwrap(), "apps", "v1");
        assert_eq!(of_aggregated(aggregated.unwrap()), legacy);
        assert_eq!(legacy, [expect]);
    }
}
