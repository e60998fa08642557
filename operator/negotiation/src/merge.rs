//! The largest schema whose objects all of several schemas take.
//!
//! Where it can be said in a schema it is exact: conditions are collected, limits are the narrowest,
//! enumerations are what all have, and a field is kept if all know it. Where it can't, something
//! smaller is taken, or the schemas don't fit, which is reported; never anything larger.
//!
//! All schemas are merged at once, and each keyword in a way in which their order doesn't matter.

mod objects;
mod values;

use std::collections::BTreeSet;

use crate::kind::Kind;
use crate::node::{Additional, Limits, List, MAX_NODES, Node, is_before};
use crate::report::{Difference, Report, said};
use crate::view::{MAX_STEPS, View};

/// What was made of one place.
enum Made {
    Node(Box<Node>),
    Free,
    Bare,
}

struct Merger<'a> {
    /// Who each of the schemas is of.
    targets: &'a [Vec<String>],
    report: &'a mut Report,
    path: String,
    steps: u64,
    /// How many parts were made: two schemas may have more together than each.
    parts: usize,
    /// What judges the objects around the place as a whole: the words of the rules and conditions of each
    /// of them.
    judges: Vec<BTreeSet<String>>,
    /// How many of these have rules in CEL.
    rules: usize,
}

/// Merges schemas; `targets` says of whom each is. `None` if they don't fit, which is reported. The
/// steps that it takes are added to `steps`.
pub(crate) fn merge(
    schemas: &[&Node],
    targets: &[Vec<String>],
    report: &mut Report,
    steps: &mut u64,
) -> Option<Node> {
    let mut merger = Merger {
        targets,
        report,
        path: String::new(),
        steps: 0,
        parts: 0,
        judges: Vec::new(),
        rules: 0,
    };
    let views: Vec<View<'_>> = schemas.iter().map(|node| View::Node(node)).collect();
    let made = merger.view(&views);
    *steps = steps.saturating_add(merger.steps);
    if merger.is_spent() {
        merger.path.clear();
        let why = "the schemas are too large to be merged";
        return merger.clash("schema", why, &views, |_| String::new());
    }
    match made {
        Some(Made::Node(node)) => Some(*node),
        _ => None,
    }
}

// === impl Merger ===

