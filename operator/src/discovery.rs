//! Which resources an API server has, as far as they can be listed.
//!
//! Invariants: what could not be learnt is told (`complete`), since nothing may be concluded from what
//! was not looked at; the number of groups and resources is bounded.

use serde_json::Value;

use crate::api::{Api, CallError};

/// More groups than any cluster has.
const MOST_GROUPS: usize = 500;

/// More resources than any group has.
const MOST_RESOURCES: usize = 1000;

/// A resource of which objects can be listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Listed {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) namespaced: bool,
}

/// What was learnt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resources {
    pub(crate) listed: Vec<Listed>,
    /// Whether every group was read.
    pub(crate) complete: bool,
}

/// Which versions of a group are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    /// The one that the server prefers: it shows all objects.
    Preferred,
    /// All, where not every logical cluster serves the same.
    All,
}

// === impl Listed ===

impl Listed {
    /// The path of all its objects; in one namespace, or, where that is empty, everywhere.
    pub(crate) fn path(&self, namespace: &str) -> String {
        let Self { group, version, resource, .. } = self;
        let base = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        match namespace {
            "" => format!("{base}/{version}/{resource}"),
            namespace => format!("{base}/{version}/namespaces/{namespace}/{resource}"),
        }
    }

    /// The path of an object.
    pub(crate) fn object(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.path(if self.namespaced { namespace } else { "" }))
    }
}

/// Reads all groups.
///
/// # Errors
/// When the list of groups cannot be read.
pub(crate) async fn resources(api: &Api, versions: Versions) -> Result<Resources, CallError> {
    let groups = api.get("/apis").await?.ok_or(CallError::Nonsense)?;
    let mut found = Resources { listed: Vec::new(), complete: true };
    let mut wanted = vec![(String::new(), "v1".to_owned())];
    wanted.extend(group_versions(&groups, versions));
    for (group, version) in wanted {
        let base = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        match api.get(&format!("{base}/{version}")).await {
            Ok(Some(list)) => found.listed.extend(of_list(&list, &group, &version)),
            // A group that went meanwhile, or one whose server is broken.
            Ok(None) | Err(_) => found.complete = false,
        }
    }
    Ok(found)
}

fn group_versions(groups: &Value, versions: Versions) -> Vec<(String, String)> {
    let mut wanted = Vec::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for group in groups["groups"].as_array().into_iter().flatten().take(MOST_GROUPS) {
        let name = text(&group["name"]);
        let preferred = text(&group["preferredVersion"]["version"]);
        let all = group["versions"].as_array().into_iter().flatten();
        let all = all.map(|version| text(&version["version"])).take(32);
        match versions {
            Versions::Preferred => wanted.push((name, preferred)),
            Versions::All => wanted.extend(all.map(|version| (name.clone(), version))),
        }
    }
    wanted
}

fn of_list(list: &Value, group: &str, version: &str) -> Vec<Listed> {
    let resources = list["resources"].as_array().into_iter().flatten().take(MOST_RESOURCES);
    let has_list = |resource: &Value| {
        let verbs = resource["verbs"].as_array().into_iter().flatten();
        verbs.into_iter().any(|verb| verb == "list")
    };
    resources
        .filter(|resource| has_list(resource))
        .filter_map(|resource| {
            let name = resource["name"].as_str().filter(|name| !name.contains('/'))?;
            Some(Listed {
                group: group.to_owned(),
                version: version.to_owned(),
                resource: name.to_owned(),
                namespaced: resource["namespaced"] == true,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_can_be_listed() {
        let list = json!({"resources": [
            {"name": "pods", "namespaced": true, "verbs": ["get", "list"]},
            {"name": "pods/log", "namespaced": true, "verbs": ["get", "list"]},
            {"name": "bindings", "namespaced": true, "verbs": ["create"]},
            {"name": "nodes", "namespaced": false, "verbs": ["list"]},
        ]});
        let found = of_list(&list, "", "v1");
        let paths: Vec<String> = found.iter().map(|listed| listed.object("n", "x")).collect();
        assert_eq!(paths, ["/api/v1/namespaces/n/pods/x", "/api/v1/nodes/x"]);
        assert!(of_list(&json!({"resources": "x"}), "", "v1").is_empty());
    }

    #[test]
    fn versions_of_groups() {
        let groups = json!({"groups": [
            {"name": "apps", "versions": [{"version": "v1"}, {"version": "v1beta1"}],
             "preferredVersion": {"version": "v1"}},
        ]});
        let preferred = group_versions(&groups, Versions::Preferred);
        assert_eq!(preferred, [("apps".to_owned(), "v1".to_owned())]);
        assert_eq!(group_versions(&groups, Versions::All).len(), 2);
    }
}
