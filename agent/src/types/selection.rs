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
    /// Whether definitions of types go down.
    definitions: bool,
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
    /// and whether its `namespaceMapping` is `Hashed`. Definitions of types come to whatever else is
    /// named, or to the usual ones.
    pub fn of<'a>(resources: impl IntoIterator<Item = &'a str>, hashed: bool) -> Self {
        let (mut named, mut all, mut definitions) = (Vec::new(), false, false);
        for resource in resources {
            let (group, plural) = contract::parse_type_name(resource);
            if (group, plural) == contract::DEFINITIONS {
                definitions = true;
            } else if matches!(resource, "*" | "*.") {
                all = true;
            } else {
                named.push((group.to_owned(), plural.to_owned()));
            }
        }
        let asked = match (all, named.is_empty()) {
            (true, _) => Asked::All,
            (false, true) => Asked::Usual,
            (false, false) => Asked::Named(named),
        };
        Self { asked, definitions, hashed }
    }

    /// As [`Self::of`], and nothing but what is named: definitions alone, if only they are.
    pub fn of_named<'a>(resources: impl IntoIterator<Item = &'a str>) -> Self {
        let selection = Self::of(resources, false);
        match selection.asked {
            Asked::Usual if selection.definitions => {
                Self { asked: Asked::Named(Vec::new()), ..selection }
            }
            _ => selection,
        }
    }

    /// Whether definitions of types go down.
    pub fn has_definitions(&self) -> bool {
        self.definitions
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
            _ if (group, plural) == contract::DEFINITIONS => self.definitions,
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

    /// They come by their own name, and take nothing away.
    #[test]
    fn definitions() {
        const NAME: &str = "customresourcedefinitions.apiextensions.k8s.io";
        let check = |named: &[&str], asked: &Asked, expect: bool| {
            let selection = Selection::of(named.iter().copied(), false);
            let (group, plural) = contract::DEFINITIONS;
            assert_eq!(&selection.asked, asked, "{named:?}");
            assert_eq!(selection.has_definitions(), expect, "{named:?}");
            assert_eq!(selection.has(group, plural), expect, "{named:?}");
        };
        check(&[], &Asked::Usual, false);
        check(&["*"], &Asked::All, false);
        check(&["*", NAME], &Asked::All, true);
        check(&[NAME], &Asked::Usual, true);
        let things = Asked::Named(vec![("x.io".to_owned(), "things".to_owned())]);
        check(&["things.x.io", NAME], &things, true);
        let all = Asked::Named(vec![("apiextensions.k8s.io".to_owned(), "*".to_owned())]);
        check(&["*.apiextensions.k8s.io"], &all, false);
        let alone = Selection::of_named([NAME]);
        assert!(alone.has_definitions() && !alone.has_custom("x.io", "things"));
        assert_eq!(Selection::of_named([]), Selection::of([], false));
    }
}
