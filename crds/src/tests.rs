//! The committed CRDs are those of the types.

use std::path::Path;

use contract::{
    API_RESOURCE_IMPORTS, API_RESOURCE_SCHEMAS, APIRESOURCE_GROUP, NEGOTIATED_API_RESOURCES,
    OBJECT_SYNCS, PLACEMENTS, SCHEDULING_GROUP, SYNC_TARGETS, WORKLOAD_GROUP,
};
use kube::Resource;
use serde_json::{Value, json};

use super::*;

/// What stands at the head of each file.
const HEAD: &str =
    "# Generated from the types of the crate `crds`: `UPDATE_CRDS=1 cargo test -p crds`.\n";

fn text(definition: &CustomResourceDefinition) -> String {
    // By way of a value, so that keys are sorted and absent fields are left out.
    let mut value = serde_json::to_value(definition).unwrap();
    value.as_object_mut().unwrap().remove("status");
    HEAD.to_owned() + &serde_saphyr::to_string(&value).unwrap()
}

#[test]
fn committed_definitions_are_fresh() {
    for definition in definitions() {
        let name = definition.metadata.name.clone().unwrap();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{name}.yaml"));
        let fresh = text(&definition);
        if std::env::var_os("UPDATE_CRDS").is_some() {
            std::fs::write(&path, &fresh).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(committed, fresh, "{name}: run the tests with UPDATE_CRDS=1");
        let read: Value = serde_saphyr::from_str(&committed).unwrap();
        assert_eq!(read["metadata"]["name"], name);
    }
}

#[test]
fn names_are_those_of_the_contract() {
    fn check<K: Resource<DynamicType = ()>>(group: &str, plural: &str) {
        assert_eq!((&*K::group(&()), &*K::plural(&())), (group, plural));
    }
    check::<SyncTarget>(WORKLOAD_GROUP, SYNC_TARGETS);
    check::<ObjectSync>(WORKLOAD_GROUP, OBJECT_SYNCS);
    check::<APIResourceSchema>(APIRESOURCE_GROUP, API_RESOURCE_SCHEMAS);
    check::<APIResourceImport>(APIRESOURCE_GROUP, API_RESOURCE_IMPORTS);
    check::<NegotiatedAPIResource>(APIRESOURCE_GROUP, NEGOTIATED_API_RESOURCES);
    check::<Placement>(SCHEDULING_GROUP, PLACEMENTS);
}

/// What is left out has a meaning, and comes back as it was said.
#[test]
fn a_spec_without_anything() {
    let target: SyncTarget = serde_json::from_value(json!({
        "apiVersion": "workload.kcp.io/v1alpha1",
        "kind": "SyncTarget",
        "metadata": {"name": "east"},
        "spec": {},
    }))
    .unwrap();
    assert_eq!(target.spec, SyncTargetSpec::default());
    let spec = serde_json::to_value(&target.spec).unwrap();
    let expect = json!({
        "mode": "Pull", "namespaceMapping": "Same", "adoption": "Never", "unschedulable": false,
    });
    assert_eq!(spec, expect);
}

/// A default in such a schema would change the content that the name was made of.
#[test]
fn schemas_have_no_defaults() {
    fn check(at: &str, value: &Value) {
        match value {
            Value::Object(fields) => {
                assert!(!fields.contains_key("default"), "{at}");
                fields.iter().for_each(|(name, value)| check(&format!("{at}.{name}"), value));
            }
            Value::Array(items) => items.iter().for_each(|item| check(at, item)),
            _ => {}
        }
    }
    check("", &serde_json::to_value(APIResourceSchema::crd()).unwrap());
}
