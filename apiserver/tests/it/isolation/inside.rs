//! Objects in `a` that are made to matter in `b`: owners, webhooks, policies, definitions.

use http::Method;
use serde_json::{Value, json};

use super::world::{RBAC, World};
use crate::client::Ask;
use crate::deeds::eventually;
use crate::hook::Hook;
use crate::types::{CRDS, definition, is, version};

const ADMISSION: &str = "apis/admissionregistration.k8s.io/v1";

async fn write(world: &World, letter: char, path: &str, body: &Value) -> Value {
    let answer = world.by(letter).ask(Ask::new(Method::POST, path).json(body)).await;
    assert_eq!(answer.status, 201, "{path}: {answer:?}");
    answer.json()
}

/// Owners in another logical cluster are none, and what names them goes, not they.
#[tokio::test]
async fn owners_elsewhere_are_none() {
    let world = World::new().await;
    let before = world.state().await;
    let maps = "/clusters/a/api/v1/namespaces/default/configmaps";
    let owner = world.get("/clusters/b/api/v1/namespaces/default/secrets/treasure").await;
    let reference = json!({
        "apiVersion": "v1", "kind": "Secret", "name": "treasure", "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": true, "controller": true,
    });
    let uid = owner["metadata"]["uid"].clone();
    let body = json!({
        "metadata": {"name": "child", "uid": uid, "ownerReferences": [reference]},
    });
    let made = write(&world, 'P', maps, &body).await;
    assert_ne!(made["metadata"]["uid"], uid, "a UID is never taken from a client");
    // The owner is not in a: the child goes.
    eventually(&world.hub, &format!("{maps}/child"), |status, _| status == 404).await;
    // An owner in a of the same UID can't be made, nor a delete in a be aimed at b's object.
    let body = json!({"preconditions": {"uid": uid}, "propagationPolicy": "Foreground"});
    let path = "/clusters/a/api/v1/namespaces/default/secrets/treasure";
    let secret = json!({"metadata": {"name": "treasure", "uid": uid}});
    write(&world, 'P', "/clusters/a/api/v1/namespaces/default/secrets", &secret).await;
    let aimed = world.by('P').ask(Ask::new(Method::DELETE, path).json(&body)).await;
    aimed.fails(409, "Conflict");
    let gone = Ask::new(Method::DELETE, path).json(&json!({"propagationPolicy": "Foreground"}));
    assert_eq!(world.by('P').ask(gone).await.status, 200);
    eventually(&world.hub, path, |status, _| status == 404).await;
    assert_eq!(world.state().await, before);
    world.end().await;
}

/// What `a` asks of all writes is asked of those in `a`.
#[tokio::test]
async fn admission_of_one_is_not_asked_by_another() {
    let world = World::new().await;
    let hook = Hook::start(|_| json!({"response": {"allowed": false}})).await;
    let rules = json!([{
        "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"],
    }]);
    for (kind, extra) in [("validating", json!({})), ("mutating", json!({}))] {
        let mut webhook = json!({
            "name": "all.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "rules": rules,
            "clientConfig": {"url": hook.url("/x"), "caBundle": hook.ca()},
        });
        webhook.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let body = json!({"metadata": {"name": "all"}, "webhooks": [webhook]});
        write(&world, 'A', &format!("/clusters/a/{ADMISSION}/{kind}webhookconfigurations"), &body)
            .await;
    }
    let policy = json!({
        "metadata": {"name": "none"},
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "false"}],
        },
    });
    let path = format!("/clusters/a/{ADMISSION}/validatingadmissionpolicies");
    write(&world, 'A', &path, &policy).await;
    let binding = json!({
        "metadata": {"name": "none"},
        "spec": {"policyName": "none", "validationActions": ["Deny"]},
    });
    let path = format!("/clusters/a/{ADMISSION}/validatingadmissionpolicybindings");
    write(&world, 'A', &path, &binding).await;
    let maps = |cluster: &str| format!("/clusters/{cluster}/api/v1/namespaces/default/configmaps");
    let body = json!({"metadata": {"name": "new"}});
    // It is in force at home.
    let refused = async || {
        let ask = Ask::new(Method::POST, &maps("a")).json(&body);
        world.by('P').ask(ask).await.status.as_u16()
    };
    let end = tokio::time::Instant::now() + crate::client::PATIENCE;
    while refused().await == 201 {
        let gone = Ask::new(Method::DELETE, &format!("{}/new", maps("a")));
        world.by('P').ask(gone).await;
        assert!(tokio::time::Instant::now() < end, "it never came into force");
    }
    hook.take_seen();
    write(&world, 'F', &maps("b"), &body).await;
    write(&world, 'M', &maps("root"), &body).await;
    let gone = Ask::new(Method::DELETE, &format!("{}/new", maps("b")));
    assert_eq!(world.by('F').ask(gone).await.status, 200);
    assert_eq!(hook.seen(), Vec::<Value>::new(), "nothing of b was sent anywhere");
    world.end().await;
}

