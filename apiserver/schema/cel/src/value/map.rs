//! Maps and structures: of JSON with its declared type, of values, or asked of the caller.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde_json::{Map as JsonMap, Value as Json};

use crate::decl::{DeclType, Field, ObjectType, Shape};
use crate::types::Type;
use crate::value::equal::json_equal;
use crate::value::{EvalError, Text, V, Value, equal};

/// A structure whose fields the caller finds when an expression asks for them, such as the lazily
/// evaluated `variables` of an admission policy.
pub trait Record: fmt::Debug + Send + Sync {
    /// The value of a field, or none if it isn't there.
    ///
    /// # Errors
    /// Whatever made it fail; the expression fails with it.
    fn field<'s>(&'s self, name: &str) -> Option<Result<Value<'s>, EvalError>>;
}

/// A key of a map that an expression made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Bool(bool),
    Int(i64),
    Uint(u64),
    String(Arc<str>),
}

/// A map or structure.
#[derive(Clone, Debug)]
pub(crate) enum Map<'a> {
    Json {
        map: &'a JsonMap<String, Json>,
        decl: &'a DeclType,
    },
    Owned(Arc<BTreeMap<Key, V<'a>>>),
    /// A structure that an expression made.
    Made {
        object: Arc<ObjectType>,
        fields: Arc<BTreeMap<Key, V<'a>>>,
    },
    Record(&'a dyn Record),
}

impl Key {
    pub(crate) fn of(value: &V<'_>) -> Result<Self, EvalError> {
        Ok(match value {
            V::Bool(value) => Self::Bool(*value),
            V::Int(value) => Self::Int(*value),
            V::Uint(value) => Self::Uint(*value),
            V::String(text) => Self::String((**text).into()),
            other => {
                let name = other.type_name();
                return Err(EvalError::failed(format_args!("unsupported key type: {name}")));
            }
        })
    }

    pub(crate) fn value<'a>(&self) -> V<'a> {
        match self {
            Self::Bool(value) => V::Bool(*value),
            Self::Int(value) => V::Int(*value),
            Self::Uint(value) => V::Uint(*value),
            Self::String(text) => V::String(Text::Shared(Arc::clone(text))),
        }
    }
}

/// Finds `key` among keys; numbers of equal value are equal.
fn find<'m, 'a>(map: &'m BTreeMap<Key, V<'a>>, key: &V<'_>) -> Option<&'m V<'a>> {
    let number = |value: i128| {
        let int = i64::try_from(value).ok().and_then(|int| map.get(&Key::Int(int)));
        int.or_else(|| u64::try_from(value).ok().and_then(|uint| map.get(&Key::Uint(uint))))
    };
    match key {
        V::Int(value) => number((*value).into()),
        V::Uint(value) => number((*value).into()),
        V::Double(value) if value.fract() == 0.0 && value.abs() < 1e19 => number(*value as i128),
        other => map.get(&Key::of(other).ok()?),
    }
}

impl<'a> Map<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json { map, .. } => map.len(),
            Self::Owned(entries) | Self::Made { fields: entries, .. } => entries.len(),
            Self::Record(_) => 0,
        }
    }

    pub(crate) fn type_name(&self) -> &str {
        match self {
            Self::Made { object, .. } => object.name(),
            _ => "map",
        }
    }

    pub(crate) fn runtime_type(&self) -> Type {
        match self {
            Self::Made { object, .. } => Type::Object(Arc::clone(object)),
            _ => Type::map(Type::Dyn, Type::Dyn),
        }
    }

    /// The value of `key`. In JSON of a structure a field that is null counts as absent.
    pub(crate) fn get(&self, key: &V<'_>) -> Result<Option<V<'a>>, EvalError> {
        match (self, key) {
            (Self::Owned(entries) | Self::Made { fields: entries, .. }, key) => {
                Ok(find(entries, key).cloned())
            }
            (_, V::String(name)) => self.get_str(name),
            _ => Err(EvalError::no_such_overload()),
        }
    }

    /// The value of the string `name`.
    pub(crate) fn get_str(&self, name: &str) -> Result<Option<V<'a>>, EvalError> {
        match self {
            Self::Json { map, decl } => match decl.shape() {
                Shape::Object(object) => {
                    let Some(field) = object.field(name) else { return Ok(None) };
                    match map.get(field.json_name()) {
                        None | Some(Json::Null) => Ok(None),
                        Some(json) => V::from_json(json, &field.decl).map(Some),
                    }
                }
                Shape::Map { value, .. } => {
                    map.get(name).map(|json| V::from_json(json, value)).transpose()
                }
                _ => map.get(name).map(|json| V::from_json(json, &crate::decl::DYN)).transpose(),
            },
            Self::Owned(entries) | Self::Made { fields: entries, .. } => {
                Ok(entries.get(&Key::String(name.into())).cloned())
            }
            Self::Record(record) => record.field(name).transpose().map(|found| found.map(|v| v.0)),
        }
    }

    /// The JSON of a field by its JSON name.
    pub(crate) fn raw(&self, json_name: &str) -> Option<&'a Json> {
        match self {
            Self::Json { map, .. } => map.get(json_name),
            _ => None,
        }
    }

    /// All keys, sorted. Fields of a structure that expressions can't see have none.
    pub(crate) fn keys(&self) -> Vec<V<'a>> {
        match self {
            Self::Json { map, decl } => match decl.shape() {
                Shape::Object(object) => {
                    let set = |field: &&Field| map.contains_key(field.json_name());
                    object.fields().iter().filter(set).map(|f| V::string(&*f.name)).collect()
                }
                _ => map.keys().map(|key| V::String(Text::Borrowed(key))).collect(),
            },
            Self::Owned(entries) | Self::Made { fields: entries, .. } => {
                entries.keys().map(Key::value).collect()
            }
            Self::Record(_) => Vec::new(),
        }
    }

    /// The entries of a map that may grow.
    pub(crate) fn into_entries(self) -> Result<Arc<BTreeMap<Key, V<'a>>>, EvalError> {
        if let Self::Owned(entries) = self {
            return Ok(entries);
        }
        let mut entries = BTreeMap::new();
        for key in self.keys() {
            if let Some(value) = self.get(&key)? {
                entries.insert(Key::of(&key)?, value);
            }
        }
        Ok(Arc::new(entries))
    }

    /// Whether it is a structure that may have any field, which it then lacks as null.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Made { object, .. } if object.is_open())
    }

    pub(crate) fn equals(&self, other: &Self) -> Result<bool, EvalError> {
        match (self, other) {
            (Self::Made { object: a, .. }, Self::Made { object: b, .. })
                if a.name() == b.name() => {}
            (Self::Made { .. }, _) | (_, Self::Made { .. }) => return Ok(false),
            _ => {}
        }
        if let (Self::Json { map: a, decl }, Self::Json { map: b, .. }) = (self, other)
            && let Shape::Object(object) = decl.shape()
        {
            return self.structures_equal(other, a, b, object);
        }
        if self.len() != other.len() {
            return Ok(false);
        }
        for key in self.keys() {
            let same = match (self.get(&key)?, other.get(&key)?) {
                (Some(a), Some(b)) => equal(&a, &b)?,
                (None, None) => true,
                _ => false,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Known fields compare as values, unknown ones as JSON where both sides have them.
    fn structures_equal(
        &self,
        other: &Self,
        a: &JsonMap<String, Json>,
        b: &JsonMap<String, Json>,
        object: &ObjectType,
    ) -> Result<bool, EvalError> {
        if a.len() != b.len() {
            return Ok(false);
        }
        for field in object.fields() {
            if !a.contains_key(field.json_name()) {
                continue;
            }
            let same = match (self.get_str(&field.name)?, other.get_str(&field.name)?) {
                (Some(a), Some(b)) => equal(&a, &b)?,
                (None, None) => true,
                _ => false,
            };
            if !same {
                return Ok(false);
            }
        }
        let known: HashSet<&str> = object.fields().iter().map(Field::json_name).collect();
        for (name, value) in a.iter().filter(|(name, _)| !known.contains(name.as_str())) {
            if let Some(other) = b.get(name)
                && !json_equal(value, other)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
