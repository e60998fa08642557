//! What a caller may do: a pure function of the caller and of what is asked.
//!
//! Members of `system:masters` may do everything; anybody may see that the server is there and
//! well; everything else is refused.

use crate::auth::{MASTERS, UserInfo};

/// What is asked, as an authorizer sees it.
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

/// The answer of an authorizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Allow,
    /// With what the caller is told.
    Deny(String),
}

/// Decides about one request.
pub(crate) fn authorize(user: &UserInfo, attributes: &Attributes<'_>) -> Decision {
    let allowed = user.is_in(MASTERS)
        || matches!(attributes, Attributes::Path { verb: "get", path } if is_public(path));
    if allowed { Decision::Allow } else { Decision::Deny(refusal(user, attributes)) }
}

/// Whether a path tells only that the server is there, its version, and that it is well.
pub(crate) fn is_public(path: &str) -> bool {
    let path = path.strip_suffix('/').unwrap_or(path);
    ["/healthz", "/livez", "/readyz"].iter().any(|base| {
        path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }) || path == "/version"
}

/// The text that a caller is told, as upstream words it.
fn refusal(user: &UserInfo, attributes: &Attributes<'_>) -> String {
    let name = machinery::field::go_quote(&user.name);
    match *attributes {
        Attributes::Path { verb, path } => {
            let path = machinery::field::go_quote(path);
            format!("User {name} cannot {verb} path {path}")
        }
        Attributes::Resource { verb, group, resource, subresource, namespace, .. } => {
            let slash = if subresource.is_empty() { "" } else { "/" };
            let place = if namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {}", machinery::field::go_quote(namespace))
            };
            format!(
                "User {name} cannot {verb} resource \"{resource}{slash}{subresource}\" \
                 in API group \"{group}\" {place}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRETS: Attributes<'_> = Attributes::Resource {
        verb: "list",
        group: "",
        resource: "secrets",
        name: "",
        subresource: "",
        namespace: "a",
    };

    #[test]
    fn masters_may_everything_and_others_nothing() {
        let admin = UserInfo::known("admin", &[MASTERS]);
        let other = UserInfo::known("eve", &["system:master"]);
        assert_eq!(authorize(&admin, &SECRETS), Decision::Allow);
        let text = "User \"eve\" cannot list resource \"secrets\" in API group \"\" in the \
                    namespace \"a\"";
        assert_eq!(authorize(&other, &SECRETS), Decision::Deny(text.into()));
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
        assert_eq!(authorize(&other, &status), Decision::Deny(text.into()));
    }

    #[test]
    fn anybody_may_see_that_the_server_is_well() {
        let anybody = UserInfo::anonymous();
        let check = |verb: &str, path: &str, allowed: bool| {
            let decision = authorize(&anybody, &Attributes::Path { verb, path });
            assert_eq!(decision == Decision::Allow, allowed, "{verb} {path}");
        };
        for path in ["/healthz", "/livez", "/readyz", "/readyz/ping", "/version", "/version/"] {
            check("get", path, true);
            check("post", path, false);
        }
        for path in ["/", "/api", "/apis", "/metrics", "/healthzz", "/versions", "/openapi/v3", ""]
        {
            check("get", path, false);
        }
        let denied = authorize(&anybody, &Attributes::Path { verb: "get", path: "/api" });
        let text = "User \"system:anonymous\" cannot get path \"/api\"";
        assert_eq!(denied, Decision::Deny(text.into()));
    }
}
