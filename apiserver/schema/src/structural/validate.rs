//! Validates a value against a schema, with kube-apiserver's texts, paths and order.
//!
//! Upstream's validator (kube-openapi) has its own ways: a whole float is an integer, but a text
//! format also lets lists pass; of several failed alternatives of `anyOf` the one that matched
//! most is told. Clients see these, so they are kept.
//!
//! With an old value, problems of parts that didn't change are forgiven (KEP-4008): fields of
//! objects and items of lists of type map are compared, items of other lists only as a whole.
//!
//! Guarantees: the recursion ends with the schema; the work ends after [`MAX_STEPS`], with a
//! problem that says so; at most [`MAX_PROBLEMS`] are told.

mod combine;
mod correlate;
mod number;
mod problems;
mod types;

use std::collections::HashSet;
use std::fmt::Write as _;

use machinery::field::{FieldErrorKind, go_quote};
use machinery::{FieldError, FieldPath};
use serde_json::{Map, Value};

use self::correlate::OldItems;
use super::format::Format;
use super::node::{Additional, Facet, NodeData, NodeId};
use super::{Structural, embedded, lists};

/// Most visits of a value by a schema: some ten for each value of the largest object.
const MAX_STEPS: u64 = 10_000_000;
/// Most problems that are told of one object.
pub(super) const MAX_PROBLEMS: usize = 1_000;

// === impl Structural ===

impl Structural {
    /// What is wrong with an object; with the old one, what its change made wrong.
    ///
    /// In this order: values, embedded resources, uniqueness in lists. The metadata's own rules
    /// and those in CEL are not judged here.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut problems = Values::of(self, FieldPath::default()).run(self.root, new, old);
        problems.extend(embedded::validate(self, new));
        problems.extend(self.validate_lists(new, old));
        problems
    }

    /// What is wrong with an object of which only `status` was written.
    pub fn validate_status(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut problems = Vec::new();
        let part = self.data(self.root).property("status");
        if let (Some(part), Some(status)) = (part, new.get("status")) {
            let values = Values::of(self, FieldPath::root("status"));
            problems = values.run(part, status, old.get("status"));
        }
        problems.extend(self.validate_lists(new, Some(old)));
        problems
    }

    fn validate_lists(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let problems = lists::validate(self, new);
        let forgiven =
            !problems.is_empty() && old.is_some_and(|old| !lists::validate(self, old).is_empty());
        if forgiven { Vec::new() } else { problems }
    }

    /// What is wrong with the default of a part, as CRDs are judged.
    pub(super) fn validate_default(
        &self,
        part: NodeId,
        value: &Value,
        at: &FieldPath,
    ) -> Vec<FieldError> {
        let values = Values { as_default: true, ..Values::of(self, at.clone()) };
        values.run(part, value, None)
    }
}

/// One walk.
struct Values<'s> {
    schema: &'s Structural,
    /// The path of the value where the walk began.
    base: FieldPath,
    /// The path from there, as messages print it.
    path: String,
    problems: Vec<FieldError>,
    /// How many problems there were, told or not.
    failures: usize,
    /// Above zero, problems are only counted.
    quiet: usize,
    /// How many bytes the problems' texts have.
    told: usize,
    steps: u64,
    /// Whether a default is judged: schemas are taken as they are written, int-or-string without
    /// types and formats whatever the type.
    as_default: bool,
}

// === impl Values ===

impl<'s> Values<'s> {
    fn of(schema: &'s Structural, base: FieldPath) -> Self {
        Self {
            schema,
            base,
            path: String::new(),
            problems: Vec::new(),
            failures: 0,
            quiet: 0,
            told: 0,
            steps: 0,
            as_default: false,
        }
    }

    fn run(mut self, id: NodeId, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        self.ratcheted(id, new, old);
        if self.steps > MAX_STEPS {
            self.problems.push(self.too_much());
        }
        // Upstream tells the same text once; it comes from several alternatives.
        let mut seen = HashSet::new();
        self.problems.retain(|p| seen.insert((p.field.clone(), p.body())));
        self.problems
    }

    /// Validates a part of the object; forgives if it is as it was.
    fn ratcheted(&mut self, id: NodeId, value: &Value, old: Option<&Value>) -> u32 {
        let (told, failures) = (self.problems.len(), self.failures);
        let matched = self.value(id, value, old);
        if self.failures > failures
            && let Some(old) = old
            && correlate::equal(self.schema, self.schema.data(id), value, old)
        {
            self.problems.truncate(told);
            self.failures = failures;
        }
        matched
    }

