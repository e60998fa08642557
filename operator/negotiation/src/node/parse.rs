//! JSON to nodes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Additional, Condition, Limits, List, META, Node, Rule, Unreadable, canonical};
use super::{MAX_DEPTH, MAX_NODES, MAX_WORDS};
use crate::kind::Kind;

/// Keywords that say nothing of what is valid.
const ABOUT: [&str; 4] = ["description", "title", "example", "externalDocs"];

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_TYPE: &str = "x-kubernetes-map-type";

/// Conditions that may stand alone in an `allOf`, where they say the same.
const ALONE: [&str; 6] = ["anyOf", "format", "multipleOf", "not", "oneOf", "pattern"];

struct Reader {
    /// How many parts there may still be.
    left: usize,
    /// How many words there may still be in them.
    words: usize,
    path: String,
}

/// What lies below a part of a schema.
struct Below {
    properties: BTreeMap<String, Node>,
    items: Option<Box<Node>>,
    additional: Additional,
}

pub(super) fn read(schema: &Value) -> Result<Node, Unreadable> {
    let mut reader = Reader { left: MAX_NODES, words: MAX_WORDS, path: String::new() };
    let mut node = reader.node(schema, 0)?;
    node.root = true;
    Ok(node)
}

// === impl Reader ===

impl Reader {
    fn fail<T>(&self, why: &'static str) -> Result<T, Unreadable> {
        let path = if self.path.is_empty() { ".".to_owned() } else { self.path.clone() };
        Err(Unreadable { path, why })
    }

    fn node(&mut self, schema: &Value, depth: usize) -> Result<Node, Unreadable> {
        if depth > MAX_DEPTH {
            return self.fail("the schema nests too deep");
        }
        let Value::Object(schema) = schema else { return self.fail("it is no schema") };
        self.count(schema)?;
        // What lies below is read from the original: only this level is copied.
        let below = |key: &str| matches!(key, "properties" | "items" | "additionalProperties");
        let mut keywords: Map<String, Value> = { schema.iter() }
            .filter(|(key, value)| !below(key) && !value.is_null())
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let mut flag = |key: &str| keywords.remove(key) == Some(Value::Bool(true));
        let nullable = flag("nullable");
        let preserve = flag("x-kubernetes-preserve-unknown-fields");
        let embedded = flag("x-kubernetes-embedded-resource");
        let int_or_string = flag("x-kubernetes-int-or-string");
        let kind = match text(&mut keywords, "type") {
            _ if int_or_string => Kind::INT_OR_STRING,
            None if preserve => Kind::ANY,
            None => return self.fail("it has no type"),
            Some(name) => match Kind::parse(&name) {
                Some(kind) => kind,
                None => return self.fail("it has an unknown type"),
            },
        };
        if int_or_string {
            drop_types(&mut keywords);
        }
        let Below { mut properties, items, additional } = self.below(schema, depth, preserve)?;
        let preserve = preserve && kind != Kind::ARRAY && !kind.is_scalar();
        let spelled = spelled(&keywords);
        let list = list(&mut keywords);
        let atomic = text(&mut keywords, MAP_TYPE).as_deref() == Some("atomic");
        let resource = depth == 0 || embedded;
        if let Some(metadata) = properties.get_mut("metadata").filter(|_| resource) {
            metadata.metadata = true;
        }
        let mut required: BTreeSet<String> = texts(keywords.remove("required")).collect();
        if resource {
            // Every resource has them.
            required.retain(|name| !META.contains(&name.as_str()));
        }
        let limits = Limits::take(&mut keywords);
        let allowed = match keywords.remove("enum") {
            Some(Value::Array(values)) if !values.is_empty() => {
                Some(values.into_iter().map(|value| (canonical(&value), value)).collect())
            }
            _ => None,
        };
        let default = keywords.remove("default");
        let rules = rules(keywords.remove("x-kubernetes-validations"));
        let mut about = Map::new();
        for key in ABOUT {
            about.extend(keywords.remove(key).map(|value| (key.to_owned(), value)));
        }
        if keywords.get("format").is_some_and(|format| says_nothing(format, kind)) {
            about.extend(keywords.remove("format").map(|format| ("format".to_owned(), format)));
        }
        about.extend(spelled);
        let conditions = conditions(keywords);
        Ok(Node {
            kind,
            nullable,
            preserve,
            embedded,
            root: false,
            metadata: false,
            properties,
            additional,
            items,
            list,
            atomic,
            required,
            limits,
            allowed,
            conditions,
            rules,
            default,
            about,
        })
    }

    /// What lies below a part; `preserve` says that it keeps unknown fields.
    fn below(
        &mut self,
        schema: &Map<String, Value>,
        depth: usize,
        preserve: bool,
    ) -> Result<Below, Unreadable> {
        let mut properties = BTreeMap::new();
        if let Some(Value::Object(fields)) = schema.get("properties") {
            for (name, part) in fields {
                properties.insert(
                    name.clone(),
                    self.inside(&format!(".{name}"), |at| at.node(part, depth + 1))?,
                );
            }
        }
        let mut items = match schema.get("items") {
            None | Some(Value::Null) => None,
            Some(part) => Some(Box::new(self.inside("[*]", |at| at.node(part, depth + 1))?)),
        };
        let additional = match schema.get("additionalProperties") {
            Some(Value::Bool(true)) => Additional::Bare,
            Some(part @ Value::Object(_)) => {
                Additional::Of(Box::new(self.inside("[*]", |at| at.node(part, depth + 1))?))
            }
            _ => Additional::None,
        };
        if preserve {
            hand_on(items.as_deref_mut());
        }
        Ok(Below { properties, items, additional })
    }

