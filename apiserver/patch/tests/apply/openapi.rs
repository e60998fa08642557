//! Types for the tests: OpenAPI schemas, read as upstream reads them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use patch::apply::{ApplySchema, FieldSet, Forms, ListForm, MapForm, Scalar, Type, Versions};
use serde_json::{Value, json};

pub(crate) const GROUP: &str = "test.kcp.io";

/// A place in a schema, and whether it lies below `x-kubernetes-preserve-unknown-fields`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'s> {
    schema: &'s Value,
    preserve: bool,
}

/// The versions of one type at one endpoint. `v2` calls `spec.old` `spec.new`.
#[derive(Debug)]
pub(crate) struct Thing<'s> {
    versions: BTreeMap<String, Place<'s>>,
    reset: FieldSet,
}

// === impl Place ===

impl<'s> Place<'s> {
    pub(crate) fn new(schema: &'s Value) -> Self {
        Self { schema, preserve: false }.here()
    }

    fn here(self) -> Self {
        let preserve = self.schema["x-kubernetes-preserve-unknown-fields"] == true;
        Self { preserve: self.preserve || preserve, ..self }
    }

    fn inner(self, schema: &'s Value) -> Type<Self> {
        Type::Known(Self { schema, ..self }.here())
    }

    fn text(self, name: &str) -> Option<&'s str> {
        self.schema.get(name)?.as_str()
    }

    fn merges(self) -> bool {
        self.text("x-kubernetes-patch-strategy").is_some_and(|text| text.starts_with("merge"))
    }
}

impl<'s> ApplySchema<'s> for Place<'s> {
    fn forms(self) -> Forms {
        let merge_key = self.schema.get("x-kubernetes-patch-merge-key");
        let list = match self.text("x-kubernetes-list-type") {
            Some("map") => ListForm::Map,
            Some("set") => ListForm::Set,
            None if self.merges() && merge_key.is_some() => ListForm::Map,
            None if self.merges() => ListForm::Set,
            _ => ListForm::Atomic,
        };
        let map = match self.text("x-kubernetes-map-type") {
            Some("atomic") => MapForm::Atomic,
            _ => MapForm::Granular,
        };
        let scalar = |scalar| Forms { scalar: Some(scalar), ..Forms::default() };
        match self.text("type") {
            Some("object") => Forms { map: Some(map), ..Forms::default() },
            Some("array") => Forms { list: Some(list), ..Forms::default() },
            Some("integer" | "number") => scalar(Scalar::Number),
            Some("boolean") => scalar(Scalar::Bool),
            Some("string") if self.text("format").is_none() => scalar(Scalar::String),
            Some("string") => scalar(Scalar::Any),
            _ => Forms { scalar: Some(Scalar::Any), list: Some(list), map: Some(map) },
        }
    }

    fn item(self) -> Type<Self> {
        self.schema.get("items").map_or(Type::Whole, |items| self.inner(items))
    }

    fn key(self, at: usize) -> Option<&'s str> {
        if self.merges() && at == 0 {
            return self.text("x-kubernetes-patch-merge-key");
        }
        self.schema.get("x-kubernetes-list-map-keys")?.get(at)?.as_str()
    }

    fn field(self, name: &str) -> Option<Type<Self>> {
        Some(self.inner(self.schema.get("properties")?.get(name)?))
    }

    fn other(self) -> Option<Type<Self>> {
        match self.schema.get("additionalProperties") {
            Some(Value::Bool(allowed)) => allowed.then_some(Type::Deduced),
            Some(schema) => Some(self.inner(schema)),
            None => (self.preserve || !self.has_fields()).then_some(Type::Deduced),
        }
    }

    fn has_fields(self) -> bool {
        self.schema["properties"].as_object().is_some_and(|fields| !fields.is_empty())
    }

    fn default_of(self, name: &str) -> Option<&'s Value> {
        self.schema.get("properties")?.get(name)?.get("default")
    }
}

// === impl Thing ===

impl<'s> Thing<'s> {
    /// `schemas` has one schema for each version.
    pub(crate) fn new(schemas: &'s Value, subresource: &str) -> Self {
        let reset: &[&[&str]] = match subresource {
            "status" => &[&["metadata"], &["spec"]],
            _ => &[&["status"]],
        };
        let versions = schemas.as_object().unwrap().iter();
        let versions =
            versions.map(|(name, schema)| (format!("{GROUP}/{name}"), Place::new(schema)));
        Self { versions: versions.collect(), reset: FieldSet::of_fields(reset.iter().copied()) }
    }
}

impl<'s> Versions<'s> for Thing<'s> {
    type Schema = Place<'s>;

    fn schema(&self, api_version: &str) -> Option<Type<Place<'s>>> {
        self.versions.get(api_version).copied().map(Type::Known)
    }

    fn convert<'v>(
        &self,
        object: Cow<'v, Value>,
        api_version: &str,
    ) -> Result<Cow<'v, Value>, String> {
        if object["apiVersion"] == api_version {
            return Ok(object);
        }
        let mut object = object.into_owned();
        let fields = object.as_object_mut().ok_or("no object")?;
        let from = fields.insert("apiVersion".into(), json!(api_version));
        if let Some(Value::Object(spec)) = fields.get_mut("spec") {
            let (old, new) = match (from, api_version) {
                (_, "test.kcp.io/v2") => ("old", "new"),
                (Some(Value::String(from)), _) if from == "test.kcp.io/v2" => ("new", "old"),
                _ => return Ok(Cow::Owned(object)),
            };
            if let Some(value) = spec.remove(old) {
                spec.insert(new.into(), value);
            }
        }
        Ok(Cow::Owned(object))
    }

    fn reset(&self, api_version: &str) -> Option<&FieldSet> {
        self.versions.contains_key(api_version).then_some(&self.reset)
    }

    fn empty(&self, api_version: &str) -> Value {
        json!({"apiVersion": api_version, "kind": "Thing"})
    }
}
