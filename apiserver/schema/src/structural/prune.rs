//! Drops fields that a schema doesn't know, and nulls that say nothing.
//!
//! As kube-apiserver's `pruning` and `PruneNonNullableNullsWithoutDefaults` together, in one walk.
//! Where a schema preserves unknown fields, only what it declares is looked into. A field whose
//! `additionalProperties` is just `true` or `false` keeps its fields, and objects in them lose
//! theirs: upstream does so, and says to use preserve-unknown-fields instead.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::Structural;
use super::node::{Additional, Flags, NodeData, NodeId};
use crate::coerce::{CoerceMode, Unknown};

/// Most bytes of the paths that are told, all together.
const MAX_PATHS: usize = 64 << 10;
/// Most fields that are told.
pub(super) const MAX_TOLD: usize = 100;
/// Deepest lists in lists that are looked into where the schema says nothing.
const MAX_DEPTH: usize = 256;

/// The fields that every resource has.
pub(super) const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// What becomes of nulls that say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nulls {
    Drop,
    Keep,
}

struct Pruner<'s> {
    schema: &'s Structural,
    mode: CoerceMode,
    nulls: Nulls,
    path: String,
    unknown: Vec<Unknown>,
    /// How many bytes of paths may still be told.
    room: usize,
}

// === impl Structural ===

impl Structural {
    /// Drops unknown fields and meaningless nulls; the root's `apiVersion`, `kind` and `metadata`
    /// and those of embedded resources stay as they are.
    ///
    /// Returns the fields that were dropped, sorted by path, at most a hundred; none with
    /// [`CoerceMode::Drop`].
    pub fn prune(&self, value: &mut Value, mode: CoerceMode) -> Vec<Unknown> {
        let mut pruner = Pruner::new(self, mode, Nulls::Drop);
        let root = self.data(self.root);
        pruner.value(Some(root), root.has(Flags::PRESERVE), true, value, 0);
        pruner.unknown.sort_by(|a, b| a.path.cmp(&b.path));
        pruner.unknown
    }

    /// Whether a value of a part, which may be a resource itself, has fields that the part doesn't
    /// know.
    pub(super) fn has_unknown(&self, part: NodeId, resource: bool, value: &Value) -> bool {
        let node = self.data(part);
        let mut pruned = value.clone();
        let mut pruner = Pruner::new(self, CoerceMode::Drop, Nulls::Keep);
        pruner.value(Some(node), node.has(Flags::PRESERVE), resource, &mut pruned, 0);
        pruned != *value
    }
}

// === impl Pruner ===

impl<'s> Pruner<'s> {
    fn new(schema: &'s Structural, mode: CoerceMode, nulls: Nulls) -> Self {
        Self { schema, mode, nulls, path: String::new(), unknown: Vec::new(), room: MAX_PATHS }
    }

    /// Prunes a value of a part, which is unknown where `node` is `None`.
    ///
    /// `preserve` passes from a list to its items, but not from an object to its fields.
    fn value(
        &mut self,
        node: Option<&'s NodeData>,
        preserve: bool,
        resource: bool,
        value: &mut Value,
        depth: usize,
    ) {
        if depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::Object(fields) => match node {
                Some(node) => self.object(node, preserve, resource, fields, depth),
                None => {
                    fields.keys().for_each(|name| self.report(name));
                    fields.clear();
                }
            },
            Value::Array(items) => {
                let item = node.and_then(|n| n.items).map(|id| self.schema.data(id));
                if preserve && item.is_none() {
                    return;
                }
                let length = self.path.len();
                for (at, value) in items.iter_mut().enumerate() {
                    if !(value.is_object() || value.is_array()) {
                        continue;
                    }
                    if self.mode == CoerceMode::Report {
                        write!(self.path, "[{at}]").expect("a String takes any text");
                    }
                    let own = item.is_some_and(|n| n.has(Flags::PRESERVE));
                    let resource = item.is_some_and(|n| n.has(Flags::EMBEDDED));
                    self.value(item, preserve || own, resource, value, depth + 1);
                    self.path.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn object(
        &mut self,
        node: &'s NodeData,
        preserve: bool,
        resource: bool,
        fields: &mut Map<String, Value>,
        depth: usize,
    ) {
        let schema = self.schema;
        let length = self.path.len();
        fields.retain(|name, value| {
            let known = node.field(name).map(|id| schema.data(id));
            if resource && META.contains(&name.as_str()) {
                if self.nulls == Nulls::Drop {
                    drop_nulls(schema, known, value, depth + 1);
                }
                return !self.is_dropped(known, value);
            }
            if known.is_none() && node.additional == Additional::Absent {
                if !preserve {
                    self.report(name);
                }
                return preserve;
            }
            if self.is_dropped(known, value) {
                return false;
            }
            if value.is_object() || value.is_array() {
                self.enter(name);
                let own = known.is_some_and(|part| part.has(Flags::PRESERVE));
                let resource = known.is_some_and(|part| part.has(Flags::EMBEDDED));
                self.value(known, own, resource, value, depth + 1);
                self.path.truncate(length);
            }
            true
        });
    }

    fn is_dropped(&self, node: Option<&NodeData>, value: &Value) -> bool {
        self.nulls == Nulls::Drop && node.is_some_and(|part| !keep_null(part, value))
    }

    fn enter(&mut self, name: &str) {
        if self.mode == CoerceMode::Report {
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(name);
        }
    }

    fn report(&mut self, name: &str) {
        // Upstream tells no fields of the root that every resource has.
        let told = !self.path.is_empty() || !META.contains(&name);
        if self.mode == CoerceMode::Report && self.unknown.len() < MAX_TOLD && told {
            let length = self.path.len();
            self.enter(name);
            self.room = self.room.saturating_sub(self.path.len());
            if self.room > 0 {
                self.unknown.push(Unknown { path: self.path.clone() });
            }
            self.path.truncate(length);
        }
    }
}

/// Whether a field stays even if it is null: because null is a value, or a default follows.
fn keep_null(node: &NodeData, value: &Value) -> bool {
    !value.is_null() || node.has(Flags::NULLABLE) || node.has(Flags::DEFAULT)
}

/// Drops nulls where nothing is pruned: inside of metadata.
fn drop_nulls(schema: &Structural, node: Option<&NodeData>, value: &mut Value, depth: usize) {
    let Some(node) = node else { return };
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let part = node.field(name).map(|id| schema.data(id));
            drop_nulls(schema, part, value, depth + 1);
            part.is_none_or(|part| keep_null(part, value))
        }),
        Value::Array(items) => {
            let item = node.items.map(|id| schema.data(id));
            items.iter_mut().for_each(|value| drop_nulls(schema, item, value, depth + 1));
        }
        _ => {}
    }
}
