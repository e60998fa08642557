//! What is stored of a node.

use std::num::NonZeroU32;
use std::sync::Arc;

use machinery::FieldPath;
use serde_json::Value;

use super::super::format::Format;
use super::super::pattern::Pattern;
use super::{Additional, Bound, Kind, ListType, MapType, ValidationRule};

/// A node's number in its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::structural) struct NodeId(NonZeroU32);

/// A named field.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::structural) struct Property {
    pub(in crate::structural) name: Box<str>,
    pub(in crate::structural) node: NodeId,
}

/// What is stored of a node: 72 bytes, and the lists that it has.
#[derive(Debug, Default, PartialEq)]
pub(in crate::structural) struct NodeData {
    pub(in crate::structural) kind: Option<Kind>,
    pub(in crate::structural) list: ListType,
    pub(in crate::structural) map: MapType,
    pub(in crate::structural) flags: Flags,
    pub(in crate::structural) items: Option<NodeId>,
    pub(in crate::structural) additional: Additional<NodeId>,
    /// Sorted by name.
    pub(in crate::structural) properties: Box<[Property]>,
    pub(in crate::structural) facets: Box<[Facet]>,
}

/// What few nodes have; each kind at most once in a node.
#[derive(Debug, PartialEq)]
pub(in crate::structural) enum Facet {
    Format(Format, Box<str>),
    AnyOf(Box<[NodeId]>),
    OneOf(Box<[NodeId]>),
    AllOf(Box<[NodeId]>),
    Not(NodeId),
    MaxLength(i64),
    MinLength(i64),
    Pattern(Arc<Pattern>),
    MultipleOf(f64),
    Minimum(Bound),
    Maximum(Bound),
    MinItems(i64),
    MaxItems(i64),
    Enum(Box<[Value]>),
    MinProperties(i64),
    MaxProperties(i64),
    Required(Box<[Box<str>]>),
    Default(Box<Value>),
    ListMapKeys(Box<[Box<str>]>),
    Rules(Box<[ValidationRule]>),
}

/// Yes or no, of a node or of what is below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::structural) struct Flags(u16);

// === impl Flags ===

impl Flags {
    pub(in crate::structural) const NULLABLE: Self = Self(1);
    pub(in crate::structural) const PRESERVE: Self = Self(2);
    pub(in crate::structural) const EMBEDDED: Self = Self(4);
    pub(in crate::structural) const INT_OR_STRING: Self = Self(8);
    pub(in crate::structural) const DEFAULT: Self = Self(16);
    /// It or a part of it has a default.
    pub(in crate::structural) const DEFAULTS: Self = Self(32);
    /// It or a part of it is a list of type set or map.
    pub(in crate::structural) const LISTS: Self = Self(64);
    /// It or a part of it is an embedded resource.
    pub(in crate::structural) const RESOURCES: Self = Self(128);
    /// It or a part of it has rules in CEL.
    pub(in crate::structural) const RULES: Self = Self(256);
    /// What a node has because a part of it has it.
    pub(in crate::structural) const INHERITED: Self =
        Self(Self::DEFAULTS.0 | Self::LISTS.0 | Self::RESOURCES.0 | Self::RULES.0);

    pub(in crate::structural) fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    pub(in crate::structural) fn set(&mut self, flag: Self, on: bool) {
        if on {
            self.0 |= flag.0;
        }
    }

    pub(in crate::structural) fn inherit(&mut self, below: Self) {
        self.0 |= below.0 & Self::INHERITED.0;
    }
}

// === impl NodeId ===

impl NodeId {
    /// The number of the node at an index; `None` after four billion nodes.
    pub(in crate::structural) fn at(index: usize) -> Option<Self> {
        NonZeroU32::new(u32::try_from(index).ok()?.checked_add(1)?).map(Self)
    }

    pub(in crate::structural) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

// === impl NodeData ===

impl NodeData {
    pub(in crate::structural) fn property(&self, name: &str) -> Option<NodeId> {
        let at = self.properties.binary_search_by(|p| (*p.name).cmp(name)).ok()?;
        self.properties.get(at).map(|p| p.node)
    }

    pub(in crate::structural) fn has(&self, flag: Flags) -> bool {
        self.flags.has(flag)
    }

    pub(in crate::structural) fn default_value(&self) -> Option<&Value> {
        if !self.has(Flags::DEFAULT) {
            return None;
        }
        self.facets.iter().find_map(|f| match f {
            Facet::Default(value) => Some(&**value),
            _ => None,
        })
    }

    pub(in crate::structural) fn list_map_keys(&self) -> &[Box<str>] {
        let keys = self.facets.iter().find_map(|f| match f {
            Facet::ListMapKeys(keys) => Some(&**keys),
            _ => None,
        });
        keys.unwrap_or_default()
    }

    /// Adds a field to a path, as a name if it is declared and as a key if it isn't. Returns what
    /// [`FieldPath::leave`] takes it back with.
    pub(in crate::structural) fn enter(&self, path: &mut FieldPath, name: &str) -> usize {
        if self.property(name).is_some() { path.enter_child(name) } else { path.enter_key(name) }
    }

    /// The schema of the value of a field: declared, or that of additional ones.
    pub(in crate::structural) fn field(&self, name: &str) -> Option<NodeId> {
        self.property(name).or(match self.additional {
            Additional::Of(node) => Some(node),
            _ => None,
        })
    }
}