/// Types that `a` defines are served in `a`, and never in the place of the server's own.
#[tokio::test]
async fn types_of_one_are_not_anothers() {
    let world = World::new().await;
    let shared = format!("/clusters/system:crds/{CRDS}");
    let mut everywhere = definition(&json!([version("v1", true)]));
    everywhere["metadata"]["name"] = json!("things.shared.io");
    everywhere["spec"]["group"] = json!("shared.io");
    everywhere["spec"]["names"] = json!({"plural": "things", "kind": "Thing"});
    write(&world, 'M', &shared, &everywhere).await;
    eventually(&world.hub, &format!("{shared}/things.shared.io"), is("Established")).await;
    let before = world.state().await;
    for letter in ['A', 'P'] {
        let caller = world.by(letter);
        let own = format!("/clusters/a/{CRDS}");
        // The shared one is seen by its name, and not to be had.
        let one = format!("{own}/things.shared.io");
        assert_eq!(caller.ask(Ask::get(&one)).await.status, 200);
        let patch = Ask::new(Method::PATCH, &one)
            .header("content-type", "application/merge-patch+json")
            .body(r#"{"metadata":{"labels":{"mine":"yes"}}}"#);
        let mut whole = everywhere.clone();
        whole["metadata"]["labels"] = json!({"mine": "yes"});
        for ask in [
            patch,
            Ask::new(Method::PUT, &one).json(&whole),
            Ask::new(Method::PUT, &format!("{one}/status")).json(&whole),
            Ask::new(Method::DELETE, &one),
            Ask::new(Method::POST, &own).json(&whole),
        ] {
            let answer = caller.ask(ask.clone()).await;
            let code = answer.status.as_u16();
            assert!(matches!(code, 403 | 404 | 409), "{letter} {ask:?}: {answer:?}");
        }
        assert_eq!(caller.ask(Ask::new(Method::DELETE, &own)).await.status, 200, "it is empty");
        // The server's own group is nobody's to define.
        for (plural, kind) in [("logicalclusters", "LogicalCluster"), ("others", "Other")] {
            let mut own_group = definition(&json!([version("v1alpha1", true)]));
            own_group["metadata"]["name"] = json!(format!("{plural}.core.kcp.io"));
            own_group["spec"]["group"] = json!("core.kcp.io");
            own_group["spec"]["scope"] = json!("Cluster");
            own_group["spec"]["names"] = json!({"plural": plural, "kind": kind});
            let answer = caller.ask(Ask::new(Method::POST, &own).json(&own_group)).await;
            let message = answer.fails(403, "Forbidden");
            assert!(message.ends_with("types of this group are the server's own"), "{message}");
        }
    }
    assert_eq!(world.state().await, before);
    // One that is called as a built-in type takes nothing's place, at home or elsewhere.
    let mut secrets = definition(&json!([version("v1", true)]));
    secrets["metadata"]["name"] = json!("secrets.core");
    secrets["spec"]["group"] = json!("core");
    secrets["spec"]["names"] =
        json!({"plural": "secrets", "kind": "Secret", "listKind": "SecretList"});
    let path = format!("/clusters/a/{CRDS}");
    let answer = world.by('A').ask(Ask::new(Method::POST, &path).json(&secrets)).await;
    assert!(matches!(answer.status.as_u16(), 201 | 403 | 409 | 422), "{answer:?}");
    for cluster in ["a", "b"] {
        let path = format!("/clusters/{cluster}/api/v1/namespaces/default/secrets");
        let body = json!({"metadata": {"name": "real"}, "stringData": {"k": "v"}});
        let made = write(&world, 'M', &path, &body).await;
        assert_eq!(made["data"]["k"], "dg==", "it is a Secret as ever");
    }
    // What is defined in a alone is not served in b.
    let path = format!("/clusters/a/{CRDS}");
    write(&world, 'A', &path, &definition(&json!([version("v1", true)]))).await;
    eventually(&world.hub, &format!("{path}/widgets.example.com"), is("Established")).await;
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    assert_eq!(world.by('A').ask(Ask::get(&format!("/clusters/a{widgets}"))).await.status, 200);
    assert_eq!(world.by('F').ask(Ask::get(&format!("/clusters/b{widgets}"))).await.status, 404);
    let groups = world.by('F').ask(Ask::get("/clusters/b/apis")).await;
    assert!(!groups.text().contains("example.com"), "{groups:?}");
    world.end().await;
}

/// Roles and bindings of `a` that name those who are somebody in `b`, or everybody.
#[tokio::test]
async fn bindings_of_one_give_nothing_in_another() {
    let world = World::new().await;
    let path = format!("/clusters/a/{RBAC}/clusterrolebindings");
    let subjects = json!([
        {"kind": "User", "name": "ann"},
        {"kind": "User", "name": "*"},
        {"kind": "Group", "name": "system:masters"},
        {"kind": "Group", "name": "system:authenticated"},
        {"kind": "Group", "name": "system:unauthenticated"},
        {"kind": "Group", "name": "system:serviceaccounts"},
        {"kind": "Group", "name": "system:kcp:operators"},
        {"kind": "ServiceAccount", "namespace": "default", "name": "far"},
        {"kind": "ServiceAccount", "namespace": "default", "name": "pod"},
    ]);
    let role = json!({"kind": "ClusterRole", "name": "cluster-admin"});
    let body = json!({"metadata": {"name": "all"}, "roleRef": role, "subjects": subjects});
    write(&world, 'A', &path, &body).await;
    for letter in ['A', 'P', 'N', 'X', 'S'] {
        for place in ["/clusters/b", "/clusters/root", "/clusters/*", "/clusters/none"] {
            let path = format!("{place}/api/v1/namespaces/default/secrets");
            let answer = world.by(letter).ask(Ask::get(&path)).await;
            let code = answer.status.as_u16();
            assert!(matches!(code, 401 | 403), "{letter} {place}: {answer:?}");
        }
    }
    // Who is an administrator in b is not even known in a.
    let path = "/clusters/a/api/v1/namespaces/default/secrets";
    world.by('F').ask(Ask::get(path)).await.fails(401, "Unauthorized");
    world.end().await;
}
