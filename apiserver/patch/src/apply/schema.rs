//! How values are typed for server-side apply: what it asks of a schema.
//!
//! The model is that of structured-merge-diff: at each place a value may be a scalar, a list or a
//! map, and each of the three has rules of its own. A value that is none of what is allowed is
//! found by the validation.

use std::fmt;

use serde_json::Value;

/// One place of a schema: the root, a field, the items of a list.
///
/// A place is a small value that is copied, with whatever it borrows living for `'s`. All answers
/// must be the same each time.
pub trait ApplySchema<'s>: Copy + fmt::Debug {
    /// What may stand here.
    fn forms(self) -> Forms;

    /// The type of the items, where a list may stand here.
    fn item(self) -> Type<Self>;

    /// The names of the fields that identify an item of a [`ListForm::Map`], one by one, in the
    /// order of the declaration.
    fn key(self, at: usize) -> Option<&'s str>;

    /// The type of a declared field, where a map may stand here.
    fn field(self, name: &str) -> Option<Type<Self>>;

    /// The type of fields that are not declared; `None` when there may be none.
    fn other(self) -> Option<Type<Self>>;

    /// Whether any field is declared.
    fn has_fields(self) -> bool;

    /// The default of a declared field: where it is a key of a list, items may leave it out.
    fn default_of(self, name: &str) -> Option<&'s Value>;
}

/// The type of a place: declared, or known only once there is a value.
#[derive(Clone, Copy, Debug)]
pub enum Type<S> {
    /// What a schema says.
    Known(S),
    /// Anything (`x-kubernetes-preserve-unknown-fields`): maps are granular, lists atomic.
    Deduced,
    /// Anything, and whole: maps and lists are atomic.
    Whole,
}

/// What may stand at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forms {
    /// Which scalars, if any.
    pub scalar: Option<Scalar>,
    /// Which list, if any.
    pub list: Option<ListForm>,
    /// Which map (or object with fields), if any.
    pub map: Option<MapForm>,
}

/// Scalars that are allowed. Null always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Any of the others.
    Any,
    /// Integers and floats.
    Number,
    /// Text.
    String,
    /// True and false.
    Bool,
}

/// How the items of a list belong together (`x-kubernetes-list-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListForm {
    /// They have one owner.
    Atomic,
    /// Each scalar has owners of its own.
    Set,
    /// Each object has owners of its own, and is known by its keys.
    Map,
}

/// How the fields of a map belong together (`x-kubernetes-map-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapForm {
    /// Each has owners of its own.
    Granular,
    /// They have one owner.
    Atomic,
}

// === impl Type ===

impl<S> Type<S> {
    /// The same type, with another way to see what is declared.
    pub fn map<T>(self, of: impl FnOnce(S) -> T) -> Type<T> {
        match self {
            Self::Known(schema) => Type::Known(of(schema)),
            Self::Deduced => Type::Deduced,
            Self::Whole => Type::Whole,
        }
    }
}

impl<'s, S: ApplySchema<'s>> Type<S> {
    pub(super) fn forms(self) -> Forms {
        let (list, map) = match self {
            Self::Known(schema) => return schema.forms(),
            Self::Deduced => (ListForm::Atomic, MapForm::Granular),
            Self::Whole => (ListForm::Atomic, MapForm::Atomic),
        };
        Forms { scalar: Some(Scalar::Any), list: Some(list), map: Some(map) }
    }

    pub(super) fn item(self) -> Self {
        match self {
            Self::Known(schema) => schema.item(),
            Self::Deduced | Self::Whole => Self::Whole,
        }
    }

    pub(super) fn key(self, at: usize) -> Option<&'s str> {
        match self {
            Self::Known(schema) => schema.key(at),
            Self::Deduced | Self::Whole => None,
        }
    }

    pub(super) fn keys(self) -> impl Iterator<Item = &'s str> {
        (0..).map_while(move |at| self.key(at))
    }

    /// The type of a declared field.
    pub(super) fn declared(self, name: &str) -> Option<Self> {
        match self {
            Self::Known(schema) => schema.field(name),
            Self::Deduced | Self::Whole => None,
        }
    }

    pub(super) fn other(self) -> Option<Self> {
        match self {
            Self::Known(schema) => schema.other(),
            Self::Deduced | Self::Whole => Some(self),
        }
    }

    /// The type of any field that may be there.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        self.declared(name).or_else(|| self.other())
    }

    pub(super) fn default_of(self, name: &str) -> Option<&'s Value> {
        match self {
            Self::Known(schema) => schema.default_of(name),
            Self::Deduced | Self::Whole => None,
        }
    }

    /// Whether fields are known only once they are there: no schema says how they belong together.
    pub(super) fn is_free(self) -> bool {
        let deduced = |other: Self| match other {
            Self::Deduced => true,
            Self::Known(schema) => schema.forms().scalar == Some(Scalar::Any),
            Self::Whole => false,
        };
        match self {
            Self::Known(schema) => !schema.has_fields() && schema.other().is_some_and(deduced),
            Self::Deduced => true,
            Self::Whole => false,
        }
    }
}

// === impl Forms ===

impl Forms {
    /// What remains when the value is there: its own form, if that is allowed.
    pub(super) fn deduce(self, value: Option<&Value>) -> Self {
        match value {
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if self.scalar.is_some() => {
                Self { scalar: self.scalar, ..Self::default() }
            }
            Some(Value::Array(_)) if self.list.is_some() => {
                Self { list: self.list, ..Self::default() }
            }
            Some(Value::Object(_)) if self.map.is_some() => {
                Self { map: self.map, ..Self::default() }
            }
            _ => self,
        }
    }

    /// The one form that counts.
    pub(super) fn one(self) -> Option<Form> {
        let scalar = || self.scalar.map(Form::Scalar);
        self.map.map(Form::Map).or_else(scalar).or_else(|| self.list.map(Form::List))
    }
}

/// One form.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    Scalar(Scalar),
    List(ListForm),
    Map(MapForm),
}
