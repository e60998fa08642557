//! One rule of a role, and whether it allows something.

use std::sync::Arc;

use machinery::field::go_quote;
use serde::{Deserialize, Deserializer, Serialize};

use crate::auth::authz::Attributes;

/// The rules of a role: its own in one part, or those of the roles that it collects them from.
pub(crate) type Rules = Arc<[Arc<[Rule]>]>;

/// A rule (`rbac/v1.PolicyRule`). `*` stands for all where upstream has it so.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    #[serde(deserialize_with = "or_nothing")]
    pub(crate) verbs: Box<[Box<str>]>,
    #[serde(deserialize_with = "or_nothing", skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) api_groups: Box<[Box<str>]>,
    #[serde(deserialize_with = "or_nothing", skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) resources: Box<[Box<str>]>,
    #[serde(deserialize_with = "or_nothing", skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) resource_names: Box<[Box<str>]>,
    #[serde(
        rename = "nonResourceURLs",
        deserialize_with = "or_nothing",
        skip_serializing_if = "<[_]>::is_empty"
    )]
    pub(crate) non_resource_urls: Box<[Box<str>]>,
}

/// Null counts as nothing, as Go has it.
pub(super) fn or_nothing<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

// === impl Rule ===

impl Rule {
    /// Whether the rule allows what is asked.
    pub(crate) fn allows(&self, asked: &Attributes<'_>) -> bool {
        match *asked {
            Attributes::Path { verb, path } => {
                has(&self.verbs, verb)
                    && self.non_resource_urls.iter().any(|url| url_covers(url, path))
            }
            Attributes::Resource { verb, group, resource, name, subresource, .. } => {
                has(&self.verbs, verb)
                    && has(&self.api_groups, group)
                    && self.resources.iter().any(|given| is_resource(given, resource, subresource))
                    && (self.resource_names.is_empty() || holds(&self.resource_names, name))
            }
        }
    }

    /// The rule as refusals print it.
    pub(crate) fn printed(&self) -> String {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let parts = parts.iter().filter(|(_, texts)| !texts.is_empty());
        let parts = parts.map(|(name, texts)| format!("{name}:{}", quoted(texts.iter())));
        format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))
    }

    /// Bytes that the rule takes in memory, roughly.
    pub(super) fn cost(&self) -> usize {
        let lists = [
            &self.verbs,
            &self.api_groups,
            &self.resources,
            &self.resource_names,
            &self.non_resource_urls,
        ];
        let texts = lists.iter().flat_map(|list| list.iter());
        size_of::<Self>() + texts.map(|text| text.len() + size_of::<Box<str>>()).sum::<usize>()
    }
}

/// A list of texts as Go prints it with `%q`.
pub(crate) fn quoted<S: AsRef<str>>(texts: impl Iterator<Item = S>) -> String {
    let texts: Vec<String> = texts.map(|text| go_quote(text.as_ref())).collect();
    format!("[{}]", texts.join(" "))
}

/// Whether a list has exactly this text.
pub(super) fn holds(list: &[Box<str>], text: &str) -> bool {
    list.iter().any(|held| **held == *text)
}

/// Whether a list has this text, or `*`.
pub(super) fn has(list: &[Box<str>], text: &str) -> bool {
    list.iter().any(|held| matches!(&**held, "*") || **held == *text)
}

/// Whether a rule's path, which may end with `*`, includes a path.
pub(super) fn url_covers(url: &str, path: &str) -> bool {
    url == path || (url.ends_with('*') && path.starts_with(url.trim_end_matches('*')))
}

/// Whether `given`, as `pods`, `pods/log`, `*/scale` or `*`, names a resource or its subresource.
fn is_resource(given: &str, resource: &str, subresource: &str) -> bool {
    if given == "*" {
        return true;
    }
    if subresource.is_empty() {
        return given == resource;
    }
    let Some(of) = given.strip_suffix(subresource).and_then(|of| of.strip_suffix('/')) else {
        return false;
    };
    of == "*" || of == resource
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rule(value: Value) -> Rule {
        serde_json::from_value(value).unwrap()
    }

    /// `get pods.g a ns`, or `get /path`.
    fn asked(text: &str) -> Attributes<'_> {
        let mut words = text.split(' ');
        let verb = words.next().unwrap();
        let what = words.next().unwrap();
        if what.starts_with('/') {
            return Attributes::Path { verb, path: what };
        }
        let (what, group) = what.split_once('.').unwrap_or((what, ""));
        let (resource, subresource) = what.split_once('/').unwrap_or((what, ""));
        let name = words.next().unwrap_or_default();
        Attributes::Resource { verb, group, resource, name, subresource, namespace: "" }
    }

    #[test]
    fn rules_allow_as_upstream() {
        let check = |value: Value, allowed: &[&str], refused: &[&str]| {
            let rule = rule(value);
            for text in allowed {
                assert!(rule.allows(&asked(text)), "{text} by {rule:?}");
            }
            for text in refused {
                assert!(!rule.allows(&asked(text)), "{text} by {rule:?}");
            }
        };
        check(
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "pods/log"]}),
            &["get pods", "get pods a", "get pods/log a"],
            &["list pods", "get pods.g", "get pods/exec a", "get pod", "get /pods", "* pods"],
        );
        check(
            json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
            &["get pods", "anything x.y/z a", "* *.*", "get pods/log"],
            &["get /", "get /healthz"],
        );
        check(
            json!({"verbs": ["update"], "apiGroups": ["apps"], "resources": ["*/scale"]}),
            &["update deployments/scale.apps"],
            &["update deployments.apps", "update scale.apps", "update deployments/xscale.apps"],
        );
        check(
            json!({
                "verbs": ["get", "list", "create"], "apiGroups": [""],
                "resources": ["secrets"], "resourceNames": ["a", "b"],
            }),
            &["get secrets a", "list secrets b"],
            &["get secrets c", "list secrets", "create secrets"],
        );
        check(
            json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/apis/*", "/b**"]}),
            &["get /healthz", "get /apis/", "get /apis/x/y", "get /b", "get /bx"],
            &["get /healthz/", "get /apis", "post /healthz", "get /a", "get pods"],
        );
        check(json!({"verbs": ["get"], "nonResourceURLs": ["*"]}), &["get /", "get /x"], &[]);
        check(json!({"verbs": null, "apiGroups": null}), &[], &["get pods", "get /"]);
    }

    #[test]
    fn rules_are_printed_as_upstream() {
        let all = json!({
            "verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"],
            "resourceNames": ["a\"b"],
        });
        let text = "{APIGroups:[\"\"], Resources:[\"pods\"], ResourceNames:[\"a\\\"b\"], \
                    Verbs:[\"get\" \"list\"]}";
        assert_eq!(rule(all).printed(), text);
        let path = json!({"verbs": ["get"], "nonResourceURLs": ["/x"]});
        assert_eq!(rule(path).printed(), "{NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}");
        assert_eq!(rule(json!({})).printed(), "{}");
    }
}
