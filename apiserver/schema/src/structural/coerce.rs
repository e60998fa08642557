//! Reads a custom resource as kube-apiserver does: its metadata as `ObjectMeta`, the rest pruned.

use std::sync::LazyLock;

use machinery::{FieldError, FieldPath};
use serde_json::{Map, Value};

use super::node::{Flags, NodeData, NodeId};
use super::prune::MAX_TOLD;
use super::{Structural, print};
use crate::coerce::{CoerceMode, DecodeError, Unknown};
use crate::model::Schema;
use crate::types::Types;

/// What becomes of metadata that can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Malformed {
    /// It is an error (bodies).
    Refuse,
    /// The fields that can't be read are dropped (stored objects).
    Drop,
}

// === impl Structural ===

impl Structural {
    /// Makes a body canonical: metadata is read as `ObjectMeta`, unknown fields and meaningless
    /// nulls are dropped, and so in embedded resources.
    ///
    /// Returns the unknown fields: of the root's metadata, then of the object, then of embedded
    /// metadata; at most a hundred, none with [`CoerceMode::Drop`].
    ///
    /// # Errors
    /// [`DecodeError`] for metadata of the wrong type, as Go's decoder says it.
    pub fn coerce(&self, value: &mut Value, mode: CoerceMode) -> Result<Vec<Unknown>, DecodeError> {
        let Value::Object(object) = &mut *value else { return Ok(Vec::new()) };
        let mut unknown = match object.get_mut("metadata") {
            Some(metadata) => object_meta(metadata, mode, Malformed::Refuse)?,
            None => Vec::new(),
        };
        unknown.iter_mut().for_each(|u| u.path.insert_str(0, "metadata."));
        unknown.extend(self.prune(value, mode));
        let mut embedded = Embedded {
            schema: self,
            mode,
            malformed: Malformed::Refuse,
            path: FieldPath::default(),
            unknown: Vec::new(),
        };
        let read = embedded.value(self.data(self.root), false, value);
        read.map_err(|problem| DecodeError::new(problem.to_string()))?;
        embedded.unknown.sort_by(|a, b| a.path.cmp(&b.path));
        unknown.append(&mut embedded.unknown);
        unknown.truncate(MAX_TOLD);
        Ok(unknown)
    }

    /// Makes a stored object canonical, whatever state it is in: as [`coerce`](Self::coerce),
    /// but fields of metadata that can't be read are dropped, and a missing generation is 1.
    pub fn repair(&self, value: &mut Value) {
        let Value::Object(object) = &mut *value else { return };
        if let Some(metadata) = object.get_mut("metadata") {
            // Nothing is refused here, so there is nothing to hear of.
            drop(object_meta(metadata, CoerceMode::Drop, Malformed::Drop));
            if let Value::Object(metadata) = metadata
                && metadata.get("generation").is_none_or(|g| g.as_i64() == Some(0))
            {
                metadata.insert("generation".into(), 1.into());
            }
        }
        self.prune(value, CoerceMode::Drop);
        let mut embedded = Embedded {
            schema: self,
            mode: CoerceMode::Drop,
            malformed: Malformed::Drop,
            path: FieldPath::default(),
            unknown: Vec::new(),
        };
        drop(embedded.value(self.data(self.root), false, value));
    }
}

/// The walk to embedded resources.
struct Embedded<'s> {
    schema: &'s Structural,
    mode: CoerceMode,
    malformed: Malformed,
    path: FieldPath,
    unknown: Vec<Unknown>,
}

// === impl Embedded ===

