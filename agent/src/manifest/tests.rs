//! What is installed, whole, and the laws of it.

use proptest::prelude::*;

use super::rights::{DEFINE_VERBS, SYNC_VERBS, cluster_rules};
use super::*;

fn settings() -> Settings {
    let synced = |group: &str, resource: &str| SyncedType {
        group: group.to_owned(),
        resource: resource.to_owned(),
    };
    Settings {
        hub: "https://hub.example:6443".into(),
        authority: Some("-----BEGIN CERTIFICATE-----\nMAo=\n-----END CERTIFICATE-----\n".into()),
        token: Some("abcdef.0123456789abcdef".into()),
        cluster: "infra".into(),
        target: "east".into(),
        uid: "2c1f9f0e-7a53-4c55-8d6e-7cf9d4d0a001".into(),
        image: "registry.example/kcp-agent:0.1.0".into(),
        pull_secret: None,
        version: "0.1.0".into(),
        types: vec![
            synced("apps", "statefulsets"),
            synced("", "configmaps"),
            synced("apps", "deployments"),
            synced("", "configmaps"),
        ],
        statuses: Vec::new(),
    }
}

#[test]
fn what_is_installed() {
    insta::assert_snapshot!(settings().to_yaml().unwrap());
}

#[test]
fn a_hub_that_the_system_vouches_for_and_a_private_image() {
    let settings = Settings {
        authority: None,
        token: None,
        pull_secret: Some(r#"{"auths":{}}"#.into()),
        types: Vec::new(),
        ..settings()
    };
    insta::assert_snapshot!(settings.to_yaml().unwrap());
}

/// The shape of a name is part of the contract: another program finds the agent by it.
#[test]
fn namespaces_differ_by_hub_and_target() {
    let one = namespace("https://hub.example:6443", "u");
    assert_eq!(one, namespace("https://hub.example:6443/", "u"));
    let digits = one.strip_prefix("kcp-agent-").unwrap();
    assert!(digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
    assert_ne!(one, namespace("https://hub.example:6443", "v"));
    assert_ne!(one, namespace("https://hub.example:6444", "u"));
}

#[test]
fn paths() {
    let check = |kind: &str, name: &str, expect: &str| {
        assert_eq!(Kind::named(kind).unwrap().path("n", name), expect);
    };
    check("Namespace", "n", "/api/v1/namespaces/n");
    check("Secret", "a", "/api/v1/namespaces/n/secrets/a");
    check("Deployment", "", "/apis/apps/v1/namespaces/n/deployments");
    check("ClusterRole", "a", "/apis/rbac.authorization.k8s.io/v1/clusterroles/a");
    assert_eq!(Kind::named("Pod"), None);
}

#[test]
fn secrets_are_not_shown() {
    let shown = format!("{:?}", Settings { pull_secret: Some("hidden".into()), ..settings() });
    assert!(!shown.contains("0123456789abcdef") && !shown.contains("hidden"), "{shown}");
}

/// Only what is named is written to, and nothing that gives rights.
#[test]
fn rights_are_those_of_the_synced_types() {
    let may = |types: &[SyncedType], verb: &str, group: &str, resource: &str| {
        cluster_rules(types, &[]).iter().any(|rule| {
            let has = |list: &str, one: &str| {
                let list = rule[list].as_array();
                list.is_some_and(|list| list.iter().any(|entry| entry == one || entry == "*"))
            };
            has("apiGroups", group) && has("resources", resource) && has("verbs", verb)
        })
    };
    let types = settings().types;
    for verb in SYNC_VERBS {
        assert!(may(&types, verb, "apps", "deployments"), "{verb}");
        assert!(may(&types, verb, "", "configmaps"), "{verb}");
        assert!(!may(&types, verb, "", "deployments"), "{verb}");
        assert!(!may(&types, verb, "", "secrets"), "{verb}");
        assert!(!may(&types, verb, "rbac.authorization.k8s.io", "clusterroles"), "{verb}");
    }
    assert!(may(&types, "watch", "apiextensions.k8s.io", "customresourcedefinitions"));
    let (group, resource) = contract::DEFINITIONS;
    let definitions = SyncedType { group: group.into(), resource: resource.into() };
    for verb in DEFINE_VERBS {
        assert!(may(std::slice::from_ref(&definitions), verb, group, resource), "{verb}");
    }
    for verb in ["create", "patch", "update", "delete", "deletecollection"] {
        assert!(!may(&types, verb, group, resource), "{verb}");
    }
    assert!(!may(&[definitions], "delete", group, resource), "nobody asks for its objects to go");
    assert!(!may(&types, "update", "apps", "deployments"));
    assert!(!may(&types, "deletecollection", "apps", "deployments"));
    let all = [SyncedType { group: "*".into(), resource: "*".into() }];
    assert!(may(&all, "patch", "any.io", "things"));
    // Status is written only where it goes down.
    assert!(!may(&types, "patch", "apps", "deployments/status"));
    let statuses = [SyncedType { group: "apps".into(), resource: "deployments".into() }];
    let rules = cluster_rules(&types, &statuses);
    let expect = serde_json::json!({
        "apiGroups": ["apps"], "resources": ["deployments/status"], "verbs": ["patch"],
    });
    assert_eq!(rules.last(), Some(&expect));
}

/// What matters changes the digest; the token does not.
#[test]
fn digests() {
    let one = settings().digest();
    let check = |settings: Settings, same: bool| assert_eq!(settings.digest() == one, same);
    check(Settings { token: None, ..settings() }, true);
    check(Settings { image: "other".into(), ..settings() }, false);
    check(Settings { authority: None, ..settings() }, false);
    check(Settings { types: Vec::new(), ..settings() }, false);
    check(Settings { statuses: settings().types, ..settings() }, false);
    check(Settings { pull_secret: Some("{}".into()), ..settings() }, false);
}

/// Everything that is installed can be found again, and taken away, by its labels and names.
#[test]
fn all_objects_are_marked() {
    let settings = Settings { pull_secret: Some("{}".into()), ..settings() };
    for object in settings.render() {
        let what = describe(&object);
        let kind = Kind::named(object["kind"].as_str().unwrap()).unwrap();
        let metadata = &object["metadata"];
        assert_eq!(metadata["labels"][MANAGED_BY], MANAGED_BY_OPERATOR, "{what}");
        assert_eq!(metadata["labels"][contract::SYNC_TARGET_LABEL], settings.uid, "{what}");
        assert_eq!(metadata["annotations"].get(contract::UPSTREAM), None, "{what}");
        let namespace = settings.namespace();
        let place = metadata["namespace"].as_str();
        assert_eq!(place, kind.namespaced.then_some(&*namespace), "{what}");
    }
}

proptest! {
    /// Whatever a target is called, the objects are ones that a server takes.
    #[test]
    fn any_settings(version in ".{0,80}", image in ".{0,80}", hub in ".{0,80}", token in ".{0,40}") {
        let settings = Settings { version, image, hub, token: Some(token), ..settings() };
        let objects = settings.render();
        let deployment = objects.last().unwrap();
        let labels = &deployment["spec"]["template"]["metadata"]["labels"];
        let version = labels["app.kubernetes.io/version"].as_str().unwrap();
        prop_assert!(version.len() <= 63);
        prop_assert!(version.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)));
        let kept = &deployment["metadata"]["annotations"][contract::MANIFEST_DIGEST];
        prop_assert_eq!(kept, &settings.digest());
        prop_assert_eq!(settings.digest(), Settings { token: None, ..settings.clone() }.digest());
        let text = settings.to_yaml().unwrap();
        let read = serde_saphyr::from_multiple::<serde_json::Value>(&text);
        prop_assert_eq!(read.unwrap(), objects);
    }
}
