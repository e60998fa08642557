//! Whether a kubeconfig may install an agent: asked of the physical cluster itself.
//!
//! Whoever gives rights must hold them, so what the agent is to have is asked, too. Invariants: what
//! can't be asked is not held against the kubeconfig, since the installation itself will tell.

use agent::manifest::{Kind, Settings};
use futures::StreamExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::api::Api;

/// Reviews at a time.
const AT_A_TIME: usize = 8;

/// Rights that are named in one message; more would not be read.
const MOST_NAMED: usize = 12;

/// A right, as `create deployments.apps` or `patch deployments.apps/status`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Right {
    verb: String,
    group: String,
    resource: String,
    /// Empty for none.
    subresource: String,
    namespace: String,
}

// === impl Right ===

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { verb, group, resource, subresource, namespace } = self;
        write!(f, "{verb} {resource}")?;
        if !group.is_empty() {
            write!(f, ".{group}")?;
        }
        if !subresource.is_empty() {
            write!(f, "/{subresource}")?;
        }
        if namespace.is_empty() { Ok(()) } else { write!(f, " in {namespace}") }
    }
}

/// Everything that an installation needs, sorted.
pub(crate) fn needed(settings: &Settings) -> Vec<Right> {
    let mut needed = Vec::new();
    let namespace = settings.namespace();
    for kind in Kind::ALL {
        let place = if kind.namespaced { namespace.as_str() } else { "" };
        for verb in ["get", "create", "patch", "delete"] {
            needed.push(right(verb, kind.group(), kind.resource, place));
        }
    }
    // What is given to the agent.
    for object in settings.render() {
        let place = match object["kind"].as_str() {
            Some("ClusterRole") => "",
            Some("Role") => namespace.as_str(),
            _ => continue,
        };
        for rule in object["rules"].as_array().into_iter().flatten() {
            for (verb, group, resource) in combinations(rule) {
                needed.push(right(verb, group, resource, place));
            }
        }
    }
    needed.sort();
    needed.dedup();
    needed
}

/// `resource` as rules name it, with its subresource: `deployments/status`.
fn right(verb: &str, group: &str, resource: &str, namespace: &str) -> Right {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    Right {
        verb: verb.to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        namespace: namespace.to_owned(),
    }
}

fn combinations(rule: &Value) -> impl Iterator<Item = (&str, &str, &str)> {
    let list = |field: &str| {
        let entries = rule[field].as_array().into_iter().flatten();
        entries.filter_map(Value::as_str).collect::<Vec<_>>()
    };
    let (groups, resources, verbs) = (list("apiGroups"), list("resources"), list("verbs"));
    let mut all = Vec::new();
    for verb in &verbs {
        for group in &groups {
            all.extend(resources.iter().map(|resource| (*verb, *group, *resource)));
        }
    }
    all.into_iter()
}

/// Which of the needed rights are missing, for people; empty if none is.
pub(crate) async fn missing(api: &Api, settings: &Settings) -> Option<String> {
    let everything = right("*", "*", "*", "");
    if is_allowed(api, &everything).await == Some(true) {
        return None;
    }
    let asked = needed(settings).into_iter().map(|right| -> BoxFuture<'static, Option<Right>> {
        let api = api.clone();
        Box::pin(async move { (is_allowed(&api, &right).await == Some(false)).then_some(right) })
    });
    let asked: Vec<_> = asked.collect();
    let answers: Vec<_> = futures::stream::iter(asked).buffered(AT_A_TIME).collect().await;
    told(&answers.into_iter().flatten().collect::<Vec<_>>())
}

fn told(missing: &[Right]) -> Option<String> {
    if missing.is_empty() {
        return None;
    }
    let named: Vec<String> = missing.iter().take(MOST_NAMED).map(ToString::to_string).collect();
    let more = match missing.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Some(format!("the kubeconfig lacks rights to install the agent: {}{more}", named.join(", ")))
}

async fn is_allowed(api: &Api, right: &Right) -> Option<bool> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "verb": right.verb,
            "group": right.group,
            "resource": right.resource,
            "subresource": right.subresource,
            "namespace": right.namespace,
        }},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = api.create(path, &review).await.ok()?;
    answer["status"]["allowed"].as_bool()
}

#[cfg(test)]
mod tests {
    use agent::manifest::SyncedType;

    use super::*;

    fn settings() -> Settings {
        Settings {
            hub: "https://hub".into(),
            authority: None,
            token: None,
            cluster: "a".into(),
            target: "east".into(),
            uid: "u".into(),
            image: "agent".into(),
            pull_secret: None,
            version: "1".into(),
            types: vec![SyncedType { group: "apps".into(), resource: "deployments".into() }],
            statuses: Vec::new(),
        }
    }

    #[test]
    fn what_is_given_must_be_held() {
        let needed: Vec<String> = needed(&settings()).iter().map(ToString::to_string).collect();
        let own = settings().namespace();
        for right in [
            "create namespaces".to_owned(),
            "create clusterroles.rbac.authorization.k8s.io".to_owned(),
            format!("create deployments.apps in {own}"),
            "watch deployments.apps".to_owned(),
            "watch customresourcedefinitions.apiextensions.k8s.io".to_owned(),
            format!("update leases.coordination.k8s.io in {own}"),
        ] {
            assert!(needed.contains(&right), "{right}: {needed:?}");
        }
        assert!(needed.iter().all(|right| !right.contains('*')), "{needed:?}");
    }

    #[test]
    fn definitions_are_written_only_where_they_go_down() {
        let definitions = |settings: &Settings| -> Vec<String> {
            let all =
                needed(settings).into_iter().filter(|one| one.resource.starts_with("customr"));
            all.map(|right| right.verb).collect()
        };
        let (group, resource) = contract::DEFINITIONS;
        let synced = SyncedType { group: group.into(), resource: resource.into() };
        assert_eq!(definitions(&settings()), ["get", "list", "watch"]);
        let settings = Settings { types: vec![synced], ..settings() };
        let expect = ["create", "get", "list", "patch", "update", "watch"];
        assert_eq!(definitions(&settings), expect);
    }

    #[test]
    fn status_is_written_only_where_it_goes_down() {
        let named = |settings: &Settings| -> Vec<String> {
            let all = needed(settings).into_iter().filter(|one| !one.subresource.is_empty());
            all.map(|right| right.to_string()).collect()
        };
        assert_eq!(named(&settings()), [""; 0]);
        let settings = Settings { statuses: settings().types, ..settings() };
        assert_eq!(named(&settings), ["patch deployments.apps/status"]);
    }

    #[test]
    fn missing_rights_are_named_up_to_a_bound() {
        assert_eq!(told(&[]), None);
        let one = right("create", "apps", "deployments", "n");
        let message = told(std::slice::from_ref(&one)).unwrap();
        assert!(message.ends_with(": create deployments.apps in n"), "{message}");
        let message = told(&vec![one; 20]).unwrap();
        assert!(message.ends_with(", and 8 more"), "{message}");
    }
}
