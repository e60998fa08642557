//! Whether everything that one schema takes is taken by another.

pub(crate) mod keywords;

use crate::kind::Kind;
use crate::node::{Additional, List, META, NAMES, Node, TEXT};
use crate::report::{Difference, Report, said};
use crate::view::{MAX_STEPS, View};

/// Who the two schemas are of, as reports call them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sides<'a> {
    pub(crate) existing: &'a [String],
    pub(crate) new: &'a [String],
}

struct Comparison<'a> {
    sides: Sides<'a>,
    report: &'a mut Report,
    path: String,
    steps: u64,
    /// How many of the places around have rules in CEL.
    rules: usize,
}

/// Reports what keeps objects of `existing` from being objects of `new`.
pub(crate) fn compare(existing: &Node, new: &Node, sides: Sides<'_>, report: &mut Report) {
    let mut comparison = Comparison { sides, report, path: String::new(), steps: 0, rules: 0 };
    comparison.view(View::Node(existing), View::Node(new));
    if comparison.steps > MAX_STEPS {
        // If so much is blocking that this is not told, that is told.
        comparison.path.clear();
        let why = "the schemas are too large to be compared".to_owned();
        comparison.tell(true, "schema", why, [String::new(), String::new()]);
    }
}

// === impl Comparison ===

impl Comparison<'_> {
    fn view(&mut self, existing: View<'_>, new: View<'_>) {
        let weight = |view: View<'_>| view.node().map_or(0, Node::weight);
        self.steps += 1 + weight(existing) + weight(new);
        if self.steps > MAX_STEPS {
            return;
        }
        match (existing, new) {
            (_, View::Free) | (View::Bare, View::Bare) => {}
            (View::Node(existing), View::Node(new)) => self.node(existing, new),
            (View::Node(_), View::Bare) => {
                if !existing.is_plain() {
                    let why = "objects lose their fields there".to_owned();
                    self.tell(true, "additionalProperties", why, ["", "true"].map(str::to_owned));
                }
            }
            (View::Free | View::Bare, View::Node(new)) if takes_all(new) => {}
            (View::Free | View::Bare, new) => {
                let says = new.node().map_or("", |new| new.kind.name());
                let why = "it may be anything, but not everything is taken".to_owned();
                self.tell(true, "type", why, ["anything", says].map(str::to_owned));
            }
        }
    }

    fn node(&mut self, existing: &Node, new: &Node) {
        if !existing.kind.is_within(new.kind) {
            let says = [existing.kind.name(), new.kind.name()];
            let why = format!("{} is not {}", article(says[0]), article(says[1]));
            self.tell(true, "type", why, says.map(str::to_owned));
            // All the rest would follow from it.
            return;
        }
        self.flags(existing, new);
        self.values(existing, new);
        self.defaults(existing, new);
        let rules = usize::from(!new.rules.is_empty());
        self.rules += rules;
        if self.rules > 0 {
            self.judged(existing, new);
        }
        self.parts(existing, new);
        self.rules -= rules;
    }

    /// What lies below.
    fn parts(&mut self, existing: &Node, new: &Node) {
        if existing.kind == Kind::ARRAY || existing.items.is_some() || new.items.is_some() {
            self.lists(existing, new);
            let (existing, new) = (View::Node(existing).items(), View::Node(new).items());
            self.inside("[*]", |at| at.view(existing, new));
        }
        let scalar = existing.kind.is_scalar();
        if !scalar && existing.kind != Kind::ARRAY {
            self.fields(existing, new);
        }
    }

    fn fields(&mut self, existing: &Node, new: &Node) {
        let views = (View::Node(existing), View::Node(new));
        for (name, part) in &existing.properties {
            self.inside(&format!(".{name}"), |at| match views.1.field(name) {
                Some(new) => at.view(View::Node(part), new),
                None => at.unknown(),
            });
        }
        for name in &new.required {
            let filled = new.properties.get(name).is_some_and(|part| part.default.is_some());
            if !filled && !existing.required.contains(name) {
                self.inside(&format!(".{name}"), |at| {
                    let why = "the field is required".to_owned();
                    at.tell(true, "required", why, ["", "required"].map(str::to_owned));
                });
            }
        }
        self.implied(existing, new);
        let Some(others) = views.0.others() else { return };
        match views.1.others() {
            Some(new) => self.inside("[*]", |at| at.view(others, new)),
            None => self.inside("[*]", Self::unknown),
        }
        let declared = |name: &String| {
            existing.properties.contains_key(name)
                || (existing.is_resource() && META.contains(&name.as_str()))
        };
        for (name, part) in new.properties.iter().filter(|(name, _)| !declared(name)) {
            self.inside(&format!(".{name}"), |at| at.view(others, View::Node(part)));
        }
    }

    /// What every resource has, declared or not: `apiVersion`, `kind` and its names are texts of any kind
    /// where nobody says more. The rest of its metadata is no schema's.
    fn implied(&mut self, existing: &Node, new: &Node) {
        if existing.metadata {
            self.texts(Some(existing), new, &NAMES);
        }
        if !existing.is_resource() {
            return;
        }
        self.texts(Some(existing), new, &["apiVersion", "kind"]);
        let new = new.properties.get("metadata");
        let new = new.filter(|_| !existing.properties.contains_key("metadata"));
        if let Some(new) = new {
            self.inside(".metadata", |at| at.texts(None, new, &NAMES));
        }
    }

    /// Fields that are texts where they aren't declared.
    fn texts(&mut self, existing: Option<&Node>, new: &Node, names: &[&str]) {
        for name in names {
            let declared = existing.is_some_and(|node| node.properties.contains_key(*name));
            if let Some(new) = new.properties.get(*name).filter(|_| !declared) {
                self.inside(&format!(".{name}"), |at| {
                    at.view(View::Node(&TEXT), View::Node(new));
                });
            }
        }
    }

    fn unknown(&mut self) {
        let why = "there is no such field".to_owned();
        self.tell(true, "properties", why, ["known", ""].map(str::to_owned));
    }

    /// Reports what the two sides say at the path.
    fn tell(&mut self, blocking: bool, what: &str, message: String, says: [String; 2]) {
        if !self.report.has_room(blocking) {
            return;
        }
        let [existing, new] = says;
        let said = said([(existing, self.sides.existing), (new, self.sides.new)]);
        self.report.add(Difference::new(blocking, &self.path, what, message, said));
    }

    fn inside(&mut self, step: &str, run: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(step);
        run(self);
        self.path.truncate(length);
    }
}

/// Whether a schema takes and keeps everything, null among it.
fn takes_all(node: &Node) -> bool {
    node.kind == Kind::ANY
        && node.nullable
        && node.preserve
        && !node.embedded
        && node.properties.is_empty()
        && node.additional == Additional::None
        && node.items.is_none()
        && node.list == List::Atomic
        && node.required.is_empty()
        && node.allowed.is_none()
        && node.conditions.is_empty()
        && node.rules.is_empty()
        && node.limits == crate::node::Limits::default()
}

fn article(name: &str) -> String {
    match name {
        "any" => "anything".to_owned(),
        "integer" | "object" | "array" | "int-or-string" => format!("an {name}"),
        _ => format!("a {name}"),
    }
}