    /// Validates a value and answers how much of it matched, by which alternatives are chosen.
    fn value(&mut self, id: NodeId, value: &Value, old: Option<&Value>) -> u32 {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            self.failures += 1;
            return 0;
        }
        let node = self.schema.data(id);
        if value.is_null() {
            let matched = self.null(node);
            self.enumeration(node, value);
            return matched;
        }
        let mut matched = self.kind(node, value) + self.combinations(node, value) + 3;
        match value {
            Value::String(text) => matched += self.text(node, text),
            Value::Number(number) => {
                self.number(node, number);
                matched += 2;
            }
            Value::Array(items) => matched += self.list(node, items, old) + 2,
            _ => {}
        }
        self.enumeration(node, value);
        if let Value::Object(fields) = value {
            matched += self.object(node, fields, old) + 1;
        }
        matched
    }

    fn text(&mut self, node: &NodeData, text: &str) -> u32 {
        self.steps += (node.facets.len() * text.len() / 32) as u64;
        let mut matched = 1;
        let mut found = false;
        for facet in &node.facets {
            match facet {
                // Of lengths and pattern, which come in this order, the first problem is told.
                Facet::MaxLength(most) if !found => {
                    found = exceeds(text, *most);
                    if found {
                        self.too(FieldErrorKind::TooLong, None, problems::bytes(*most));
                    }
                }
                Facet::MinLength(least) if !found => {
                    found = !exceeds(text, least.saturating_sub(1));
                    if found {
                        let why = || format!("should be at least {least} chars long");
                        self.invalid(|| go_quote(text), why);
                    }
                }
                Facet::Pattern(pattern) if !found && !pattern.is_match(text) => {
                    self.invalid(
                        || go_quote(text),
                        || format!("should match '{}'", pattern.source()),
                    );
                }
                _ => {}
            }
        }
        for facet in &node.facets {
            let Facet::Format(format, name) = facet else { continue };
            let format = if self.as_default { Format::parse(name, None) } else { *format };
            if format.is_text() {
                matched += 1;
                if !format.is_valid(text) {
                    self.wrong_type(name, text);
                }
            }
        }
        matched
    }

    fn list(&mut self, node: &NodeData, items: &[Value], old: Option<&Value>) -> u32 {
        let mut matched = 0;
        if let Some(item) = node.items {
            let old = OldItems::of(node, old);
            for (at, value) in items.iter().enumerate() {
                let length = self.path.len();
                write!(self.path, "[{at}]").expect("a String takes any text");
                matched += match old.item(value) {
                    Some(old) => self.ratcheted(item, value, Some(old)),
                    None => self.value(item, value, None),
                };
                self.path.truncate(length);
            }
        }
        let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
        for facet in &node.facets {
            match facet {
                Facet::MinItems(least) if count < *least => {
                    let why = || format!("should have at least {least} items");
                    self.invalid(|| count.to_string(), why);
                }
                Facet::MaxItems(most) if count > *most => {
                    self.too(FieldErrorKind::TooMany, Some(count), problems::entries(*most));
                }
                _ => {}
            }
        }
        matched
    }

    fn object(
        &mut self,
        node: &'s NodeData,
        fields: &Map<String, Value>,
        old: Option<&Value>,
    ) -> u32 {
        let mut matched = 0;
        let count = i64::try_from(fields.len()).unwrap_or(i64::MAX);
        for facet in &node.facets {
            match facet {
                Facet::MinProperties(least) if count < *least => {
                    let why = || format!("should have at least {least} properties");
                    self.invalid(|| count.to_string(), why);
                }
                Facet::MaxProperties(most) if count > *most => {
                    self.too(FieldErrorKind::TooMany, Some(count), problems::entries(*most));
                }
                _ => {}
            }
        }
        let undeclared = fields.iter().filter(|(name, _)| node.property(name).is_none());
        match node.additional {
            Additional::Forbidden => undeclared.for_each(|(name, _)| self.not_allowed(name)),
            Additional::Of(id) => {
                for (name, value) in undeclared {
                    let length = self.path.len();
                    self.path.push('.');
                    self.path.push_str(name);
                    matched += self.field(id, name, length, value, old);
                    self.path.truncate(length);
                }
            }
            Additional::Absent | Additional::Any => {}
        }
        for property in &node.properties {
            let Some(value) = fields.get(&*property.name) else { continue };
            let length = self.path.len();
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(&property.name);
            matched += self.field(property.node, &property.name, length, value, old);
            self.path.truncate(length);
        }
        for facet in &node.facets {
            if let Facet::Required(names) = facet {
                for name in names.iter().filter(|name| !fields.contains_key(&***name)) {
                    self.missing(name);
                }
            }
        }
        matched
    }

    /// A field of the object at the path's first `length` bytes.
    fn field(
        &mut self,
        id: NodeId,
        name: &str,
        length: usize,
        value: &Value,
        old: Option<&Value>,
    ) -> u32 {
        // A change of the version can't be seen, so what the root says of it is never forgiven.
        let fixed = length == 0 && (name == "apiVersion" || name == "kind");
        match old.and_then(|old| old.as_object()?.get(name)).filter(|_| !fixed) {
            Some(old) => self.ratcheted(id, value, Some(old)),
            None => self.value(id, value, None),
        }
    }

    fn enumeration(&mut self, node: &NodeData, value: &Value) {
        for facet in &node.facets {
            if let Facet::Enum(allowed) = facet {
                self.steps += allowed.len() as u64 / 8;
                if !allowed.iter().any(|other| types::is_enum_value(value, other)) {
                    self.unsupported(value, allowed);
                }
            }
        }
    }
}

/// Whether a text has more characters than that; looks no further than it must.
fn exceeds(text: &str, most: i64) -> bool {
    match usize::try_from(most) {
        Err(_) => true,
        Ok(most) => text.len() > most && text.chars().nth(most).is_some(),
    }
}
