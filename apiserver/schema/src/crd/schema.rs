//! The rules of schemas in CRDs, beside those of structural schemas.

mod keywords;
mod lists;
mod rules;

use machinery::{FieldError, FieldPath};
use serde_json::Value;

use super::tolerance::Tolerance;
use super::view::{Version, View};
use crate::structural::json::{self, Keywords, MAX_DEPTH};
use crate::structural::{self, Estimates, Fault, Structural, print};

pub(super) use lists::{has_granular_sets, has_open_keys};

/// The types of OpenAPI, sorted.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// What is asked of the schemas of one CRD.
#[derive(Debug)]
pub(super) struct Rules<'t> {
    pub(super) tolerance: &'t Tolerance,
    /// Whether one of the schemas has a default.
    pub(super) has_defaults: bool,
    /// Whether schemas must be structural.
    structural: bool,
    /// The schemas that were there before.
    old: Vec<&'t Value>,
}

// === impl Rules ===

impl<'t> Rules<'t> {
    pub(super) fn new(view: &View<'_>, tolerance: &'t Tolerance, old: Option<&'t Value>) -> Self {
        let any = |rule: fn(&Keywords) -> bool| view.schemas().any(|schema| has(schema, rule, 0));
        let has_defaults = any(|schema| json::has(schema, "default"));
        let asked = !view.preserves_unknown() || has_defaults || any(has_extensions);
        let old = old.map(View::of);
        let old = old.iter().flat_map(|old| {
            old.versions.iter().filter_map(Version::schema_value).chain(old.shared().schema_value())
        });
        let old = old.collect();
        Self { tolerance, has_defaults, structural: asked || !tolerance.unstructured, old }
    }

    /// What is wrong with the schema of a version; `at` is the path of what is around it.
    pub(super) fn validate(
        &self,
        version: &Version<'_>,
        status: bool,
        at: &FieldPath,
    ) -> Vec<FieldError> {
        let Some((value, schema)) = version.schema_value().zip(version.schema()) else {
            return Vec::new();
        };
        let root = at.child("openAPIV3Schema");
        let mut problems = Vec::new();
        if status {
            problems.extend(validate_root(value, schema, at));
        }
        if json::flag(schema, "nullable") {
            let why = "nullable cannot be true at the root";
            problems.push(FieldError::forbidden(&at.child("openAPIV3Schema.nullable"), why));
        }
        let (mut unsupported, mut whole) = (None, None);
        if self.structural {
            match structural::check(value, &root) {
                Err(Fault::Rules(found)) => problems.extend(found),
                Err(Fault::Unsupported(why)) => unsupported = Some(why),
                Ok(()) => match Structural::compile_checked(value, &root) {
                    Ok(compiled) => {
                        let unpruned = self.tolerance.unpruned();
                        problems.extend(compiled.validate_defaults(&root, unpruned));
                        whole = Some(compiled);
                    }
                    Err(found) => problems.extend(found),
                },
            }
        }
        problems.extend(keywords::validate(schema, &root, self.tolerance));
        if let (true, Some(compiled)) = (problems.is_empty(), whole) {
            // A rule that was let pass goes on to be.
            let unchanged = self.old.contains(&value);
            let estimates = if unchanged { Estimates::Unchanged } else { Estimates::Judged };
            problems.extend(compiled.check_rules(&root, estimates));
        }
        if problems.is_empty() {
            // The other rules say more precisely what isn't supported, if they do.
            problems.extend(unsupported);
        }
        problems
    }
}

/// Keywords in upstream's order, how it calls them, and whether the root may have them where the
/// status has a path of its own.
const AT_ROOT: [(&str, &str, bool); 43] = [
    ("id", "ID", false),
    ("$schema", "Schema", false),
    ("$ref", "Ref", false),
    ("description", "Description", true),
    ("type", "Type", true),
    ("nullable", "Nullable", false),
    ("format", "Format", true),
    ("title", "Title", true),
    ("default", "Default", false),
    ("maximum", "Maximum", true),
    ("exclusiveMaximum", "ExclusiveMaximum", true),
    ("minimum", "Minimum", true),
    ("exclusiveMinimum", "ExclusiveMinimum", true),
    ("maxLength", "MaxLength", true),
    ("minLength", "MinLength", true),
    ("pattern", "Pattern", true),
    ("maxItems", "MaxItems", true),
    ("minItems", "MinItems", true),
    ("uniqueItems", "UniqueItems", true),
    ("multipleOf", "MultipleOf", true),
    ("enum", "Enum", false),
    ("maxProperties", "MaxProperties", false),
    ("minProperties", "MinProperties", false),
    ("required", "Required", true),
    ("items", "Items", true),
    ("allOf", "AllOf", false),
    ("oneOf", "OneOf", false),
    ("anyOf", "AnyOf", false),
    ("not", "Not", false),
    ("properties", "Properties", true),
    ("additionalProperties", "AdditionalProperties", false),
    ("patternProperties", "PatternProperties", false),
    ("dependencies", "Dependencies", false),
    ("additionalItems", "AdditionalItems", false),
    ("definitions", "Definitions", false),
    ("externalDocs", "ExternalDocs", true),
    ("example", "Example", true),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields", true),
    ("x-kubernetes-embedded-resource", "XEmbeddedResource", false),
    ("x-kubernetes-int-or-string", "XIntOrString", false),
    ("x-kubernetes-list-map-keys", "XListMapKeys", false),
    ("x-kubernetes-list-type", "XListType", false),
    ("x-kubernetes-map-type", "XMapType", false),
];