    /// Takes a part, and what it says, from what there may be.
    fn count(&mut self, schema: &Map<String, Value>) -> Result<(), Unreadable> {
        let items = schema.values().map(|value| match value {
            Value::Array(items) => items.len() + 1,
            _ => 1,
        });
        let left = self.left.checked_sub(1).zip(self.words.checked_sub(items.sum()));
        let Some((left, words)) = left else {
            return self.fail("the schema has too many parts");
        };
        (self.left, self.words) = (left, words);
        Ok(())
    }

    fn inside<T>(&mut self, step: &str, run: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        self.path.push_str(step);
        let made = run(self);
        self.path.truncate(length);
        made
    }
}

/// A list hands it on to its items that unknown fields are kept.
fn hand_on(mut items: Option<&mut Node>) {
    while let Some(node) = items {
        node.preserve = node.kind != Kind::ARRAY;
        items = node.items.as_deref_mut().filter(|_| node.kind == Kind::ARRAY);
    }
}

/// What says no more than its absence, as it is spelled.
fn spelled(keywords: &Map<String, Value>) -> Vec<(String, Value)> {
    let words = [(LIST_TYPE, "atomic"), (MAP_TYPE, "granular")];
    let said =
        |(keyword, word): &(&str, &str)| keywords.get(*keyword).is_some_and(|value| value == word);
    let some = words.into_iter().filter(said);
    some.map(|(keyword, word)| (keyword.to_owned(), word.into())).collect()
}

fn text(keywords: &mut Map<String, Value>, key: &str) -> Option<String> {
    match keywords.remove(key) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

fn texts(list: Option<Value>) -> impl Iterator<Item = String> {
    let items = match list {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    items.into_iter().filter_map(|item| match item {
        Value::String(text) => Some(text),
        _ => None,
    })
}

/// Drops the types that int-or-string may say in its two ways, which are the same.
fn drop_types(keywords: &mut Map<String, Value>) {
    let types = serde_json::json!([{"type": "integer"}, {"type": "string"}]);
    if keywords.get("anyOf") == Some(&types) {
        keywords.remove("anyOf");
    }
    if let Some(Value::Array(all)) = keywords.get_mut("allOf")
        && let Some(Value::Object(first)) = all.first_mut()
        && first.get("anyOf") == Some(&types)
    {
        first.remove("anyOf");
        if first.is_empty() {
            all.remove(0);
        }
    }
}

fn list(keywords: &mut Map<String, Value>) -> List {
    let kind = text(keywords, LIST_TYPE);
    let keys = texts(keywords.remove("x-kubernetes-list-map-keys")).collect();
    match kind.as_deref() {
        Some("set") => List::Set,
        Some("map") => List::Map(keys),
        _ => List::Atomic,
    }
}

fn rules(list: Option<Value>) -> BTreeMap<Rule, Value> {
    let entries = match list {
        Some(Value::Array(entries)) => entries,
        _ => Vec::new(),
    };
    let rule = |entry: &Value| Rule {
        rule: entry.get("rule").and_then(Value::as_str).unwrap_or_default().to_owned(),
        optional_old: entry.get("optionalOldSelf").and_then(Value::as_bool),
    };
    entries.into_iter().map(|entry| (rule(&entry), entry)).collect()
}

/// Whatever keywords are left, as conditions.
fn conditions(mut keywords: Map<String, Value>) -> BTreeSet<Condition> {
    let mut made = BTreeSet::new();
    let mut add = |keyword: &str, value: &Value| {
        made.insert(Condition { keyword: keyword.to_owned(), value: canonical(value) });
    };
    let all = match keywords.remove("allOf") {
        Some(Value::Array(all)) => all,
        _ => Vec::new(),
    };
    for part in &all {
        match part.as_object().map(|part| (part.len(), part.iter().next())) {
            Some((0, _)) => {}
            Some((1, Some((keyword, value)))) if ALONE.contains(&keyword.as_str()) => {
                add(keyword, value);
            }
            _ => add("allOf", part),
        }
    }
    for (keyword, value) in &keywords {
        let empty = match value {
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Bool(on) => !on,
            _ => false,
        };
        if !empty {
            add(keyword, value);
        }
    }
    made
}

/// Whether a format says nothing of which numbers are valid: `int64` is what integers are anyway, and
/// no server looks at `double`.
fn says_nothing(format: &Value, kind: Kind) -> bool {
    match format.as_str() {
        Some("int64" | "double") => {
            [Kind::INTEGER, Kind::NUMBER, Kind::INT_OR_STRING].contains(&kind)
        }
        Some("int-or-string") => kind == Kind::INT_OR_STRING,
        _ => false,
    }
}
