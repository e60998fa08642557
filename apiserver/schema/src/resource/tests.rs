//! The resources' data fits the types' data.

use std::collections::BTreeSet;

use machinery::GroupVersion;
use serde_json::json;

use super::*;
use crate::Types;

#[test]
fn kinds_have_schemas() {
    let types = Types::builtin();
    for def in types.resources() {
        assert_eq!(def.versions.iter().filter(|v| v.storage).count(), 1, "{}", def.plural);
        assert!(def.verbs.is_sorted(), "{}", def.plural);
        for version in &def.versions {
            let gv = GroupVersion::new(&def.group, &version.name);
            let schema = types.kind(&gv.kind(&def.kind)).unwrap();
            assert_eq!(schema.root_struct().short_name(), &*def.kind);
            if def.allows(Verb::List) {
                assert!(types.kind(&gv.kind(&def.list_kind)).is_some(), "{}", def.list_kind);
            }
            if let Generation::Fields(fields) = &def.generation {
                for field in fields {
                    assert!(schema.pool().field(schema.root(), field).is_some(), "{field}");
                }
            }
        }
        if let Some(view) = &def.view_of {
            assert!(types.resource(&view.group, &view.plural).is_some());
        }
    }
}

#[test]
fn views_name_fields_of_both_sides() {
    let types = Types::builtin();
    for def in types.resources() {
        let Some(view) = &def.view_of else { continue };
        let other = types.resource(&view.group, &view.plural).unwrap();
        let fields = |def: &ResourceDef| {
            let gv = GroupVersion::new(&def.group, &def.versions[0].name);
            let schema = types.kind(&gv.kind(&def.kind)).unwrap().clone();
            let names = schema.pool().json_fields(schema.root()).map(|f| f.name.to_string());
            names.collect::<BTreeSet<String>>()
        };
        let mut here = fields(def);
        for (from, to) in &view.renamed {
            assert!(here.remove(&**from), "{from}");
            here.insert(to.to_string());
        }
        assert_eq!(here, fields(other));
    }
}

#[test]
fn selectors_read_values() {
    let types = Types::builtin();
    let check = |group: &str, plural: &str, label: &str, object: serde_json::Value| {
        let def = types.resource(group, plural).unwrap();
        def.field_selector(label).map(|s| s.value(&object).into_owned())
    };
    let event = json!({"source": {}, "reportingComponent": "c", "involvedObject": {"kind": "Pod"}});
    assert_eq!(check("", "events", "source", event.clone()).as_deref(), Some("c"));
    assert_eq!(check("", "events", "involvedObject.kind", event.clone()).as_deref(), Some("Pod"));
    assert_eq!(check("", "events", "reason", event.clone()).as_deref(), Some(""));
    assert_eq!(check("", "events", "spec.nodeName", event), None);
    let phase = json!({"status": {"phase": "Active"}});
    assert_eq!(check("", "namespaces", "status.phase", phase).as_deref(), Some("Active"));
}

#[test]
fn meta_kinds_are_known_in_every_version() {
    let types = Types::builtin();
    for version in ["v1", "apps/v1", "meta.k8s.io/v1"] {
        let gv = GroupVersion::parse(version).unwrap();
        assert!(types.kind(&gv.kind("DeleteOptions")).is_some(), "{version}");
        assert!(types.kind(&gv.kind("Nothing")).is_none(), "{version}");
    }
}
