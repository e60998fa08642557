//! What CRDs become.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::*;
use super::judged::prepare;
use crate::resource::{Generation, Verb};
use crate::table::{columns, row};

fn crd(group: &str, plural: &str, kind: &str, versions: &Value) -> Value {
    let name = if group.is_empty() { CORE } else { group };
    prepare(json!({
        "metadata": {"name": format!("{plural}.{name}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "shortNames": ["s"], "categories": ["all"]},
            "versions": versions,
        },
    }))
}

fn version(name: &str, storage: bool) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}})
}

#[test]
fn one_resource_for_each_served_version() {
    let mut hidden = version("v3", false);
    hidden["served"] = false.into();
    let mut old = version("v1beta1", false);
    old["deprecated"] = true.into();
    let mut older = version("v1alpha1", false);
    older["deprecated"] = true.into();
    older["deprecationWarning"] = "gone soon".into();
    let versions = json!([older, old, version("v1", true), hidden]);
    let crd = crd("example.com", "foos", "Foo", &versions);
    assert_eq!(validate_create(&crd), vec![]);
    let custom = compile(&crd).unwrap();

    let names: Vec<&str> = custom.versions.iter().map(|v| &*v.name).collect();
    assert_eq!(names, ["v3", "v1", "v1beta1", "v1alpha1"]);
    let served = |def: &crate::ResourceDef| {
        let served = def.versions.iter().filter(|v| v.served);
        served.map(|v| v.name.to_string()).collect::<Vec<_>>()
    };
    let all: Vec<_> = custom.defs.iter().map(|def| served(def)).collect();
    assert_eq!(all, [["v1"], ["v1beta1"], ["v1alpha1"]]);
    let first = &custom.defs[0];
    assert_eq!(&*first.storage_version().unwrap().name, "v1");
    assert_eq!(&*first.singular, "foo");
    assert_eq!(&*first.list_kind, "FooList");
    assert!(first.allows(Verb::DeleteCollection) && first.namespaced);
    assert_eq!(first.generation, Generation::All);
    assert!(!first.allow_unconditional_update);
    let warning = |at: usize| custom.versions[at].deprecation_warning.as_deref();
    assert_eq!(warning(1), None);
    // As a real kube-apiserver says it.
    assert_eq!(warning(2), Some("example.com/v1beta1 Foo is deprecated; use example.com/v1 Foo"));
    assert_eq!(warning(3), Some("gone soon"));
}

#[test]
fn subresources_and_selectable_fields() {
    let mut first = version("v1", true);
    first["subresources"] = json!({"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector"}});
    first["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {"spec": {
        "type": "object", "properties": {"color": {"type": "string"}}}}});
    first["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    let crd = crd("example.com", "foos", "Foo", &json!([first, version("v2", false)]));
    assert_eq!(validate_create(&crd), vec![]);
    let custom = compile(&crd).unwrap();
    let parts = |at: usize| {
        let parts = custom.defs[at].subresources.iter();
        parts.map(|s| (s.name.to_string(), s.writes.len(), s.kind.is_some())).collect::<Vec<_>>()
    };
    assert_eq!(parts(0), []);
    assert_eq!(parts(1), [("scale".into(), 0, true), ("status".into(), 1, false)]);
    assert!(custom.versions[1].has_status && !custom.versions[0].has_status);
    let selector = custom.defs[1].field_selector("spec.color").unwrap();
    assert_eq!(selector.value(&json!({"spec": {"color": "red"}})), "red");
    assert_eq!(selector.value(&json!({})), "");

    let scale = custom.versions[1].scale.as_ref().unwrap();
    let check = |object: Value, expect: &[&str]| {
        let found: Vec<String> = scale.validate(&object).iter().map(ToString::to_string).collect();
        assert_eq!(found, expect, "{object}");
    };
    check(json!({"spec": {"replicas": 3}, "status": {"replicas": 1, "selector": "a=b"}}), &[]);
    check(json!({}), &[]);
    check(
        json!({"spec": {"replicas": -1}}),
        &[".spec.replicas: Invalid value: -1: should be a non-negative integer"],
    );
    check(
        json!({"spec": {"replicas": 2_147_483_648_u32}, "status": {"selector": 5}}),
        &[
            ".spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647",
            ".status.selector: Invalid value: \"\": .status.selector accessor error: 5 is of the \
             type int64, expected string",
        ],
    );
    check(
        json!({"spec": {"replicas": "3"}, "status": []}),
        &[
            ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: 3 is of the type \
             string, expected int64",
            ".status.replicas: Invalid value: 0: .status accessor error: [] is of the type \
             []interface {}, expected map[string]interface {}",
            ".status.selector: Invalid value: \"\": .status accessor error: [] is of the type \
             []interface {}, expected map[string]interface {}",
        ],
    );
}

