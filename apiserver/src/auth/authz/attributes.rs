//! What an authorizer is asked.

use machinery::field::go_quote;

use crate::auth::UserInfo;

/// What is to be done, as an authorizer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attributes<'a> {
    /// A resource, or one object of it.
    Resource {
        /// The verb, as `get`.
        verb: &'a str,
        /// The group; empty for core.
        group: &'a str,
        /// The resource.
        resource: &'a str,
        /// The object's name, or empty.
        name: &'a str,
        /// The subresource, or empty.
        subresource: &'a str,
        /// The namespace, or empty.
        namespace: &'a str,
    },
    /// Any other path.
    Path {
        /// The method in lower case.
        verb: &'a str,
        /// The path without the logical cluster.
        path: &'a str,
    },
}

// === impl Attributes ===

impl Attributes<'_> {
    /// The same of all namespaces together.
    pub(crate) fn at_cluster_scope(&self) -> Self {
        match *self {
            Self::Path { .. } => *self,
            Self::Resource { verb, group, resource, name, subresource, .. } => {
                Self::Resource { verb, group, resource, name, subresource, namespace: "" }
            }
        }
    }

    /// What a caller is told who may not do it, as upstream words it.
    pub(crate) fn refusal(&self, user: &UserInfo) -> String {
        let name = go_quote(&user.name);
        match *self {
            Self::Path { verb, path } => {
                let path = go_quote(path);
                format!("User {name} cannot {verb} path {path}")
            }
            Self::Resource { verb, group, resource, subresource, namespace, .. } => {
                let slash = if subresource.is_empty() { "" } else { "/" };
                let place = if namespace.is_empty() {
                    "at the cluster scope".to_owned()
                } else {
                    format!("in the namespace {}", go_quote(namespace))
                };
                format!(
                    "User {name} cannot {verb} resource \"{resource}{slash}{subresource}\" in API \
                     group \"{group}\" {place}"
                )
            }
        }
    }
}

/// Whether a path tells only that the server is there, its version, and that it is well.
pub(crate) fn is_public(path: &str) -> bool {
    let path = path.strip_suffix('/').unwrap_or(path);
    is_below(path, &["/healthz", "/livez", "/readyz"]) || path == "/version"
}

/// Whether a path is one of `bases`, or stands below one.
pub(crate) fn is_below(path: &str, bases: &[&str]) -> bool {
    let rests = bases.iter().filter_map(|base| path.strip_prefix(base));
    { rests }.any(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_who_what_and_where() {
        let eve = UserInfo::known("eve", &[]);
        let check = |attributes: Attributes<'_>, expect: &str| {
            assert_eq!(attributes.refusal(&eve), expect);
        };
        let secrets = Attributes::Resource {
            verb: "list",
            group: "",
            resource: "secrets",
            name: "",
            subresource: "",
            namespace: "a",
        };
        let text = "User \"eve\" cannot list resource \"secrets\" in API group \"\" in the \
                    namespace \"a\"";
        check(secrets, text);
        let status = Attributes::Resource {
            verb: "update",
            group: "g.io",
            resource: "things",
            name: "a",
            subresource: "status",
            namespace: "",
        };
        let text = "User \"eve\" cannot update resource \"things/status\" in API group \"g.io\" \
                    at the cluster scope";
        check(status, text);
        let path = Attributes::Path { verb: "get", path: "/api" };
        check(path, "User \"eve\" cannot get path \"/api\"");
    }

    #[test]
    fn public_paths() {
        for path in ["/healthz", "/livez", "/readyz", "/readyz/ping", "/version", "/version/"] {
            assert!(is_public(path), "{path}");
        }
        for path in ["/", "/api", "/apis", "/metrics", "/healthzz", "/versions", "/openapi/v3", ""]
        {
            assert!(!is_public(path), "{path}");
        }
    }
}
