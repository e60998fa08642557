//! A structural schema, read so that each keyword is in one place.
//!
//! What says the same in several ways is read into one form: absent and `atomic` lists, the two ways
//! to write int-or-string, `allOf` of a single keyword. Keywords that nobody understands are kept as
//! conditions, which must be the same to fit.

mod limits;
mod parse;
mod print;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::kind::Kind;
pub(crate) use limits::{Bound, LEAST, Limits, MOST};

/// How deep schemas may nest.
pub const MAX_DEPTH: usize = 64;

/// The most parts that one schema may have.
pub const MAX_NODES: usize = 40_000;

/// The most keywords, and items of their lists, that one schema may have in all: some five for each part
/// of the largest.
pub(crate) const MAX_WORDS: usize = 5 * MAX_NODES;

/// The fields that every resource has.
pub(crate) const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The fields of a resource's metadata of which a schema may say something.
pub(crate) const NAMES: [&str; 2] = ["name", "generateName"];

/// Any text: what these are where no schema says more.
pub(crate) static TEXT: LazyLock<Node> = LazyLock::new(|| Node::of(Kind::STRING));

/// One place of a schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) nullable: bool,
    /// Whether fields that aren't declared are kept.
    pub(crate) preserve: bool,
    /// Whether it is a resource of its own.
    pub(crate) embedded: bool,
    /// Whether it is the object itself.
    pub(crate) root: bool,
    /// Whether it is the metadata of a resource, of which servers know more than schemas say.
    pub(crate) metadata: bool,
    pub(crate) properties: BTreeMap<String, Node>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Node>>,
    pub(crate) list: List,
    /// `x-kubernetes-map-type: atomic`
    pub(crate) atomic: bool,
    pub(crate) required: BTreeSet<String>,
    pub(crate) limits: Limits,
    /// The only values, by their canonical text.
    pub(crate) allowed: Option<BTreeMap<String, Value>>,
    /// What else must hold, each as a keyword and its value.
    pub(crate) conditions: BTreeSet<Condition>,
    /// Rules in CEL, by what they say; the value is the whole entry.
    pub(crate) rules: BTreeMap<Rule, Value>,
    pub(crate) default: Option<Value>,
    /// `description` and the like, which say nothing of what is valid.
    pub(crate) about: Map<String, Value>,
}

/// `additionalProperties`
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Additional {
    /// Fields that aren't declared are pruned, or refused.
    None,
    /// They are kept, but objects in them lose their fields.
    Bare,
    /// They are of this kind.
    Of(Box<Node>),
}

/// How items of a list are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// They aren't.
    Atomic,
    /// As values, of which each comes once.
    Set,
    /// By these fields.
    Map(BTreeSet<String>),
}

/// A condition on values, as a schema with one keyword.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Condition {
    pub(crate) keyword: String,
    /// Its value as canonical JSON.
    pub(crate) value: String,
}

/// What a rule in CEL says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    pub(crate) rule: String,
    pub(crate) optional_old: Option<bool>,
}

/// Why a schema can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub(crate) struct Unreadable {
    pub(crate) path: String,
    pub(crate) why: &'static str,
}

// === impl Node ===

impl Node {
    /// Reads the schema of an object.
    ///
    /// # Errors
    /// When it nests too deep or has too many parts, or says of no value what it is.
    pub(crate) fn read(schema: &Value) -> Result<Self, Unreadable> {
        parse::read(schema)
    }

    /// All values of a kind.
    fn of(kind: Kind) -> Self {
        Self {
            kind,
            nullable: false,
            preserve: false,
            embedded: false,
            root: false,
            metadata: false,
            properties: BTreeMap::new(),
            additional: Additional::None,
            items: None,
            list: List::Atomic,
            atomic: false,
            required: BTreeSet::new(),
            limits: Limits::default(),
            allowed: None,
            conditions: BTreeSet::new(),
            rules: BTreeMap::new(),
            default: None,
            about: Map::new(),
        }
    }

    /// The schema as JSON.
    pub(crate) fn print(&self) -> Value {
        print::node(self)
    }

    /// The conditions of one keyword.
    pub(crate) fn conditions_of<'n>(
        &'n self,
        keyword: &'n str,
    ) -> impl Iterator<Item = &'n Condition> {
        let first = Condition { keyword: keyword.to_owned(), value: String::new() };
        let from = self.conditions.range(first..);
        from.take_while(move |condition| condition.keyword == keyword)
    }

    /// How much there is to look at in it, but for what lies below.
    pub(crate) fn weight(&self) -> u64 {
        let allowed = self.allowed.as_ref().map_or(0, BTreeMap::len);
        let all = [allowed, self.required.len(), self.conditions.len(), self.rules.len()];
        1 + all.iter().sum::<usize>() as u64
    }

    /// Whether it is a resource, with a version, a kind and metadata.
    pub(crate) fn is_resource(&self) -> bool {
        self.root || self.embedded
    }
}

/// The text by which equal values are known: members sorted, whole numbers without fraction.
pub(crate) fn canonical(value: &Value) -> String {
    let mut value = value.clone();
    settle(&mut value, 0);
    value.to_string()
}

/// Whether one value's text sorts before that of another.
pub(crate) fn is_before(one: &Value, other: &Value) -> bool {
    let [one, other] = [one, other].map(Value::to_string);
    one < other
}

fn settle(value: &mut Value, depth: usize) {
    if depth > 2 * MAX_DEPTH {
        return;
    }
    match value {
        Value::Number(number) if number.is_f64() => {
            const LARGEST: f64 = 9_007_199_254_740_992.0;
            let float = number.as_f64().unwrap_or_default();
            if float.trunc() == float && float.abs() < LARGEST {
                *number = (float as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| settle(item, depth + 1)),
        Value::Object(fields) => fields.values_mut().for_each(|field| settle(field, depth + 1)),
        _ => {}
    }
}
