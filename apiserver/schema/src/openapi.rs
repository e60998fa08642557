//! OpenAPI v3 documents of group versions, made from the same data as everything else.

mod components;
mod descriptions;
mod parameters;
mod paths;

use machinery::GroupVersion;
use serde_json::{Value, json};

use crate::resource::ResourceDef;
use crate::types::Types;

/// The OpenAPI v3 document of one group version: the paths of its resources, and the schemas that
/// they refer to, directly or not.
///
/// Costs some milliseconds; callers keep the result.
pub fn v3(gv: &GroupVersion, resources: &[&ResourceDef], types: &Types) -> Value {
    let paths = paths::of_version(gv, resources, types);
    let schemas = components::used_by(&paths, types);
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "BearerToken": {
                    "description": "A token in the Authorization header",
                    "type": "apiKey",
                    "name": "authorization",
                    "in": "header",
                },
            },
        },
    })
}

#[cfg(test)]
mod tests;
