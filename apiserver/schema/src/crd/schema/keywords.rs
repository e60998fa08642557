//! Rules of single keywords, everywhere in a schema.

use machinery::{FieldError, FieldPath};
use serde_json::Value;

use super::super::tolerance::Tolerance;
use super::{TYPES, invalid, lists, rules};
use crate::structural::json::{self, Keywords, MAX_DEPTH};

/// What the parts around a schema say of it.
#[derive(Clone, Copy, Default)]
struct Around {
    /// Why there may be no defaults.
    no_defaults: Option<&'static str>,
    /// Whether it lies in the metadata of a resource.
    in_meta: bool,
}

/// What is wrong with a schema and its parts.
pub(super) fn validate(
    schema: &Keywords,
    at: &FieldPath,
    tolerance: &Tolerance,
) -> Vec<FieldError> {
    let mut walk = Walk { tolerance, path: at.clone(), problems: Vec::new(), depth: 0 };
    walk.schema(schema, Around::default(), true);
    walk.problems
}

struct Walk<'t> {
    tolerance: &'t Tolerance,
    path: FieldPath,
    problems: Vec<FieldError>,
    depth: usize,
}

// === impl Walk ===

impl Walk<'_> {
    fn schema(&mut self, schema: &Keywords, around: Around, is_root: bool) {
        if self.depth > MAX_DEPTH {
            return;
        }
        self.depth += 1;
        self.unsupported(schema, around);
        if json::flag(schema, "uniqueItems") {
            let why = "uniqueItems cannot be set to true since the runtime complexity becomes \
                       quadratic";
            self.forbidden("uniqueItems", why);
        }
        self.fields(schema, around, is_root);
        self.combinations(schema, around);
        self.items(schema, around);
        self.named("dependencies", schema, around);
        if let Some(value @ Value::Bool(false)) = schema.get("x-kubernetes-preserve-unknown-fields")
        {
            let at = self.path.child("x-kubernetes-preserve-unknown-fields");
            self.problems.push(invalid(&at, value, "must be true or undefined"));
        }
        self.problems.extend(lists::validate(schema, &self.path, self.tolerance));
        self.problems.extend(rules::validate(schema, &self.path));
        self.depth -= 1;
    }

    fn unsupported(&mut self, schema: &Keywords, around: Around) {
        let kind = json::text(schema, "type");
        if !self.tolerance.unknown_types && !kind.is_empty() && !TYPES.contains(&kind) {
            let at = self.path.child("type");
            self.problems.push(FieldError::not_supported(&at, &kind.into(), &TYPES));
        }
        if let Some(reason) = around.no_defaults.filter(|_| json::has(schema, "default")) {
            self.forbidden("default", &format!("must not be set {reason}"));
        }
        let filled = |keyword: &str| json::object(schema, keyword).is_some_and(|o| !o.is_empty());
        for (keyword, present) in [
            ("id", !json::text(schema, "id").is_empty()),
            ("additionalItems", json::has(schema, "additionalItems")),
            ("patternProperties", filled("patternProperties")),
            ("definitions", filled("definitions")),
            ("dependencies", json::has(schema, "dependencies")),
            ("$ref", json::has(schema, "$ref")),
        ] {
            if present {
                self.forbidden(keyword, &format!("{keyword} is not supported"));
            }
        }
        if kind == "null" {
            self.forbidden("type", "type cannot be set to null, use nullable as an alternative");
        }
        if !json::list(schema, "items").is_empty() {
            self.forbidden("items", "items must be a schema object and not an array");
        }
        if around.in_meta && json::flag(schema, "x-kubernetes-embedded-resource") {
            let why = "must not be used inside of resource meta";
            self.forbidden("x-kubernetes-embedded-resource", why);
        }
    }

    fn fields(&mut self, schema: &Keywords, around: Around, is_root: bool) {
        let additional = schema.get("additionalProperties").filter(|a| !a.is_null());
        let properties = json::object(schema, "properties").is_some_and(|p| !p.is_empty());
        if let Some(additional) = additional {
            if properties && *additional != Value::Bool(true) {
                let why = "additionalProperties and properties are mutual exclusive";
                self.forbidden("additionalProperties", why);
            }
            let mut below = around;
            if around.in_meta {
                below.no_defaults = Some("inside additionalProperties applying to object metadata");
            }
            if let Some(part) = additional.as_object() {
                self.below("additionalProperties", part, below);
            }
        }
        let resource = is_root || json::flag(schema, "x-kubernetes-embedded-resource");
        for (name, part) in json::properties(schema) {
            let mut below = around;
            let root_reason = match name {
                "metadata" => Some("in top-level metadata"),
                "kind" => Some("in top-level kind"),
                "apiVersion" => Some("in top-level apiVersion"),
                _ => None,
            };
            if resource && root_reason.is_some() {
                below.in_meta = true;
                if is_root {
                    below.no_defaults = root_reason;
                }
            }
            let mark = self.path.enter_child("properties");
            self.path.enter_key(name);
            self.schema(part, below, false);
            self.path.leave(mark);
        }
    }

    fn combinations(&mut self, schema: &Keywords, around: Around) {
        if let Some(part) = json::object(schema, "not") {
            self.below("not", part, around);
        }
        for keyword in ["allOf", "oneOf", "anyOf"] {
            for (index, part) in json::schemas(schema, keyword) {
                let mark = self.path.enter_child(keyword);
                self.path.enter_index(index);
                self.schema(part, around, false);
                self.path.leave(mark);
            }
        }
        self.named("definitions", schema, around);
    }

    fn items(&mut self, schema: &Keywords, around: Around) {
        if let Some(part) = json::object(schema, "items") {
            self.below("items", part, around);
        }
        for (index, part) in json::schemas(schema, "items") {
            let mark = self.path.enter_child("items");
            self.path.enter_index(index);
            self.schema(part, around, false);
            self.path.leave(mark);
        }
    }

    fn named(&mut self, keyword: &str, schema: &Keywords, around: Around) {
        for (name, part) in json::object(schema, keyword).into_iter().flatten() {
            if let Some(part) = part.as_object() {
                let mark = self.path.enter_child(keyword);
                self.path.enter_key(name);
                self.schema(part, around, false);
                self.path.leave(mark);
            }
        }
    }

    fn below(&mut self, keyword: &str, part: &Keywords, around: Around) {
        let mark = self.path.enter_child(keyword);
        self.schema(part, around, false);
        self.path.leave(mark);
    }

    fn forbidden(&mut self, keyword: &str, why: &str) {
        self.problems.push(FieldError::forbidden(&self.path.child(keyword), why));
    }
}
