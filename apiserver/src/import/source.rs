//! What a physical cluster serves: its discovery, and its OpenAPI documents.

use anyhow::{Context, ensure};
use http::StatusCode;
use schema::import::{self, DiscoveredGroup, DiscoveredVersion};
use serde_json::Value;

use super::client::{Answer, Client};

/// Discovery of all groups in one answer, which Kubernetes has had since 1.26; and in the old form.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                          application/json";

const JSON: &str = "application/json";

/// Every group that the cluster serves.
pub(super) async fn groups(from: &mut Client) -> anyhow::Result<Vec<DiscoveredGroup>> {
    let mut all = Vec::new();
    for path in ["/api", "/apis"] {
        let answer = succeed(from.get(path, AGGREGATED).await?, path)?.json();
        if answer["kind"] == "APIGroupDiscoveryList" {
            all.extend(import::groups(&answer));
            continue;
        }
        for (group, versions) in group_versions(&answer) {
            let versions = one_by_one(from, &group, &versions).await?;
            if !versions.is_empty() {
                all.push(DiscoveredGroup { name: group.into(), versions });
            }
        }
    }
    ensure!(!all.is_empty(), "the cluster serves no API groups");
    Ok(all)
}

/// The OpenAPI v3 document of a group version; null if the cluster has none.
pub(super) async fn document(
    from: &mut Client,
    group: &str,
    version: &str,
) -> anyhow::Result<Value> {
    let path = import::document_path(group, version);
    let answer = from.get(&path, JSON).await?;
    if answer.status == StatusCode::NOT_FOUND {
        return Ok(Value::Null);
    }
    let answer = succeed(answer, &path)?;
    serde_json::from_slice(&answer.body).with_context(|| format!("{path} is no JSON"))
}

/// The groups and versions of the old form of discovery, the preferred version of each first.
fn group_versions(answer: &Value) -> Vec<(String, Vec<String>)> {
    let texts = |list: &Value, field: &str| -> Vec<String> {
        let items = list.as_array().map_or(&[][..], Vec::as_slice);
        let items = items.iter().map(|item| if field.is_empty() { item } else { &item[field] });
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    if answer["kind"] == "APIVersions" {
        return vec![(String::new(), texts(&answer["versions"], ""))];
    }
    let groups = answer["groups"].as_array().map_or(&[][..], Vec::as_slice);
    let group = |group: &Value| {
        let name = group["name"].as_str()?.to_owned();
        let preferred = group["preferredVersion"]["version"].as_str().unwrap_or_default();
        let mut versions = texts(&group["versions"], "version");
        versions.sort_by_key(|version| version != preferred);
        Some((name, versions))
    };
    groups.iter().filter_map(group).collect()
}

async fn one_by_one(
    from: &mut Client,
    group: &str,
    versions: &[String],
) -> anyhow::Result<Vec<DiscoveredVersion>> {
    let mut all = Vec::new();
    for version in versions {
        let path = match group {
            "" => format!("/api/{version}"),
            _ => format!("/apis/{group}/{version}"),
        };
        let answer = from.get(&path, JSON).await?;
        if !answer.status.is_success() {
            // Typically the server behind an APIService that doesn't answer.
            let (version, resources) = (version.as_str().into(), Vec::new());
            all.push(DiscoveredVersion { version, resources, stale: true });
            continue;
        }
        if let Some((_, found)) = import::resource_list(&answer.json()) {
            all.push(found);
        }
    }
    Ok(all)
}

fn succeed(answer: Answer, path: &str) -> anyhow::Result<Answer> {
    ensure!(answer.status.is_success(), "the cluster refuses GET {path}: {}", answer.failure());
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_old_form_is_read_with_the_preferred_version_first() {
        let core = json!({"kind": "APIVersions", "versions": ["v1"]});
        assert_eq!(group_versions(&core), [(String::new(), vec!["v1".to_owned()])]);
        let groups = json!({"kind": "APIGroupList", "groups": [
            {
                "name": "batch",
                "versions": [{"version": "v1beta1"}, {"version": "v1"}, {"version": 7}],
                "preferredVersion": {"version": "v1"},
            },
            {"name": 1},
        ]});
        let expect = ["v1".to_owned(), "v1beta1".into()].to_vec();
        assert_eq!(group_versions(&groups), [("batch".to_owned(), expect)]);
        assert!(group_versions(&json!("x")).is_empty());
    }
}
