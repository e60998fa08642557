//! What the hub shows of imports, negotiated types and targets: a pure state.
//!
//! Invariants: an object is known by its logical cluster and name; what a list no longer holds is taken
//! away when the list is whole; each change answers what is to be looked at because of it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::entries::{Import, Negotiated, Place, Target};
use super::{Item, TypeKey};

/// Which of the watched kinds something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Target,
    Import,
    Negotiated,
    Cluster,
}

/// All that is known.
#[derive(Debug, Default)]
pub(super) struct Index {
    targets: BTreeMap<Place, Target>,
    imports: BTreeMap<Place, Import>,
    /// Where the imports of a resource are, by group and plural.
    by_type: BTreeMap<(String, String), BTreeSet<Place>>,
    negotiated: BTreeMap<Place, Negotiated>,
    /// Labels of logical clusters.
    clusters: BTreeMap<String, BTreeMap<String, String>>,
}

// === impl Index ===

impl Index {
    /// Something was made or has changed.
    pub(super) fn apply(&mut self, kind: Kind, place: Place, object: &Value) -> BTreeSet<Item> {
        match kind {
            Kind::Target => self.apply_target(&place, object),
            Kind::Import => self.apply_import(place, object),
            Kind::Negotiated => self.apply_negotiated(&place, object),
            Kind::Cluster => {
                let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
                let text = |(key, value): (&String, &Value)| {
                    (key.clone(), value.as_str().unwrap_or_default().to_owned())
                };
                let labels: BTreeMap<_, _> = labels.into_iter().flatten().map(text).collect();
                let (_, name) = place;
                if self.clusters.insert(name.clone(), labels.clone()) == Some(labels) {
                    return BTreeSet::new();
                }
                self.of_selectors(&name)
            }
        }
    }

    /// Something is gone.
    pub(super) fn delete(&mut self, kind: Kind, place: &Place) -> BTreeSet<Item> {
        match kind {
            Kind::Target => {
                let concerned = self.of_target(place);
                self.targets.remove(place);
                concerned
            }
            Kind::Import => {
                let Some(import) = self.imports.remove(place) else { return BTreeSet::new() };
                let concerned = self.of_import(&import);
                let name = (import.spec.group, import.spec.plural);
                if let Some(places) = self.by_type.get_mut(&name) {
                    places.remove(place);
                    if places.is_empty() {
                        self.by_type.remove(&name);
                    }
                }
                concerned
            }
            Kind::Negotiated => {
                let gone = self.negotiated.remove(place);
                gone.into_iter().map(|gone| Item::Type(gone.key(&place.0))).collect()
            }
            Kind::Cluster => {
                self.clusters.remove(&place.1);
                BTreeSet::new()
            }
        }
    }

    /// All were listed: there are no others.
    pub(super) fn keep(&mut self, kind: Kind, listed: &BTreeSet<Place>) -> BTreeSet<Item> {
        let known: Vec<Place> = match kind {
            Kind::Target => self.targets.keys().cloned().collect(),
            Kind::Import => self.imports.keys().cloned().collect(),
            Kind::Negotiated => self.negotiated.keys().cloned().collect(),
            Kind::Cluster => {
                self.clusters.keys().map(|name| ("root".to_owned(), name.clone())).collect()
            }
        };
        let gone = known.iter().filter(|place| !listed.contains(*place));
        gone.flat_map(|place| self.delete(kind, place)).collect()
    }

    /// Whether anything is known of a type in a logical cluster.
    pub(super) fn concerns(&self, key: &TypeKey) -> bool {
        !self.imports(key).is_empty() || self.negotiated(key).next().is_some()
    }

    /// The imports of a type that count in a logical cluster, with what their targets are called there.
    /// An agent speaks for its own target alone, whatever it names.
    pub(super) fn imports(&self, key: &TypeKey) -> Vec<(String, Import)> {
        let places = self.by_type.get(&(key.group.clone(), key.plural.clone()));
        let imports = places.into_iter().flatten().filter_map(|place| self.imports.get(place));
        imports
            .filter_map(|import| {
                let name = &import.spec.target;
                let (home, _) = &import.place;
                let target = self.targets.get(&(home.clone(), name.clone()))?;
                if target.uid != import.uid {
                    return None;
                }
                let name = if *home == key.cluster {
                    name.clone()
                } else {
                    let serves = target.serves(&key.cluster, &self.clusters);
                    serves.then(|| contract::global_name(home, name))?
                };
                Some((name, import.clone()))
            })
            .collect()
    }

