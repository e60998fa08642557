//! What the operator may do without any binding: a pure function.
//!
//! It sees everything, since it places what people apply; it writes its own kinds, types, bootstrap
//! tokens, and marks on objects, and nothing else of anybody's. Roles and bindings may give it more.

use contract::{APIRESOURCE_GROUP, OPERATOR, OPERATORS, SCHEDULING_GROUP, WORKLOAD_GROUP};
use machinery::ClusterName;

use super::UserInfo;
use crate::auth::authz::{Attributes, is_below};
use crate::registry::ClusterScope;

/// What the names of the Secrets of bootstrap tokens begin with.
const BOOTSTRAP_SECRET: &str = "bootstrap-token-";

/// What the operator may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// Nothing.
    None,
    /// It may.
    Whole,
    /// It may, as long as nothing changes but state labels and finalizers of SyncTargets.
    Marks,
}

/// Whether a caller is the operator.
pub(crate) fn is_operator(user: &UserInfo) -> bool {
    user.home.is_none() && user.name == OPERATOR && user.is_in(OPERATORS)
}

/// The right of the operator.
pub(crate) fn right(scope: &ClusterScope, asked: &Attributes<'_>) -> Right {
    let Attributes::Resource { verb, group, resource, name, subresource, namespace } = *asked
    else {
        let Attributes::Path { verb, path } = *asked else { return Right::None };
        let document = is_below(path, &["/api", "/apis", "/openapi"]);
        return if verb == "get" && document { Right::Whole } else { Right::None };
    };
    let reads = matches!(verb, "get" | "list" | "watch");
    if reads && matches!(subresource, "" | "status" | "scale") {
        return Right::Whole;
    }
    let ClusterScope::One(cluster) = scope else { return Right::None };
    let writes = matches!(verb, "create" | "patch" | "update");
    let whole = match (group, resource) {
        (WORKLOAD_GROUP | APIRESOURCE_GROUP | SCHEDULING_GROUP, _) => true,
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            writes && matches!(subresource, "" | "status")
        }
        ("" | "events.k8s.io", "events") => writes && subresource.is_empty(),
        // Agents introduce themselves with these. A creation without a name in its path may be of any.
        ("", "secrets") => {
            let token = namespace == "kube-system" && name.starts_with(BOOTSTRAP_SECRET);
            token && subresource.is_empty() && (writes || verb == "delete")
        }
        ("coordination.k8s.io", "leases") => {
            let led = cluster.is_root() || *cluster == ClusterName::system_crds();
            led && writes && subresource.is_empty()
        }
        _ => false,
    };
    if whole {
        Right::Whole
    } else if verb == "patch" && subresource.is_empty() {
        Right::Marks
    } else {
        Right::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(cluster: &str) -> ClusterScope {
        ClusterScope::One(ClusterName::parse(cluster).unwrap())
    }

    #[test]
    fn who_it_is() {
        let check =
            |user: UserInfo, expect: bool| assert_eq!(is_operator(&user), expect, "{user:?}");
        let operator = || UserInfo::known(OPERATOR, &[OPERATORS]);
        check(operator(), true);
        check(UserInfo::known(OPERATOR, &[]), false);
        check(UserInfo::known("eve", &[OPERATORS]), false);
        let home = ClusterName::parse("a").ok();
        check(UserInfo { home, ..operator() }, false);
    }

    #[test]
    fn what_it_may() {
        let check = |scope: &ClusterScope, what: [&str; 4], expect: Right| {
            let [verb, group, resource, subresource] = what;
            let (namespace, name) = ("", "x");
            let asked =
                Attributes::Resource { verb, group, resource, name, subresource, namespace };
            assert_eq!(right(scope, &asked), expect, "{scope:?} {what:?}");
        };
        let crds = ["apiextensions.k8s.io", "customresourcedefinitions"];
        let (all, a) = (ClusterScope::All, one("a"));
        check(&all, ["list", "", "secrets", ""], Right::Whole);
        check(&all, ["patch", "", "secrets", ""], Right::None);
        check(&a, ["get", "", "secrets", ""], Right::Whole);
        check(&a, ["patch", "", "secrets", ""], Right::Marks);
        for verb in ["create", "update", "delete", "deletecollection", "impersonate"] {
            check(&a, [verb, "", "secrets", ""], Right::None);
        }
        check(&a, ["patch", "apps", "deployments", "status"], Right::None);
        check(&a, ["patch", "", "namespaces", "finalize"], Right::None);
        check(&a, ["delete", WORKLOAD_GROUP, "objectsyncs", ""], Right::Whole);
        check(&a, ["update", SCHEDULING_GROUP, "placements", "status"], Right::Whole);
        check(&one("system:crds"), ["create", crds[0], crds[1], ""], Right::Whole);
        check(&one("system:crds"), ["delete", crds[0], crds[1], ""], Right::None);
        check(&a, ["create", "coordination.k8s.io", "leases", ""], Right::None);
        check(&one("root"), ["create", "coordination.k8s.io", "leases", ""], Right::Whole);
        check(&a, ["create", "rbac.authorization.k8s.io", "clusterroles", ""], Right::None);
        for (namespace, name, verb, expect) in [
            ("kube-system", "bootstrap-token-abcdef", "patch", Right::Whole),
            ("kube-system", "bootstrap-token-abcdef", "delete", Right::Whole),
            ("kube-system", "", "create", Right::None),
            ("kube-system", "other", "patch", Right::Marks),
            ("default", "bootstrap-token-abcdef", "patch", Right::Marks),
        ] {
            let asked = Attributes::Resource {
                verb,
                group: "",
                resource: "secrets",
                name,
                subresource: "",
                namespace,
            };
            assert_eq!(right(&a, &asked), expect, "{verb} {namespace}/{name}");
        }
        let path = |verb, path| right(&all, &Attributes::Path { verb, path });
        assert_eq!(path("get", "/apis/apps"), Right::Whole);
        assert_eq!(path("get", "/metrics"), Right::None);
        assert_eq!(path("post", "/apis"), Right::None);
    }
}
