//! The policy: the first rule that a request meets says how much is told of it.

use std::path::Path;

use machinery::json::Limits;
use serde::Deserialize;

use super::event::Stage;
use crate::auth::UserInfo;

/// Why a policy can't be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file.
    #[error("read {path}")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// It is no policy.
    #[error("{path} is no audit policy: {why}")]
    Content {
        /// The file.
        path: String,
        /// What is wrong.
        why: String,
    },
}

/// How much is told.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    None,
    Metadata,
    Request,
    RequestResponse,
}

/// What a policy says of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) level: Level,
    pub(crate) omitted: Vec<Stage>,
    pub(crate) omit_managed_fields: bool,
}

/// A request as rules see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// The caller, unless they are not known. Who they act as does not count.
    pub(crate) user: Option<&'a UserInfo>,
    /// The verb.
    pub(crate) verb: &'static str,
    /// The path without the logical cluster.
    pub(crate) path: &'a str,
    /// Group, resource, subresource, namespace and name of a resource's path.
    pub(crate) resource: Option<AskedResource<'a>>,
}

/// The parts of a path to a resource.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AskedResource<'a> {
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// `audit.k8s.io/v1` Policy.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Policy {
    api_version: String,
    kind: String,
    #[serde(default, rename = "metadata")]
    _metadata: serde_json::Value,
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    #[serde(default)]
    omit_managed_fields: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    level: Level,
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    user_groups: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    resources: Vec<GroupResources>,
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default, rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    #[serde(default)]
    omit_stages: Vec<Stage>,
    omit_managed_fields: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GroupResources {
    #[serde(default)]
    group: String,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
}

/// Resources whose objects hold secrets or tokens, in whatever group they are served: their bodies
/// are never told. ConfigMaps are among them, as many hold credentials.
const SECRET: [&str; 4] = ["secrets", "configmaps", "tokenreviews", "synctargets"];

// === impl Policy ===

impl Policy {
    pub(super) fn read(path: &Path) -> Result<Self, PolicyError> {
        let name = || path.display().to_string();
        let text =
            std::fs::read(path).map_err(|source| PolicyError::Read { path: name(), source })?;
        Self::parse(&text).map_err(|why| PolicyError::Content { path: name(), why })
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        let parsed = machinery::json::yaml(text, &Limits::default()).map_err(|e| e.message)?;
        let policy: Self =
            serde_json::from_value(parsed.value).map_err(|error| error.to_string())?;
        if policy.api_version != "audit.k8s.io/v1" || policy.kind != "Policy" {
            return Err("it is not of audit.k8s.io/v1 and kind Policy".into());
        }
        if policy.rules.is_empty() {
            return Err("it has no rules".into());
        }
        for (index, rule) in policy.rules.iter().enumerate() {
            rule.check().map_err(|why| format!("rules[{index}]: {why}"))?;
        }
        Ok(policy)
    }

    /// What is told of a request; `None` for nothing.
    pub(super) fn of(&self, asked: &Asked<'_>) -> Option<Told> {
        let rule = self.rules.iter().find(|rule| rule.matches(asked))?;
        let secret = asked.resource.is_some_and(|path| {
            SECRET.contains(&path.resource)
                || (path.resource == "serviceaccounts" && path.subresource == "token")
        });
        let level = if secret { rule.level.min(Level::Metadata) } else { rule.level };
        let mut omitted = self.omit_stages.clone();
        omitted.extend(&rule.omit_stages);
        let omit_managed_fields = rule.omit_managed_fields.unwrap_or(self.omit_managed_fields);
        (level > Level::None).then_some(Told { level, omitted, omit_managed_fields })
    }
}

// === impl Rule ===

impl Rule {
    fn check(&self) -> Result<(), &'static str> {
        let of_resources = !self.resources.is_empty() || !self.namespaces.is_empty();
        if of_resources && !self.non_resource_urls.is_empty() {
            return Err("rules cannot apply to both regular resources and non-resource URLs");
        }
        let bad = |url: &String| {
            let star = url.find('*');
            let early = star.is_some_and(|star| star + 1 != url.len());
            url != "*" && (!url.starts_with('/') || early)
        };
        if self.non_resource_urls.iter().any(bad) {
            return Err("non-resource URLs begin with '/' and may end with '*'");
        }
        let nameless =
            |of: &GroupResources| !of.resource_names.is_empty() && of.resources.is_empty();
        if self.resources.iter().any(nameless) {
            return Err("resourceNames requires at least one resource");
        }
        Ok(())
    }

    fn matches(&self, asked: &Asked<'_>) -> bool {
        let has =
            |list: &[String], item: &str| list.is_empty() || list.iter().any(|own| own == item);
        if !has(&self.verbs, asked.verb) {
            return false;
        }
        if !self.users.is_empty() && !asked.user.is_some_and(|user| has(&self.users, &user.name)) {
            return false;
        }
        let in_group =
            |user: &UserInfo| user.groups.iter().any(|held| has(&self.user_groups, held));
        if !self.user_groups.is_empty() && !asked.user.is_some_and(in_group) {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return asked.resource.is_some_and(|path| {
                has(&self.namespaces, path.namespace)
                    && (self.resources.is_empty() || self.resources.iter().any(|r| r.matches(path)))
            });
        }
        if !self.non_resource_urls.is_empty() {
            return asked.resource.is_none()
                && self.non_resource_urls.iter().any(|url| match url.strip_suffix('*') {
                    Some(prefix) => asked.path.starts_with(prefix),
                    None => url == asked.path,
                });
        }
        true
    }
}

