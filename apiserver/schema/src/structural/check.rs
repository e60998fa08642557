//! The rules of structural schemas (KEP-1979, kube-apiserver's `ValidateStructural`).
//!
//! Two kinds of rules: what stands where (types outside of value validations, metadata restricted
//! in names only, …), and that value validations speak of declared parts only.

mod complete;

use machinery::{FieldError, FieldPath};
use serde_json::{Map, Value};

use super::json::{self, Keywords, MAX_DEPTH};
use super::pattern::Pattern;

/// Why a schema isn't structural.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It uses what structural schemas don't have; the general rules say so more precisely.
    Unsupported(FieldError),
    /// It breaks these rules.
    Rules(Vec<FieldError>),
}

/// Where in a schema a node is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Checks a schema at a path.
///
/// # Errors
/// [`Fault`]
pub(crate) fn check(schema: &Value, at: &FieldPath) -> Result<(), Fault> {
    let empty = Map::new();
    let schema = schema.as_object().unwrap_or(&empty);
    if let Err(why) = supported(schema, 0) {
        return Err(Fault::Unsupported(unbuildable(at, &why)));
    }
    let mut checker = Checker { path: at.clone(), problems: Vec::new() };
    checker.structure(schema, Level::Root);
    complete::check(schema, at, &mut checker.problems);
    // Upstream walks maps in any order and sorts afterwards.
    checker.problems.sort_by_cached_key(ToString::to_string);
    if checker.problems.is_empty() { Ok(()) } else { Err(Fault::Rules(checker.problems)) }
}

/// The problem of a schema that can't be compiled at all.
pub(super) fn unbuildable(at: &FieldPath, why: &str) -> FieldError {
    FieldError::invalid_str(at, "", why)
}

// === impl Fault ===

impl Fault {
    pub(super) fn into_errors(self) -> Vec<FieldError> {
        match self {
            Self::Unsupported(problem) => vec![problem],
            Self::Rules(problems) => problems,
        }
    }
}

/// Refuses keywords that structural schemas don't have, and what nests too deeply for the rest.
fn supported(schema: &Keywords, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("must not nest deeper than {MAX_DEPTH} levels"));
    }
    let texts = [("id", "id"), ("$schema", "schema"), ("$ref", "$ref")];
    let parts = ["patternProperties", "dependencies", "additionalItems", "definitions"];
    let text = texts.iter().find(|(keyword, _)| !json::text(schema, keyword).is_empty());
    let part = parts.iter().find(|keyword| match schema.get(**keyword) {
        Some(Value::Object(entries)) => **keyword == "additionalItems" || !entries.is_empty(),
        Some(Value::Bool(_)) => **keyword == "additionalItems",
        _ => false,
    });
    if let Some(name) = text.map(|(_, name)| name).or(part) {
        return Err(format!("OpenAPIV3Schema '{name}' is not supported"));
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        return Err("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or \
                    undefined"
            .into());
    }
    if schema.get("items").and_then(Value::as_array).is_some_and(|items| !items.is_empty()) {
        return Err("OpenAPIV3Schema 'items' must be a schema, but is an array".into());
    }
    let single = ["not", "items", "additionalProperties"];
    let mut below = single.into_iter().filter_map(|keyword| json::object(schema, keyword));
    below.try_for_each(|part| supported(part, depth + 1))?;
    json::properties(schema).try_for_each(|(_, part)| supported(part, depth + 1))?;
    ["allOf", "anyOf", "oneOf"].into_iter().try_for_each(|keyword| {
        json::schemas(schema, keyword).try_for_each(|(_, part)| supported(part, depth + 1))
    })
}

struct Checker {
    path: FieldPath,
    problems: Vec<FieldError>,
}

// === impl Checker ===

