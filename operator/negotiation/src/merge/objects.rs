//! Fields of objects, and keys of lists.

use std::collections::BTreeSet;

use super::{Made, Merger, is_of_word};
use crate::compare::keywords::list_name;
use crate::node::{Additional, List, Node};
use crate::view::View;

// === impl Merger ===

impl Merger<'_> {
    /// Fields, declared and others; false if they don't fit.
    pub(super) fn objects(&mut self, made: &mut Node, views: &[View<'_>], nodes: &[&Node]) -> bool {
        made.required = nodes.iter().flat_map(|node| &node.required).cloned().collect();
        let required = |view: &View<'_>, name: &str| {
            let needs = view.node().is_some_and(|node| node.required.contains(name));
            if needs { "required" } else { "" }.to_owned()
        };
        for name in made.required.clone() {
            if nodes.iter().any(|node| !node.required.contains(&name)) {
                let why = "it is required, as some do".to_owned();
                self.inside(&format!(".{name}"), |at| {
                    at.note("required", why, views, |view| required(view, &name));
                });
            }
        }
        let mut fits = true;
        let names: BTreeSet<&String> = nodes.iter().flat_map(|n| n.properties.keys()).collect();
        for name in names {
            fits &= self.inside(&format!(".{name}"), |at| at.field(made, name, views));
        }
        fits &= self.others(made, views, nodes);
        let absent: Vec<String> = { made.required.iter() }
            .filter(|name| View::Node(made).field(name).is_none())
            .cloned()
            .collect();
        for name in absent {
            // Reported where it was dropped, but for one that no schema declares.
            if !nodes.iter().any(|node| node.properties.contains_key(&name)) {
                let why = "a field is required that not all know";
                self.inside(&format!(".{name}"), |at| {
                    at.clash::<()>("required", why, views, |view| required(view, &name));
                });
                fits = false;
            }
        }
        fits
    }

    fn field(&mut self, made: &mut Node, name: &str, views: &[View<'_>]) -> bool {
        let known: Option<Vec<View<'_>>> = views.iter().map(|view| view.field(name)).collect();
        let Some(known) = known else {
            self.steps += views.len() as u64;
            if self.is_spent() {
                return false;
            }
            let says = |view: &View<'_>| match view.field(name) {
                Some(_) => "known".to_owned(),
                None => String::new(),
            };
            let needed = made.required.contains(name);
            if needed || self.is_mentioned(name) {
                let why = if needed {
                    "a field is required that not all know"
                } else {
                    "a rule is about a field that not all know"
                };
                self.clash::<()>("properties", why, views, says);
                return false;
            }
            self.note("properties", "not all know the field".to_owned(), views, says);
            return true;
        };
        match self.view(&known) {
            Some(Made::Node(part)) => {
                made.properties.insert(name.to_owned(), *part);
                true
            }
            // One of them declares it.
            Some(Made::Free | Made::Bare) => true,
            None => false,
        }
    }

    /// Fields that aren't declared.
    fn others(&mut self, made: &mut Node, views: &[View<'_>], nodes: &[&Node]) -> bool {
        let says = |view: &View<'_>| match view.others() {
            None => String::new(),
            Some(View::Node(node)) => node.kind.name().to_owned(),
            Some(View::Free) => "anything".to_owned(),
            Some(View::Bare) => "true".to_owned(),
        };
        let known: Option<Vec<View<'_>>> = views.iter().map(|view| view.others()).collect();
        made.preserve = false;
        let Some(known) = known else {
            if nodes.iter().any(|node| View::Node(node).others().is_some()) {
                if !self.judges.is_empty() {
                    let why = "rules are about an object whose other fields not all take";
                    self.clash::<()>("additionalProperties", why, views, says);
                    return false;
                }
                let why = "not all take other fields".to_owned();
                self.note("additionalProperties", why, views, says);
            }
            return made.kind != crate::kind::Kind::ANY || {
                self.clash::<()>("type", "nothing is left of it", views, says);
                false
            };
        };
        let others = match self.inside("[*]", |at| at.view(&known)) {
            None => return false,
            Some(Made::Free) => {
                made.preserve = true;
                return true;
            }
            Some(Made::Bare) => Additional::Bare,
            Some(Made::Node(part)) => Additional::Of(part),
        };
        if made.properties.is_empty() && !made.is_resource() {
            made.additional = others;
            return true;
        }
        // A schema says the one or the other.
        let why = "a schema can't tell of named fields and of others".to_owned();
        self.note("additionalProperties", why, views, says);
        true
    }

    /// Whether what judges the objects around may speak of a field. A name that isn't one in CEL is
    /// written in another way there.
    fn is_mentioned(&self, name: &str) -> bool {
        let plain = !name.is_empty() && name.chars().all(is_of_word) && !name.contains("__");
        self.judges.iter().any(|words| !plain || words.contains(name))
    }

    pub(super) fn lists(&mut self, made: &mut Node, views: &[View<'_>], nodes: &[&Node]) -> bool {
        let says = |view: &View<'_>| view.node().map(list_name).unwrap_or_default();
        let mut list = List::Atomic;
        for node in nodes {
            list = match (list, &node.list) {
                (List::Atomic, other) => other.clone(),
                (own, List::Atomic) => own,
                (own, other) if own == *other => own,
                _ => {
                    let why = "items are told apart in different ways";
                    self.clash::<()>("x-kubernetes-list-type", why, views, says);
                    return false;
                }
            };
        }
        if nodes.iter().any(|node| node.list != list) {
            if self.rules > 0 {
                let why = "items are told apart in different ways, and rules in CEL are about them";
                self.clash::<()>("x-kubernetes-list-type", why, views, says);
                return false;
            }
            let why = "items are told apart, as some do".to_owned();
            self.note("x-kubernetes-list-type", why, views, says);
        }
        if let (List::Map(keys), Some(items)) = (&list, &mut made.items) {
            for key in keys {
                let Some(part) = items.properties.get(key) else {
                    let why = "not all know a field that items are told apart by";
                    self.clash::<()>("x-kubernetes-list-map-keys", why, views, says);
                    return false;
                };
                // A key is there, or is filled in.
                if part.default.is_none() {
                    items.required.insert(key.clone());
                }
            }
        }
        made.list = list;
        true
    }
}
