//! What Go says of the parts of an imported type, which its definition can't.

use serde_json::{Map, Value};

use crate::model::{Pool, Schema, Shape};

/// The Go type of one part of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'t> {
    pool: &'t Pool,
    at: At<'t>,
}

#[derive(Clone, Copy, Debug)]
enum At<'t> {
    Root(crate::model::TypeId),
    Part(&'t Shape),
}

// === impl Known ===

impl<'t> Known<'t> {
    /// The whole object.
    pub(super) fn of(schema: &'t Schema) -> Self {
        Self { pool: schema.pool(), at: At::Root(schema.root()) }
    }

    /// A field, and how clients merge it: `x-kubernetes-patch-strategy` and
    /// `x-kubernetes-patch-merge-key`.
    pub(super) fn field(&self, name: &str, markers: &mut Map<String, Value>) -> Option<Self> {
        let id = match self.at {
            At::Root(id) => id,
            At::Part(Shape::Struct(id)) => *id,
            At::Part(_) => return None,
        };
        let field = self.pool.field(id, name)?;
        let extra = field.extra();
        for (marker, text) in [
            ("x-kubernetes-patch-strategy", &extra.patch_strategy),
            ("x-kubernetes-patch-merge-key", &extra.patch_merge_key),
        ] {
            if let Some(text) = text {
                markers.insert(marker.into(), Value::from(&**text));
            }
        }
        Some(Self { pool: self.pool, at: At::Part(&field.shape) })
    }

    /// The items of a list.
    pub(super) fn items(&self) -> Option<Self> {
        match self.at {
            At::Part(Shape::List(item)) => Some(Self { pool: self.pool, at: At::Part(item) }),
            _ => None,
        }
    }

    /// The values of a map.
    pub(super) fn values(&self) -> Option<Self> {
        match self.at {
            At::Part(Shape::Map(value)) => Some(Self { pool: self.pool, at: At::Part(value) }),
            _ => None,
        }
    }

    /// Whether it is the metadata of an object inside of another.
    pub(super) fn is_metadata(&self) -> bool {
        match self.at {
            At::Part(Shape::Struct(id)) => self.pool.get(*id).name == super::OBJECT_META,
            _ => false,
        }
    }
}
