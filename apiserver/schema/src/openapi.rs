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
use components::Components;
use custom::Form;

pub use gnostic::v3_protobuf;

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
    let custom = custom::components(gv, &sources, types, Form::V3);
    let schemas = Components::new(types).used_by(&paths, custom);
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

/// The OpenAPI v2 document of everything that a logical cluster serves, as JSON text; see [`v3`].
///
/// It is written piece by piece: what it takes in memory is little more than its text. Costs tens
/// of milliseconds, more with many types; callers keep the result.
pub fn v2(sources: &[Source<'_>], types: &Types) -> Vec<u8> {
    let (mut paths, mut definitions) = (Vec::new(), Vec::new());
    let rest = v2_pieces(sources, types, |piece, name, value| {
        let out = if piece == Piece::Path { &mut paths } else { &mut definitions };
        out.push(if out.is_empty() { b'{' } else { b',' });
        out.extend(json!(name).to_string().bytes());
        out.push(b':');
        out.extend(value.to_string().bytes());
    });
    for out in [&mut paths, &mut definitions] {
        out.extend(if out.is_empty() { &b"{}"[..] } else { &b"}"[..] });
    }
    let mut text = rest.to_string().into_bytes();
    // The object ends with what was left out of it.
    text.pop();
    text.reserve_exact(paths.len() + definitions.len() + 32);
    text.extend(b",\"paths\":");
    text.append(&mut paths);
    text.extend(b",\"definitions\":");
    text.append(&mut definitions);
    text.push(b'}');
    text
}

/// The same document as a protobuf `openapi.v2.Document`.
pub fn v2_protobuf(sources: &[Source<'_>], types: &Types) -> Vec<u8> {
    let mut pieces = gnostic::Pieces::default();
    let rest = v2_pieces(sources, types, |piece, name, value| match piece {
        Piece::Path => pieces.path(name, value),
        Piece::Definition => pieces.definition(name, value),
    });
    pieces.finish(&rest)
}

/// The parts of a v2 document that can be many.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    Path,
    Definition,
}

/// Hands out the pieces of a v2 document with their names, and returns what else is in it.
fn v2_pieces(
    sources: &[Source<'_>],
    types: &Types,
    mut out: impl FnMut(Piece, &str, Value),
) -> Value {
    let mut components = Components::new(types);
    let mut parameters = Map::new();
    for gv in versions(sources) {
        let sources = of_version(&gv, sources);
        let paths = paths::of_version(&gv, &sources, types);
        let custom = custom::components(&gv, &sources, types, Form::V2);
        for (name, schema) in components.used_by(&paths, custom) {
            out(Piece::Definition, &name, swagger::definition(schema, 0));
        }
        let Value::Object(paths) = paths else { continue };
        for (path, item) in paths {
            out(Piece::Path, &path, swagger::path(item, &mut parameters));
        }
    }
    json!({
        "swagger": "2.0",
        "info": info(),
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
