//! Writing types into a running server.

use std::time::Duration;

use anyhow::{Context, ensure};
use http::{Method, StatusCode};
use machinery::ClusterName;
use machinery::kubeconfig::Access;
use machinery::meta::get_str;
use schema::crd;
use serde_json::Value;
use tokio::time::Instant;

use super::client::Client;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const JSON: &str = "application/json";

/// How long a type may take to be served; it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long to wait before asking again whether a type is served.
const AGAIN: Duration = Duration::from_millis(50);

/// How often a change is tried when others change the same definition at the same time.
const ATTEMPTS: usize = 5;

/// What became of a type at the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is new.
    Created,
    /// It was there and has been changed.
    Updated,
    /// It was there as it is.
    Unchanged,
    /// The server doesn't take it, and why.
    Refused(String),
}

/// The access to one logical cluster of the server that `access` leads to, whatever logical cluster
/// it leads to itself.
pub(super) fn of_cluster(access: Access, cluster: &ClusterName) -> Access {
    let base = match access.server.rsplit_once("/clusters/") {
        Some((base, name)) if !name.contains('/') => base,
        _ => &access.server,
    };
    Access { server: format!("{base}/clusters/{cluster}"), ..access }
}

/// Writes a CRD: makes it, or changes the one of its name if it says something else.
///
/// # Errors
/// When the server doesn't answer.
pub(super) async fn write(to: &mut Client, crd: &Value) -> anyhow::Result<Outcome> {
    let name = get_str(crd, &["metadata", "name"]).context("a definition has a name")?;
    for _ in 0..ATTEMPTS {
        let created = to.write(&Method::POST, CRDS, crd).await?;
        if created.status.is_success() {
            return Ok(Outcome::Created);
        }
        if created.status != StatusCode::CONFLICT {
            return Ok(Outcome::Refused(created.failure()));
        }
        let path = format!("{CRDS}/{name}");
        let present = to.get(&path, JSON).await?;
        if present.status == StatusCode::NOT_FOUND {
            continue;
        }
        if !present.status.is_success() {
            return Ok(Outcome::Refused(present.failure()));
        }
        let present = present.json();
        let wanted = changed(&present, crd);
        let updated = to.write(&Method::PUT, &path, &wanted).await?;
        match updated.status {
            StatusCode::CONFLICT | StatusCode::NOT_FOUND => {}
            status if status.is_success() => {
                // A write that changes nothing leaves the version as it is.
                let version =
                    |crd: &Value| get_str(crd, &["metadata", "resourceVersion"]).map(str::to_owned);
                let same = version(&present) == version(&updated.json());
                return Ok(if same { Outcome::Unchanged } else { Outcome::Updated });
            }
            _ => return Ok(Outcome::Refused(updated.failure())),
        }
    }
    Ok(Outcome::Refused("others change it all the time".to_owned()))
}

/// The CRD that is there, made to say what `crd` says. What others have added to its metadata stays.
fn changed(present: &Value, crd: &Value) -> Value {
    let mut wanted = present.clone();
    wanted["spec"] = crd["spec"].clone();
    if let Some(annotations) = crd["metadata"]["annotations"].as_object() {
        for (name, value) in annotations {
            wanted["metadata"]["annotations"][name] = value.clone();
        }
    }
    wanted
}

/// Waits until the server serves a type. Returns why it doesn't, if it never will.
///
/// # Errors
/// When the server doesn't answer, or the type isn't served in time.
pub(super) async fn served(to: &mut Client, name: &str) -> anyhow::Result<Result<(), String>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let path = format!("{CRDS}/{name}");
        let answer = to.get(&path, JSON).await?;
        if !answer.status.is_success() {
            return Ok(Err(answer.failure()));
        }
        let crd = answer.json();
        if crd::is_condition_true(&crd, "Established") {
            return Ok(Ok(()));
        }
        if let Some(why) = refusal(&crd) {
            return Ok(Err(why));
        }
        ensure!(Instant::now() < deadline, "{name} is not served after {} s", PATIENCE.as_secs());
        tokio::time::sleep(AGAIN).await;
    }
}

/// Why a CRD's names are not accepted, if they aren't.
fn refusal(crd: &Value) -> Option<String> {
    let conditions = crd["status"]["conditions"].as_array()?;
    let refused =
        |condition: &&Value| condition["type"] == "NamesAccepted" && condition["status"] == "False";
    let condition = conditions.iter().find(refused)?;
    Some(condition["message"].as_str().unwrap_or("its names are not accepted").to_owned())
}

#[cfg(test)]
mod tests {
    use machinery::kubeconfig::Identity;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_logical_cluster_takes_the_place_of_another() {
        let check = |server: &str, expect: &str| {
            let access = Access {
                server: server.to_owned(),
                server_name: None,
                authority: Some(Vec::new()),
                identity: Identity::Token("t".into()),
            };
            let cluster = ClusterName::parse("one").unwrap();
            assert_eq!(of_cluster(access, &cluster).server, expect);
        };
        check("https://h:1", "https://h:1/clusters/one");
        check("https://h:1/clusters/root", "https://h:1/clusters/one");
        check("https://h:1/kcp/clusters/root", "https://h:1/kcp/clusters/one");
        check("https://h:1/clusters/a/b", "https://h:1/clusters/a/b/clusters/one");
    }

    #[test]
    fn a_change_keeps_what_others_added() {
        let present = json!({
            "metadata": {"name": "x", "labels": {"l": "1"}, "annotations": {"a": "1", "b": "1"}},
            "spec": {"old": 1},
            "status": {"s": 1},
        });
        let crd = json!({"metadata": {"annotations": {"b": "2"}}, "spec": {"new": 1}});
        let expect = json!({
            "metadata": {"name": "x", "labels": {"l": "1"}, "annotations": {"a": "1", "b": "2"}},
            "spec": {"new": 1},
            "status": {"s": 1},
        });
        assert_eq!(changed(&present, &crd), expect);
    }

    #[test]
    fn refused_names_say_why() {
        let crd = json!({"status": {"conditions": [
            {"type": "NamesAccepted", "status": "False", "message": "\"po\" is taken"},
        ]}});
        assert_eq!(refusal(&crd).as_deref(), Some("\"po\" is taken"));
        assert_eq!(refusal(&json!({})), None);
    }
}