// === impl GroupResources ===

impl GroupResources {
    fn matches(&self, path: AskedResource<'_>) -> bool {
        if self.group != path.group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let named = self.resource_names.is_empty()
            || self.resource_names.iter().any(|name| name == path.name);
        named
            && self.resources.iter().any(|own| match own.split_once('/') {
                _ if own == "*" => true,
                Some(("*", subresource)) => subresource == path.subresource,
                Some((resource, "*")) => resource == path.resource,
                Some((resource, subresource)) => {
                    resource == path.resource && subresource == path.subresource
                }
                None => own == path.resource && path.subresource.is_empty(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(policy: &Policy, user: &UserInfo, verb: &'static str, path: &str) -> Option<Level> {
        // namespace/resource/name/subresource, or a path.
        let parts: Vec<&str> = path.split('|').collect();
        let resource = match parts.as_slice() {
            [group, namespace, resource, name, subresource] => {
                Some(AskedResource { group, resource, subresource, namespace, name })
            }
            _ => None,
        };
        let asked = Asked { user: Some(user), verb, path, resource };
        policy.of(&asked).map(|told| told.level)
    }

    #[test]
    fn the_first_rule_decides() {
        let policy = Policy::parse(
            br#"{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [
              {level: None, users: [quiet]},
              {level: None, nonResourceURLs: ["/healthz*", /version]},
              {level: Request, userGroups: [watched], verbs: [create], omitStages: [Panic]},
              {level: RequestResponse, resources: [{resources: [pods/log, secrets]}]},
              {level: Request, namespaces: [prod], omitManagedFields: true, resources: [
                {group: apps, resources: [deployments], resourceNames: [web]},
                {resources: [serviceaccounts, "serviceaccounts/*", "*/status"]}]},
              {level: Metadata, resources: [{group: g.io}]},
              {level: Metadata, namespaces: [""]}]}"#,
        )
        .unwrap();
        let ann = UserInfo::known("ann", &["watched"]);
        let bob = UserInfo::known("bob", &[]);
        let check = |user: &UserInfo, verb: &'static str, path: &str, expect: Option<Level>| {
            assert_eq!(level(&policy, user, verb, path), expect, "{} {verb} {path}", user.name);
        };
        check(&UserInfo::known("quiet", &["watched"]), "create", "|prod|pods||", None);
        check(&ann, "create", "|prod|pods||", Some(Level::Request));
        check(&ann, "create", "/healthz/x", None);
        check(&bob, "get", "|a|pods|x|log", Some(Level::RequestResponse));
        check(&bob, "get", "|a|pods|x|", None);
        // Secrets are told of, never told.
        check(&bob, "get", "|a|secrets|x|", Some(Level::Metadata));
        check(&ann, "create", "|a|secrets||", Some(Level::Metadata));
        check(&ann, "create", "authentication.k8s.io||tokenreviews||", Some(Level::Metadata));
        check(&ann, "create", "|prod|serviceaccounts|x|token", Some(Level::Metadata));
        check(&bob, "get", "apps|prod|deployments|web|", Some(Level::Request));
        check(&bob, "get", "apps|prod|deployments|other|", None);
        check(&bob, "get", "apps|test|deployments|web|", None);
        check(&bob, "get", "|prod|serviceaccounts|x|", Some(Level::Request));
        check(&bob, "get", "|prod|things|x|status", Some(Level::Request));
        check(&bob, "list", "g.io|x|any||", Some(Level::Metadata));
        check(&bob, "list", "||nodes||", Some(Level::Metadata));
        check(&bob, "get", "/metrics", None);
        let asked = Asked { user: Some(&ann), verb: "create", path: "/x", resource: None };
        let told = policy.of(&asked).unwrap();
        assert_eq!(told.omitted, [Stage::RequestReceived, Stage::Panic]);
        assert_eq!(policy.of(&Asked { user: None, ..asked }), None);
    }

    #[test]
    fn what_is_no_policy() {
        let check = |rules: &str, expect: &str| {
            let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: {rules}\n");
            let why = Policy::parse(text.as_bytes()).unwrap_err();
            assert!(why.contains(expect), "{why}");
        };
        check("[]", "no rules");
        check("[{level: All}]", "unknown variant");
        check("[{level: None, userz: [a]}]", "unknown field");
        check("[{level: None, nonResourceURLs: [x]}]", "rules[0]: non-resource URLs");
        check("[{level: None, nonResourceURLs: ['/a*b']}]", "may end");
        check("[{level: None, namespaces: [a], nonResourceURLs: ['*']}]", "both");
        check("[{level: None, resources: [{resourceNames: [a]}]}]", "resourceNames requires");
        assert!(Policy::parse(b"kind: Policy\napiVersion: v1\n").is_err());
        assert!(Policy::parse(b"\xff").is_err());
    }
}
