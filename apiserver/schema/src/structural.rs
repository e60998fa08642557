//! Schemas of custom resources: `openAPIV3Schema` of one version, compiled.
//!
//! A [`Structural`] is immutable, compact and shared: schemas of equal content are one in the whole
//! process, however many logical clusters have them, and equal parts of one schema are one node.
//! What it is asked to do is what kube-apiserver does with a custom resource:
//!
//! 1. [`coerce`](Structural::coerce) a body: metadata read as `ObjectMeta`, unknown fields pruned
//!    and told, nulls dropped that mean nothing;
//! 2. fill in [defaults](Structural::default);
//! 3. [`validate`](Structural::validate), on updates with ratcheting (KEP-4008);
//! 4. [`validate_rules`](Structural::validate_rules): the rules in CEL, if nothing else is wrong.
//!
//! Invariants: a compiled schema satisfies the rules of structural schemas (KEP-1979), so values
//! of objects, lists and scalars are declared outside of `allOf`, `anyOf`, `oneOf` and `not`. It
//! has no references, so that every walk ends at the schema's depth; walks are bounded in time by
//! a budget of steps.

pub(crate) mod apply;
mod build;
mod check;
mod coerce;
mod default;
mod defaults;
mod embedded;
mod format;
pub(crate) mod intern;
pub(crate) mod json;
mod lists;
mod node;
mod numbers;
mod pattern;
pub(crate) mod print;
mod prune;
mod rules;
pub(crate) mod uri;
mod validate;

use std::fmt;
use std::sync::{Arc, OnceLock};

use machinery::{FieldError, FieldPath};
use serde_json::Value;

use crate::model::SchemaHash;

pub use rules::{Estimates, Verdict};

pub use node::{Additional, Bound, Kind, ListType, MapType, Node, ValidationRule};
pub use numbers::settle_numbers;

pub(crate) use check::{Fault, check};
pub(crate) use defaults::Unpruned;
pub(crate) use format::unrecognized;

use node::{NodeData, NodeId};

/// The compiled `openAPIV3Schema` of one version of a custom resource.
pub struct Structural {
    hash: SchemaHash,
    nodes: Box<[NodeData]>,
    root: NodeId,
    /// Programs of `x-kubernetes-validations`, once an object needed them.
    rules: OnceLock<Box<rules::Rules>>,
}

// === impl Structural ===

impl Structural {
    /// Compiles a schema, or finds it among those that are in use.
    ///
    /// `at` is the schema's path in messages, as `spec.versions[0].schema.openAPIV3Schema`.
    ///
    /// # Errors
    /// Every rule of structural schemas that it breaks, sorted by text, with upstream's messages.
    pub fn compile(schema: &Value, at: &FieldPath) -> Result<Arc<Self>, Vec<FieldError>> {
        let hash = intern::hash(schema);
        intern::find_or(hash, || {
            let fault = check::check(schema, at);
            fault.map_err(Fault::into_errors)?;
            build::build(schema, hash).map_err(|why| vec![check::unbuildable(at, &why)])
        })
    }

    /// Compiles a schema that [`check`](check::check) found right.
    ///
    /// # Errors
    /// Why it can't be compiled all the same.
    pub(crate) fn compile_checked(
        schema: &Value,
        at: &FieldPath,
    ) -> Result<Arc<Self>, Vec<FieldError>> {
        let hash = intern::hash(schema);
        intern::find_or(hash, || {
            build::build(schema, hash).map_err(|why| vec![check::unbuildable(at, &why)])
        })
    }

    /// Identity of the content, descriptions included, the same in every process.
    pub fn hash(&self) -> SchemaHash {
        self.hash
    }

    /// The schema of the whole object.
    pub fn root(&self) -> Node<'_> {
        Node::new(self, self.root)
    }

    /// How many different nodes the schema has.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes, which never happens: the root is one.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn data(&self, id: NodeId) -> &NodeData {
        self.nodes.get(id.index()).expect("node numbers are made by the schema that holds them")
    }
}

impl fmt::Debug for Structural {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Structural");
        out.field("hash", &self.hash).field("nodes", &self.nodes.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
