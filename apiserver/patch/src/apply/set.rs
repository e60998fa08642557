//! Sets of fields: what a manager owns.
//!
//! A set is a trie. Each node is one step of a path, and says whether the path that ends there is in
//! the set; nodes are sorted, and a node that is in the set neither itself nor with anything below
//! it does not exist. The root itself is never in a set.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::element::{Element, InvalidElement};
use super::schema::{ApplySchema, Type};
use super::value::push_string;

/// A set of paths into an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    pub(super) nodes: Vec<Node>,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) element: Element,
    /// Whether the path that ends here is in the set.
    pub(super) member: bool,
    /// What of the set lies below.
    pub(super) below: FieldSet,
}

/// Why a value is no set of fields.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidSet {
    /// A name in it is no element of a path.
    #[error(transparent)]
    Element(#[from] InvalidElement),
    /// Something in it is no object.
    #[error("expected an object")]
    NoObject,
}

/// The name that stands for the path itself, on the wire.
const SELF: &str = ".";

// === impl FieldSet ===

impl FieldSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    /// The set of these paths of fields: for what is fixed.
    pub fn of_fields<'a>(paths: impl IntoIterator<Item = &'a [&'a str]>) -> Self {
        let mut set = Self::new();
        for path in paths {
            let path: Vec<Element> = path.iter().map(|name| Element::field(*name)).collect();
            set.insert(&path);
        }
        set
    }

    /// Makes a set of nodes in any order; equal ones are joined.
    pub(super) fn from_nodes(mut nodes: Vec<Node>) -> Self {
        if !nodes.is_sorted_by(|a, b| a.element < b.element) {
            nodes.sort_by(|a, b| a.element.cmp(&b.element));
            nodes.dedup_by(|later, first| {
                let same = later.element == first.element;
                if same {
                    first.member |= later.member;
                    first.below.add(std::mem::take(&mut later.below));
                }
                same
            });
        }
        Self { nodes }
    }

    /// Adds one path; the ways to it are not added. The empty path is ignored.
    pub fn insert(&mut self, path: &[Element]) {
        let mut set = self;
        for (at, element) in path.iter().enumerate() {
            let node = set.descend(element);
            if at + 1 == path.len() {
                node.member = true;
            }
            set = &mut node.below;
        }
    }

    fn descend(&mut self, element: &Element) -> &mut Node {
        let at = match self.find(element) {
            Ok(at) => at,
            Err(at) => {
                let element = element.clone();
                self.nodes.insert(at, Node { element, member: false, below: Self::new() });
                at
            }
        };
        self.nodes.get_mut(at).expect("it was found there, or put there")
    }

    fn find(&self, element: &Element) -> Result<usize, usize> {
        self.nodes.binary_search_by(|node| node.element.cmp(element))
    }

    pub(super) fn node(&self, element: &Element) -> Option<&Node> {
        self.nodes.get(self.find(element).ok()?)
    }

    pub(super) fn field_node(&self, name: &str) -> Option<&Node> {
        let found = self.nodes.binary_search_by(|node| match &node.element {
            Element::Field(field) => (**field).cmp(name),
            _ => Ordering::Greater,
        });
        self.nodes.get(found.ok()?)
    }

    /// Whether the path is in the set.
    pub fn contains(&self, path: &[Element]) -> bool {
        let mut set = self;
        let mut member = false;
        for element in path {
            let Some(node) = set.node(element) else { return false };
            member = node.member;
            set = &node.below;
        }
        member
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The paths of the set: those that end at one place before those below it.
    pub fn paths(&self) -> Vec<Box<[Element]>> {
        let mut paths = Vec::new();
        self.push_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn push_paths(&self, prefix: &mut Vec<Element>, paths: &mut Vec<Box<[Element]>>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            let path = prefix.iter().chain(std::iter::once(&node.element));
            paths.push(path.cloned().collect());
        }
        for node in self.nodes.iter().filter(|node| !node.below.is_empty()) {
            prefix.push(node.element.clone());
            node.below.push_paths(prefix, paths);
            prefix.pop();
        }
    }

    /// Adds all of another set.
    pub fn add(&mut self, other: Self) {
        if self.nodes.is_empty() {
            *self = other;
            return;
        }
        if other.nodes.is_empty() {
            return;
        }
        let mut merged = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        let mut mine = std::mem::take(&mut self.nodes).into_iter().peekable();
        let mut theirs = other.nodes.into_iter().peekable();
        while let (Some(a), Some(b)) = (mine.peek(), theirs.peek()) {
            let order = a.element.cmp(&b.element);
            if order.is_lt() {
                merged.extend(mine.next());
            } else if order.is_gt() {
                merged.extend(theirs.next());
            } else if let (Some(mut a), Some(b)) = (mine.next(), theirs.next()) {
                a.member |= b.member;
                a.below.add(b.below);
                merged.push(a);
            }
        }
        merged.extend(mine);
        merged.extend(theirs);
        self.nodes = merged;
    }

    /// Takes away the paths of another set, and only those: not what lies below them. Answers
    /// whether there were any.
    pub fn subtract(&mut self, other: &Self) -> bool {
        self.cut(other, false)
    }

    /// Takes away the paths of another set and everything below them. Answers whether there was
    /// any.
    pub fn subtract_below(&mut self, other: &Self) -> bool {
        self.cut(other, true)
    }

    fn cut(&mut self, other: &Self, recursive: bool) -> bool {
        if other.nodes.is_empty() || self.nodes.is_empty() {
            return false;
        }
        let mut changed = false;
        let mut rest = other.nodes.iter().peekable();
        self.nodes.retain_mut(|node| {
            while rest.next_if(|theirs| theirs.element < node.element).is_some() {}
            let Some(theirs) = rest.next_if(|theirs| theirs.element == node.element) else {
                return true;
            };
            if recursive && theirs.member {
                changed = true;
                return false;
            }
            changed |= node.member && theirs.member;
            node.member &= !theirs.member;
            changed |= node.below.cut(&theirs.below, recursive);
            node.member || !node.below.is_empty()
        });
        changed
    }

    /// The paths that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut nodes = Vec::new();
        let mut rest = other.nodes.iter().peekable();
        for mine in &self.nodes {
            while rest.next_if(|theirs| theirs.element < mine.element).is_some() {}
            let Some(theirs) = rest.next_if(|theirs| theirs.element == mine.element) else {
                continue;
            };
            let member = mine.member && theirs.member;
            let below = mine.below.intersection(&theirs.below);
            if member || !below.is_empty() {
                nodes.push(Node { element: mine.element.clone(), member, below });
            }
        }
        Self { nodes }
    }

    /// Adds every declared field that a path leads through, as if it were in the set.
    pub(super) fn with_named_fields<'s, S: ApplySchema<'s>>(&self, ty: Option<Type<S>>) -> Self {
        let nodes = self.nodes.iter().map(|node| {
            let mut member = node.member;
            let inner = match (&node.element, ty) {
                (Element::Field(name), Some(ty)) if ty.forms().map.is_some() => {
                    let declared = ty.declared(name);
                    member |= declared.is_some() && !node.below.is_empty();
                    declared.or_else(|| ty.other())
                }
                (Element::Key(_), Some(ty)) if ty.forms().list.is_some() => Some(ty.item()),
                _ => None,
            };
            let below = node.below.with_named_fields(inner);
            Node { element: node.element.clone(), member, below }
        });
        Self { nodes: nodes.collect() }
    }

    /// Reads the wire form, `FieldsV1`. Elements of unknown forms are dropped.
    ///
    /// # Errors
    /// [`InvalidSet`] when it is none.
    pub fn from_value(value: &Value) -> Result<Self, InvalidSet> {
        Ok(Self::read(value)?.0)
    }

    /// What is below a place, and whether the place is in the set itself.
    fn read(value: &Value) -> Result<(Self, bool), InvalidSet> {
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Null => return Ok((Self::new(), true)),
            _ => return Err(InvalidSet::NoObject),
        };
        let mut member = false;
        let mut nodes = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            if name == SELF {
                member = true;
            } else if let Some(element) = Element::parse(name)? {
                let (below, member) = Self::read(value)?;
                nodes.push(Node { element, member, below });
            }
        }
        let below = Self::from_nodes(nodes);
        // What has nothing below it is there for itself.
        member |= below.is_empty();
        Ok((below, member))
    }

    /// The wire form, `FieldsV1`, as a value (whose names are sorted as texts).
    pub fn to_value(&self) -> Value {
        Value::Object(self.fields(false))
    }

    fn fields(&self, member: bool) -> Map<String, Value> {
        let mut fields = Map::new();
        if member && !self.is_empty() {
            fields.insert(SELF.to_owned(), Value::Object(Map::new()));
        }
        for node in &self.nodes {
            let mut name = String::new();
            node.element.push(&mut name);
            fields.insert(name, Value::Object(node.below.fields(node.member)));
        }
        fields
    }

    /// The wire form, `FieldsV1`, byte for byte as upstream writes it: in the order of the set.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.push_json(false, &mut out, &mut String::new());
        out
    }

    fn push_json(&self, member: bool, out: &mut String, name: &mut String) {
        out.push('{');
        if member && !self.is_empty() {
            out.push_str("\".\":{}");
        }
        for node in &self.nodes {
            if !out.ends_with('{') {
                out.push(',');
            }
            name.clear();
            node.element.push(name);
            push_string(out, name, false);
            out.push(':');
            node.below.push_json(node.member, out, name);
        }
        out.push('}');
    }
}