    /// What was negotiated of a type in a logical cluster, with the name of the object.
    pub(super) fn negotiated(&self, key: &TypeKey) -> impl Iterator<Item = (&str, &Negotiated)> {
        let all = self.negotiated.range((key.cluster.clone(), String::new())..);
        let all = all.take_while(|((cluster, _), _)| *cluster == key.cluster);
        let is = |negotiated: &Negotiated| {
            (&negotiated.spec.group, &negotiated.spec.plural) == (&key.group, &key.plural)
        };
        all.filter(move |(_, negotiated)| is(negotiated))
            .map(|((_, name), negotiated)| (&**name, negotiated))
    }

    /// The descriptions that are named, with their logical clusters.
    pub(super) fn named(&self) -> BTreeSet<Place> {
        let imports = self.imports.iter();
        let imports = imports.map(|((cluster, _), import)| (cluster, Some(&import.spec.schema)));
        let negotiated = { self.negotiated.iter() }
            .map(|((cluster, _), negotiated)| (cluster, negotiated.status.schema.as_ref()));
        let all = imports.chain(negotiated);
        all.filter_map(|(cluster, name)| Some((cluster.clone(), name?.clone()))).collect()
    }

    /// A target, and what it serves.
    pub(super) fn target(&self, place: &Place) -> Option<(Target, Vec<Import>)> {
        let target = self.targets.get(place)?.clone();
        let imports = self.imports.range((place.0.clone(), String::new())..);
        let imports = imports.take_while(|((cluster, _), _)| *cluster == place.0);
        let own =
            imports.filter(|(_, import)| import.spec.target == place.1 && import.uid == target.uid);
        Some((target.clone(), own.map(|(_, import)| import.clone()).collect()))
    }

    fn apply_target(&mut self, place: &Place, object: &Value) -> BTreeSet<Item> {
        let mut concerned = BTreeSet::from([Item::Target(place.0.clone(), place.1.clone())]);
        let Some(target) = Target::read(object) else {
            // One that can't be read is left as it was known.
            return concerned;
        };
        let before = self.targets.get(place);
        let serves_same = before.is_some_and(|before| {
            (&before.allowed, &before.selector, &before.uid)
                == (&target.allowed, &target.selector, &target.uid)
        });
        if !serves_same {
            concerned.extend(self.of_target(place));
        }
        self.targets.insert(place.clone(), target);
        if !serves_same {
            concerned.extend(self.of_target(place));
        }
        concerned
    }

    fn apply_import(&mut self, place: Place, object: &Value) -> BTreeSet<Item> {
        let Some(import) = Import::read(place.clone(), object) else { return BTreeSet::new() };
        if self.imports.get(&place) == Some(&import) {
            return BTreeSet::new();
        }
        let mut concerned = self.delete(Kind::Import, &place);
        concerned.extend(self.of_import(&import));
        let name = (import.spec.group.clone(), import.spec.plural.clone());
        self.by_type.entry(name).or_default().insert(place.clone());
        self.imports.insert(place, import);
        concerned
    }

    fn apply_negotiated(&mut self, place: &Place, object: &Value) -> BTreeSet<Item> {
        let Some(negotiated) = Negotiated::read(object) else { return BTreeSet::new() };
        let before = self.negotiated.insert(place.clone(), negotiated.clone());
        let mut concerned = BTreeSet::new();
        if before.as_ref().map(|before| &before.spec) != Some(&negotiated.spec) {
            concerned.insert(Item::Type(negotiated.key(&place.0)));
        }
        if before.as_ref() != Some(&negotiated) {
            let key = negotiated.key(&place.0);
            let homes = self.imports(&key).into_iter().map(|(_, import)| import);
            let homes = homes.filter(|import| import.place.0 == place.0);
            concerned.extend(homes.map(|import| Item::Target(import.place.0, import.spec.target)));
        }
        concerned
    }

    /// What is to be looked at because of an import: its type wherever its target counts, and the target.
    fn of_import(&self, import: &Import) -> BTreeSet<Item> {
        let (home, _) = &import.place;
        let mut concerned =
            BTreeSet::from([Item::Target(home.clone(), import.spec.target.clone())]);
        let mut clusters = BTreeSet::from([home.clone()]);
        if let Some(target) = self.targets.get(&(home.clone(), import.spec.target.clone())) {
            clusters.extend(target.clusters(&self.clusters));
        }
        concerned.extend(clusters.into_iter().map(|cluster| {
            let (group, plural) = (import.spec.group.clone(), import.spec.plural.clone());
            Item::Type(TypeKey { cluster, group, plural })
        }));
        concerned
    }

