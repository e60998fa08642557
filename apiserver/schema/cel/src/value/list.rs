//! Lists: of JSON with its declared type, or of values.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::decl::{DeclType, ListSemantics};
use crate::value::{EvalError, V, equal};

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
        let mut seen = Seen::of(&items, None);
        for item in other.iter() {
            let item = item?;
            if seen.find(&items, &item, None)?.is_none() {
                seen.add(&item, None, items.len());
                items.push(item);
            }
        }
        Ok(Self::Owned { items: Arc::new(items), semantics })
    }

    /// A list-map's `+`: items of equal keys are replaced, others appended.
    fn merge(self, other: &Self, keys: &[Box<str>]) -> Result<Self, EvalError> {
        let semantics = self.semantics();
        let mut items = self.to_vec()?;
        let mut seen = Seen::of(&items, Some(keys));
        for item in other.iter() {
            let item = item?;
            match seen.find(&items, &item, Some(keys))? {
                Some(at) => items[at] = item,
                None => {
                    seen.add(&item, Some(keys), items.len());
                    items.push(item);
                }
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
                let seen = Seen::of(&items, None);
                for item in other.iter() {
                    if seen.find(&items, &item?, None)?.is_none() {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            ListSemantics::Map(keys) => {
                let items = self.to_vec()?;
                let seen = Seen::of(&items, Some(keys));
                for item in other.iter() {
                    let item = item?;
                    match seen.find(&items, &item, Some(keys))? {
                        Some(at) if equal(&items[at], &item)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
        }
    }
}

/// Where items of a set or list-map stand: by their value, or by those of their keys.
struct Seen {
    places: HashMap<String, usize>,
}

impl Seen {
    fn of(items: &[V<'_>], keys: Option<&[Box<str>]>) -> Self {
        let mut seen = Self { places: HashMap::with_capacity(items.len()) };
        for (at, item) in items.iter().enumerate() {
            seen.add(item, keys, at);
        }
        seen
    }

    fn add(&mut self, item: &V<'_>, keys: Option<&[Box<str>]>, at: usize) {
        if let Some(text) = identity(item, keys) {
            self.places.insert(text, at);
        }
    }

    /// The place of the same item; values that have no identity as text are searched.
    fn find<'a>(
        &self,
        items: &[V<'a>],
        item: &V<'a>,
        keys: Option<&[Box<str>]>,
    ) -> Result<Option<usize>, EvalError> {
        if let Some(text) = identity(item, keys) {
            return Ok(self.places.get(&text).copied());
        }
        if keys.is_some() {
            return Ok(None);
        }
        for (at, other) in items.iter().enumerate() {
            if equal(other, item)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

/// A text that only equal scalars, or items of equal keys, share.
fn identity(item: &V<'_>, keys: Option<&[Box<str>]>) -> Option<String> {
    let Some(keys) = keys else {
        return match item {
            V::String(text) => Some(format!("s{}", &**text)),
            V::Bool(value) => Some(format!("b{value}")),
            V::Int(value) => Some(format!("n{value}")),
            _ => None,
        };
    };
    let V::Map(map) = item else { return None };
    let mut text = String::new();
    for key in keys {
        // JSON has no zero bytes.
        text.push_str(&map.raw(key).unwrap_or(&Json::Null).to_string());
        text.push('\0');
    }
    Some(text)
}
