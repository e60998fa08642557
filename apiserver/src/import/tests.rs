use schema::import::DiscoveredVersion;
use serde_json::json;

use super::*;

fn discovered() -> Vec<DiscoveredGroup> {
    let resource = |name: &str| {
        json!({
            "resource": name, "responseKind": {"kind": "K"}, "verbs": ["get", "list", "create"],
        })
    };
    schema::import::groups(&json!({"items": [
        {"metadata": {}, "versions": [
            {"version": "v1", "resources": [resource("pods"), resource("services")]},
        ]},
        {"metadata": {"name": "apps"}, "versions": [
            {"version": "v1", "resources": [resource("deployments")]},
            {"version": "v1beta1", "resources": [resource("scales")], "freshness": "Stale"},
        ]},
    ]}))
}

fn names(groups: &[DiscoveredGroup]) -> Vec<String> {
    let of = |group: &DiscoveredGroup, version: &DiscoveredVersion| {
        let names = version.resources.iter().map(|r| crd_name(&group.name, &r.plural));
        names.collect::<Vec<_>>()
    };
    groups.iter().flat_map(|g| g.versions.iter().flat_map(move |v| of(g, v))).collect()
}

#[test]
fn resources_are_selected_by_name() {
    let check = |wanted: &[&str], expect: Result<&[&str], &str>| {
        let wanted: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
        let selected = select(discovered(), &wanted);
        match expect {
            Ok(expect) => assert_eq!(names(&selected.unwrap()), expect),
            Err(expect) => assert_eq!(selected.unwrap_err().to_string(), expect),
        }
    };
    check(&[], Ok(&["pods.core", "services.core", "deployments.apps", "scales.apps"]));
    check(&["services"], Ok(&["services.core"]));
    check(&["pods.core", "deployments.apps"], Ok(&["pods.core", "deployments.apps"]));
    check(
        &["pods", "deployments", "x.apps"],
        Err("the cluster does not serve deployments.core, x.apps"),
    );
}

#[test]
fn what_became_of_a_type_is_told() {
    let check = |outcome: &Outcome, expect: &str| {
        let loss = Loss { path: "v1.pods/exec".into(), reason: "none" };
        let crd = json!({
            "metadata": {"name": "pods.core"},
            "spec": {"versions": [{"name": "v2"}, {"name": "v1"}]},
        });
        let mut told = Vec::new();
        tell(&mut told, &ImportedType { crd, losses: vec![loss] }, outcome).unwrap();
        let expect = format!("{expect}\n  without v1.pods/exec: none\n");
        assert_eq!(String::from_utf8(told).unwrap(), expect);
    };
    check(&Outcome::Created, "imported pods.core (v2, v1)");
    check(&Outcome::Updated, "updated pods.core (v2, v1)");
    check(&Outcome::Unchanged, "unchanged pods.core (v2, v1)");
    check(&Outcome::Refused("no".into()), "refused pods.core: no");
}

#[test]
fn a_refused_type_is_a_failure() {
    let cluster = ClusterName::root();
    let mut told = Vec::new();
    let mut counts = Counts::default();
    counts.add(&Outcome::Created);
    counts.finish(&mut told, &cluster).unwrap();
    counts.add(&Outcome::Refused(String::new()));
    assert!(counts.finish(&mut told, &cluster).is_err());
    let line = "root: 1 types imported, 0 updated, 0 unchanged, 0 skipped\n";
    assert_eq!(String::from_utf8(told).unwrap(), line.repeat(2));
}
