//! The part of kubectl's JSONPath dialect that columns and selectors use.
//!
//! `.a.b`, `['a']`, `[0]`, `[-1]`, `[1:3]`, `[*]`, `.*`, and filters
//! `[?(@.type=="Ready")]` with `==`, `!=`, `<`, `<=`, `>`, `>=` or none (existence). Braces and
//! `$` around a path are allowed. There is no recursive descent, no script and no union, so the
//! work is bounded by the value's size.

mod parse;

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    text: Box<str>,
    steps: Box<[Step]>,
}

/// Why a text is no path that this server understands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} in JSONPath {path:?}")]
pub struct InvalidPath {
    /// The text.
    pub path: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Name(Box<str>),
    Index(i64),
    Slice(Option<i64>, Option<i64>),
    All,
    Filter(Filter),
}

/// `@` followed by names and indexes, compared with a literal.
#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Box<[Step]>,
    compare: Option<(Operator, Value)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

// === impl JsonPath ===

impl JsonPath {
    /// Parses a path.
    ///
    /// # Errors
    /// [`InvalidPath`] for anything outside the dialect.
    pub fn parse(path: &str) -> Result<Self, InvalidPath> {
        match parse::parse(path) {
            Ok(steps) => Ok(Self { text: path.into(), steps: steps.into() }),
            Err(reason) => Err(InvalidPath { path: path.to_owned(), reason }),
        }
    }

    /// The text that was parsed.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first value that the path leads to.
    pub fn first<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        first(&self.steps, value)
    }

    /// All values that the path leads to, in order.
    pub fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        let mut found = Vec::new();
        collect(&self.steps, value, &mut found);
        found
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for JsonPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

fn first<'v>(steps: &[Step], value: &'v Value) -> Option<&'v Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    match step {
        Step::Name(_) | Step::Index(_) => first(rest, step.single(value)?),
        _ => step.many(value).find_map(|v| first(rest, v)),
    }
}

fn collect<'v>(steps: &[Step], value: &'v Value, found: &mut Vec<&'v Value>) {
    let Some((step, rest)) = steps.split_first() else {
        found.push(value);
        return;
    };
    match step {
        Step::Name(_) | Step::Index(_) => {
            if let Some(next) = step.single(value) {
                collect(rest, next, found);
            }
        }
        _ => step.many(value).for_each(|v| collect(rest, v, found)),
    }
}

// === impl Step ===

impl Step {
    fn single<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Name(name) => value.get(&**name),
            Self::Index(at) => {
                let items = value.as_array()?;
                items.get(position(*at, items.len())?)
            }
            _ => None,
        }
    }

    fn many<'a, 'v: 'a>(&'a self, value: &'v Value) -> Box<dyn Iterator<Item = &'v Value> + 'a> {
        match (self, value) {
            (Self::All, Value::Array(items)) => Box::new(items.iter()),
            (Self::All, Value::Object(object)) => Box::new(object.values()),
            (Self::Slice(from, to), Value::Array(items)) => {
                let bound = |at: Option<i64>, default: usize| match at {
                    None => default,
                    Some(at) if at < 0 => position(at, items.len()).unwrap_or(0),
                    Some(at) => usize::try_from(at).unwrap_or(usize::MAX).min(items.len()),
                };
                let (from, to) = (bound(*from, 0), bound(*to, items.len()));
                Box::new(items.iter().take(to).skip(from))
            }
            (Self::Filter(filter), Value::Array(items)) => {
                Box::new(items.iter().filter(|item| filter.holds(item)))
            }
            (Self::Filter(filter), Value::Object(object)) => {
                Box::new(object.values().filter(|item| filter.holds(item)))
            }
            _ => Box::new(std::iter::empty()),
        }
    }
}

/// Negative indexes count from the end.
fn position(at: i64, length: usize) -> Option<usize> {
    match usize::try_from(at) {
        Ok(at) => (at < length).then_some(at),
        Err(_) => length.checked_sub(usize::try_from(at.unsigned_abs()).ok()?),
    }
}

// === impl Filter ===

impl Filter {
    fn holds(&self, item: &Value) -> bool {
        let Some(left) = first(&self.left, item) else { return false };
        let Some((operator, right)) = &self.compare else { return true };
        let order = match (left, right) {
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
                (Some(a), Some(b)) => a.partial_cmp(&b),
                _ => None,
            },
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            _ => None,
        };
        match operator {
            Operator::Equal => order == Some(Ordering::Equal),
            Operator::NotEqual => order != Some(Ordering::Equal),
            Operator::Less => order == Some(Ordering::Less),
            Operator::LessOrEqual => order.is_some_and(Ordering::is_le),
            Operator::Greater => order == Some(Ordering::Greater),
            Operator::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

#[cfg(test)]
mod tests;
