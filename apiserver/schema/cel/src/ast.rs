//! The tree of an expression, in one vector.
//!
//! Invariants: the children of a node come before it; the depth of a tree is bounded by
//! [`MAX_DEPTH`], so everything that walks it may recurse.

use std::sync::Arc;

/// The deepest tree: more than upstream's 250 levels of syntax, since macros add levels.
pub(crate) const MAX_DEPTH: u16 = 520;

/// A node's place in its tree.
pub(crate) type Id = u32;

#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// Byte of the expression that errors point at.
    pub(crate) at: u32,
    pub(crate) depth: u16,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// What an error left.
    Nothing,
    Literal(Literal),
    Ident(Arc<str>),
    Select {
        operand: Id,
        field: Arc<str>,
        test: bool,
    },
    Call {
        target: Option<Id>,
        function: Arc<str>,
        args: Box<[Id]>,
    },
    List {
        elements: Box<[Id]>,
        optional: Box<[bool]>,
    },
    Map(Box<[Entry]>),
    Struct {
        name: Arc<str>,
        fields: Box<[StructField]>,
    },
    Fold(Box<Fold>),
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Id,
    pub(crate) value: Id,
    pub(crate) optional: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct StructField {
    pub(crate) at: u32,
    pub(crate) name: Arc<str>,
    pub(crate) value: Id,
    pub(crate) optional: bool,
}

/// A loop over a list or map, which all macros but `has` become.
#[derive(Debug, Clone)]
pub(crate) struct Fold {
    pub(crate) range: Id,
    pub(crate) var: Arc<str>,
    pub(crate) var2: Option<Arc<str>>,
    pub(crate) accu: Arc<str>,
    pub(crate) init: Id,
    pub(crate) condition: Id,
    pub(crate) step: Id,
    pub(crate) result: Id,
}

/// A tree, or a forest while it is parsed.
#[derive(Debug, Default)]
pub(crate) struct Ast {
    nodes: Vec<Node>,
}

impl Ast {
    pub(crate) fn add(&mut self, at: u32, kind: Kind) -> Id {
        let deepest = self.children(&kind).map(|id| self.node(id).depth).max().unwrap_or(0);
        let depth = deepest.saturating_add(1);
        self.nodes.push(Node { at, depth, kind });
        // An expression has at most 100,000 characters, and each makes a bounded number of nodes.
        (self.nodes.len() - 1) as Id
    }

    pub(crate) fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    pub(crate) fn kind(&self, id: Id) -> &Kind {
        &self.node(id).kind
    }

    pub(crate) fn replace(&mut self, id: Id, kind: Kind) {
        self.nodes[id as usize].kind = kind;
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Calls `visit` for each child of a node.
    pub(crate) fn each_child(&self, id: Id, mut visit: impl FnMut(Id)) {
        for child in self.children(self.kind(id)) {
            visit(child);
        }
    }

    fn children<'a>(&'a self, kind: &'a Kind) -> Box<dyn Iterator<Item = Id> + 'a> {
        match kind {
            Kind::Nothing | Kind::Literal(_) | Kind::Ident(_) => Box::new(std::iter::empty()),
            Kind::Select { operand, .. } => Box::new(std::iter::once(*operand)),
            Kind::Call { target, args, .. } => {
                Box::new(target.iter().copied().chain(args.iter().copied()))
            }
            Kind::List { elements, .. } => Box::new(elements.iter().copied()),
            Kind::Map(entries) => Box::new(entries.iter().flat_map(|e| [e.key, e.value])),
            Kind::Struct { fields, .. } => Box::new(fields.iter().map(|f| f.value)),
            Kind::Fold(f) => Box::new([f.range, f.init, f.condition, f.step, f.result].into_iter()),
        }
    }

    /// The dotted name that a chain of selects over an identifier spells.
    pub(crate) fn qualified_name(&self, id: Id) -> Option<String> {
        let mut parts: Vec<&str> = Vec::new();
        let mut at = id;
        loop {
            match self.kind(at) {
                Kind::Ident(name) => {
                    parts.push(name);
                    break;
                }
                Kind::Select { operand, field, test: false } => {
                    parts.push(field);
                    at = *operand;
                }
                _ => return None,
            }
        }
        parts.reverse();
        Some(parts.join("."))
    }
}
