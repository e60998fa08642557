//! Tables: what `kubectl get` prints, as data.

mod age;
mod function;

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use machinery::selector::LabelSelector;
use serde::Deserialize;
use serde_json::Value;

use crate::jsonpath::JsonPath;
use crate::resource::ResourceDef;
use crate::structural::print;

pub use age::human_duration;
pub use function::Function;

/// One column of a resource's table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Column {
    /// The heading, as `Name`.
    pub name: Arc<str>,
    /// The type that the definition tells: `string`, `integer`, `number`, `boolean`, `date`.
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    /// The format, mostly empty; `name` marks the column with the object's name.
    #[serde(default)]
    pub format: Arc<str>,
    /// One sentence.
    #[serde(default)]
    pub description: Arc<str>,
    /// 0 is shown always, more only with `-o wide`.
    #[serde(default)]
    pub priority: i32,
    /// What the cells hold.
    pub cell: CellRule,
}

/// How a cell follows from the object.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub enum CellRule {
    /// The first value at a path, as it is; another text when there is none.
    Path {
        /// Where.
        path: JsonPath,
        /// What an absent value shows; an empty text if not given.
        #[serde(default = "nothing")]
        absent: Value,
    },
    /// The first text at a path; an empty one counts as absent.
    Filled {
        /// Where.
        path: JsonPath,
        /// What is shown instead.
        absent: Arc<str>,
    },
    /// The first value at a path as text: numbers too.
    Text {
        /// Where.
        path: JsonPath,
        /// What an absent value shows.
        #[serde(default)]
        absent: Arc<str>,
    },
    /// All values at a path as texts, with commas between them.
    Join {
        /// Where.
        path: JsonPath,
        /// What is shown when there is none.
        #[serde(default)]
        absent: Arc<str>,
    },
    /// Two numbers, as `1/3`; absent ones are 0.
    Ratio(JsonPath, JsonPath),
    /// A map of labels, as `a=b,c=d`; `<none>` without any.
    Labels(JsonPath),
    /// A label selector as text.
    Selector {
        /// Where.
        path: JsonPath,
        /// What is shown when it has no conditions, or isn't there.
        #[serde(default)]
        empty: Arc<str>,
        /// What is shown when it is wrong.
        invalid: Arc<str>,
    },
    /// As `Age`, but another text when there is no time.
    Since {
        /// Where.
        path: JsonPath,
        /// What an absent time shows.
        #[serde(default)]
        absent: Arc<str>,
    },
    /// The first value at a path as CRDs show it: by the column's type, null when absent.
    Typed(JsonPath),
    /// How many members the lists and objects at these paths have together.
    Count(Vec<JsonPath>),
    /// How long ago the time at a path was, as `5m`; `<unknown>` when there is none.
    Age(JsonPath),
    /// Something computed.
    Call(Function),
}

/// The columns that clients know of an imported type, `None` for types that nobody knows.
///
/// They hold for the versions of the release that this server follows.
pub fn known_columns(group: &str, plural: &str, version: &str) -> Option<Arc<[Column]>> {
    let known = crate::known::resource(group, plural)?;
    known.versions.iter().any(|v| &**v == version).then(|| known.columns.clone())
}

/// A column as clients see it (`TableColumnDefinition`).
pub fn columns(def: &ResourceDef) -> &[Column] {
    &def.columns
}

/// The cells of one object, one for each column.
///
/// All columns are there whatever their priority; clients hide what they don't want.
pub fn row(def: &ResourceDef, object: &Value, now: Timestamp) -> Vec<Value> {
    cells(&def.columns, object, now)
}

/// The cells of one object under these columns.
pub fn cells(columns: &[Column], object: &Value, now: Timestamp) -> Vec<Value> {
    columns.iter().map(|column| column.cell(object, now)).collect()
}

// === impl Column ===

