//! Tells server-side apply how types are typed: built-in ones and those of custom resources.

mod builtin;

use patch::apply::{ApplySchema, Forms, Scalar, Type};
use serde_json::Value;

use crate::model::Schema;
use crate::structural::apply::Custom;

pub(crate) use builtin::Builtin;

/// One place of a type as [`patch::apply`] sees it.
#[derive(Clone, Copy, Debug)]
pub struct ApplyType<'s>(pub(crate) Place<'s>);

/// What a place is a part of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'s> {
    /// A built-in type; the metadata of custom resources, too.
    Builtin(Builtin<'s>),
    /// A custom resource.
    Custom(Custom<'s>),
    /// Nothing: a text, as apiVersion and kind are.
    Text,
}

// === impl Schema ===

impl Schema {
    /// The view of this type for [`patch::apply`].
    pub fn apply(&self) -> Type<ApplyType<'_>> {
        Type::Known(ApplyType(Place::Builtin(Builtin::new(self))))
    }
}

// === impl ApplyType ===

impl<'s> ApplyType<'s> {
    fn builtin(inner: Type<Builtin<'s>>) -> Type<Self> {
        inner.map(|inner| Self(Place::Builtin(inner)))
    }
}

impl<'s> ApplySchema<'s> for ApplyType<'s> {
    fn forms(self) -> Forms {
        match self.0 {
            Place::Builtin(place) => place.forms(),
            Place::Custom(place) => place.forms(),
            Place::Text => Forms { scalar: Some(Scalar::String), ..Forms::default() },
        }
    }

    fn item(self) -> Type<Self> {
        match self.0 {
            Place::Builtin(place) => Self::builtin(place.item()),
            Place::Custom(place) => place.item(),
            Place::Text => Type::Whole,
        }
    }

    fn key(self, at: usize) -> Option<&'s str> {
        match self.0 {
            Place::Builtin(place) => place.key(at),
            Place::Custom(place) => place.key(at),
            Place::Text => None,
        }
    }

    fn field(self, name: &str) -> Option<Type<Self>> {
        match self.0 {
            Place::Builtin(place) => place.field(name).map(Self::builtin),
            Place::Custom(place) => place.field(name),
            Place::Text => None,
        }
    }

    fn other(self) -> Option<Type<Self>> {
        match self.0 {
            Place::Builtin(place) => place.other().map(Self::builtin),
            Place::Custom(place) => place.other(),
            Place::Text => None,
        }
    }

    fn has_fields(self) -> bool {
        match self.0 {
            Place::Builtin(place) => place.has_fields(),
            Place::Custom(place) => place.has_fields(),
            Place::Text => false,
        }
    }

    fn default_of(self, name: &str) -> Option<&'s Value> {
        match self.0 {
            Place::Builtin(place) => place.default_of(name),
            Place::Custom(place) => place.default_of(name),
            Place::Text => None,
        }
    }
}

#[cfg(test)]
mod tests;
