//! Stored objects as a request sees them: in its version, and marked in wildcard answers.

use std::sync::Arc;

use bytes::Bytes;
use machinery::Gvk;
use schema::CoerceMode;
use schema::resource::ResourceDef;
use serde_json::Value;
use store::cache::Object;
use store::object;

use crate::registry::{ClusterScope, Error, Registry, Target, View, conversion};

/// What is done to stored bytes before they are shown.
#[derive(Clone, Debug)]
pub(super) struct Lens {
    resource: Arc<ResourceDef>,
    /// The version that the request asks for, when it is not the one that is stored.
    convert: Option<Gvk>,
    /// Whether the logical cluster is named in an annotation.
    wildcard: bool,
}

impl Registry {
    pub(super) fn lens(&self, target: &Target) -> Lens {
        let kind = Self::kind(&target.resource, &target.version);
        let stored = self.stored_kind(&target.resource);
        Lens {
            resource: target.resource.clone(),
            convert: (kind != stored).then_some(kind),
            wildcard: target.cluster == ClusterScope::All,
        }
    }

    /// An object as `lens` shows it. Copies nothing for the version that is stored.
    pub(super) fn view(&self, lens: &Lens, object: Arc<Object>) -> Result<View, Error> {
        let json = self.shown(lens, &object)?;
        Ok(View { json, object })
    }

    fn shown(&self, lens: &Lens, object: &Object) -> Result<Bytes, Error> {
        let mut json = object.json.clone();
        if let Some(kind) = &lens.convert {
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
    /// Whether views are the stored bytes themselves, so that encoded frames can be shared.
    pub(super) fn is_plain(&self) -> bool {
        self.convert.is_none() && !self.wildcard
    }
}
