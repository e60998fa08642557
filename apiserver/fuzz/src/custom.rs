//! CRDs, and objects of the types that they define.

use jiff::Timestamp;
use machinery::GroupVersion;
use schema::crd::{self, CustomType, CustomVersion};
use schema::openapi::{self, Source};
use schema::{CoerceMode, Types};
use serde_json::{Value, json};

use crate::document::Input;

/// A CRD around a schema; `more` are other fields of its one version.
pub(crate) fn around(schema: Value, more: Option<Value>) -> Value {
    let mut version = json!({"name": "v1", "served": true, "storage": true});
    if let (Some(Value::Object(more)), Some(version)) = (more, version.as_object_mut()) {
        version.extend(more);
    }
    version["schema"] = json!({"openAPIV3Schema": schema});
    json!({
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "foos", "kind": "Foo"},
        },
    })
}

/// A CRD as a create leaves it.
fn written(mut crd: Value) -> Value {
    crd::record_storage_version(&mut crd);
    crd::complete(&mut crd);
    let mut again = crd.clone();
    crd::complete(&mut again);
    crd::record_storage_version(&mut again);
    assert_eq!(again, crd, "completing is idempotent");
    crd
}

/// What decoding makes of a CRD; it stays as it is where that refuses it.
fn decoded(mut crd: Value) -> Value {
    let types = Types::builtin();
    let kind = GroupVersion::new("apiextensions.k8s.io", "v1").kind("CustomResourceDefinition");
    let schema = types.kind(&kind).expect("a built-in kind");
    let given = crd.clone();
    if schema.coerce(&mut crd, CoerceMode::Drop).is_err() {
        return given;
    }
    schema.default(&mut crd);
    crd
}

/// A CRD, the one that it replaces, and an object.
pub fn definition(data: &[u8]) {
    let mut input = Input::new(data);
    let how = input.byte();
    let mut one = || {
        let first = input.document();
        let crd = if how & 1 == 0 { first } else { around(first, Some(input.document())) };
        if how & 2 == 0 { crd } else { decoded(crd) }
    };
    let (new, old) = (written(one()), written(one()));
    let object = input.document();
    let problems = crd::validate_create(&new);
    crd::validate_update(&new, &old);
    crd::warnings(&new, Some(&old));
    crd::approval(&new);
    let names = crd::accept_names(&new, [&old, &new].into_iter());
    let mut noted = new.clone();
    crd::set_condition(&mut noted, &names.accepted, "2026-01-01T00:00:00Z");
    let compiled = crd::compile(&new);
    if problems.is_empty() {
        assert_eq!(crd::validate_update(&new, &new), [], "what is right may stay");
        let custom = compiled.as_ref().expect("what is right compiles");
        for version in &custom.versions {
            lives(custom, version, object.clone(), None);
        }
    } else if let Ok(custom) = &compiled {
        for version in &custom.versions {
            passes(version, object.clone());
        }
    }
    // This takes longer than all else.
    if let Ok(custom) = &compiled
        && how & 4 != 0
    {
        publishes(custom, &new, &object);
    }
}

/// A schema in a good CRD, an object under it, and the one that it replaces.
pub fn object(data: &[u8]) {
    let mut input = Input::new(data);
    let crd = written(around(input.document(), None));
    let (new, old) = (input.document(), input.document());
    let Ok(custom) = crd::compile(&crd) else { return };
    let right = crd::validate_create(&crd).is_empty();
    for version in &custom.versions {
        if right {
            lives(&custom, version, new.clone(), Some(old.clone()));
        } else {
            passes(version, new.clone());
        }
    }
}

/// What stored objects go through, under a schema that the rules of today may refuse.
fn passes(version: &CustomVersion, mut object: Value) {
    let schema = &version.schema;
    if schema.coerce(&mut object, CoerceMode::Report).is_err() {
        schema.repair(&mut object);
    }
    schema.default(&mut object);
    if schema.validate(&object, None).is_empty() {
        schema.validate_rules(&object, None);
    }
}

/// The way of a write under a schema that is right.
fn lives(custom: &CustomType, version: &CustomVersion, new: Value, old: Option<Value>) {
    let schema = &version.schema;
    let read = |mut object: Value| {
        schema.coerce(&mut object, CoerceMode::Drop).ok()?;
        schema.default(&mut object);
        Some(object)
    };
    let Some(new) = read(new) else { return };
    assert_eq!(read(new.clone()).as_ref(), Some(&new), "decoding is idempotent");
    let problems = schema.validate(&new, None);
    let kept = schema.validate(&new, Some(&new));
    assert!(kept.len() <= problems.len(), "what did not change is forgiven");
    let old = old.and_then(read);
    if let Some(old) = &old {
        schema.validate(&new, Some(old));
        schema.validate_status(&new, old);
    }
    if problems.is_empty() {
        schema.validate_rules(&new, None);
        if let Some(old) = old.filter(|old| schema.validate(old, None).is_empty()) {
            schema.validate_rules(&new, Some(&old));
        }
    }
    if let Some(scale) = &version.scale {
        scale.validate(&new);
    }
    for def in &custom.defs {
        schema::table::row(def, &new, Timestamp::UNIX_EPOCH);
    }
}

/// What clients are told of a type.
fn publishes(custom: &CustomType, crd: &Value, object: &Value) {
    let types = Types::builtin();
    let source = |def| Source { def, crd: Some(crd) };
    let sources: Vec<_> = custom.defs.iter().map(|def| source(&**def)).collect();
    for def in &custom.defs {
        schema::table::row(def, object, Timestamp::UNIX_EPOCH);
        for version in def.versions.iter() {
            let gv = GroupVersion::new(&custom.group, &version.name);
            openapi::v3_protobuf(&openapi::v3(&gv, &sources, &types));
        }
    }
    let v2 = openapi::v2(&sources, &types);
    serde_json::from_slice::<Value>(&v2).expect("it is JSON");
    openapi::v2_protobuf(&sources, &types);
}
