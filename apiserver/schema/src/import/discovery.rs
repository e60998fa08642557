//! What a cluster serves, read from either form of its discovery.

use machinery::GroupVersion;
use serde_json::Value;

/// An API group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveredGroup {
    /// Its name, empty for core.
    pub name: Box<str>,
    /// Its versions, the preferred one first.
    pub versions: Vec<DiscoveredVersion>,
}

/// A version of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveredVersion {
    /// Its name, as `v1`.
    pub version: Box<str>,
    /// Its resources.
    pub resources: Vec<DiscoveredResource>,
    /// Whether the cluster couldn't ask the server that stands behind it, so that what is listed
    /// may be old.
    pub stale: bool,
}

/// A resource of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveredResource {
    /// The plural name.
    pub plural: Box<str>,
    /// The singular name; the kind in lower case where the cluster doesn't tell.
    pub singular: Box<str>,
    /// The kind of its objects.
    pub kind: Box<str>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Vec<Box<str>>,
    /// Short names.
    pub short_names: Vec<Box<str>>,
    /// Categories.
    pub categories: Vec<Box<str>>,
    /// The names of its subresources, as `status`.
    pub subresources: Vec<Box<str>>,
}

/// The groups of an `APIGroupDiscoveryList` (v2), as `/api` and `/apis` answer it.
///
/// What can't be read is left out.
pub fn groups(list: &Value) -> Vec<DiscoveredGroup> {
    let group = |item: &Value| DiscoveredGroup {
        name: text(&item["metadata"], "name").into(),
        versions: array(item, "versions").iter().filter_map(version).collect(),
    };
    array(list, "items").iter().map(group).filter(|g| !g.versions.is_empty()).collect()
}

fn version(item: &Value) -> Option<DiscoveredVersion> {
    let name = text(item, "version");
    let resource = |item: &Value| {
        let kind = &item["responseKind"];
        DiscoveredResource::new(text(item, "resource"), text(kind, "kind")).map(|mut resource| {
            resource.set_singular(text(item, "singularResource"));
            resource.namespaced = text(item, "scope") == "Namespaced";
            resource.set_lists(item);
            let below = array(item, "subresources").iter().map(|s| text(s, "subresource").into());
            resource.subresources = below.collect();
            resource
        })
    };
    (!name.is_empty()).then(|| DiscoveredVersion {
        version: name.into(),
        resources: array(item, "resources").iter().filter_map(resource).collect(),
        stale: text(item, "freshness") == "Stale",
    })
}

/// The group and version of an `APIResourceList`, as `/apis/<group>/<version>` answers it; `None`
/// if it isn't one.
pub fn resource_list(list: &Value) -> Option<(Box<str>, DiscoveredVersion)> {
    let gv = GroupVersion::parse(text(list, "groupVersion"))?;
    let mut resources: Vec<DiscoveredResource> = Vec::new();
    let items = array(list, "resources");
    for item in items {
        let name = text(item, "name");
        if name.contains('/') {
            continue;
        }
        let Some(mut resource) = DiscoveredResource::new(name, text(item, "kind")) else {
            continue;
        };
        resource.set_singular(text(item, "singularName"));
        resource.namespaced = item["namespaced"] == true;
        resource.set_lists(item);
        let below = items.iter().filter_map(|i| text(i, "name").split_once('/'));
        let below = below.filter(|(parent, _)| *parent == name);
        resource.subresources = below.map(|(_, subresource)| subresource.into()).collect();
        resources.push(resource);
    }
    let version = (*gv.version).into();
    Some(((*gv.group).into(), DiscoveredVersion { version, resources, stale: false }))
}

// === impl DiscoveredResource ===

impl DiscoveredResource {
    fn new(plural: &str, kind: &str) -> Option<Self> {
        (!plural.is_empty() && !kind.is_empty()).then(|| Self {
            plural: plural.into(),
            singular: kind.to_lowercase().into(),
            kind: kind.into(),
            namespaced: false,
            verbs: Vec::new(),
            short_names: Vec::new(),
            categories: Vec::new(),
            subresources: Vec::new(),
        })
    }

    fn set_singular(&mut self, name: &str) {
        if !name.is_empty() {
            self.singular = name.into();
        }
    }

    fn set_lists(&mut self, item: &Value) {
        let texts = |name: &str| {
            let items = array(item, name).iter().filter_map(Value::as_str);
            items.map(Box::from).collect()
        };
        self.verbs = texts("verbs");
        self.short_names = texts("shortNames");
        self.categories = texts("categories");
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn array<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
