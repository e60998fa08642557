//! Tells strategic merge patch how the fields of a type merge.

use std::cell::OnceCell;

use patch::strategic::{FieldMerge, MergeSchema, Strategy};

use crate::model::{Field, Pool, Schema, Shape, TypeId};

/// One type as strategic merge patch sees it. The types below are made when they are asked for, so
/// a patch pays for the parts that it touches.
#[derive(Debug)]
pub struct MergeType<'s> {
    pool: &'s Pool,
    fields: Fields<'s>,
}

#[derive(Debug)]
enum Fields<'s> {
    /// An object with named fields; one cell for each JSON field, in their order.
    Named(TypeId, Box<[OnceCell<Box<MergeType<'s>>>]>),
    /// An object with any keys, whose values have this type.
    Any(Option<Box<MergeType<'s>>>),
}

// === impl Schema ===

impl Schema {
    /// The view of this type for [`patch::strategic::apply`]; make one for each patch.
    pub fn merge(&self) -> MergeType<'_> {
        MergeType::named(&self.pool, self.root)
    }
}

// === impl MergeType ===

impl<'s> MergeType<'s> {
    fn named(pool: &'s Pool, id: TypeId) -> Self {
        let cells = pool.get(id).flat.iter().map(|_| OnceCell::new()).collect();
        Self { pool, fields: Fields::Named(id, cells) }
    }

    /// The type of a value or of the items of a list; `None` for scalars.
    fn of(pool: &'s Pool, shape: &'s Shape) -> Option<Self> {
        match shape {
            Shape::Struct(id) | Shape::Union(_, id) => Some(Self::named(pool, *id)),
            Shape::List(item) => Self::of(pool, item),
            Shape::Map(value) => {
                let inner = Self::of(pool, value).map(Box::new);
                Some(Self { pool, fields: Fields::Any(inner) })
            }
            Shape::Scalar(_) => None,
        }
    }
}

impl MergeSchema for MergeType<'_> {
    fn field(&self, name: &str) -> Option<FieldMerge<'_>> {
        let (id, cells) = match &self.fields {
            Fields::Any(inner) => {
                let schema = inner.as_deref().map(|inner| inner as &dyn MergeSchema);
                return Some(FieldMerge { strategy: Strategy::Unset, merge_key: None, schema });
            }
            Fields::Named(id, cells) => (*id, cells),
        };
        let flat = &self.pool.get(id).flat;
        let at = flat.binary_search_by(|r| (*self.pool.declared(*r).name).cmp(name)).ok()?;
        let field: &Field = self.pool.declared(*flat.get(at)?);
        let cell = cells.get(at)?;
        if cell.get().is_none()
            && let Some(inner) = MergeType::of(self.pool, &field.shape)
        {
            cell.get_or_init(|| Box::new(inner));
        }
        let extra = field.extra();
        Some(FieldMerge {
            strategy: extra.patch_strategy.as_deref().and_then(Strategy::parse).unwrap_or_default(),
            merge_key: extra.patch_merge_key.as_deref(),
            schema: cell.get().map(|inner| &**inner as &dyn MergeSchema),
        })
    }

    fn type_name(&self) -> &str {
        match &self.fields {
            Fields::Named(id, _) => self.pool.get(*id).short_name(),
            Fields::Any(_) => "",
        }
    }
}

#[cfg(test)]
mod tests;
