//! Stored objects as a request sees them: in its version, and marked in wildcard answers.

use std::sync::Arc;

use bytes::Bytes;
use machinery::Gvk;
use schema::resource::ResourceDef;
use schema::{CoerceMode, SchemaHash};
use serde_json::Value;
use store::cache::Object;
use store::object;

use super::typing::Typing;
use crate::registry::{ClusterScope, Error, Registry, Target, View, conversion};

/// What is done to stored bytes before they are shown.
#[derive(Clone, Debug)]
pub(super) struct Lens {
    resource: Arc<ResourceDef>,
    /// The version that the request asks for, when it is not the one that is stored.
    convert: Option<Gvk>,
    /// The custom type and the kind in which it is asked for; nothing else is then converted.
    custom: Option<(Typing, Gvk)>,
    /// Whether the logical cluster is named in an annotation.
    wildcard: bool,
}

/// A custom resource as it is shown in one version, kept with the stored bytes.
struct Shown {
    schema: SchemaHash,
    version: Arc<str>,
    /// `None` where the stored bytes themselves are shown.
    json: Option<Bytes>,
}

impl Registry {
    pub(super) fn lens(&self, target: &Target) -> Lens {
        let kind = Self::kind(&target.resource, &target.version);
        let stored = self.stored_kind(&target.resource);
        let custom = target.custom.as_ref().and_then(|custom| Typing::custom(custom, &kind));
        let convert = (custom.is_none() && kind != stored).then(|| kind.clone());
        Lens {
            resource: target.resource.clone(),
            convert,
            custom: custom.map(|custom| (custom, kind)),
            wildcard: target.cluster == ClusterScope::All,
        }
    }

    /// An object as `lens` shows it. Copies nothing for the version that is stored.
    pub(super) fn view(&self, lens: &Lens, object: Arc<Object>) -> Result<View, Error> {
        let json = self.shown(lens, &object)?;
        Ok(View { json, object })
    }

    fn shown(&self, lens: &Lens, object: &Object) -> Result<Bytes, Error> {
        let mut json = object.json();
        if let Some((typing, kind)) = &lens.custom {
            let own = if lens.wildcard { self.typing_of(lens, object) } else { None };
            json = Self::passed(own.as_ref().unwrap_or(typing), kind, object)?;
        } else if let Some(kind) = &lens.convert {
            let value = serde_json::from_slice(&json).map_err(Error::internal)?;
            let version = conversion::resource_version(&value);
            let converted = self.converted(&lens.resource, value, kind)?;
            json = object::encode(&converted);
            if let Some(version) = version {
                json = object::with_resource_version(&json, version);
            }
        }
        if lens.wildcard {
            let (cluster, _, _) = object.key.parts();
            json = object::with_cluster(&json, cluster);
        }
        Ok(json)
    }

    /// The type of a custom resource where it lives: over all logical clusters, each has its own.
    /// `None` where the version that is asked for isn't served.
    fn typing_of(&self, lens: &Lens, object: &Object) -> Option<Typing> {
        let (_, kind) = lens.custom.as_ref()?;
        let cluster = object.key.object().cluster;
        let Lens { resource, .. } = lens;
        let custom = self.catalog.custom_of(&cluster, &resource.group, &resource.plural)?;
        let typing = Typing::custom(&custom, kind)?;
        typing.version().is_some_and(|version| version.served).then_some(typing)
    }

    /// Whether an object can be shown at all: over all logical clusters, some may not serve the
    /// version that is asked for.
    pub(super) fn is_shown(&self, lens: &Lens, object: &Object) -> bool {
        !lens.wildcard || lens.custom.is_none() || self.typing_of(lens, object).is_some()
    }

    /// A custom resource in the version of `kind`: what the schema doesn't know is left out, and
    /// what it says by default filled in. Done once for each object, if it is always asked for in
    /// the same version.
    fn passed(typing: &Typing, kind: &Gvk, object: &Object) -> Result<Bytes, Error> {
        let version = &kind.group_version.version;
        let known = |shown: &&Shown| shown.schema == typing.hash() && shown.version == *version;
        let kept = object.derived.get().and_then(|derived| derived.downcast_ref::<Shown>());
        if let Some(shown) = kept.filter(known) {
            return Ok(shown.json.clone().unwrap_or_else(|| object.json()));
        }
        let mut value = serde_json::from_slice(&object.json()).map_err(Error::internal)?;
        let resource_version = conversion::resource_version(&value);
        conversion::relabel(&mut value, kind);
        typing.repair(&mut value).map_err(Error::internal)?;
        let mut json = object::encode(&value);
        if let Some(version) = resource_version {
            json = object::with_resource_version(&json, version);
        }
        let same = json == object.json();
        if kept.is_none() {
            let json = (!same).then(|| json.clone());
            let shown = Shown { schema: typing.hash(), version: version.clone(), json };
            // Another reader may have been faster.
            drop(object.derived.set(Arc::new(shown)));
        }
        Ok(if same { object.json() } else { json })
    }

    /// A stored object as `kind`, without what that kind lacks.
    pub(super) fn converted(
        &self,
        resource: &ResourceDef,
        value: Value,
        kind: &Gvk,
    ) -> Result<Value, Error> {
        let mut converted = conversion::from_stored(resource, value, kind);
        self.schema(kind)?.coerce(&mut converted, CoerceMode::Drop).map_err(Error::internal)?;
        Ok(converted)
    }
}

// === impl Lens ===

impl Lens {
    /// The lens of a request for one object.
    pub(super) fn of_one(mut self) -> Self {
        self.wildcard = false;
        self
    }

    /// Whether views look the same for all requests of a version, so that encoded frames can be
    /// shared.
    pub(super) fn is_plain(&self) -> bool {
        self.convert.is_none() && !self.wildcard
    }
}
