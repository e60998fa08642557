//! Types of a real kube-apiserver, and what it returned of them: the files in `tests/data/import`,
//! made by `kind-tests/tools/schema-data/oracle/server`.

mod cases;

use std::collections::BTreeMap;

use machinery::{FieldErrorKind, FieldPath, GroupVersion};
use serde::Deserialize;

use super::*;
use crate::structural::Structural;
use crate::{CoerceMode, Unknown, crd};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Published {
    documents: BTreeMap<String, Map<String, Value>>,
    shared_by: BTreeMap<String, Vec<String>>,
    shared: Map<String, Value>,
}

#[derive(Deserialize)]
struct Discovery {
    groups: Vec<Value>,
    apps: Value,
}

fn discovery() -> Discovery {
    serde_json::from_str(include_str!("../../tests/data/import/discovery.json")).unwrap()
}

/// The document of each group version, by its path.
fn documents() -> BTreeMap<String, Value> {
    let text = include_str!("../../tests/data/import/openapi.json");
    let Published { documents, shared_by, shared } = serde_json::from_str(text).unwrap();
    let whole = |(path, mut schemas): (String, Map<String, Value>)| {
        for name in shared_by.get(&path).into_iter().flatten() {
            schemas.insert(name.clone(), shared[name].clone());
        }
        (path, json!({"components": {"schemas": schemas}}))
    };
    documents.into_iter().map(whole).collect()
}

/// All groups that there are documents of.
fn imported() -> BTreeMap<Box<str>, Imported> {
    let documents = documents();
    let all = discovery().groups.iter().flat_map(groups).collect::<Vec<_>>();
    let import = |group: DiscoveredGroup| {
        let source = |discovered| {
            let version: &DiscoveredVersion = discovered;
            let path = document_path(&group.name, &version.version);
            let openapi = documents.get(path.strip_prefix("/openapi/v3/")?)?;
            Some(VersionSource { discovered, openapi })
        };
        let versions: Vec<_> = group.versions.iter().filter_map(source).collect();
        let imported = import_group(&group.name, &versions);
        (group.name, imported)
    };
    all.into_iter().map(import).collect()
}

fn schemas(made: &ImportedType) -> Vec<(&str, &Value)> {
    let versions = made.crd["spec"]["versions"].as_array().unwrap();
    let schema = |v: &'_ Value| v.pointer("/schema/openAPIV3Schema").is_some();
    assert!(versions.iter().all(schema));
    versions
        .iter()
        .map(|v| (v["name"].as_str().unwrap(), &v["schema"]["openAPIV3Schema"]))
        .collect()
}

#[test]
fn every_definition_is_accepted_and_served() {
    let mut versions = 0;
    for made in imported().values().flat_map(|group| &group.types) {
        let mut crd = made.crd.clone();
        crd::complete(&mut crd);
        let name = crd["metadata"]["name"].as_str().unwrap();
        assert_eq!(crd::validate_create(&crd), [], "{name}");
        assert_eq!(crd::warnings(&crd, None), Vec::<String>::new(), "{name}");
        let compiled = crd::compile(&crd).unwrap();
        let plural = &compiled.defs[0].plural;
        assert!(known::resource(&compiled.group, plural).is_some(), "nothing is known of {name}");
        versions += compiled.versions.len();
    }
    assert_eq!(versions, 49);
}

#[test]
fn what_a_cluster_returned_is_valid_and_stays_as_it_is() {
    #[derive(Deserialize)]
    struct Served {
        object: Value,
    }
    #[derive(Deserialize)]
    struct Input {
        path: String,
    }
    let inputs: Vec<Input> =
        serde_json::from_str(include_str!("../../tests/data/import/objects.json")).unwrap();
    let answers: Vec<Served> =
        serde_json::from_str(include_str!("../../tests/data/import/served.json")).unwrap();
    let imported = imported();
    let mut served = 0;
    for (Input { path }, Served { object }) in inputs.iter().zip(answers) {
        let gv = GroupVersion::parse(object["apiVersion"].as_str().unwrap()).unwrap();
        let plural = path.rsplit('/').next().unwrap();
        let name = crd_name(&gv.group, plural);
        if name == "resourcequotas.core" {
            // This server serves it itself.
            continue;
        }
        let is_it = |made: &&ImportedType| made.crd["metadata"]["name"] == *name;
        let made = imported[&*gv.group].types.iter().find(is_it).unwrap();
        let schema = schemas(made).into_iter().find(|(version, _)| *version == &*gv.version);
        let Some((_, schema)) = schema else {
            assert!(made.losses.iter().any(|loss| loss.path == *gv.version), "{name}");
            continue;
        };
        let schema = Structural::compile(schema, &FieldPath::root("schema")).unwrap();
        let mut problems = schema.validate(&object, None);
        // Upstream lets items have equal keys.
        let twice = object["metadata"]["name"] == "twice";
        problems.retain(|problem| !twice || problem.kind != FieldErrorKind::Duplicate);
        assert!(problems.is_empty(), "{name}: {problems:#?} in {object:#}");
        let mut again = object.clone();
        let unknown: Vec<Unknown> = schema.prune(&mut again, CoerceMode::Report);
        assert_eq!(unknown, [], "{name}");
        schema.default(&mut again);
        // Go leaves out the empty keys that defaults filled in.
        let known = Types::known(&gv.kind(object["kind"].as_str().unwrap())).unwrap();
        known.coerce(&mut again, CoerceMode::Keep).unwrap();
        assert_eq!(format!("{again:#}"), format!("{object:#}"), "{name}");
        served += 1;
    }
    assert!(served > 100);
}

