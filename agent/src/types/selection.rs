//! Which types of a cluster are of interest.

use schema::import::{DiscoveredResource, is_served_here, why_not};

/// The types of Kubernetes that are synced where a SyncTarget names none: what applications are made of.
/// Custom resources come to these.
pub const USUAL: [(&str, &str); 15] = [
    ("", "configmaps"),
    ("", "persistentvolumeclaims"),
    ("", "pods"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "statefulsets"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
    ("networking.k8s.io", "ingresses"),
    ("networking.k8s.io", "networkpolicies"),
    ("policy", "poddisruptionbudgets"),
];

/// Types that every hub has itself and that are synced all the same: they are compared with the
/// cluster's, and never published.
pub const SERVED_BY_HUBS: [(&str, &str); 3] =
    [("", "configmaps"), ("", "secrets"), ("", "serviceaccounts")];

/// Groups of this system's own types, which mean nothing in a physical cluster.
const OWN: &str = "kcp.io";

/// Which types of a cluster are of interest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    asked: Asked,
    /// Whether namespaces are called by hashes in the cluster.
    hashed: bool,
}

/// What a SyncTarget asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Every custom resource, and the [`USUAL`] types.
    Usual,
    /// All.
    All,
    /// Those of these names, as `deployments.apps`.
    Named(Vec<(String, String)>),
}

// === impl Selection ===

impl Selection {
    /// What a SyncTarget says: names as `deployments.apps`, `services` or `services.core`; `*` for all;
    /// and whether its `namespaceMapping` is `Hashed`.
    pub fn of<'a>(resources: impl IntoIterator<Item = &'a str>, hashed: bool) -> Self {
        let mut named = Vec::new();
        for resource in resources {
            if matches!(resource, "*" | "*.") {
                return Self { asked: Asked::All, hashed };
            }
            let (group, plural) = contract::parse_type_name(resource);
            named.push((group.to_owned(), plural.to_owned()));
        }
        let asked = if named.is_empty() { Asked::Usual } else { Asked::Named(named) };
        Self { asked, hashed }
    }

    /// What is asked for.
    pub fn asked(&self) -> &Asked {
        &self.asked
    }

    /// Whether a custom resource is of interest.
    pub fn has_custom(&self, group: &str, plural: &str) -> bool {
        !is_own(group) && (self.asked == Asked::Usual || self.has(group, plural))
    }

    /// Why a type that isn't a custom resource is not of interest, if it isn't.
    pub fn why_not(&self, group: &str, resource: &DiscoveredResource) -> Option<&'static str> {
        if !self.has(group, &resource.plural) {
            return Some("it is not asked for");
        }
        if self.hashed
            && let Some(why) = contract::why_not_hashed(group, &resource.plural)
        {
            return Some(why);
        }
        let hubs = SERVED_BY_HUBS.contains(&(group, &*resource.plural));
        if hubs && is_served_here(group, &resource.plural) {
            return None;
        }
        why_not(group, resource)
    }

    /// Whether a type that isn't a custom resource is of interest.
    pub fn has(&self, group: &str, plural: &str) -> bool {
        match &self.asked {
            _ if is_own(group) => false,
            Asked::All => true,
            Asked::Usual => USUAL.contains(&(group, plural)),
            Asked::Named(named) => {
                let is = |(g, p): &(String, String)| *g == group && (p == plural || p == "*");
                named.iter().any(is)
            }
        }
    }

    /// Whether any type of a group may be of interest, custom resources apart.
    pub fn has_group(&self, group: &str) -> bool {
        match &self.asked {
            Asked::All => !is_own(group),
            Asked::Usual => USUAL.iter().any(|(usual, _)| *usual == group),
            Asked::Named(named) => named.iter().any(|(named, _)| named == group),
        }
    }
}

fn is_own(group: &str) -> bool {
    group.strip_suffix(OWN).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_interest() {
        let usual = Selection::of([], false);
        assert_eq!(usual.asked, Asked::Usual);
        assert!(usual.has_custom("x.io", "things"));
        assert!(!usual.has_custom("workload.kcp.io", "synctargets"));
        assert!(usual.has("apps", "deployments") && usual.has_group("apps"));
        assert!(!usual.has("apps", "replicasets") && !usual.has_group("rbac.authorization.k8s.io"));
        let all = Selection::of(["a.b", "*"], false);
        assert_eq!(all.asked, Asked::All);
        assert!(!all.has("kcp.io", "things"));
        assert!(all.has("mykcp.io", "things"));
        let named = Selection::of(["things.x.io", "services", "pods.core"], false);
        assert!(named.has_custom("x.io", "things") && !named.has_custom("x.io", "others"));
        assert!(named.has("", "services") && named.has("", "pods") && !named.has("apps", "pods"));
        let all_of_one = Selection::of(["*.x.io"], false);
        assert!(all_of_one.has_custom("x.io", "others"));
    }
}
