//! One step of a path into an object: a field, an item by its keys or value, an index.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use super::value::{as_float, compare, push_json, push_shown, push_string};

/// One step of a path.
#[derive(Clone, Debug)]
pub enum Element {
    /// `f:name`: a field of an object.
    Field(Box<str>),
    /// `k:{"name":"a"}`: the item of a list with these keys, sorted by their names.
    Key(Box<[(Box<str>, Value)]>),
    /// `v:"a"`: the item of a set.
    Value(Value),
    /// `i:0`: an item by its place.
    Index(i64),
}

/// Why a text is no step of a path.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is no element of a path")]
pub struct InvalidElement(Box<str>);

// === impl Element ===

impl Element {
    /// A field.
    pub fn field(name: impl Into<Box<str>>) -> Self {
        Self::Field(name.into())
    }

    /// Parses the form that managed fields have on the wire; `None` for a form that a later version
    /// may know.
    ///
    /// # Errors
    /// [`InvalidElement`] for anything else.
    pub fn parse(text: &str) -> Result<Option<Self>, InvalidElement> {
        let invalid = || InvalidElement(text.into());
        let (prefix, rest) = text.split_at_checked(2).ok_or_else(invalid)?;
        Ok(Some(match prefix {
            "f:" => Self::Field(rest.into()),
            "v:" => {
                let mut value = first_json(rest).ok_or_else(invalid)?;
                as_float(&mut value);
                Self::Value(value)
            }
            "k:" => match first_json(rest) {
                Some(Value::Object(fields)) => {
                    let keys = fields.into_iter().map(|(name, mut value)| {
                        as_float(&mut value);
                        (name.into_boxed_str(), value)
                    });
                    Self::Key(keys.collect())
                }
                Some(Value::Null) => Self::Key(Box::default()),
                _ => return Err(invalid()),
            },
            "i:" => Self::Index(rest.parse().map_err(|_| invalid())?),
            _ if prefix.ends_with(':') => return Ok(None),
            _ => return Err(invalid()),
        }))
    }

    /// Appends the form that managed fields have on the wire.
    pub(super) fn push(&self, out: &mut String) {
        match self {
            Self::Field(name) => {
                out.push_str("f:");
                out.push_str(name);
            }
            Self::Key(keys) => {
                out.push_str("k:{");
                for (at, (name, value)) in keys.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    push_string(out, name, false);
                    out.push(':');
                    push_json(out, value);
                }
                out.push('}');
            }
            Self::Value(value) => {
                out.push_str("v:");
                push_json(out, value);
            }
            Self::Index(at) => {
                out.push_str("i:");
                out.push_str(&at.to_string());
            }
        }
    }
}

/// The JSON value at the beginning of a text; upstream doesn't look at what follows.
fn first_json(text: &str) -> Option<Value> {
    serde_json::Deserializer::from_str(text).into_iter().next()?.ok()
}

/// As messages show it: `.name`, `[port=80,protocol="TCP"]`, `[="x"]`, `[0]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        match self {
            Self::Field(name) => return write!(f, ".{name}"),
            Self::Key(keys) => {
                for (at, (name, value)) in keys.iter().enumerate() {
                    if at > 0 {
                        text.push(',');
                    }
                    text.push_str(name);
                    text.push('=');
                    push_shown(&mut text, value);
                }
            }
            Self::Value(value) => {
                text.push('=');
                push_shown(&mut text, value);
            }
            Self::Index(at) => text = at.to_string(),
        }
        write!(f, "[{text}]")
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => {
                let pairs = a.iter().zip(b.iter());
                let mut orders = pairs.map(|((a, x), (b, y))| a.cmp(b).then_with(|| compare(x, y)));
                let unequal = orders.find(|order| order.is_ne());
                unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (Self::Value(a), Self::Value(b)) => compare(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

impl Element {
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element {}
