//! CRDs that a real kube-apiserver (1.36) was sent, and what it answered.

use machinery::{FieldPath, GroupVersion};
use serde_json::Value;

use super::super::*;
use crate::coerce::CoerceMode;
use crate::types::Types;

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    crd: Value,
    /// The causes, sorted; values that upstream prints as Go structs are `...`.
    problems: Vec<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

/// A CRD as the registry has it before it is judged.
pub(super) fn prepare(mut crd: Value) -> Value {
    let types = Types::builtin();
    let gvk = GroupVersion::new("apiextensions.k8s.io", "v1").kind("CustomResourceDefinition");
    types.kind(&gvk).unwrap().coerce(&mut crd, CoerceMode::Drop).unwrap();
    crd.as_object_mut().unwrap().remove("status");
    record_storage_version(&mut crd);
    complete(&mut crd);
    crd
}

/// A problem as the file has it.
fn text(mut problem: FieldError, expected: &[String]) -> String {
    let begin = format!("{}: {}: ...", problem.field, problem.kind.message());
    if expected.iter().any(|e| e.starts_with(&begin)) && problem.value.is_some() {
        let is_struct = |v: &String| v.starts_with('{') || v.starts_with("[{");
        if problem.value.as_ref().is_some_and(is_struct) {
            problem.value = Some("...".into());
        }
    }
    problem.to_string()
}

#[test]
fn creations() {
    check_creations(include_str!("../../../tests/data/custom/crds.json"));
}

/// CRDs whose schemas chance made.
#[test]
fn random_creations() {
    check_creations(include_str!("../../../tests/data/custom/crds-random.json"));
}

fn check_creations(cases: &str) {
    let cases: Vec<Case> = serde_json::from_str(cases).unwrap();
    let mut differences = Vec::new();
    for case in cases {
        let crd = prepare(case.crd);
        let own_metadata = FieldPath::root("metadata");
        let general = machinery::meta::validate_object_meta(
            &crd,
            false,
            machinery::name::dns1123_subdomain,
            &own_metadata,
        );
        let all = general.into_iter().chain(validate_create(&crd));
        let mut problems: Vec<String> = all.map(|p| text(p, &case.problems)).collect();
        problems.sort();
        if problems != case.problems {
            let only = |a: &[String], b: &[String]| {
                a.iter().filter(|t| !b.contains(t)).cloned().collect::<Vec<_>>()
            };
            differences.push(format!(
                "{}:\n  found {:#?}\n  missing {:#?}",
                case.name,
                only(&problems, &case.problems),
                only(&case.problems, &problems)
            ));
        }
        let mut warned = if problems.is_empty() { warnings(&crd, None) } else { Vec::new() };
        warned.sort();
        if warned != case.warnings {
            differences.push(format!("{}: warned {warned:?} not {:?}", case.name, case.warnings));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[derive(serde::Deserialize)]
struct Update {
    name: String,
    old: Value,
    new: Value,
    problems: Vec<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[test]
fn updates() {
    let cases: Vec<Update> =
        serde_json::from_str(include_str!("../../../tests/data/custom/crd-updates.json")).unwrap();
    let mut differences = Vec::new();
    for case in cases {
        let mut new = case.new;
        record_storage_version(&mut new);
        complete(&mut new);
        let mut problems: Vec<String> =
            validate_update(&new, &case.old).iter().map(ToString::to_string).collect();
        problems.sort();
        let warned = if problems.is_empty() { warnings(&new, Some(&case.old)) } else { Vec::new() };
        if problems != case.problems || warned != case.warnings {
            differences.push(format!(
                "{}:\n  found {problems:#?}\n  not {:#?}\n  warned {warned:?} not {:?}",
                case.name, case.problems, case.warnings
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Naming {
    others: Vec<Value>,
    crd: Value,
    accepted_names: Value,
    conditions: Vec<Value>,
}

#[test]
fn names() {
    let cases: Vec<Naming> =
        serde_json::from_str(include_str!("../../../tests/data/custom/names.json")).unwrap();
    for case in cases {
        let all = case.others.iter().chain(Some(&case.crd));
        let names = accept_names(&case.crd, all);
        assert_eq!(names.names, case.accepted_names, "{}", case.crd);
        let mut crd = case.crd.clone();
        set_condition(&mut crd, &names.accepted, "2026-01-01T00:00:00Z");
        set_condition(&mut crd, &names.established, "2026-01-01T00:00:00Z");
        if names.accepted.status == "True" {
            assert_eq!(names.established.reason, "Installing");
            set_condition(&mut crd, &established(), "2026-01-01T00:00:00Z");
        }
        let mut found = crd["status"]["conditions"].as_array().unwrap().clone();
        for condition in &mut found {
            condition.as_object_mut().unwrap().remove("lastTransitionTime");
        }
        assert_eq!(found, case.conditions, "{}", case.crd);
    }
}
