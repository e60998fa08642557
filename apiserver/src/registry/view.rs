//! Stored objects as a request sees them: in its version, and marked in wildcard answers.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use machinery::Gvk;
use schema::crd::CustomType;
use schema::resource::ResourceDef;
use schema::{CoerceMode, SchemaHash};
use serde_json::Value;
use store::cache::Object;
use store::object;

use super::typing::Typing;
use crate::registry::{ClusterScope, Error, Registry, Target, View, conversion, convert};

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

/// A custom resource as it is shown in one version, kept with the stored bytes; then the next.
pub(super) struct Shown {
    schema: SchemaHash,
    version: Arc<str>,
    /// The type whose webhook made it; of none where no webhook was asked.
    by: Weak<CustomType>,
    /// `None` where the stored bytes themselves are shown.
    json: Option<Bytes>,
    next: OnceLock<Box<Shown>>,
}

/// Most forms that are kept with an object: the versions that are in use, and some of schemas that
/// have been replaced since.
const KEPT: usize = 4;

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

    /// An object as `lens` shows it, unless a webhook has to be asked first. Copies nothing for the
    /// version that is stored.
    pub(super) fn ready(&self, lens: &Lens, object: &Arc<Object>) -> Result<Option<View>, Error> {
        let json = if let Some((typing, kind)) = &lens.custom {
            let own = self.own_typing(lens, object);
            match Self::passed(own.as_deref().unwrap_or(typing), kind, object)? {
                Some(json) => json,
                None => return Ok(None),
            }
        } else if let Some(kind) = &lens.convert {
            let value = serde_json::from_slice(&object.json()).map_err(Error::internal)?;
            let version = conversion::resource_version(&value);
            let converted = self.converted(&lens.resource, value, kind)?;
            let json = object::encode(&converted);
            match version {
                Some(version) => object::with_resource_version(&json, version),
                None => json,
            }
        } else {
            object.json()
        };
        Ok(Some(Self::seen(lens, json, object.clone())))
    }

    /// An object in the version of a lens, with the mark of wildcard answers.
    pub(super) fn seen(lens: &Lens, mut json: Bytes, object: Arc<Object>) -> View {
        if lens.wildcard {
            let (cluster, _, _) = object.key.parts();
            json = object::with_cluster(&json, cluster);
        }
        View { json, object }
    }

    /// The type of a custom resource where it lives: over all logical clusters, each has its own.
    /// `None` where the version that is asked for isn't served.
    pub(super) fn own_typing<'l>(
        &self,
        lens: &'l Lens,
        object: &Object,
    ) -> Option<Cow<'l, Typing>> {
        let (typing, kind) = lens.custom.as_ref()?;
        if !lens.wildcard {
            return Some(Cow::Borrowed(typing));
        }
        let cluster = object.key.object().cluster;
        let Lens { resource, .. } = lens;
        let custom = self.catalog.custom_of(&cluster, &resource.group, &resource.plural)?;
        let typing = Typing::custom(&custom, kind)?;
        let served = typing.version().is_some_and(|version| version.served);
        served.then_some(Cow::Owned(typing))
    }

    /// Whether an object can be shown at all: over all logical clusters, some may not serve the
    /// version that is asked for.
    pub(super) fn is_shown(&self, lens: &Lens, object: &Object) -> bool {
        !lens.wildcard || lens.custom.is_none() || self.own_typing(lens, object).is_some()
    }

    /// A custom resource in the version of `kind`: what the schema doesn't know is left out, and
    /// what it says by default filled in. Done once for each object and version. `None` if a
    /// webhook has to convert it.
    fn passed(typing: &Typing, kind: &Gvk, object: &Object) -> Result<Option<Bytes>, Error> {
        let by = match convert::converter(typing, kind, object) {
            Some(custom) => Arc::downgrade(custom),
            None => Weak::new(),
        };
        if let Some(shown) = Shown::find(object, typing.hash(), kind, &by) {
            return Ok(Some(shown.json.clone().unwrap_or_else(|| object.json())));
        }
        if !Weak::ptr_eq(&by, &Weak::new()) {
            return Ok(None);
        }
        let value = serde_json::from_slice(&object.json()).map_err(Error::internal)?;
        let json = Self::repaired(typing, kind, value)?;
        Ok(Some(Shown::keep(object, typing.hash(), kind, by, json)))
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

    /// The kind in which custom resources are shown, if they are.
    pub(super) fn kind(&self) -> Option<&Gvk> {
        self.custom.as_ref().map(|(_, kind)| kind)
    }
}

// === impl Shown ===

impl Shown {
    fn first(object: &Object) -> Option<&Self> {
        object.derived.get().and_then(|derived| derived.downcast_ref())
    }

    fn find<'o>(
        object: &'o Object,
        schema: SchemaHash,
        kind: &Gvk,
        by: &Weak<CustomType>,
    ) -> Option<&'o Self> {
        let version = &kind.group_version.version;
        let chain = std::iter::successors(Self::first(object), |shown| {
            shown.next.get().map(|next| &**next)
        });
        { chain }.find(|shown| {
            shown.schema == schema && shown.version == *version && Weak::ptr_eq(&shown.by, by)
        })
    }

    /// Keeps how an object is shown, if there is room, and returns it: the object's own bytes, if
    /// they are equal. Another reader may have been faster, which is as good.
    pub(super) fn keep(
        object: &Object,
        schema: SchemaHash,
        kind: &Gvk,
        by: Weak<CustomType>,
        json: Bytes,
    ) -> Bytes {
        let version = kind.group_version.version.clone();
        let own = object.json();
        let (shown, json) = if json == own { (own, None) } else { (json.clone(), Some(json)) };
        let mut new = Self { schema, version, by, json, next: OnceLock::new() };
        let Some(mut last) = Self::first(object) else {
            drop(object.derived.set(Arc::new(new)));
            return shown;
        };
        for _ in 1..KEPT {
            match last.next.get() {
                Some(next) => last = next,
                None => match last.next.set(Box::new(new)) {
                    Ok(()) => break,
                    Err(returned) => {
                        new = *returned;
                        let Some(next) = last.next.get() else { break };
                        last = next;
                    }
                },
            }
        }
        shown
    }
}
