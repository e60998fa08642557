//! `x-kubernetes-validations`: rules in CEL.
//!
//! A rule belongs to a part of a schema and sees the value there as `self`, on updates also the old one
//! as `oldSelf`. Programs are compiled once for each distinct schema, when an object is judged first;
//! a CRD that is written is judged by [`check_rules`](Structural::check_rules), which keeps nothing.
//!
//! Limits are upstream's: the estimate of a rule and the sum of a CRD when it is written, the cost of
//! one rule and of all rules of an object when they run. Rules run only on values that the schema
//! without them finds right, so a value has the type that its rule was compiled for.

mod check;
mod compile;
mod declare;
mod evaluate;
mod field_path;

use std::collections::HashMap;
use std::sync::Arc;

use cel_rules::{DeclType, Program};
use machinery::{FieldError, FieldPath};
use serde_json::Value;

use super::Structural;
use super::node::Node;

/// What rules say of an object.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What is wrong.
    pub problems: Vec<FieldError>,
    /// What is wrong and forgiven, since that part of the object didn't change (KEP-4008).
    pub warnings: Vec<FieldError>,
}

/// Whether the estimated cost of single rules is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimates {
    /// Of new schemas.
    Judged,
    /// The schema is that of the old CRD; only the sum is judged.
    Unchanged,
}

/// The programs of a schema.
#[derive(Debug, Default)]
pub(super) struct Rules {
    sites: HashMap<SiteKey, Site>,
}

/// Where rules stand: a part, and whether it is the whole object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SiteKey {
    node: usize,
    root: bool,
}

/// The rules of one place.
#[derive(Debug)]
struct Site {
    /// The type of the values; none if expressions can't see them.
    decl: Option<Arc<DeclType>>,
    rules: Box<[CompiledRule]>,
    uses_old_self: bool,
}

#[derive(Debug)]
struct CompiledRule {
    /// None for a rule without text.
    program: Result<Option<Program>, Box<str>>,
    uses_old_self: bool,
    message: Option<Program>,
    /// The path below the value that problems are told of; empty for the value itself.
    field_path: Box<str>,
}

/// A part of a schema, with its rules.
#[derive(Clone, Copy, Debug)]
struct Place<'s> {
    node: Node<'s>,
    root: bool,
}

impl<'s> Place<'s> {
    fn whole(schema: &'s Structural) -> Self {
        Self { node: schema.root(), root: true }
    }

    const fn part(node: Node<'s>) -> Self {
        Self { node, root: false }
    }

    fn key(self) -> SiteKey {
        SiteKey { node: self.node.number(), root: self.root }
    }
}

impl Structural {
    /// The type of whole objects, as rules see them.
    pub(crate) fn declared_whole(&self, name: &str) -> Arc<DeclType> {
        declare::declare(self.root(), true, name).unwrap_or_else(DeclType::dynamic)
    }

    /// What is wrong with the rules of a CRD that is written; `at` is the schema's path in messages.
    pub fn check_rules(&self, at: &FieldPath, estimates: Estimates) -> Vec<FieldError> {
        if !self.root().has_rules() {
            return Vec::new();
        }
        check::check(self, at, estimates)
    }

    /// What the rules say of an object that is created or, with the old one, updated. The object
    /// satisfies the schema otherwise.
    pub fn validate_rules(&self, new: &Value, old: Option<&Value>) -> Verdict {
        if !self.root().has_rules() {
            return Verdict::default();
        }
        let rules = self.rules.get_or_init(|| Box::new(compile::compile(self)));
        evaluate::evaluate(self, rules, new, old)
    }
}

#[cfg(test)]
mod tests;
