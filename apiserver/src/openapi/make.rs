//! Making a document of the resources and the CRDs that a logical cluster has.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use machinery::GroupVersion;
use schema::openapi::{self, Source};
use schema::{ResourceDef, Types};
use serde_json::Value;
use store::cache::Object;

use super::accept::{Family, Form};
use crate::catalog::{Catalog, Definition};
use crate::discovery::{Document, Resources};
use crate::http::negotiate;
use crate::registry::ClusterScope;

/// What a logical cluster serves.
#[derive(Clone)]
pub(crate) struct Surface {
    pub(super) resources: Resources,
    /// Where the CRDs are, which are read only if a document must be made.
    catalog: Option<(Arc<Catalog>, ClusterScope)>,
}

/// A document that was made.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) hash: Arc<str>,
    pub(super) document: Arc<Document>,
    /// Whether it says all of its resources. It doesn't when a CRD changed after they were put
    /// together, and then it must not be held for them.
    pub(super) is_whole: bool,
}

// === impl Surface ===

impl Surface {
    /// What is served in these logical clusters now.
    pub(crate) fn of(catalog: &Arc<Catalog>, scope: &ClusterScope) -> Self {
        let resources = catalog.resources(scope);
        Self { resources, catalog: Some((catalog.clone(), scope.clone())) }
    }

    /// Resources without CRDs.
    #[cfg(test)]
    pub(super) fn builtin(types: &Types) -> Self {
        Self { resources: types.resources().into(), catalog: None }
    }

    fn definitions(&self) -> Vec<Arc<Object>> {
        self.catalog.as_ref().map(|(catalog, scope)| catalog.definitions(scope)).unwrap_or_default()
    }
}

impl fmt::Debug for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surface").field("resources", &self.resources.len()).finish_non_exhaustive()
    }
}

/// Makes a document of these resources: that of a version in v3, or without one in v2.
pub(super) fn make(
    version: Option<&GroupVersion>,
    surface: &Surface,
    resources: &Resources,
    form: Form,
    types: &Types,
) -> Made {
    let builtin = |def: &Arc<ResourceDef>| {
        types.resource(&def.group, &def.plural).is_some_and(|own| Arc::ptr_eq(own, def))
    };
    let custom = resources.iter().filter(|def| !builtin(def));
    let crds = crds(surface, custom.map(address).collect());
    let crd = |def| crds.get(&address(def)).map(|crd| &**crd);
    let sources: Vec<Source<'_>> =
        resources.iter().map(|def| Source { def, crd: crd(def) }).collect();
    let is_whole = resources.iter().all(|def| builtin(def) || crds.contains_key(&address(def)));
    let (json, protobuf): (_, Box<dyn Fn() -> Vec<u8>>) = match version {
        Some(version) => {
            let value = openapi::v3(version, &sources, types);
            let json = Document::tagged(&value, negotiate::JSON);
            (json, Box::new(move || openapi::v3_protobuf(&value)))
        }
        None => {
            let json = Document::written(openapi::v2(&sources, types), negotiate::JSON);
            (json, Box::new(|| openapi::v2_protobuf(&sources, types)))
        }
    };
    let hash: Arc<str> = json.hash().into();
    let family = if version.is_some() { Family::V3 } else { Family::V2 };
    let document = match form {
        Form::Json => json,
        Form::Protobuf => Document::encoded(protobuf(), family.protobuf(), &hash),
    };
    Made { hash, document: Arc::new(document), is_whole }
}

/// The CRDs of the wanted resources, by the address of each.
fn crds(surface: &Surface, mut wanted: HashSet<usize>) -> HashMap<usize, Arc<Value>> {
    let mut found = HashMap::new();
    if wanted.is_empty() {
        return found;
    }
    for object in surface.definitions() {
        let definition = Definition::of(&object);
        let Some(custom) = definition.custom(&object) else { continue };
        // Over all logical clusters equal CRDs are many, and one will do.
        let own: Vec<usize> =
            custom.defs.iter().map(address).filter(|d| wanted.remove(d)).collect();
        if own.is_empty() {
            continue;
        }
        if let Ok(crd) = serde_json::from_slice::<Value>(&object.json()).map(Arc::new) {
            found.extend(own.into_iter().map(|def| (def, crd.clone())));
        }
    }
    found
}

fn address(def: &Arc<ResourceDef>) -> usize {
    Arc::as_ptr(def).addr()
}
