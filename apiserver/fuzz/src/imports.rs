//! Types of another cluster, by its discovery and its OpenAPI documents.

use machinery::FieldPath;
use schema::import::{self, ImportedType, VersionSource};
use schema::{Structural, crd};
use serde_json::{Value, json};

use crate::document::Input;

/// How many groups of one input are imported, and how many types of one are looked at.
const MOST: usize = 4;

/// A kind of discovery, discovery, and documents for the versions in turn.
pub fn imported(data: &[u8]) {
    let mut input = Input::new(data);
    let how = input.byte();
    let discovery = input.document();
    let documents = [input.document(), input.document()].map(|document| {
        if how & 2 == 0 { document } else { json!({"components": {"schemas": document}}) }
    });
    let groups = if how & 1 == 0 {
        let found = import::groups(&discovery);
        found.into_iter().map(|group| (group.name, group.versions)).collect()
    } else {
        let found = import::resource_list(&discovery);
        found.map(|(group, version)| (group, vec![version])).into_iter().collect::<Vec<_>>()
    };
    for (group, versions) in groups.iter().take(MOST) {
        let sources: Vec<_> = versions
            .iter()
            .zip(documents.iter().cycle())
            .take(MOST)
            .map(|(discovered, openapi)| VersionSource { discovered, openapi })
            .collect();
        let made = import::import_group(group, &sources);
        made.types.into_iter().take(MOST).for_each(served);
    }
}

/// Whatever was made has structural schemas, and the rules of CRDs can be put to it.
fn served(made: ImportedType) {
    let mut crd = made.crd;
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    for version in versions.into_iter().flatten() {
        let schema = version.pointer("/schema/openAPIV3Schema").expect("a version has a schema");
        assert!(machinery::json::depth(schema, 200) < 120, "it fits into a body");
        if let Err(problems) = Structural::compile(schema, &FieldPath::default()) {
            panic!("{problems:?} of {schema}");
        }
    }
    crd::complete(&mut crd);
    if crd::validate_create(&crd).is_empty() {
        crd::compile(&crd).expect("what is right compiles");
    }
}