/// Cells as a real kube-apiserver showed them.
#[test]
fn cells() {
    let kinds = ["integer", "number", "string", "boolean", "date"];
    let mut all: Vec<Value> =
        kinds.iter().map(|k| json!({"name": k, "type": k, "jsonPath": ".v"})).collect();
    all.push(json!({"name": "list", "type": "string", "jsonPath": ".l[*].a", "priority": 1}));
    all.push(json!({"name": "odd", "type": "string", "jsonPath": "..l", "description": "own"}));
    all.push(json!({"name": "late", "type": "string", "jsonPath": ".v"}));
    let mut version = version("v1", true);
    version["additionalPrinterColumns"] = all.into();
    let custom = compile(&crd("example.com", "tabs", "Tab", &json!([version]))).unwrap();
    let def = &custom.defs[0];
    // After a path that isn't understood no column is shown.
    let names: Vec<&str> = columns(def).iter().map(|c| &*c.name).collect();
    assert_eq!(names, ["Name", "integer", "number", "string", "boolean", "date", "list"]);
    assert_eq!(columns(def)[6].priority, 1);
    let now = Timestamp::from_second(1_600_000_000).unwrap();
    let check = |v: Value, expect: [Value; 5]| {
        let object = json!({"metadata": {"name": "n"}, "v": v, "l": [{"a": "x"}, {"a": "y"}]});
        let cells = row(def, &object, now);
        assert_eq!(cells[0], "n");
        assert_eq!(cells[1..6], expect, "{v}");
        assert_eq!(cells[6], "x");
    };
    let null = Value::Null;
    check(json!(5), [json!(5), json!(5), json!("5"), null.clone(), null.clone()]);
    check(json!(5.7), [json!(5), json!(5.7), json!("5.7"), null.clone(), null.clone()]);
    check(json!(1e21), [json!(i64::MIN), json!(1e21), json!("1e+21"), null.clone(), null.clone()]);
    check(
        json!("text"),
        [null.clone(), null.clone(), json!("text"), null.clone(), json!("<invalid>")],
    );
    check(json!(true), [null.clone(), null.clone(), json!("true"), json!(true), null.clone()]);
    check(
        json!({"b": 1.0, "a": [1]}),
        [null.clone(), null.clone(), json!(r#"{"a":[1],"b":1}"#), null.clone(), null.clone()],
    );
    check(
        json!("2020-09-13T12:26:30Z"),
        [null.clone(), null.clone(), json!("2020-09-13T12:26:30Z"), null.clone(), json!("10s")],
    );
    check(json!(""), [null.clone(), null.clone(), json!(""), null, json!("<unknown>")]);
}

#[test]
fn names_first_and_age_without_columns() {
    let custom =
        compile(&crd("example.com", "foos", "Foo", &json!([version("v1", true)]))).unwrap();
    let names: Vec<&str> = columns(&custom.defs[0]).iter().map(|c| &*c.name).collect();
    assert_eq!(names, ["Name", "Age"]);
}

#[test]
fn imported_types_behave_as_built_in_ones() {
    for (group, spelled) in [("", ""), ("core", ""), ("apps", "apps")] {
        let (plural, kind) = if spelled.is_empty() {
            ("services", "Service")
        } else {
            ("deployments", "Deployment")
        };
        let crd = crd(group, plural, kind, &json!([version("v1", true)]));
        assert_eq!(validate_create(&crd), vec![], "{group}");
        let custom = compile(&crd).unwrap();
        assert!(custom.is_builtin);
        assert_eq!(&*custom.group, spelled);
        let def = &custom.defs[0];
        assert_eq!(&*def.group, spelled);
        assert!(def.allow_unconditional_update);
        assert_eq!(def.allow_create_on_update, plural == "services");
        assert!(columns(def).len() > 2, "{plural} has columns of its own");
        assert_eq!(def.field_selector("spec.type").is_some(), plural == "services");
    }
    let missing = crd("", "services", "Service", &json!([version("v1", true)]));
    let mut misnamed = missing.clone();
    misnamed["metadata"]["name"] = "services.".into();
    let texts: Vec<String> = validate_create(&misnamed).iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["spec.group: Required value"]);
    // Another kind of that name isn't Kubernetes' own type.
    let other = compile(&crd("apps", "deployments", "Other", &json!([version("v1", true)])));
    assert!(!other.unwrap().defs[0].allow_unconditional_update);
    assert_eq!(approval(&crd("networking.k8s.io", "ingresses", "Ingress", &json!([]))), None);
}

#[test]
fn equal_types_are_one() {
    let versions = json!([version("v1", true)]);
    let one = crd("example.com", "shared", "Shared", &versions);
    let mut other = one.clone();
    other["metadata"]["uid"] = "another".into();
    other["metadata"]["annotations"] = json!({"a": "b"});
    let (a, b) = (compile(&one).unwrap(), compile(&other).unwrap());
    assert!(Arc::ptr_eq(&a, &b));
    other["spec"]["names"]["shortNames"] = json!(["t"]);
    assert!(!Arc::ptr_eq(&a, &compile(&other).unwrap()));
    // The schema is one all the same.
    let c = compile(&other).unwrap();
    assert!(Arc::ptr_eq(&a.versions[0].schema, &c.versions[0].schema));
}

#[test]
fn conversion_by_webhook() {
    let mut crd = crd("example.com", "foos", "Foo", &json!([version("v1", true)]));
    assert_eq!(compile(&crd).unwrap().conversion, Conversion::None);
    crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"service": {"namespace": "n", "name": "s"}, "caBundle": "eA=="},
        "conversionReviewVersions": ["v1"]}});
    complete(&mut crd);
    let Conversion::Webhook(webhook) = compile(&crd).unwrap().conversion.clone() else {
        panic!("a webhook converts");
    };
    let expect = Webhook {
        url: String::new(),
        service: Some(("n".into(), "s".into(), String::new(), 443)),
        ca_bundle: "eA==".into(),
        review_versions: vec!["v1".into()],
    };
    assert_eq!(*webhook, expect);
}

#[test]
fn stored_crds_that_break_the_rules() {
    let mut broken = version("v1", true);
    broken["schema"]["openAPIV3Schema"] = json!({"properties": {"a": {}}});
    let mut crd = crd("example.com", "foos", "Foo", &json!([broken]));
    let texts = |crd: &Value| {
        let problems = compile(crd).unwrap_err();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        texts(&crd),
        [
            "spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: must not \
             be empty for specified object fields",
            "spec.versions[0].schema.openAPIV3Schema.type: Required value: must not be empty at \
             the root",
        ]
    );
    crd["spec"]["versions"][0].as_object_mut().unwrap().remove("schema");
    assert_eq!(texts(&crd), ["spec.versions[0].schema.openAPIV3Schema: Required value"]);
}
