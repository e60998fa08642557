//! Coverage of rights: cases as upstream has them, and laws.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn rules(value: Value) -> Vec<Rule> {
    serde_json::from_value(value).unwrap()
}

fn resources(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> Value {
    json!({"verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names})
}

#[test]
fn what_is_missing_is_told_in_parts() {
    let check = |held: Value, wanted: Value, expect: &[&str]| {
        let (held, wanted) = (rules(held), rules(wanted));
        let missing = compact(uncovered(held.iter(), wanted.iter()));
        assert_eq!(missing, expect, "{wanted:?}");
    };
    let pods = |verbs: &[&str]| resources(verbs, &[""], &["pods"], &[]);
    check(json!([pods(&["get"])]), json!([pods(&["get"])]), &[]);
    check(json!([]), json!([]), &[]);
    check(json!([]), json!([{"verbs": ["get"]}, {"apiGroups": [""]}]), &[]);
    check(
        json!([pods(&["get"])]),
        json!([pods(&["get", "list", "watch"])]),
        &["{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}"],
    );
    // Rights that several rules give together.
    check(
        json!([pods(&["get"]), pods(&["list"])]),
        json!([resources(&["get", "list"], &[""], &["pods"], &["a"])]),
        &[],
    );
    check(
        json!([resources(&["*"], &["apps"], &["*/scale"], &[])]),
        json!([resources(&["get"], &["apps"], &["deployments/scale", "deployments"], &[])]),
        &["{APIGroups:[\"apps\"], Resources:[\"deployments\"], Verbs:[\"get\"]}"],
    );
    check(
        json!([resources(&["get"], &[""], &["secrets"], &["a"])]),
        json!([
            resources(&["get"], &[""], &["secrets"], &["a", "b"]),
            resources(&["get"], &[""], &["secrets"], &[]),
        ]),
        &[
            "{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"b\"], Verbs:[\"get\"]}",
            "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}",
        ],
    );
    check(
        json!([resources(&["get"], &[""], &["pods", "secrets"], &[])]),
        json!([resources(&["get"], &["*"], &["*"], &[]), pods(&["*"])]),
        &[
            "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"*\"]}",
            "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"get\"]}",
        ],
    );
    check(
        json!([{"verbs": ["get"], "nonResourceURLs": ["/a/*", "/b"]}]),
        json!([{"verbs": ["get"], "nonResourceURLs": ["/a/x", "/a/*", "/b", "/b/c", "/a"]}]),
        &[
            "{NonResourceURLs:[\"/a\"], Verbs:[\"get\"]}",
            "{NonResourceURLs:[\"/b/c\"], Verbs:[\"get\"]}",
        ],
    );
}

#[test]
fn a_huge_rule_costs_a_bounded_amount() {
    let many: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
    let wanted = rules(json!([{"verbs": many, "apiGroups": many, "resources": many}]));
    let missing = uncovered([].iter(), wanted.iter());
    assert_eq!(missing.len(), MAX_PARTS + 1);
    let all = rules(json!([resources(&["*"], &["*"], &["*"], &[])]));
    assert!(uncovered(all.iter(), wanted.iter()).is_empty());
}

/// Long lists on both sides are compared as far as the bound goes; what isn't found is missing.
#[test]
fn long_lists_cost_a_bounded_amount() {
    let long = |reversed: bool| {
        let mut verbs: Vec<Box<str>> = (0..50_000).map(|verb| format!("v{verb}").into()).collect();
        if reversed {
            verbs.reverse();
        }
        let one = |text: &str| Box::from([Box::from(text)]);
        let (api_groups, resources) = (one(""), one("pods"));
        Rule { verbs: verbs.into(), api_groups, resources, ..Rule::default() }
    };
    let (held, wanted) = (long(true), long(false));
    let missing = uncovered([held].iter(), [wanted.clone()].iter());
    assert_eq!(missing, [wanted]);
}

fn texts(of: &'static [&'static str]) -> impl Strategy<Value = Box<[Box<str>]>> {
    proptest::collection::vec(proptest::sample::select(of).prop_map(Box::from), 0..3)
        .prop_map(Vec::into_boxed_slice)
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let resource = (
        texts(&["get", "list", "*"]),
        texts(&["", "apps", "*"]),
        texts(&["pods", "pods/log", "*/log", "*"]),
        texts(&["a", "b"]),
    );
    let resource = resource.prop_map(|(verbs, api_groups, resources, resource_names)| Rule {
        verbs,
        api_groups,
        resources,
        resource_names,
        ..Rule::default()
    });
    let path = (texts(&["get", "*"]), texts(&["/a", "/a/*", "*"]));
    let path = path.prop_map(|(verbs, non_resource_urls)| Rule {
        verbs,
        non_resource_urls,
        ..Rule::default()
    });
    prop_oneof![3 => resource, 1 => path]
}

fn any_rules() -> impl Strategy<Value = Vec<Rule>> {
    proptest::collection::vec(any_rule(), 0..4)
}

fn covered(held: &[Rule], wanted: &[Rule]) -> bool {
    uncovered(held.iter(), wanted.iter()).is_empty()
}

proptest! {
    #[test]
    fn everybody_may_give_what_they_have(rules in any_rules()) {
        prop_assert!(covered(&rules, &rules));
    }

    #[test]
    fn more_rights_cover_no_less(held in any_rules(), more in any_rules(), wanted in any_rules()) {
        if covered(&held, &wanted) {
            let both = [held, more].concat();
            prop_assert!(covered(&both, &wanted));
        }
    }

    #[test]
    fn what_is_missing_is_all_that_is_missing(held in any_rules(), wanted in any_rules()) {
        let missing = uncovered(held.iter(), wanted.iter());
        prop_assert!(covered(&[held, missing].concat(), &wanted));
    }

    /// Who holds the rights that a rule gives is never refused what it allows.
    #[test]
    fn covered_rules_allow_nothing_more(
        held in any_rules(),
        wanted in any_rule(),
        verb in proptest::sample::select(&["get", "list", "delete"][..]),
        group in proptest::sample::select(&["", "apps", "x"][..]),
        subresource in proptest::sample::select(&["", "log", "x"][..]),
        name in proptest::sample::select(&["", "a", "c"][..]),
        path in proptest::sample::select(&["/a", "/a/b", "/"][..]),
    ) {
        use crate::auth::authz::Attributes;
        if covered(&held, std::slice::from_ref(&wanted)) {
            let resource =
                Attributes::Resource { verb, group, resource: "pods", name, subresource, namespace: "" };
            for asked in [resource, Attributes::Path { verb, path }] {
                let ours = held.iter().any(|rule| rule.allows(&asked));
                prop_assert!(ours || !wanted.allows(&asked), "{asked:?}");
            }
        }
    }
}
