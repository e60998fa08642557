//! Lists: of JSON with its declared type, or of values.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::decl::{DeclType, ListSemantics};
use crate::value::{EvalError, V, equal, json_equal};

/// A list.
#[derive(Clone, Debug)]
pub(crate) enum List<'a> {
    Json { items: &'a [Json], element: &'a DeclType, semantics: &'a ListSemantics },
    Owned { items: Arc<Vec<V<'a>>>, semantics: &'a ListSemantics },
}

static ATOMIC: ListSemantics = ListSemantics::Atomic;

impl<'a> List<'a> {
    pub(crate) fn of(items: Vec<V<'a>>) -> Self {
        Self::Owned { items: Arc::new(items), semantics: &ATOMIC }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json { items, .. } => items.len(),
            Self::Owned { items, .. } => items.len(),
        }
    }

    pub(crate) const fn semantics(&self) -> &'a ListSemantics {
        match self {
            Self::Json { semantics, .. } | Self::Owned { semantics, .. } => semantics,
        }
    }

    /// The element at `index`, which must be below the length.
    pub(crate) fn get(&self, index: usize) -> Result<V<'a>, EvalError> {
        let found = match self {
            Self::Json { items, element, .. } => {
                items.get(index).map(|item| V::from_json(item, element))
            }
            Self::Owned { items, .. } => items.get(index).cloned().map(Ok),
        };
        found
            .unwrap_or_else(|| Err(EvalError::failed(format_args!("index out of bounds: {index}"))))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<V<'a>, EvalError>> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    pub(crate) fn to_vec(&self) -> Result<Vec<V<'a>>, EvalError> {
        match self {
            Self::Owned { items, .. } => Ok(items.as_ref().clone()),
            Self::Json { .. } => self.iter().collect(),
        }
    }

    /// Appends the elements of `other`; a list that nobody else holds grows in place.
    pub(crate) fn concat(self, other: &Self) -> Result<Self, EvalError> {
        match self.semantics() {
            ListSemantics::Atomic => {}
            ListSemantics::Set => return self.union(other),
            ListSemantics::Map(keys) => return self.merge(other, keys),
        }
        let semantics = self.semantics();
        let mut items = match self {
            Self::Owned { items, .. } => items,
            Self::Json { .. } => Arc::new(self.to_vec()?),
        };
        let grown = Arc::make_mut(&mut items);
        for item in other.iter() {
            grown.push(item?);
        }
        Ok(Self::Owned { items, semantics })
    }

    /// A set's `+`: what is missing is appended.
    fn union(self, other: &Self) -> Result<Self, EvalError> {
        let semantics = self.semantics();
        let mut items = self.to_vec()?;
        for item in other.iter() {
            let item = item?;
            if !contains(&items, &item)? {
                items.push(item);
            }
        }
        Ok(Self::Owned { items: Arc::new(items), semantics })
    }

    /// A list-map's `+`: items of equal keys are replaced, others appended.
    fn merge(self, other: &Self, keys: &[Box<str>]) -> Result<Self, EvalError> {
        let semantics = self.semantics();
        let mut items = self.to_vec()?;
        for item in other.iter() {
            let item = item?;
            match items.iter().position(|old| same_keys(old, &item, keys)) {
                Some(at) => items[at] = item,
                None => items.push(item),
            }
        }
        Ok(Self::Owned { items: Arc::new(items), semantics })
    }

    /// Whether an element equals `value`.
    pub(crate) fn contains(&self, value: &V<'a>) -> Result<bool, EvalError> {
        for item in self.iter() {
            if equal(&item?, value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Equality; sets and list-maps ignore order.
    pub(crate) fn equals(&self, other: &Self) -> Result<bool, EvalError> {
        if self.len() != other.len() {
            return Ok(false);
        }
        match self.semantics() {
            ListSemantics::Atomic => {
                for (a, b) in self.iter().zip(other.iter()) {
                    if !equal(&a?, &b?)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            ListSemantics::Set => {
                let items = self.to_vec()?;
                for item in other.iter() {
                    if !contains(&items, &item?)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            ListSemantics::Map(keys) => {
                let items = self.to_vec()?;
                for item in other.iter() {
                    let item = item?;
                    let Some(mine) = items.iter().rfind(|old| same_keys(old, &item, keys)) else {
                        return Ok(false);
                    };
                    if !equal(mine, &item)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }
}

fn contains<'a>(items: &[V<'a>], item: &V<'a>) -> Result<bool, EvalError> {
    for other in items {
        if equal(other, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether two items of a list-map are the same item. Keys are scalars in JSON.
fn same_keys(a: &V<'_>, b: &V<'_>, keys: &[Box<str>]) -> bool {
    let (V::Map(a), V::Map(b)) = (a, b) else { return false };
    keys.iter().all(|key| match (a.raw(key), b.raw(key)) {
        (Some(a), Some(b)) => json_equal(a, b),
        (None, None) => true,
        _ => false,
    })
}