impl Checker {
    /// A part of the object's structure.
    fn structure(&mut self, schema: &Keywords, level: Level) {
        let kind = json::text(schema, "type");
        let items = json::object(schema, "items");
        if kind == "array" && items.is_none() {
            self.required("items", "must be specified");
        }
        if let Some(items) = items {
            self.below("items", |c| c.structure(items, Level::Item));
        }
        for (name, part) in json::properties(schema) {
            self.in_property(name, |c| c.structure(part, Level::Field));
        }
        let additional = schema.get("additionalProperties").filter(|v| !v.is_null());
        if let Some(additional) = additional {
            if level == Level::Root {
                self.forbidden("additionalProperties", "must not be used at the root");
            }
            if let Some(part) = additional.as_object() {
                self.below("additionalProperties", |c| c.structure(part, Level::Field));
            }
        }
        self.extensions(schema);
        let int_or_string = |schema: &Keywords| is_int_or_string(json::list(schema, "anyOf"));
        let first = json::list(schema, "allOf").first().and_then(Value::as_object);
        self.validations(schema, int_or_string(schema), first.is_some_and(int_or_string));
        self.kind(schema, kind, level);
        let embedded = json::flag(schema, "x-kubernetes-embedded-resource");
        if embedded && additional.is_some() {
            let why = "must not be used if x-kubernetes-embedded-resource is set";
            self.forbidden("additionalProperties", why);
        }
        if level == Level::Root && !kind.is_empty() && kind != "object" {
            self.invalid("type", &kind.into(), "must be object at the root");
        }
        self.meta(schema, level, embedded);
        let preserves = json::flag(schema, "x-kubernetes-preserve-unknown-fields");
        if embedded && !preserves && json::properties(schema).next().is_none() {
            let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                       x-kubernetes-preserve-unknown-fields";
            self.required("properties", why);
        }
    }

    fn extensions(&mut self, schema: &Keywords) {
        if json::flag(schema, "x-kubernetes-int-or-string") {
            let others = ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"];
            for other in others.into_iter().filter(|other| json::flag(schema, other)) {
                let why = "must be false if x-kubernetes-int-or-string is true";
                self.invalid(other, &Value::Bool(true), why);
            }
        }
    }

    fn kind(&mut self, schema: &Keywords, kind: &str, level: Level) {
        if json::flag(schema, "x-kubernetes-embedded-resource") && kind != "object" {
            let why = "must be object if x-kubernetes-embedded-resource is true";
            if kind.is_empty() {
                self.required("type", why);
            } else {
                self.invalid("type", &kind.into(), why);
            }
        } else if kind.is_empty()
            && !json::flag(schema, "x-kubernetes-int-or-string")
            && !json::flag(schema, "x-kubernetes-preserve-unknown-fields")
        {
            self.required(
                "type",
                match level {
                    Level::Root => "must not be empty at the root",
                    Level::Item => "must not be empty for specified array items",
                    Level::Field => "must not be empty for specified object fields",
                },
            );
        }
    }

    /// What is said of `apiVersion`, `kind` and `metadata`, which every resource has.
    fn meta(&mut self, schema: &Keywords, level: Level, embedded: bool) {
        let resource = level == Level::Root || embedded;
        let part =
            |name: &str| json::object(schema, "properties").and_then(|p| json::object(p, name));
        for name in ["kind", "apiVersion"] {
            if let Some(part) = part(name).filter(|p| resource && json::text(p, "type") != "string")
            {
                let kind = json::text(part, "type");
                self.in_property(name, |c| c.invalid("type", &kind.into(), "must be string"));
            }
        }
        let Some(metadata) = part("metadata") else { return };
        let kind = json::text(metadata, "type");
        if resource && kind != "object" {
            self.in_property("metadata", |c| c.invalid("type", &kind.into(), "must be object"));
        }
        if level == Level::Root && !names_only(metadata) {
            let why = "must not specify anything other than name and generateName, but metadata \
                       is implicitly specified";
            self.in_property("metadata", |c| {
                c.problems.push(FieldError::forbidden(&c.path, why));
            });
        }
    }

    /// `anyOf` and the like; the two places where int-or-string may say its types are passed over.
    fn validations(&mut self, schema: &Keywords, skip_any_of: bool, skip_in_all_of: bool) {
        if !skip_any_of {
            for (at, part) in json::schemas(schema, "anyOf") {
                self.in_item("anyOf", at, |c| c.nested(part, false, false));
            }
        }
        for (at, part) in json::schemas(schema, "allOf") {
            let skip = skip_in_all_of && at == 0;
            self.in_item("allOf", at, |c| c.nested(part, skip, false));
        }
        for (at, part) in json::schemas(schema, "oneOf") {
            self.in_item("oneOf", at, |c| c.nested(part, false, false));
        }
        if let Some(part) = json::object(schema, "not") {
            self.below("not", |c| c.nested(part, false, false));
        }
        let pattern = json::text(schema, "pattern");
        if let Err(why) = Pattern::get(pattern) {
            let why = format!("must be a valid regular expression, but isn't: {why}");
            self.invalid("pattern", &pattern.into(), &why);
        }
    }