impl Merger<'_> {
    /// Whether it has taken more steps, or made more, than it may.
    fn is_spent(&self) -> bool {
        self.steps > MAX_STEPS || self.parts > MAX_NODES
    }

    /// Merges what is known of one place; `None` if it doesn't fit, which was reported.
    fn view(&mut self, views: &[View<'_>]) -> Option<Made> {
        let nodes: Vec<&Node> = views.iter().filter_map(|view| view.node()).collect();
        self.steps += views.len() as u64;
        self.steps += nodes.iter().map(|node| node.weight()).sum::<u64>();
        if self.is_spent() {
            return None;
        }
        let bare = views.iter().any(|view| matches!(view, View::Bare));
        if nodes.is_empty() {
            return Some(if bare { Made::Bare } else { Made::Free });
        }
        if bare && !nodes.iter().all(|node| View::Node(node).is_plain()) {
            let why = "for some, objects lose their fields there";
            return self.clash("additionalProperties", why, views, kind_name);
        }
        self.node(views, &nodes).map(Box::new).map(Made::Node)
    }

    fn node(&mut self, views: &[View<'_>], nodes: &[&Node]) -> Option<Node> {
        let kind = nodes.iter().try_fold(Kind::ANY, |all, node| all.and(node.kind));
        let Some(kind) = kind else {
            return self.clash("type", "no value is of all types", views, kind_name);
        };
        if nodes.iter().any(|node| node.kind != kind) {
            if !self.judges.is_empty() || nodes.iter().any(|node| !node.rules.is_empty()) {
                let why = "the types differ, and rules in CEL are about one of them";
                return self.clash("type", why, views, kind_name);
            }
            self.note("type", format!("only {} is taken by all", kind.name()), views, kind_name);
        }
        let embedded = nodes.iter().any(|node| node.embedded);
        if nodes.iter().any(|node| node.embedded != embedded) {
            let why = "for some it is a resource of its own, for others not";
            let text = |view: &View<'_>| flag(view, |node| node.embedded);
            return self.clash("x-kubernetes-embedded-resource", why, views, text);
        }
        self.parts += 1;
        let nullable = nodes.iter().all(|node| node.nullable);
        if nodes.iter().any(|node| node.nullable != nullable) {
            let text = |view: &View<'_>| flag(view, |node| node.nullable);
            self.note("nullable", "null is not taken by all".to_owned(), views, text);
        }
        let mut made = Node {
            kind,
            nullable,
            preserve: nodes.iter().all(|node| node.preserve),
            embedded,
            root: nodes.iter().any(|node| node.root),
            metadata: nodes.iter().any(|node| node.metadata),
            properties: Default::default(),
            additional: Additional::None,
            items: None,
            list: List::Atomic,
            atomic: nodes.iter().any(|node| node.atomic),
            required: Default::default(),
            limits: Limits::default(),
            allowed: None,
            conditions: Default::default(),
            rules: Default::default(),
            default: None,
            about: about(nodes),
        };
        self.values(&mut made, views, nodes)?;
        let rules = made.rules.keys().map(|rule| rule.rule.as_str());
        let combined = |keyword: &str| matches!(keyword, "allOf" | "anyOf" | "not" | "oneOf");
        let conditions = made.conditions.iter().filter(|c| combined(&c.keyword));
        let texts: Vec<&str> = rules.chain(conditions.map(|c| c.value.as_str())).collect();
        let (judges, has_rules) = (!texts.is_empty(), usize::from(!made.rules.is_empty()));
        if judges {
            self.judges.push(words(&texts));
        }
        self.rules += has_rules;
        let fits = self.parts(&mut made, views, nodes);
        self.rules -= has_rules;
        if judges {
            self.judges.pop();
        }
        fits.then_some(made)
    }

    /// What lies below; false if it doesn't fit.
    fn parts(&mut self, made: &mut Node, views: &[View<'_>], nodes: &[&Node]) -> bool {
        let mut fits = true;
        if nodes.iter().any(|node| node.items.is_some()) {
            let items: Vec<View<'_>> = views.iter().map(|view| view.items()).collect();
            match self.inside("[*]", |at| at.view(&items)) {
                Some(Made::Node(items)) => made.items = Some(items),
                Some(Made::Free | Made::Bare) => {}
                None => fits = false,
            }
        }
        if made.kind == Kind::ARRAY {
            fits &= self.lists(made, views, nodes);
        }
        if !made.kind.is_scalar() && made.kind != Kind::ARRAY {
            fits &= self.objects(made, views, nodes);
        }
        fits
    }

    /// Reports what doesn't fit.
    fn clash<T>(
        &mut self,
        what: &str,
        why: &str,
        views: &[View<'_>],
        says: impl Fn(&View<'_>) -> String,
    ) -> Option<T> {
        self.tell(true, what, why.to_owned(), views, says);
        None
    }

    /// Reports what is narrowed.
    fn note(
        &mut self,
        what: &str,
        why: String,
        views: &[View<'_>],
        says: impl Fn(&View<'_>) -> String,
    ) {
        self.tell(false, what, why, views, says);
    }

    fn tell(
        &mut self,
        blocking: bool,
        what: &str,
        why: String,
        views: &[View<'_>],
        says: impl Fn(&View<'_>) -> String,
    ) {
        // Of what isn't told, nothing is put together.
        if !self.report.has_room(blocking) {
            return;
        }
        self.steps += views.len() as u64;
        let targets = self.targets.iter().map(Vec::as_slice);
        let said = said(views.iter().map(says).zip(targets));
        self.report.add(Difference::new(blocking, &self.path, what, why, said));
    }

    fn inside<T>(&mut self, step: &str, run: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        self.path.push_str(step);
        let made = run(self);
        self.path.truncate(length);
        made
    }
}

/// The words of texts in CEL or JSON.
fn words(texts: &[&str]) -> BTreeSet<String> {
    let words = texts.iter().flat_map(|text| text.split(|c| !is_of_word(c)));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn kind_name(view: &View<'_>) -> String {
    view.node().map_or("anything", |node| node.kind.name()).to_owned()
}

fn flag(view: &View<'_>, of: impl Fn(&Node) -> bool) -> String {
    if view.node().is_some_and(of) { "true".to_owned() } else { String::new() }
}

/// Of descriptions and the like, which say nothing of values, the one that sorts first.
fn about(nodes: &[&Node]) -> serde_json::Map<String, serde_json::Value> {
    let mut made = serde_json::Map::new();
    for (key, value) in nodes.iter().flat_map(|node| &node.about) {
        let first = match made.get(key) {
            Some(other) => is_before(value, other),
            None => true,
        };
        if first {
            made.insert(key.clone(), value.clone());
        }
    }
    made
}
