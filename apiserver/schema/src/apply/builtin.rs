//! Server-side apply's view of the built-in types.
//!
//! Upstream reads the same from the OpenAPI document that it publishes.

use patch::apply::{ApplySchema, Forms, ListForm, MapForm, Scalar as Form, Type};
use serde_json::Value;

use crate::model::{Extra, Pool, Scalar, Schema, Shape, TypeId};

/// One place of a built-in type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Builtin<'s> {
    pool: &'s Pool,
    shape: Place<'s>,
    /// What the field says about its list or map; nothing for items and values.
    extra: Option<&'s Extra>,
}

/// What is at a place.
#[derive(Clone, Copy, Debug)]
enum Place<'s> {
    /// The kind itself.
    Root(TypeId),
    /// A field, an item or a value.
    Shape(&'s Shape),
    /// An item of a list of strings.
    String,
}

// === impl Builtin ===

impl<'s> Builtin<'s> {
    pub(crate) fn new(schema: &'s Schema) -> Self {
        Self { pool: &schema.pool, shape: Place::Root(schema.root), extra: None }
    }

    /// The type of a value, an item or a field.
    fn inner(self, shape: &'s Shape, extra: Option<&'s Extra>) -> Type<Self> {
        match shape {
            // Any JSON, and what has two forms, is known by its value.
            Shape::Union(..) | Shape::Scalar(Scalar::Json | Scalar::IntOrString) => Type::Deduced,
            Shape::Scalar(Scalar::Raw) => Type::Whole,
            shape => Type::Known(Self { pool: self.pool, shape: Place::Shape(shape), extra }),
        }
    }

    fn id(self) -> Option<TypeId> {
        match self.shape {
            Place::Root(id) => Some(id),
            Place::Shape(Shape::Struct(id)) => Some(*id),
            Place::Shape(_) | Place::String => None,
        }
    }

    fn list(self) -> ListForm {
        let Some(extra) = self.extra else { return ListForm::Atomic };
        match extra.list_type.as_deref() {
            Some("map") => ListForm::Map,
            Some("set") => ListForm::Set,
            Some(_) => ListForm::Atomic,
            None if !merges(extra) => ListForm::Atomic,
            None if extra.patch_merge_key.is_some() => ListForm::Map,
            None => ListForm::Set,
        }
    }

    fn map(self) -> MapForm {
        let of_field = self.extra.and_then(|extra| extra.map_type.as_deref());
        let atomic = match of_field {
            Some(form) => form == "atomic",
            None => self.id().is_some_and(|id| self.pool.get(id).atomic),
        };
        if atomic { MapForm::Atomic } else { MapForm::Granular }
    }
}

/// Whether strategic merge patch merges the list: then apply does, too.
fn merges(extra: &Extra) -> bool {
    matches!(extra.patch_strategy.as_deref(), Some("merge" | "merge,retainKeys"))
}

impl<'s> ApplySchema<'s> for Builtin<'s> {
    fn forms(self) -> Forms {
        let scalar = |scalar| Forms { scalar: Some(scalar), ..Forms::default() };
        let list = || Forms { list: Some(self.list()), ..Forms::default() };
        let map = || Forms { map: Some(self.map()), ..Forms::default() };
        let shape = match self.shape {
            Place::Root(_) => return map(),
            Place::String => return scalar(Form::String),
            Place::Shape(shape) => shape,
        };
        match shape {
            Shape::Struct(_) | Shape::Map(_) => map(),
            Shape::List(_) => list(),
            Shape::Union(..) => Forms::default(),
            Shape::Scalar(kind) => match kind {
                Scalar::String | Scalar::Bytes | Scalar::Duration => scalar(Form::String),
                Scalar::Bool => scalar(Form::Bool),
                Scalar::Int32 | Scalar::Int64 | Scalar::Double => scalar(Form::Number),
                Scalar::Strings => list(),
                Scalar::FieldsV1 => map(),
                Scalar::Time
                | Scalar::MicroTime
                | Scalar::Quantity
                | Scalar::IntOrString
                | Scalar::Raw
                | Scalar::Json => scalar(Form::Any),
            },
        }
    }

    fn item(self) -> Type<Self> {
        match self.shape {
            Place::Shape(Shape::List(item)) => self.inner(item, None),
            Place::Shape(Shape::Scalar(Scalar::Strings)) => {
                Type::Known(Self { shape: Place::String, extra: None, ..self })
            }
            _ => Type::Whole,
        }
    }

    fn key(self, at: usize) -> Option<&'s str> {
        let extra = self.extra?;
        if extra.list_type.is_some() {
            return extra.list_map_keys.get(at).map(|key| &**key);
        }
        extra.patch_merge_key.as_deref().filter(|_| at == 0 && merges(extra))
    }

    fn field(self, name: &str) -> Option<Type<Self>> {
        let field = self.pool.field(self.id()?, name)?;
        Some(self.inner(&field.shape, Some(field.extra())))
    }

    fn other(self) -> Option<Type<Self>> {
        match self.shape {
            Place::Shape(Shape::Map(value)) => Some(self.inner(value, None)),
            Place::Shape(Shape::Scalar(Scalar::FieldsV1)) => Some(Type::Deduced),
            _ => (!self.has_fields()).then_some(Type::Deduced),
        }
    }

    fn has_fields(self) -> bool {
        self.id().is_some_and(|id| !self.pool.get(id).flat.is_empty())
    }

    fn default_of(self, name: &str) -> Option<&'s Value> {
        self.pool.field(self.id()?, name)?.extra().published_default.as_ref()
    }
}