    fn of_target(&self, place: &Place) -> BTreeSet<Item> {
        let imports = self.imports.range((place.0.clone(), String::new())..);
        let imports = imports.take_while(|((cluster, _), _)| *cluster == place.0);
        let own = imports.filter(|(_, import)| import.spec.target == place.1);
        own.flat_map(|(_, import)| self.of_import(import)).collect()
    }

    /// What is to be looked at because the labels of a logical cluster have changed.
    fn of_selectors(&self, cluster: &str) -> BTreeSet<Item> {
        let selecting = self.targets.iter().filter(|(_, target)| target.selector.is_some());
        let concerned = selecting.flat_map(|(place, _)| self.of_target(place));
        let here = |item: &Item| matches!(item, Item::Type(key) if key.cluster == cluster);
        concerned.filter(here).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target(uid: &str, allowed: &Value) -> Value {
        json!({
            "apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
            "metadata": {"name": "east", "uid": uid},
            "spec": {"allowedClusters": allowed, "namespaceMapping": "Hashed"},
        })
    }

    fn import(uid: &str, schema: &str) -> Value {
        json!({
            "apiVersion": "apiresource.kcp.io/v1alpha1", "kind": "APIResourceImport",
            "metadata": {
                "name": "things.v1.x.io--east", "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"workloads.kcp.io/synctarget": uid},
            },
            "spec": {
                "target": "east", "group": "x.io", "version": "v1", "plural": "things",
                "schema": schema,
            },
        })
    }

    fn place(cluster: &str, name: &str) -> Place {
        (cluster.to_owned(), name.to_owned())
    }

    fn things(cluster: &str) -> TypeKey {
        TypeKey { cluster: cluster.into(), group: "x.io".into(), plural: "things".into() }
    }

    fn told(items: BTreeSet<Item>) -> Vec<String> {
        let text = |item| match item {
            Item::Type(key) => format!("{} {}", key.cluster, key.plural),
            Item::Target(cluster, name) => format!("{cluster}.{name}"),
        };
        items.into_iter().map(text).collect()
    }

    #[test]
    fn a_target_counts_where_it_serves() {
        let mut index = Index::default();
        let (east, at) = (place("infra", "east"), place("infra", "things.v1.x.io--east"));
        index.apply(Kind::Target, east.clone(), &target("1", &json!({"names": ["app"]})));
        let concerned = index.apply(Kind::Import, at.clone(), &import("1", "s1"));
        assert_eq!(told(concerned), ["app things", "infra things", "infra.east"]);
        assert!(index.apply(Kind::Import, at.clone(), &import("1", "s1")).is_empty());
        let names = |index: &Index, cluster: &str| -> Vec<String> {
            index.imports(&things(cluster)).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&index, "infra"), ["east"]);
        assert_eq!(names(&index, "app"), ["infra.east"]);
        assert_eq!(names(&index, "other"), [""; 0]);
        // Who is served no longer is looked at, too.
        let concerned =
            index.apply(Kind::Target, east.clone(), &target("1", &json!({"names": ["other"]})));
        let expect = ["app things", "infra things", "other things", "infra.east"];
        assert_eq!(told(concerned), expect);
        assert_eq!(names(&index, "other"), ["infra.east"]);
        // A status changes nothing about that.
        let concerned =
            index.apply(Kind::Target, east.clone(), &target("1", &json!({"names": ["other"]})));
        assert_eq!(told(concerned), ["infra.east"]);
        // By labels.
        let selector = json!({"selector": {"matchLabels": {"a": "b"}}});
        index.apply(Kind::Target, east.clone(), &target("1", &selector));
        let labelled = json!({"metadata": {"labels": {"a": "b"}}});
        let concerned = index.apply(Kind::Cluster, place("root", "app"), &labelled);
        assert_eq!(told(concerned), ["app things"]);
        assert_eq!(names(&index, "app"), ["infra.east"]);
        assert_eq!(names(&index, "other"), [""; 0]);
        // An import of one that was here before is none of this one.
        index.apply(Kind::Target, east.clone(), &target("2", &json!({"names": ["app"]})));
        assert!(index.target(&east).unwrap().1.is_empty());
        assert_eq!(names(&index, "infra"), [""; 0]);
        let concerned = index.keep(Kind::Import, &BTreeSet::new());
        assert_eq!(told(concerned), ["app things", "infra things", "infra.east"]);
        assert_eq!(names(&index, "infra"), [""; 0]);
        assert!(!index.concerns(&things("infra")));
    }
}
