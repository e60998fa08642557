//! OpenAPI documents: what a logical cluster serves, told to its clients.
//!
//! Built-in types are published from the same data as everything else; custom ones from the
//! schemas of their CustomResourceDefinitions, texts included. A custom type of one of
//! Kubernetes' own groups (an imported one) is published as the built-in type would be: under its
//! Go name, with protobuf, strategic merge patch and the markers that clients merge lists by.
//!
//! There are two forms. OpenAPI v3 has one document for each group version, v2 one for all; v2
//! can't say as much (no `nullable`, no `anyOf`, no defaults), and clients that read it take a
//! field which it doesn't describe as unknown, so the description of whatever preserves unknown
//! fields is left out. Both are JSON, and both have a protobuf encoding ([`v2_protobuf`],
//! [`v3_protobuf`]).
//!
//! Invariants: every `$ref` leads somewhere; time and size are linear in those of the input, and
//! bounded in depth, whatever the definitions hold.

mod components;
mod custom;
mod descriptions;
mod gnostic;
mod operation;
mod parameters;
mod paths;
mod swagger;

use std::collections::HashSet;

use machinery::GroupVersion;
use serde_json::{Map, Value, json};

use crate::resource::ResourceDef;
use crate::types::Types;
use custom::Form;

pub use gnostic::{v2_protobuf, v3_protobuf};

/// Schemas nest this deep at most; what lies deeper is published as anything. Structural schemas
/// are refused long before.
const MAX_DEPTH: usize = 64;

/// A resource, and what it is known by.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The resource.
    pub def: &'a ResourceDef,
    /// The CustomResourceDefinition that it comes from, in JSON; nothing for a built-in one. A
    /// custom one without is published as an object of which nothing is known.
    pub crd: Option<&'a Value>,
}

/// The OpenAPI v3 document of one group version: the paths of its resources, and the schemas that
/// they refer to, directly or not. Resources that the version doesn't serve are left out.
///
/// Costs some milliseconds; callers keep the result.
pub fn v3(gv: &GroupVersion, sources: &[Source<'_>], types: &Types) -> Value {
    let sources = of_version(gv, sources);
    let paths = paths::of_version(gv, &sources, types);
    let schemas =
        components::used_by(&paths, custom::components(gv, &sources, types, Form::V3), types);
    json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": bearer_token(),
        },
    })
}

/// The OpenAPI v2 document of everything that a logical cluster serves; see [`v3`].
///
/// Costs tens of milliseconds; callers keep the result.
pub fn v2(sources: &[Source<'_>], types: &Types) -> Value {
    let mut paths = Map::new();
    let mut custom = Map::new();
    for gv in versions(sources) {
        let sources = of_version(&gv, sources);
        if let Value::Object(found) = paths::of_version(&gv, &sources, types) {
            paths.extend(found);
        }
        custom.extend(custom::components(&gv, &sources, types, Form::V2));
    }
    let paths = Value::Object(paths);
    let schemas = components::used_by(&paths, custom, types);
    let (paths, parameters) = swagger::paths(paths);
    json!({
        "swagger": "2.0",
        "info": info(),
        "paths": paths,
        "definitions": swagger::definitions(schemas),
        "parameters": parameters,
        "securityDefinitions": bearer_token(),
        "security": [{"BearerToken": []}],
    })
}

/// The group versions that these resources are served in, in their order.
fn versions(sources: &[Source<'_>]) -> Vec<GroupVersion> {
    let mut known = HashSet::new();
    let mut versions = Vec::new();
    for Source { def, .. } in sources {
        for version in def.versions.iter().filter(|version| version.served) {
            if known.insert((&*def.group, &*version.name)) {
                versions.push(GroupVersion::new(&def.group, &version.name));
            }
        }
    }
    versions
}

fn of_version<'a>(gv: &GroupVersion, sources: &[Source<'a>]) -> Vec<Source<'a>> {
    let serves = |source: &&Source<'_>| {
        let version = source.def.version(&gv.version);
        source.def.group == gv.group && version.is_some_and(|version| version.served)
    };
    sources.iter().filter(serves).copied().collect()
}

fn info() -> Value {
    json!({"title": "Kubernetes", "version": "unversioned"})
}

fn bearer_token() -> Value {
    json!({
        "BearerToken": {
            "description": "A token in the Authorization header",
            "type": "apiKey",
            "name": "authorization",
            "in": "header",
        },
    })
}

#[cfg(test)]
mod tests;
