//! The versions of one resource, as ownership needs them.

use std::borrow::Cow;

use machinery::Gvk;
use machinery::time::Time;
use patch::apply::{FieldSet, Type, Versions, Write};
use schema::{ApplyType, CoerceMode};
use serde_json::{Value, json};

use super::reset_by;
use crate::registry::scale::scale_kind;
use crate::registry::typing::Typing;
use crate::registry::{Context, Error, Registry, Target, conversion};

/// The versions of the kind that one request is about, and what its endpoint resets.
///
/// Views are resources of their own here: what was written by the other name belongs, as upstream
/// has it, to a version that this one doesn't have.
#[derive(Debug)]
pub(super) struct Kinds {
    /// The version of the request comes first.
    versions: Vec<Version>,
    reset: FieldSet,
}

#[derive(Debug)]
struct Version {
    name: String,
    kind: Gvk,
    typing: Typing,
}

// === impl Kinds ===

impl Kinds {
    /// The versions of the target's resource.
    pub(super) fn new(registry: &Registry, target: &Target) -> Result<Self, Error> {
        let resource = &target.resource;
        let mut versions =
            vec![Version::new(Registry::kind(resource, &target.version), registry.typing(target)?)];
        let others: Vec<&str> = match &target.custom {
            Some(custom) => custom.versions.iter().map(|version| &*version.name).collect(),
            None => resource.versions.iter().map(|version| &*version.name).collect(),
        };
        for other in others.into_iter().filter(|other| **other != *target.version) {
            let kind = Registry::kind(resource, other);
            let typing = match &target.custom {
                Some(custom) => Typing::custom(custom, &kind),
                None => Some(Typing::Builtin(registry.schema(&kind)?)),
            };
            versions.extend(typing.map(|typing| Version::new(kind, typing)));
        }
        let reset = reset_by(resource, &target.subresource);
        let reset = FieldSet::of_fields(reset.iter().map(std::slice::from_ref));
        Ok(Self { versions, reset })
    }

    /// The one version of Scales.
    pub(super) fn of_scale(registry: &Registry) -> Result<Self, Error> {
        let kind = scale_kind();
        let typing = Typing::Builtin(registry.schema(&kind)?);
        Ok(Self { versions: vec![Version::new(kind, typing)], reset: FieldSet::new() })
    }

    /// A write of this kind.
    pub(super) fn write<'a>(
        &'a self,
        target: &'a Target,
        manager: &'a str,
        ctx: &Context,
    ) -> Write<'a> {
        let (api_version, kind) =
            self.versions.first().map_or(("", ""), |first| (&*first.name, &*first.kind.kind));
        let subresource = &target.subresource;
        Write { manager, api_version, kind, subresource, now: Time::at(ctx.now) }
    }

    fn find(&self, api_version: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == api_version)
    }
}

impl<'s> Versions<'s> for &'s Kinds {
    type Schema = ApplyType<'s>;

    fn schema(&self, api_version: &str) -> Option<Type<ApplyType<'s>>> {
        let kinds: &'s Kinds = self;
        Some(kinds.find(api_version)?.typing.apply())
    }

    fn convert<'v>(
        &self,
        object: Cow<'v, Value>,
        api_version: &str,
    ) -> Result<Cow<'v, Value>, String> {
        if object.get("apiVersion").and_then(Value::as_str) == Some(api_version) {
            return Ok(object);
        }
        let Some(version) = self.find(api_version) else {
            return Err(format!("there is no version {api_version:?}"));
        };
        let mut object = object.into_owned();
        conversion::relabel(&mut object, &version.kind);
        version.typing.repair(&mut object).map_err(|why| why.to_string())?;
        Ok(Cow::Owned(object))
    }

    fn reset(&self, api_version: &str) -> Option<&FieldSet> {
        self.find(api_version).map(|_| &self.reset)
    }

    fn empty(&self, api_version: &str) -> Value {
        let mut object = json!({});
        if let Some(version) = self.find(api_version) {
            // An object without anything has nothing of a wrong type.
            drop(version.typing.coerce(&mut object, CoerceMode::Drop));
            conversion::relabel(&mut object, &version.kind);
        }
        object
    }
}

// === impl Version ===

impl Version {
    fn new(kind: Gvk, typing: Typing) -> Self {
        Self { name: kind.group_version.to_string(), kind, typing }
    }
}