    /// A schema inside of `anyOf` and the like, which may only restrict values.
    fn nested(&mut self, schema: &Keywords, skip_any_of: bool, skip_in_all_of: bool) {
        self.validations(schema, skip_any_of, skip_in_all_of);
        if let Some(items) = json::object(schema, "items") {
            self.below("items", |c| c.nested(items, false, false));
        }
        for (name, part) in json::properties(schema) {
            self.in_property(name, |c| c.nested(part, false, false));
        }
        let texts = ["type", "title", "description"];
        for keyword in texts.into_iter().filter(|k| !json::text(schema, k).is_empty()) {
            self.forbidden(keyword, "must be empty to be structural");
        }
        if matches!(schema.get("additionalProperties"), Some(Value::Bool(true) | Value::Object(_)))
        {
            self.forbidden("additionalProperties", "must be undefined to be structural");
        }
        if json::has(schema, "default") {
            self.forbidden("default", "must be undefined to be structural");
        }
        let flags = [
            "nullable",
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
            "x-kubernetes-int-or-string",
        ];
        for keyword in flags.into_iter().filter(|k| json::flag(schema, k)) {
            self.forbidden(keyword, "must be false to be structural");
        }
        let lists = ["x-kubernetes-list-map-keys", "x-kubernetes-validations"];
        for keyword in lists.into_iter().filter(|k| !json::list(schema, k).is_empty()) {
            self.forbidden(keyword, "must be empty to be structural");
        }
        let types = ["x-kubernetes-list-type", "x-kubernetes-map-type"];
        for keyword in types.into_iter().filter(|k| json::has(schema, k)) {
            self.forbidden(keyword, "must be undefined to be structural");
        }
        let properties = json::object(schema, "properties");
        if properties.is_some_and(|p| p.contains_key("metadata")) {
            let why = "must not be specified in a nested context";
            self.in_property("metadata", |c| {
                c.problems.push(FieldError::forbidden(&c.path, why));
            });
        }
    }

    fn required(&mut self, keyword: &str, why: &str) {
        self.problems.push(FieldError::required(&self.path.child(keyword), why));
    }

    fn forbidden(&mut self, keyword: &str, why: &str) {
        self.problems.push(FieldError::forbidden(&self.path.child(keyword), why));
    }

    fn invalid(&mut self, keyword: &str, value: &Value, why: &str) {
        self.problems.push(FieldError::invalid(&self.path.child(keyword), value, why));
    }

    fn below(&mut self, keyword: &str, walk: impl FnOnce(&mut Self)) {
        let mark = self.path.enter_child(keyword);
        walk(self);
        self.path.leave(mark);
    }

    fn in_property(&mut self, name: &str, walk: impl FnOnce(&mut Self)) {
        let mark = self.path.enter_child("properties");
        self.path.enter_key(name);
        walk(self);
        self.path.leave(mark);
    }

    fn in_item(&mut self, keyword: &str, at: usize, walk: impl FnOnce(&mut Self)) {
        let mark = self.path.enter_child(keyword);
        self.path.enter_index(at);
        walk(self);
        self.path.leave(mark);
    }
}

/// Whether a list is `[{type: integer}, {type: string}]`, with which int-or-string says its types.
fn is_int_or_string(any_of: &[Value]) -> bool {
    let only = |value: &Value, kind: &str| {
        value.as_object().is_some_and(|o| o.len() == 1 && json::text(o, "type") == kind)
    };
    matches!(any_of, [first, second] if only(first, "integer") && only(second, "string"))
}

/// Whether the schema of metadata says nothing but what names may be.
fn names_only(metadata: &Keywords) -> bool {
    metadata.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" | "default" => true,
        "properties" => {
            let names = value.as_object().into_iter().flat_map(Map::keys);
            value.is_null() || { names }.all(|name| name == "name" || name == "generateName")
        }
        _ => match value {
            Value::Null => true,
            Value::Bool(on) => !on && keyword != "additionalProperties",
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        },
    })
}
