//! Values at run time.
//!
//! A value borrows the JSON that it came from: no object is copied to another tree. What an expression
//! makes (lists, maps, strings) is shared by reference counts, so values are cheap to clone.

mod equal;
mod from_json;
mod list;
mod map;
pub(crate) mod steps;

use std::net::IpAddr;
use std::sync::Arc;

use crate::authorizer::Authz;
use crate::library::cidr::Cidr;
use crate::library::moment::Moment;
use crate::library::named_format::NamedFormat;
use crate::library::semver::Semver;
use crate::library::url::Url;
use crate::types::{Opaque, Type};

pub(crate) use equal::{compare, equal};
pub(crate) use list::List;
pub use map::Record;
pub(crate) use map::{Key, Map};

/// A value of CEL that borrows JSON for `'a`.
#[derive(Clone, Debug)]
pub struct Value<'a>(pub(crate) V<'a>);

/// The cases of a [`Value`].
#[derive(Clone, Debug)]
pub(crate) enum V<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Arc<[u8]>),
    /// Nanoseconds.
    Duration(i64),
    Timestamp(Moment),
    List(List<'a>),
    Map(Map<'a>),
    Type(Arc<Type>),
    Optional(Option<Arc<V<'a>>>),
    Quantity(machinery::quantity::Quantity),
    Ip(IpAddr),
    Cidr(Cidr),
    Url(Arc<Url>),
    Semver(Arc<Semver>),
    Format(NamedFormat),
    Authz(Arc<Authz>),
}

/// A string, borrowed or shared.
#[derive(Clone, Debug)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Arc<str>),
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

/// What a function says that has nothing for the types of its arguments.
pub(crate) const NO_OVERLOAD: &str = "no such overload";

/// Why an evaluation gave no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The budget is spent.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimit,
    /// The expression fails for these inputs.
    #[error("{0}")]
    Failed(Box<str>),
}

impl EvalError {
    /// A failure of the expression, with upstream's text.
    pub fn failed(text: impl std::fmt::Display) -> Self {
        Self::Failed(text.to_string().into())
    }

    pub(crate) fn no_such_overload() -> Self {
        Self::Failed(NO_OVERLOAD.into())
    }
}

impl<'a> Value<'a> {
    /// Null.
    pub const NULL: Self = Self(V::Null);

    /// A boolean.
    pub const fn bool(value: bool) -> Self {
        Self(V::Bool(value))
    }

    /// An integer.
    pub const fn int(value: i64) -> Self {
        Self(V::Int(value))
    }

    /// A string that is borrowed.
    pub const fn str(text: &'a str) -> Self {
        Self(V::String(Text::Borrowed(text)))
    }

    /// A string that is owned.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self(V::String(Text::Shared(text.into())))
    }

    /// An optional value, or none.
    pub fn optional(value: Option<Self>) -> Self {
        Self(V::Optional(value.map(|value| Arc::new(value.0))))
    }

    /// A value whose fields the caller finds when they are asked for.
    pub fn record(record: &'a dyn Record) -> Self {
        Self(V::Map(Map::Record(record)))
    }

    /// An authorizer, for the variable `authorizer` of admission policies.
    pub fn authorizer(authorizer: Arc<dyn crate::authorizer::Authorizer>) -> Self {
        Self(V::Authz(Arc::new(Authz::Authorizer { authorizer, service_account: None })))
    }

    /// The boolean, if it is one.
    pub const fn as_bool(&self) -> Option<bool> {
        match self.0 {
            V::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            V::String(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if it is one.
    pub const fn as_int(&self) -> Option<i64> {
        match self.0 {
            V::Int(value) => Some(value),
            _ => None,
        }
    }

    /// Whether it is null.
    pub const fn is_null(&self) -> bool {
        matches!(self.0, V::Null)
    }
}

impl<'a> V<'a> {
    pub(crate) fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    pub(crate) fn list(items: Vec<V<'a>>) -> Self {
        Self::List(List::of(items))
    }

    /// The name of the type at run time.
    pub(crate) fn type_name(&self) -> &str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(map) => map.type_name(),
            Self::Type(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Quantity(_) => Opaque::Quantity.name(),
            Self::Ip(_) => Opaque::Ip.name(),
            Self::Cidr(_) => Opaque::Cidr.name(),
            Self::Url(_) => Opaque::Url.name(),
            Self::Semver(_) => Opaque::Semver.name(),
            Self::Format(_) => Opaque::NamedFormat.name(),
            Self::Authz(authz) => authz.opaque().name(),
        }
    }

    /// The type at run time, as `type(x)` gives it.
    pub(crate) fn runtime_type(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::Duration(_) => Type::Duration,
            Self::Timestamp(_) => Type::Timestamp,
            Self::List(_) => Type::list(Type::Dyn),
            Self::Map(map) => map.runtime_type(),
            Self::Type(_) => Type::Type(None),
            Self::Optional(_) => Type::optional(Type::Dyn),
            Self::Quantity(_) => Type::Opaque(Opaque::Quantity),
            Self::Ip(_) => Type::Opaque(Opaque::Ip),
            Self::Cidr(_) => Type::Opaque(Opaque::Cidr),
            Self::Url(_) => Type::Opaque(Opaque::Url),
            Self::Semver(_) => Type::Opaque(Opaque::Semver),
            Self::Format(_) => Type::Opaque(Opaque::NamedFormat),
            Self::Authz(authz) => Type::Opaque(authz.opaque()),
        }
    }

    /// The number that cost is counted by: characters, bytes, elements, and 1 for all else.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::String(text) => chars(text),
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.len() as u64,
            Self::Map(map) => map.len() as u64,
            Self::Cidr(cidr) => cidr.byte_length(),
            Self::Ip(IpAddr::V4(_)) => 4,
            Self::Ip(IpAddr::V6(_)) => 16,
            Self::Optional(Some(inner)) => inner.size(),
            _ => 1,
        }
    }
}

/// Characters of a text.
pub(crate) fn chars(text: &str) -> u64 {
    if text.is_ascii() { text.len() as u64 } else { text.chars().count() as u64 }
}

impl Value<'_> {
    /// The value as text, the same for equal values: entries of maps are sorted, and strings are quoted
    /// as in JSON. For logs and tests; what expressions make of a value is `string(value)`.
    pub fn render(&self) -> String {
        crate::library::format::render(&self.0)
    }
}
