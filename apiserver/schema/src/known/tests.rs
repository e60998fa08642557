//! The facts fit the types' data.

use std::collections::HashSet;

use machinery::GroupVersion;
use serde_json::json;

use super::*;
use crate::Types;

#[test]
fn facts_are_of_kinds_that_are_known() {
    let mut seen = HashSet::new();
    for known in all() {
        assert!(seen.insert((&known.group, &known.plural)), "{} twice", known.plural);
        for version in &known.versions {
            let gv = GroupVersion::new(&known.group, version);
            let schema = Types::known(&gv.kind(&known.kind)).unwrap();
            assert!(Types::known(&gv.kind(&format!("{}List", known.kind))).is_some());
            if let Generation::Fields(fields) = &known.generation {
                for field in fields {
                    assert!(schema.pool().field(schema.root(), field).is_some(), "{field}");
                }
            }
        }
    }
    assert!(seen.len() > 35, "{}", seen.len());
}

#[test]
fn selectors_read_values() {
    let check = |plural: &str, label: &str, object: serde_json::Value, expect: &str| {
        let group = if plural == "jobs" { "batch" } else { "" };
        let known = resource(group, plural).unwrap();
        let selector = known.field_selectors.iter().find(|s| &*s.label == label).unwrap();
        assert_eq!(selector.value(&object), expect, "{plural} {label}");
    };
    let pod = json!({"spec": {"nodeName": "n"}, "status": {"phase": "Running", "podIP": "x"}});
    check("pods", "spec.nodeName", pod.clone(), "n");
    check("pods", "spec.host", pod.clone(), "n");
    check("pods", "status.phase", pod.clone(), "Running");
    check("pods", "spec.hostNetwork", pod.clone(), "false");
    // Upstream accepts the label and compares it with nothing.
    check("pods", "status.podIPs", pod, "");
    check("pods", "spec.hostNetwork", json!({"spec": {"hostNetwork": true}}), "true");
    check("nodes", "spec.unschedulable", json!({}), "false");
    check("jobs", "status.successful", json!({"status": {"succeeded": 3}}), "3");
    check("jobs", "status.successful", json!({"status": {}}), "0");
}

#[test]
fn columns_hold_for_known_versions() {
    let has =
        |group, plural, version| crate::table::known_columns(group, plural, version).is_some();
    assert!(has("apps", "deployments", "v1"));
    assert!(!has("apps", "deployments", "v2"));
    assert!(has("autoscaling", "horizontalpodautoscalers", "v1"));
    assert!(has("autoscaling", "horizontalpodautoscalers", "v2"));
    assert!(!has("example.com", "deployments", "v1"));
}
