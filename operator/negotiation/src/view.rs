//! What a schema says of one place in objects, also where it says nothing.

use crate::node::{Additional, META, NAMES, Node, TEXT};

/// The most pairs of places, and words in them, that are looked at when types are compared or merged once:
/// some hundred for each part of the largest schema of Kubernetes.
pub const MAX_STEPS: u64 = 5_000_000;

/// The most that are looked at when types are merged again and again, to see who agrees.
pub const MAX_STEPS_TOGETHER: u64 = 8 * MAX_STEPS;

/// What is known of a place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View<'n> {
    /// What a schema says.
    Node(&'n Node),
    /// Everything is taken, and kept.
    Free,
    /// Everything is taken; objects lose their fields.
    Bare,
}

// === impl View ===

impl<'n> View<'n> {
    pub(crate) fn node(self) -> Option<&'n Node> {
        match self {
            Self::Node(node) => Some(node),
            Self::Free | Self::Bare => None,
        }
    }

    /// What is known of a field; `None` if objects can't have it.
    pub(crate) fn field(self, name: &str) -> Option<Self> {
        match self {
            Self::Free => Some(Self::Free),
            Self::Bare => None,
            Self::Node(node) => node.properties.get(name).map(Self::Node).or_else(|| {
                if node.metadata && NAMES.contains(&name) {
                    return Some(Self::Node(&TEXT));
                }
                let meta = node.is_resource() && META.contains(&name);
                if meta { Some(Self::Free) } else { self.others() }
            }),
        }
    }

    /// What is known of fields that aren't declared; `None` if objects can't have any.
    pub(crate) fn others(self) -> Option<Self> {
        match self {
            Self::Free => Some(Self::Free),
            Self::Bare => None,
            Self::Node(node) => match &node.additional {
                Additional::Of(part) => Some(Self::Node(part)),
                Additional::Bare => Some(Self::Bare),
                Additional::None => node.preserve.then_some(Self::Free),
            },
        }
    }

    /// What is known of the items of a list.
    pub(crate) fn items(self) -> Self {
        match self {
            Self::Node(node) => match &node.items {
                Some(items) => Self::Node(items),
                None if node.preserve => Self::Free,
                None => Self::Bare,
            },
            other => other,
        }
    }

    /// Whether nothing that it takes loses fields where objects lose theirs.
    pub(crate) fn is_plain(self) -> bool {
        match self {
            Self::Free => false,
            Self::Bare => true,
            Self::Node(node) => {
                let list = node.kind == crate::kind::Kind::ARRAY;
                node.kind.is_scalar() || (list && self.items().is_plain())
            }
        }
    }
}
