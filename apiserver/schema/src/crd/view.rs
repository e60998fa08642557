//! A CRD's spec as its rules see it: what all versions have in common stands once.

use serde_json::{Map, Value};

type Object = Map<String, Value>;

/// The parts that versions may have in common.
pub(super) const SHARED: [&str; 4] =
    ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];

/// A CRD's spec.
#[derive(Debug)]
pub(super) struct View<'v> {
    pub(super) spec: Option<&'v Object>,
    pub(super) versions: Vec<Version<'v>>,
    /// What all versions have in common, in the order of [`SHARED`].
    shared: [Option<&'v Value>; 4],
}

/// One version, or what all versions have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version<'v> {
    pub(super) object: Option<&'v Object>,
    /// What it doesn't share, in the order of [`SHARED`].
    parts: [Option<&'v Value>; 4],
}

// === impl View ===

impl<'v> View<'v> {
    pub(super) fn of(crd: &'v Value) -> Self {
        let spec = crd.get("spec").and_then(Value::as_object);
        let list = spec.and_then(|spec| spec.get("versions")).and_then(Value::as_array);
        let objects: Vec<Option<&Object>> =
            list.into_iter().flatten().map(Value::as_object).collect();
        let mut versions: Vec<Version<'v>> = objects
            .iter()
            .map(|object| Version {
                object: *object,
                parts: SHARED.map(|name| part(*object, name)),
            })
            .collect();
        let mut shared = [None; 4];
        for (at, shared) in shared.iter_mut().enumerate() {
            let of = |version: &Version<'v>| version.parts.get(at).copied().flatten();
            let first = versions.first().and_then(of);
            if versions.iter().all(|version| of(version) == first) {
                *shared = first;
                let parts = versions.iter_mut().filter_map(|version| version.parts.get_mut(at));
                parts.for_each(|part| *part = None);
            }
        }
        Self { spec, versions, shared }
    }

    /// What all versions have in common, as if it were a version.
    pub(super) fn shared(&self) -> Version<'v> {
        Version { object: self.spec, parts: self.shared }
    }

    /// The name of the version that objects are stored in.
    pub(super) fn storage_version(&self) -> Option<&'v str> {
        self.versions.iter().find(|version| version.flag("storage")).map(Version::name)
    }

    /// All schemas: the one of all versions, and those of single versions.
    pub(super) fn schemas(&self) -> impl Iterator<Item = &'v Object> {
        Some(self.shared()).into_iter().chain(self.versions.clone()).filter_map(|v| v.schema())
    }

    /// The subresources of a version.
    pub(super) fn subresources(&self, version: &Version<'v>) -> Option<&'v Object> {
        let own = self.versions.iter().any(|version| version.subresources().is_some());
        if own { version.subresources() } else { self.shared().subresources() }
    }

    /// Whether any version has a status of its own.
    pub(super) fn has_any_status(&self) -> bool {
        let all = Some(self.shared()).into_iter().chain(self.versions.iter().copied());
        all.filter_map(|version| version.subresources()).any(|sub| sub.contains_key("status"))
    }

    pub(super) fn preserves_unknown(&self) -> bool {
        let field = self.spec.and_then(|spec| spec.get("preserveUnknownFields"));
        field == Some(&Value::Bool(true))
    }
}

// === impl Version ===

impl<'v> Version<'v> {
    pub(super) fn name(&self) -> &'v str {
        self.text("name")
    }

    pub(super) fn text(&self, field: &str) -> &'v str {
        let value = self.object.and_then(|object| object.get(field));
        value.and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn flag(&self, field: &str) -> bool {
        self.object.and_then(|object| object.get(field)) == Some(&Value::Bool(true))
    }

    /// `schema`, with or without `openAPIV3Schema` in it.
    pub(super) fn has_validation(&self) -> bool {
        self.part(0).is_some()
    }

    /// `schema.openAPIV3Schema`.
    pub(super) fn schema_value(&self) -> Option<&'v Value> {
        self.part(0)?.get("openAPIV3Schema").filter(|schema| schema.is_object())
    }

    pub(super) fn schema(&self) -> Option<&'v Object> {
        self.schema_value().and_then(Value::as_object)
    }

    pub(super) fn subresources(&self) -> Option<&'v Object> {
        self.part(1).and_then(Value::as_object)
    }

    pub(super) fn columns(&self) -> &'v [Value] {
        self.part(2).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn selectable_fields(&self) -> &'v [Value] {
        self.part(3).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    fn part(&self, at: usize) -> Option<&'v Value> {
        self.parts.get(at).copied().flatten()
    }
}

fn part<'v>(object: Option<&'v Object>, name: &str) -> Option<&'v Value> {
    object?.get(name).filter(|value| !value.is_null())
}