/// The root says only what isn't lost when the status is validated alone.
fn validate_root(value: &Value, schema: &Keywords, at: &FieldPath) -> Option<FieldError> {
    // Upstream has pointers for these, which are set whatever they point to.
    let pointers = [
        "$ref",
        "default",
        "example",
        "additionalProperties",
        "additionalItems",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    ];
    let is_set = |keyword: &str| match schema.get(keyword) {
        None | Some(Value::Null) => false,
        Some(_) if pointers.contains(&keyword) => true,
        Some(Value::Bool(on)) => *on,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => keyword != "properties" || !fields.is_empty(),
        Some(Value::Number(_)) => true,
    };
    for (keyword, _, allowed) in AT_ROOT.into_iter().filter(|(keyword, ..)| is_set(keyword)) {
        if keyword == "type" && json::text(schema, "type") != "object" {
            let why = "only \"object\" is allowed as the type at the root of the schema if the \
                       status subresource is enabled";
            let at = at.child("openAPIV3Schema.type");
            return Some(FieldError::invalid_str(&at, json::text(schema, "type"), why));
        }
        if !allowed {
            let names: Vec<&str> = AT_ROOT.into_iter().filter(|a| a.2).map(|a| a.1).collect();
            let why = format!(
                "only [{} XValidations] fields are allowed at the root of the schema if the \
                 status subresource is enabled",
                names.join(" ")
            );
            let mut problem = FieldError::invalid(&at.child("openAPIV3Schema"), value, why);
            problem.value = Some(super::spec::shortened(value));
            return Some(problem);
        }
    }
    None
}

fn has_extensions(schema: &Keywords) -> bool {
    json::flag(schema, "x-kubernetes-embedded-resource")
        || json::has(schema, "x-kubernetes-preserve-unknown-fields")
        || json::flag(schema, "x-kubernetes-int-or-string")
        || !json::list(schema, "x-kubernetes-list-map-keys").is_empty()
        || json::has(schema, "x-kubernetes-list-type")
        || !json::list(schema, "x-kubernetes-validations").is_empty()
}

/// Whether a rule holds for a part of a schema.
fn has(schema: &Keywords, rule: fn(&Keywords) -> bool, depth: usize) -> bool {
    depth <= MAX_DEPTH
        && (rule(schema) || parts(schema).into_iter().any(|part| has(part, rule, depth + 1)))
}

/// The schemas in a schema.
fn parts(schema: &Keywords) -> Vec<&Keywords> {
    let mut parts: Vec<&Keywords> = json::object(schema, "items").into_iter().collect();
    parts.extend(json::schemas(schema, "items").map(|(_, part)| part));
    for keyword in ["allOf", "anyOf", "oneOf"] {
        parts.extend(json::schemas(schema, keyword).map(|(_, part)| part));
    }
    parts.extend(json::object(schema, "not"));
    parts.extend(json::properties(schema).map(|(_, part)| part));
    parts.extend(json::object(schema, "additionalProperties"));
    for keyword in ["patternProperties", "definitions", "dependencies"] {
        let named = json::object(schema, keyword).into_iter().flatten();
        parts.extend(named.filter_map(|(_, part)| part.as_object()));
    }
    parts.extend(json::object(schema, "additionalItems"));
    parts
}

/// Whether a schema has a type that isn't OpenAPI's.
pub(super) fn has_unknown_types(schema: &Value) -> bool {
    let unknown = |schema: &Keywords| {
        let kind = json::text(schema, "type");
        !kind.is_empty() && !TYPES.contains(&kind)
    };
    schema.as_object().is_some_and(|schema| has(schema, unknown, 0))
}

/// The formats in a CRD's schemas that nobody knows, each once.
pub(super) fn unrecognized_formats(crd: &Value) -> Vec<String> {
    let mut found = Vec::new();
    View::of(crd).schemas().for_each(|schema| collect_formats(schema, 0, &mut found));
    found
}

fn collect_formats(schema: &Keywords, depth: usize, found: &mut Vec<String>) {
    let (format, kind) = (json::text(schema, "format"), json::text(schema, "type"));
    if structural::unrecognized(format, kind) && !found.iter().any(|known| known == format) {
        found.push(format.to_owned());
    }
    if depth < MAX_DEPTH {
        parts(schema).into_iter().for_each(|part| collect_formats(part, depth + 1, found));
    }
}

/// A problem whose value isn't text, printed as Go prints it.
fn invalid(at: &FieldPath, value: &Value, why: &str) -> FieldError {
    let mut problem = FieldError::invalid(at, value, why);
    problem.value = Some(print::value(value));
    problem
}
