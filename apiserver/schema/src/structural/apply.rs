//! Server-side apply's view of a custom resource.
//!
//! It is what upstream makes of the OpenAPI document of the type: an object and each embedded
//! resource have apiVersion, kind and metadata whatever the schema says of them; below
//! `x-kubernetes-preserve-unknown-fields` nothing is unknown.

use patch::apply::{Forms, ListForm, MapForm, Scalar, Type};
use serde_json::Value;

use super::Structural;
use super::coerce::meta_schema;
use super::node::{Additional, Kind, ListType, MapType, Node};
use crate::apply::{ApplyType, Builtin, Place};

/// One place of a custom resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Custom<'s> {
    node: Node<'s>,
    /// Whether it is a whole object, with metadata of its own.
    resource: bool,
    /// Whether fields that are not declared are known by their values.
    preserve: bool,
}

// === impl Structural ===

impl Structural {
    /// The view of this type for [`patch::apply`].
    pub fn apply(&self) -> Type<ApplyType<'_>> {
        let node = self.root();
        let place = Custom { node, resource: true, preserve: node.preserves_unknown() };
        Type::Known(ApplyType(Place::Custom(place)))
    }
}

// === impl Custom ===

impl<'s> Custom<'s> {
    fn below(self, node: Node<'s>) -> Type<ApplyType<'s>> {
        let preserve = self.preserve || node.preserves_unknown();
        let place = Self { node, resource: node.is_embedded(), preserve };
        Type::Known(ApplyType(Place::Custom(place)))
    }

    pub(crate) fn forms(self) -> Forms {
        let list = match self.node.list_type() {
            ListType::Map => ListForm::Map,
            ListType::Set => ListForm::Set,
            ListType::Atomic | ListType::Unset => ListForm::Atomic,
        };
        let map = match self.node.map_type() {
            MapType::Atomic => MapForm::Atomic,
            MapType::Granular | MapType::Unset => MapForm::Granular,
        };
        let scalar = |scalar| Forms { scalar: Some(scalar), ..Forms::default() };
        match self.node.kind() {
            Some(Kind::Object) => Forms { map: Some(map), ..Forms::default() },
            Some(Kind::Array) => Forms { list: Some(list), ..Forms::default() },
            Some(Kind::Integer | Kind::Number) => scalar(Scalar::Number),
            Some(Kind::Boolean) => scalar(Scalar::Bool),
            Some(Kind::String) if matches!(self.node.format(), "" | "byte") => {
                scalar(Scalar::String)
            }
            Some(Kind::String) => scalar(Scalar::Any),
            None => Forms { scalar: Some(Scalar::Any), list: Some(list), map: Some(map) },
        }
    }

    pub(crate) fn item(self) -> Type<ApplyType<'s>> {
        self.node.items().map_or(Type::Whole, |items| self.below(items))
    }

    pub(crate) fn key(self, at: usize) -> Option<&'s str> {
        let keys = match self.node.list_type() {
            ListType::Map => self.node.list_map_keys(),
            _ => &[],
        };
        keys.get(at).map(|key| &**key)
    }

    pub(crate) fn field(self, name: &str) -> Option<Type<ApplyType<'s>>> {
        if self.resource {
            match name {
                "apiVersion" | "kind" => return Some(Type::Known(ApplyType(Place::Text))),
                "metadata" => {
                    let metadata = Builtin::new(meta_schema());
                    return Some(Type::Known(ApplyType(Place::Builtin(metadata))));
                }
                _ => {}
            }
        }
        self.node.property(name).map(|node| self.below(node))
    }

    pub(crate) fn other(self) -> Option<Type<ApplyType<'s>>> {
        match self.node.additional() {
            Additional::Any => Some(Type::Deduced),
            Additional::Of(node) => Some(self.below(node)),
            Additional::Forbidden => None,
            Additional::Absent => (self.preserve || !self.has_fields()).then_some(Type::Deduced),
        }
    }

    pub(crate) fn has_fields(self) -> bool {
        self.resource || self.node.properties().len() > 0
    }

    pub(crate) fn default_of(self, name: &str) -> Option<&'s Value> {
        self.node.property(name)?.default_value()
    }
}
