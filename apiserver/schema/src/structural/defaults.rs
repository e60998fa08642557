//! Judges the defaults in a schema: what they fill in must be valid itself.

use machinery::{FieldError, FieldPath};
use serde_json::{Map, Value};

use super::node::{Flags, NodeId};
use super::prune::META;
use super::{Structural, coerce, embedded, print};

/// The way from a resource to a part of it.
enum Step<'s> {
    Field(&'s str),
    Item,
}

/// Whether defaults must not hold fields that the schema doesn't know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unpruned {
    /// They are refused.
    Refused,
    /// They are let pass, for CRDs that have them already.
    Tolerated,
}

// === impl Structural ===

impl Structural {
    /// What is wrong with the schema's defaults; `at` is the schema's path. Those below
    /// `additionalProperties` are forbidden elsewhere or can't be reached.
    pub(crate) fn validate_defaults(&self, at: &FieldPath, unpruned: Unpruned) -> Vec<FieldError> {
        let mut walk = Walk {
            schema: self,
            unpruned,
            path: at.clone(),
            resource: self.root,
            steps: Vec::new(),
            problems: Vec::new(),
        };
        walk.part(self.root, false, true);
        walk.problems
    }
}

struct Walk<'s> {
    schema: &'s Structural,
    unpruned: Unpruned,
    path: FieldPath,
    /// The resource around, and the way from there.
    resource: NodeId,
    steps: Vec<Step<'s>>,
    problems: Vec<FieldError>,
}

// === impl Walk ===

impl<'s> Walk<'s> {
    /// The recursion ends with the schema.
    fn part(&mut self, id: NodeId, in_meta: bool, is_root: bool) {
        let node = self.schema.data(id);
        if !node.has(Flags::DEFAULTS) {
            return;
        }
        let is_resource = node.has(Flags::EMBEDDED) || is_root;
        let outer = is_resource
            .then(|| (std::mem::replace(&mut self.resource, id), std::mem::take(&mut self.steps)));
        let in_meta = in_meta && !is_resource;
        if let Some(default) = node.default_value() {
            let mark = self.path.enter_child("default");
            let found = if in_meta {
                self.judge_in_meta(id, default)
            } else {
                self.judge(id, is_resource, default)
            };
            self.problems.extend(found);
            self.path.leave(mark);
        }
        if let Some(items) = node.items {
            let mark = self.path.enter_child("items");
            self.steps.push(Step::Item);
            self.part(items, in_meta, false);
            self.steps.pop();
            self.path.leave(mark);
        }
        for property in &node.properties {
            let mark = self.path.enter_child("properties");
            self.path.enter_key(&property.name);
            self.steps.push(Step::Field(&property.name));
            let meta = is_resource && META.contains(&&*property.name);
            self.part(property.node, in_meta || meta, false);
            self.steps.pop();
            self.path.leave(mark);
        }
        if let Some((resource, steps)) = outer {
            self.resource = resource;
            self.steps = steps;
        }
    }

    fn judge(&self, id: NodeId, is_resource: bool, default: &Value) -> Vec<FieldError> {
        let mut problems = Vec::new();
        let unknown =
            self.unpruned == Unpruned::Refused && self.schema.has_unknown(id, is_resource, default);
        // Metadata is read before anything is told.
        let mut read = default.clone();
        let metadata = coerce::part(self.schema, id, is_resource, &mut read, &self.path);
        if unknown {
            problems.push(self.invalid(&read, "must not have unknown fields".into()));
        }
        if let Err(problem) = metadata {
            problems.push(*problem);
            return problems;
        }
        let node = self.schema.data(id);
        let embedded = embedded::validate_part(self.schema, node, is_resource, &read, &self.path);
        if embedded.is_empty() {
            problems.extend(self.schema.validate_default(id, &read, &self.path));
        } else {
            problems.extend(embedded);
        }
        problems
    }

    /// A default inside of metadata is judged as part of a resource that has nothing else.
    fn judge_in_meta(&self, id: NodeId, default: &Value) -> Vec<FieldError> {
        let mut whole = self.steps.iter().rev().fold(default.clone(), |value, step| match step {
            Step::Field(name) => Value::Object(Map::from_iter([((*name).to_owned(), value)])),
            Step::Item => Value::Array(vec![value]),
        });
        if let Value::Object(fields) = &mut whole {
            fields.entry("kind").or_insert_with(|| "Validation".into());
            fields.entry("apiVersion").or_insert_with(|| "validation/v1".into());
        }
        let nowhere = FieldPath::default();
        let node = self.schema.data(self.resource);
        let mut read = whole.clone();
        let why = match coerce::part(self.schema, self.resource, true, &mut read, &nowhere) {
            Err(problem) => problem.to_string(),
            Ok(()) => machinery::field::aggregate(&embedded::validate_part(
                self.schema,
                node,
                true,
                &whole,
                &nowhere,
            )),
        };
        if why.is_empty() {
            return self.schema.validate_default(id, default, &self.path);
        }
        vec![self.invalid(default, format!("must result in valid metadata: {why}"))]
    }

    fn invalid(&self, default: &Value, why: String) -> FieldError {
        let mut problem = FieldError::invalid(&self.path, default, why);
        problem.value = Some(print::value(default));
        problem
    }
}