impl<'s> Embedded<'s> {
    /// The recursion ends with the schema.
    fn value(
        &mut self,
        node: &'s NodeData,
        resource: bool,
        value: &mut Value,
    ) -> Result<(), Box<FieldError>> {
        if !node.has(Flags::RESOURCES) && !resource {
            return Ok(());
        }
        match value {
            Value::Object(fields) => {
                if resource {
                    self.resource(fields)?;
                }
                for (name, value) in fields {
                    let Some(part) = node.field(name).map(|id| self.schema.data(id)) else {
                        continue;
                    };
                    let mark = node.enter(&mut self.path, name);
                    self.value(part, part.has(Flags::EMBEDDED), value)?;
                    self.path.leave(mark);
                }
            }
            Value::Array(items) => {
                let Some(item) = node.items.map(|id| self.schema.data(id)) else { return Ok(()) };
                for (at, value) in items.iter_mut().enumerate() {
                    let mark = self.path.enter_index(at);
                    self.value(item, item.has(Flags::EMBEDDED), value)?;
                    self.path.leave(mark);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn resource(&mut self, fields: &mut Map<String, Value>) -> Result<(), Box<FieldError>> {
        for name in ["apiVersion", "kind"] {
            match fields.get(name) {
                None | Some(Value::String(_)) => {}
                Some(_) if self.malformed == Malformed::Drop => {
                    fields.remove(name);
                }
                Some(value) => return Err(self.invalid(name, value, "must be a string")),
            }
        }
        let Some(metadata) = fields.get_mut("metadata") else { return Ok(()) };
        match object_meta(metadata, self.mode, self.malformed) {
            Ok(unknown) => {
                let at = self.path.child("metadata");
                let told =
                    unknown.into_iter().map(|u| Unknown { path: format!("{at}.{}", u.path) });
                let room = MAX_TOLD.saturating_sub(self.unknown.len());
                self.unknown.extend(told.take(room));
                Ok(())
            }
            Err(why) => Err(self.invalid("metadata", metadata, &why.to_string())),
        }
    }

    fn invalid(&self, name: &str, value: &Value, why: &str) -> Box<FieldError> {
        let mut problem = FieldError::invalid(&self.path.child(name), value, why);
        problem.value = Some(print::value(value));
        Box::new(problem)
    }
}

/// Reads the metadata of a value of a part, which may be a resource itself.
///
/// # Errors
/// The first metadata that can't be read.
pub(super) fn part(
    schema: &Structural,
    part: NodeId,
    resource: bool,
    value: &mut Value,
    at: &FieldPath,
) -> Result<(), Box<FieldError>> {
    let mut embedded = Embedded {
        schema,
        mode: CoerceMode::Drop,
        malformed: Malformed::Refuse,
        path: at.clone(),
        unknown: Vec::new(),
    };
    embedded.value(schema.data(part), resource, value)
}

/// The type of every object's metadata.
pub(super) fn meta_schema() -> &'static Schema {
    static META: LazyLock<Schema> = LazyLock::new(|| {
        let name = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
        Types::builtin().named(name).expect("the built-in types hold ObjectMeta")
    });
    &META
}

/// Reads metadata in place and returns the fields that it doesn't have.
///
/// On an error the metadata is as it was.
fn object_meta(
    metadata: &mut Value,
    mode: CoerceMode,
    malformed: Malformed,
) -> Result<Vec<Unknown>, DecodeError> {
    let schema = meta_schema();
    let mut read = metadata.clone();
    let why = match schema.coerce(&mut read, mode) {
        Ok(unknown) => {
            *metadata = read;
            return Ok(unknown);
        }
        Err(why) => why,
    };
    let (Malformed::Drop, Value::Object(fields)) = (malformed, &*metadata) else {
        // A stored object whose metadata is no object at all is left to validation.
        return if malformed == Malformed::Drop { Ok(Vec::new()) } else { Err(why) };
    };
    let readable = fields.iter().filter_map(|(name, value)| {
        let mut single = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
        schema.coerce(&mut single, CoerceMode::Drop).ok()?;
        single.as_object_mut()?.remove(name).map(|value| (name.clone(), value))
    });
    *metadata = Value::Object(readable.collect());
    Ok(Vec::new())
}