#[test]
fn names_and_subresources() {
    let imported = imported();
    let find = |group: &str, name: &str| {
        let mut types = imported[group].types.iter();
        types.find(|made| made.crd["metadata"]["name"] == *name).unwrap().crd.clone()
    };
    let deployments = find("apps", "deployments.apps");
    assert_eq!(deployments["spec"]["group"], "apps");
    assert_eq!(deployments["spec"]["scope"], "Namespaced");
    let names = json!({
        "plural": "deployments", "singular": "deployment", "kind": "Deployment",
        "listKind": "DeploymentList", "shortNames": ["deploy"], "categories": ["all"],
    });
    assert_eq!(deployments["spec"]["names"], names);
    assert_eq!(deployments["metadata"], json!({"name": "deployments.apps"}));
    let scale = json!({
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".spec.selector",
    });
    for (group, name) in [
        ("apps", "deployments.apps"),
        ("apps", "replicasets.apps"),
        ("apps", "statefulsets.apps"),
        ("", "replicationcontrollers.core"),
    ] {
        let version = &find(group, name)["spec"]["versions"][0];
        assert_eq!(version["subresources"], json!({"status": {}, "scale": scale}), "{name}");
        assert_eq!((&version["served"], &version["storage"]), (&json!(true), &json!(true)));
    }
    let pods = find("", "pods.core");
    assert_eq!(pods["spec"]["group"], "");
    assert_eq!(pods["spec"]["versions"][0]["subresources"], json!({"status": {}}));
    let nodes = find("", "nodes.core");
    assert_eq!(nodes["spec"]["scope"], "Cluster");
    let classes = find("networking.k8s.io", "ingressclasses.networking.k8s.io");
    assert_eq!(classes["spec"]["versions"][0].get("subresources"), None);
    let approval = &classes["metadata"]["annotations"]["api-approved.kubernetes.io"];
    assert!(approval.as_str().unwrap().starts_with("unapproved"));
}

#[test]
fn versions_without_conversion_are_served_together() {
    let imported = imported();
    let versions = |group: &str, name: &str| {
        let mut types = imported[group].types.iter();
        let made = types.find(|made| made.crd["metadata"]["name"] == *name).unwrap();
        let names = schemas(made).into_iter().map(|(version, _)| version.to_owned());
        let left_out = made.losses.iter().filter(|loss| loss.reason.starts_with("left out"));
        let left_out = left_out.map(|loss| loss.path.clone()).collect::<Vec<_>>();
        (names.collect::<Vec<_>>(), left_out)
    };
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<String>>();
    let check = |group, name, served: &[&str], left_out: &[&str]| {
        assert_eq!(versions(group, name), (texts(served), texts(left_out)), "{name}");
    };
    let hpa = "horizontalpodautoscalers.autoscaling";
    check("autoscaling", hpa, &["v2", "v1"], &[]);
    let networking = "networking.k8s.io";
    check(networking, "servicecidrs.networking.k8s.io", &["v1", "v1beta1"], &[]);
    check("resource.k8s.io", "resourceclaims.resource.k8s.io", &["v1", "v1beta2"], &["v1beta1"]);
    check("apps", "deployments.apps", &["v1"], &[]);
}

#[test]
fn what_is_skipped_and_what_is_lost() {
    let mut skipped = Vec::new();
    let mut lost = Vec::new();
    for (_, group) in imported() {
        skipped.extend(group.skipped.iter().map(ToString::to_string));
        for made in &group.types {
            let name = made.crd["metadata"]["name"].as_str().unwrap();
            lost.extend(made.losses.iter().map(|loss| format!("{name} {loss}")));
        }
    }
    insta::assert_snapshot!("skipped", skipped.join("\n"));
    insta::assert_snapshot!("lost", lost.join("\n"));
}

#[test]
fn both_forms_of_discovery_say_the_same() {
    let Discovery { groups: lists, apps } = discovery();
    let (group, mut version) = resource_list(&apps).unwrap();
    assert_eq!(&*group, "apps");
    let all = lists.iter().flat_map(groups).collect::<Vec<_>>();
    let mut other = all.into_iter().find(|g| &*g.name == "apps").unwrap().versions.remove(0);
    for resource in version.resources.iter_mut().chain(&mut other.resources) {
        resource.verbs.sort();
        resource.subresources.sort();
    }
    assert_eq!(version, other);
}
