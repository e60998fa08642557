//! Paths of fields in a schema, and the fields that lists may be selected by.

use std::collections::HashSet;

use machinery::{FieldError, FieldPath};
use serde_json::Value;

use super::tolerance::Tolerance;
use super::view::Version;
use super::view::View;
use crate::structural::json::{self, Keywords};

/// Most selectable fields of a version.
const MAX_SELECTABLE: usize = 8;

/// What a path led to.
pub(super) struct Found<'s> {
    /// The path as messages print it.
    pub(super) path: FieldPath,
    /// Its first name.
    pub(super) root: String,
    /// The schema there; `None` where values of any type are.
    pub(super) schema: Option<&'s Keywords>,
}

/// Whether a path may have names in brackets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Brackets {
    Allowed,
    Refused,
}

/// What is wrong with `selectableFields`.
pub(super) fn validate(
    version: &Version<'_>,
    name: &str,
    tolerance: &Tolerance,
    at: &FieldPath,
) -> Vec<FieldError> {
    let fields = version.selectable_fields();
    let at = at.child("selectableFields");
    if fields.is_empty() {
        return Vec::new();
    }
    // What all versions share has lost its schema if the schemas differ.
    if name.is_empty() && !version.has_validation() {
        let why = "may only be set when validations.schema is included";
        return vec![FieldError::invalid_str(&at, "", why)];
    }
    let Some(schema) = version.schema() else {
        let why = "may only be set when `version.schema.openAPIV3Schema` is not included";
        return vec![FieldError::invalid_str(&at, "", why)];
    };
    let mut problems = Vec::new();
    let mut seen = HashSet::new();
    for (index, field) in fields.iter().enumerate() {
        let at = at.index(index).child("jsonPath");
        let path = field.get("jsonPath").and_then(Value::as_str).unwrap_or_default();
        if path.is_empty() {
            problems.push(FieldError::required(&at, ""));
            continue;
        }
        let found = match find(path, schema, Brackets::Refused) {
            Ok(found) => found,
            Err(why) => {
                let why = format!("is an invalid path: {why}");
                problems.push(FieldError::invalid_str(&at, path, why));
                continue;
            }
        };
        if found.root == "metadata" {
            let why = "must not point to fields in metadata";
            problems.push(FieldError::invalid_str(&at, path, why));
        }
        let kind = found.schema.map(|schema| json::text(schema, "type")).unwrap_or_default();
        if !matches!(kind, "string" | "boolean" | "integer") {
            let why = "must point to a field of type string, boolean or integer. Enum string \
                       fields and strings with formats are allowed.";
            problems.push(FieldError::invalid_str(&at, path, why));
        }
        if !seen.insert(found.path.as_str().to_owned()) {
            problems.push(FieldError::duplicate(&at, &path.into()));
        }
    }
    if seen.len() > MAX_SELECTABLE && !tolerance.many_fields.contains(name) {
        problems.push(FieldError::too_many(&at, seen.len(), MAX_SELECTABLE));
    }
    problems
}

/// The versions that had too many selectable fields before and have the same now.
pub(super) fn too_many(new: &Value, old: &Value) -> HashSet<String> {
    let (new, old) = (View::of(new), View::of(old));
    let many = |version: &Version<'_>| version.selectable_fields().len() > MAX_SELECTABLE;
    let same = |new: &Version<'_>, old: &Version<'_>| {
        many(old) && new.selectable_fields() == old.selectable_fields()
    };
    let mut found = HashSet::new();
    if same(&new.shared(), &old.shared()) {
        found.insert(String::new());
    }
    for version in &new.versions {
        if old.versions.iter().any(|old| old.name() == version.name() && same(version, old)) {
            found.insert(version.name().to_owned());
        }
    }
    found
}

/// Follows a path as `.spec.a['b']` through a schema.
///
/// # Errors
/// Upstream's words for why it can't be followed.
pub(super) fn find<'s>(
    path: &str,
    schema: &'s Keywords,
    brackets: Brackets,
) -> Result<Found<'s>, String> {
    let mut tokens = Tokens(path);
    let mut found = Found { path: FieldPath::default(), root: String::new(), schema: Some(schema) };
    let mut first = true;
    while let Some(token) = tokens.next() {
        let name = match token {
            "[" if brackets == Brackets::Refused => {
                return Err("array notation is not allowed".into());
            }
            "[" => {
                let token = tokens.next().ok_or("unexpected end of JSON path")?;
                let quoted = token.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
                let Some(quoted) = quoted else {
                    return Err(format!("expected single quoted string but got {token}"));
                };
                unescape(quoted).map_err(|why| format!("invalid string literal: {why}"))?
            }
            "." => tokens.next().ok_or("unexpected end of JSON path")?.to_owned(),
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        step(&mut found, &name)?;
        if first {
            found.root = found.path.as_str().to_owned();
            first = false;
        }
        if token == "[" {
            match tokens.next() {
                Some("]") => {}
                Some(other) => return Err(format!("expected ] but got {other}")),
                None => return Err("unexpected end of JSON path".into()),
            }
        }
    }
    Ok(found)
}

fn step(found: &mut Found<'_>, name: &str) -> Result<(), String> {
    const NO_FIELD: &str = "does not refer to a valid field";
    let schema = found.schema.ok_or(NO_FIELD)?;
    let properties = json::object(schema, "properties").filter(|p| !p.is_empty());
    if let Some(properties) = properties {
        found.path.enter_child(name);
        found.schema = Some(json::object(properties, name).ok_or(NO_FIELD)?);
        return Ok(());
    }
    let additional = schema.get("additionalProperties").filter(|a| !a.is_null()).ok_or(NO_FIELD)?;
    found.path.enter_key(name);
    found.schema = additional.as_object();
    Ok(())
}

/// Dots, brackets and what lies between; texts in single quotes are one token.
struct Tokens<'t>(&'t str);

// === impl Tokens ===

impl<'t> Tokens<'t> {
    fn next(&mut self) -> Option<&'t str> {
        let is_delimiter = |c: char| matches!(c, '.' | '[' | ']');
        let first = self.0.chars().next()?;
        let end = if first == '\'' {
            let mut before = first;
            let mut rest = self.0.char_indices().skip(1);
            let close = rest.find(|(_, c)| {
                let closes = *c == '\'' && before != '\\';
                before = *c;
                closes
            });
            close.map_or(self.0.len(), |(at, _)| at + 1)
        } else if is_delimiter(first) {
            1
        } else {
            self.0.find(is_delimiter).unwrap_or(self.0.len())
        };
        let (token, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        Some(token)
    }
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next() } else { None };
        out.push(match escaped {
            None => c,
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some(c @ ('\'' | '\\')) => c,
            Some(other) => return Err(format!("invalid escape char \\{other}")),
        });
    }
    Ok(out)
}
