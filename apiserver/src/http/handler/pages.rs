//! The paths that are no resources: one table, by which they are answered and listed.
//!
//! What is not in [`PAGES`] can't be answered, and a test holds it against the table of who may ask
//! for what (`tests/it/data/routes.txt`), so no path is without a decision about rights.

use crate::http::issuer;

/// What answers a path. All but the last are read only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// The paths that there are.
    Index,
    /// The version of the server.
    Version,
    /// The metrics of the server.
    Metrics,
    /// About the issuer of ServiceAccounts' tokens.
    Issuer,
    /// Discovery of all groups.
    Groups,
    /// Discovery of one group or version.
    Group,
    /// OpenAPI of all groups in one document.
    OpenApi,
    /// OpenAPI by group and version.
    OpenApiParts,
    /// Whether the server is well.
    Health,
    /// For those who debug the server, where that is wanted.
    Debug,
}

/// A path, and what answers it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The path; `/*` at its end stands for anything below.
    pub(super) path: &'static str,
    page: Page,
    /// Whether the index names it; it names groups and versions by what is served.
    listed: bool,
}

/// Every path.
pub(super) const PAGES: [Entry; 22] = [
    entry("/", Page::Index, false),
    entry(issuer::CONFIGURATION, Page::Issuer, true),
    entry("/api", Page::Groups, true),
    entry("/api/*", Page::Group, false),
    entry("/apis", Page::Groups, true),
    entry("/apis/*", Page::Group, false),
    entry("/debug/flags/v", Page::Debug, true),
    entry("/debug/pprof", Page::Debug, true),
    entry("/debug/pprof/*", Page::Debug, false),
    entry("/debug/state", Page::Debug, true),
    entry("/healthz", Page::Health, true),
    entry("/healthz/*", Page::Health, false),
    entry("/livez", Page::Health, true),
    entry("/livez/*", Page::Health, false),
    entry("/metrics", Page::Metrics, true),
    entry("/openapi/v2", Page::OpenApi, true),
    entry("/openapi/v3", Page::OpenApiParts, true),
    entry("/openapi/v3/*", Page::OpenApiParts, false),
    entry(issuer::KEYS, Page::Issuer, true),
    entry("/readyz", Page::Health, true),
    entry("/readyz/*", Page::Health, false),
    entry("/version", Page::Version, true),
];

const fn entry(path: &'static str, page: Page, listed: bool) -> Entry {
    Entry { path, page, listed }
}

impl Page {
    /// What answers a path without a slash at its end; `None` where nothing does.
    pub(super) fn of(path: &str) -> Option<Self> {
        let is = |entry: &&Entry| match entry.path.strip_suffix("/*") {
            Some(above) => path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/')),
            None => entry.path.trim_end_matches('/') == path,
        };
        PAGES.iter().find(is).map(|entry| entry.page)
    }

    /// The paths that the index names; those for debugging only where they are there.
    pub(super) fn listed(debug: bool) -> impl Iterator<Item = &'static str> {
        let listed = move |entry: &&Entry| entry.listed && (debug || entry.page != Self::Debug);
        PAGES.iter().filter(listed).map(|entry| entry.path)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use schema::Types;

    use super::*;

    #[test]
    fn pages_by_path() {
        let check = |path: &str, expect| assert_eq!(Page::of(path), expect, "{path}");
        check("", Some(Page::Index));
        check("/api", Some(Page::Groups));
        check("/api/v1", Some(Page::Group));
        check("/apis/apps/v1/anything", Some(Page::Group));
        check("/healthz/ping", Some(Page::Health));
        check("/openapi/v3/apis/apps/v1", Some(Page::OpenApiParts));
        check("/debug/pprof", Some(Page::Debug));
        check("/debug/pprof/profile", Some(Page::Debug));
        let named = |debug| Page::listed(debug).any(|path| path.starts_with("/debug"));
        assert!(named(true) && !named(false));
        for nothing in [
            "/",
            "/apix",
            "/healthzz",
            "/openapi",
            "/openapi/v2/x",
            "//api",
            "api",
            "/debug",
            "/debug/flags",
            "/debug/flags/v/x",
        ] {
            check(nothing, None);
        }
    }

    /// Every route has its lines in the table of who may ask for it, and no line is of no route.
    #[test]
    fn every_route_is_in_the_table_of_rights() {
        let mut routes = BTreeSet::new();
        for entry in PAGES {
            for verb in ["get", "post", "put", "patch", "delete"] {
                routes.insert(format!("{verb} {}", entry.path));
            }
        }
        for resource in Types::builtin().resources() {
            for version in resource.versions.iter().filter(|version| version.served) {
                let place = match &*resource.group {
                    "" => format!("{}/{}", version.name, resource.plural),
                    group => format!("{group}/{}/{}", version.name, resource.plural),
                };
                let own = resource.verbs.iter().map(|verb| (String::new(), verb));
                let parts = resource.subresources.iter().flat_map(|part| {
                    part.verbs.iter().map(|verb| (format!("/{}", part.name), verb))
                });
                for (part, verb) in own.chain(parts) {
                    routes.insert(format!("{} {place}{part}", verb.as_str()));
                }
            }
        }
        let table = include_str!("../../../tests/it/data/routes.txt");
        let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let decided: BTreeSet<String> = lines
            .map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
            .collect();
        let undecided: Vec<_> = routes.difference(&decided).collect();
        assert!(undecided.is_empty(), "no line says who may: {undecided:#?}");
        let unknown: Vec<_> = decided.difference(&routes).collect();
        assert!(unknown.is_empty(), "there is no such route: {unknown:#?}");
    }
}