impl Column {
    /// A column that is always shown, without description.
    pub fn new(name: &str, kind: &str, format: &str, cell: CellRule) -> Self {
        let (name, kind, format) = (name.into(), kind.into(), format.into());
        Self { name, kind, format, description: "".into(), priority: 0, cell }
    }

    /// The definition that tables carry.
    pub fn definition(&self) -> Value {
        serde_json::json!({
            "name": &*self.name,
            "type": &*self.kind,
            "format": &*self.format,
            "description": &*self.description,
            "priority": self.priority,
        })
    }

    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        match &self.cell {
            CellRule::Path { path, absent } => present(path, object).unwrap_or(absent).clone(),
            CellRule::Filled { path, absent } => {
                let found = present(path, object).and_then(Value::as_str);
                Value::String(found.filter(|text| !text.is_empty()).unwrap_or(absent).to_owned())
            }
            CellRule::Text { path, absent } => {
                Value::String(present(path, object).map_or(absent.to_string(), |v| text(v).into()))
            }
            CellRule::Join { path, absent } => {
                let texts: Vec<_> = path.find(object).into_iter().map(text).collect();
                Value::String(if texts.is_empty() { absent.to_string() } else { texts.join(",") })
            }
            CellRule::Ratio(first, second) => {
                let number = |path| present(path, object).and_then(Value::as_i64).unwrap_or(0);
                Value::String(format!("{}/{}", number(first), number(second)))
            }
            CellRule::Labels(path) => {
                Value::String(function::labels(path.first(object).unwrap_or(&Value::Null)))
            }
            CellRule::Selector { path, empty, invalid } => {
                let value = path.first(object).unwrap_or(&Value::Null);
                Value::String(match LabelSelector::from_value(value) {
                    Err(_) => invalid.to_string(),
                    Ok(selector) if selector.requirements().is_empty() => empty.to_string(),
                    Ok(selector) => selector.to_string(),
                })
            }
            CellRule::Since { path, absent } => Value::String(match present(path, object) {
                None => absent.to_string(),
                time => age::since(time, now),
            }),
            CellRule::Typed(path) => {
                path.first(object).map_or(Value::Null, |value| typed(&self.kind, value, now))
            }
            CellRule::Count(paths) => {
                let count = |path: &JsonPath| match path.first(object) {
                    Some(Value::Array(items)) => items.len(),
                    Some(Value::Object(members)) => members.len(),
                    _ => 0,
                };
                Value::from(paths.iter().map(count).sum::<usize>())
            }
            CellRule::Age(path) => Value::String(age::since(path.first(object), now)),
            CellRule::Call(function) => function.cell(object, now),
        }
    }
}

// === impl CellRule ===

impl CellRule {
    /// The value at a path that is known to be right.
    pub(crate) fn path(path: &'static str) -> Self {
        let path = JsonPath::parse(path).expect("paths in the code are well formed");
        Self::Path { path, absent: nothing() }
    }
}

fn nothing() -> Value {
    Value::String(String::new())
}

/// The first value at a path, unless it is null.
fn present<'v>(path: &JsonPath, object: &'v Value) -> Option<&'v Value> {
    path.first(object).filter(|value| !value.is_null())
}

/// A CRD's cell: values of another type than the column's are not shown.
fn typed(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        // Go cuts floats off, and makes the least integer of those that are none.
        ("integer", Value::Number(n)) => n.as_i64().map_or_else(
            || {
                let float = n.as_f64().unwrap_or_default();
                let fits = float.abs() < i64::MAX as f64;
                Value::from(if fits { float as i64 } else { i64::MIN })
            },
            Value::from,
        ),
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("string", Value::Null) => Value::from("<no value>"),
        ("string", value) => Value::String(print::text(value)),
        ("date", Value::String(text)) => match age::since(Some(value), now) {
            age if age == age::UNKNOWN && !text.is_empty() => Value::from(age::INVALID),
            age => Value::from(age),
        },
        _ => Value::Null,
    }
}

/// A value as text: strings without quotes, everything else as JSON, null as nothing.
pub(crate) fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
