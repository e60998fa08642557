//! What was published as faults of kcp, as tests that it can't be done here.

use http::Method;
use serde_json::{Value, json};

use super::world::{CLUSTERS, RBAC, WHOAMI, World, tells_nothing};
use crate::client::Ask;

const SECRETS: &str = "api/v1/namespaces/default/secrets";

fn acting(ask: Ask, user: &str, groups: &[&str]) -> Ask {
    let ask = ask.header("impersonate-user", user);
    groups.iter().fold(ask, |ask, group| ask.header("impersonate-group", group))
}

/// CVE-2025-29922: through the endpoint over all workspaces, objects were created and deleted in
/// workspaces that had not agreed to it. Ours over all logical clusters only reads, whoever asks.
#[tokio::test]
async fn cve_2025_29922_nothing_is_written_over_all_logical_clusters() {
    let world = World::new().await;
    let rules = json!([
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
        {"verbs": ["*"], "nonResourceURLs": ["*"]},
    ]);
    let roles = format!("/clusters/root/{RBAC}/clusterroles");
    world.make(&roles, &json!({"metadata": {"name": "wild"}, "rules": rules})).await;
    world.bind("root", "wilma", "wild", &json!({"kind": "User", "name": "wilma"})).await;
    let wilma = world.person("wilma", &[]).await;
    let before = world.state().await;
    let secrets = format!("/clusters/*/{SECRETS}");
    let one = format!("{secrets}/treasure");
    let body = json!({
        "metadata": {"name": "new", "annotations": {"kcp.io/cluster": "b"}},
    });
    for caller in [&wilma, world.by('M')] {
        assert_eq!(caller.ask(Ask::get("/clusters/*/api/v1/secrets")).await.status, 200);
        for ask in [
            Ask::new(Method::POST, &secrets).json(&body),
            Ask::new(Method::POST, &format!("{secrets}?dryRun=All")).json(&body),
            Ask::new(Method::PUT, &one).json(&body),
            Ask::new(Method::PATCH, &one)
                .header("content-type", "application/merge-patch+json")
                .body(body.to_string()),
            Ask::new(Method::DELETE, &one),
            Ask::new(Method::DELETE, &secrets),
            Ask::new(Method::POST, "/clusters/*/api/v1/namespaces").json(&body),
            Ask::new(Method::DELETE, "/clusters/*/api/v1/namespaces/treasure"),
            Ask::new(Method::POST, &format!("/clusters/*/{WHOAMI}")).json(&json!({})),
        ] {
            let answer = caller.ask(ask.clone()).await;
            answer.fails(405, "MethodNotAllowed");
            tells_nothing("a write over all", &answer);
        }
    }
    assert_eq!(world.state().await, before);
    // A mark that was sent back to one logical cluster is not followed.
    let mut marked = body.clone();
    marked["metadata"]["name"] = json!("marked");
    let path = format!("/clusters/a/{SECRETS}");
    let made = world.by('P').ask(Ask::new(Method::POST, &path).json(&marked)).await;
    assert_eq!(made.status, 201, "{made:?}");
    let path = format!("/clusters/b/{SECRETS}/marked");
    world.by('M').ask(Ask::get(&path)).await.fails(404, "NotFound");
    world.end().await;
}

/// GHSA-c7xh-gjv4-4jgv: who administered one workspace could act as a member of groups that hold
/// rights in all of them.
#[tokio::test]
async fn ghsa_c7xh_gjv4_4jgv_no_group_of_all_is_acted_as() {
    let world = World::new().await;
    let group = json!({"kind": "Group", "name": "everywhere"});
    world.bind("root", "everywhere", "cluster-admin", &group).await;
    world.bind("b", "everywhere", "cluster-admin", &group).await;
    let before = world.state().await;
    let places = ["b", "root", "*", "system:crds", "none"];
    for letter in ['A', 'P'] {
        let caller = world.by(letter);
        // The server's own identities can't be acted as even at home.
        for (user, groups) in [
            ("x", &["system:masters"][..]),
            ("x", &["devs", "system:masters"]),
            ("x", &["system:kcp:operators"]),
            ("x", &["system:syncers"]),
            ("system:masters", &[]),
            ("system:kcp:operator", &[]),
            ("system:syncer:1", &[]),
        ] {
            for place in ["a", "b", "root", "*", "none"] {
                let ask = Ask::get(&format!("/clusters/{place}/api/v1/secrets"));
                let answer = caller.ask(acting(ask, user, groups)).await;
                let code = answer.status.as_u16();
                assert!(
                    matches!(code, 401 | 403),
                    "{letter} {user} {groups:?} {place}: {answer:?}"
                );
            }
        }
        // Others can be acted as at home, where their names mean what a says, and nowhere else.
        for (user, groups) in [
            ("x", &["everywhere"][..]),
            ("bob", &[]),
            ("master", &[]),
            ("olga", &["everywhere", "system:authenticated"]),
            ("system:serviceaccount:default:far", &[]),
            ("system:serviceaccount:kube-system:generic-garbage-collector", &[]),
            ("system:anonymous", &[]),
        ] {
            let whoami = Ask::new(Method::POST, &format!("/clusters/a/{WHOAMI}")).json(&json!({}));
            let who = caller.ask(acting(whoami, user, groups)).await;
            if user != "system:anonymous" {
                assert_eq!(who.status, 201, "{letter} {user}: {who:?}");
                assert_eq!(who.json()["status"]["userInfo"]["username"], user);
            }
            for place in places {
                let ask = Ask::get(&format!("/clusters/{place}/{SECRETS}"));
                let answer = caller.ask(acting(ask, user, groups)).await;
                let code = answer.status.as_u16();
                assert!(matches!(code, 401 | 403), "{letter} {user} {place}: {answer:?}");
                tells_nothing("acting as another", &answer);
                let made = json!({"metadata": {"name": "x"}});
                let ask = Ask::new(Method::POST, &format!("/clusters/{place}/{SECRETS}"));
                let code = caller.ask(acting(ask.json(&made), user, groups)).await.status.as_u16();
                assert!(matches!(code, 401 | 403), "{letter} {user} writes in {place}");
            }
            let made = Ask::new(Method::POST, CLUSTERS).json(&json!({"metadata": {"name": "x"}}));
            let code = caller.ask(acting(made, user, groups)).await.status.as_u16();
            assert!(matches!(code, 401 | 403), "{letter} {user} makes a logical cluster");
        }
        // Nor does an identity that was taken give more: reviews speak of a.
        let attributes = json!({"verb": "get", "resource": "secrets"});
        let body = json!({"spec": {"resourceAttributes": attributes}});
        let path = "/clusters/a/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let ask = acting(Ask::new(Method::POST, path).json(&body), "x", &["everywhere"]);
        let answer: Value = caller.ask(ask).await.json();
        assert_eq!(answer["status"]["allowed"], false, "{answer}");
    }
    assert_eq!(world.state().await, before);
    world.end().await;
}

/// Rights to act as others are a's to give, and end at its border; who may make logical clusters
/// acts as nobody in those that are not there.
#[tokio::test]
async fn who_acts_as_another_by_rbac_does_so_at_home() {
    let world = World::new().await;
    let rules = json!([
        {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"],
         "resourceNames": ["ann"]},
        {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["serviceaccounts"],
         "resourceNames": ["pod"]},
    ]);
    let roles = format!("/clusters/a/{RBAC}/clusterroles");
    world.make(&roles, &json!({"metadata": {"name": "actor"}, "rules": rules})).await;
    world.bind("a", "carl", "actor", &json!({"kind": "User", "name": "carl"})).await;
    let carl = world.person("carl", &[]).await;
    let secrets = format!("/clusters/a/{SECRETS}");
    carl.ask(Ask::get(&secrets)).await.fails(403, "Forbidden");
    for user in ["ann", "system:serviceaccount:default:pod"] {
        assert_eq!(carl.ask(acting(Ask::get(&secrets), user, &[])).await.status, 200, "{user}");
        for place in ["b", "root", "*", "none"] {
            let ask = Ask::get(&format!("/clusters/{place}/{SECRETS}"));
            carl.ask(acting(ask, user, &[])).await.fails(403, "Forbidden");
        }
    }
    for (user, groups) in [
        ("olga", &[][..]),
        ("ann", &["devs"]),
        ("system:serviceaccount:default:idle", &[]),
        ("system:serviceaccount:kube-system:pod2", &[]),
    ] {
        let answer = carl.ask(acting(Ask::get(&secrets), user, groups)).await;
        let message = answer.fails(403, "Forbidden");
        assert!(message.contains("cannot impersonate resource"), "{message}");
    }
    for (header, value) in [("impersonate-uid", "7"), ("impersonate-extra-k", "v")] {
        let ask = acting(Ask::get(&secrets), "ann", &[]).header(header, value);
        carl.ask(ask).await.fails(403, "Forbidden");
    }
    // Who may make logical clusters.
    let rules = json!([{
        "verbs": ["create"], "apiGroups": ["core.kcp.io"], "resources": ["logicalclusters"],
    }]);
    let roles = format!("/clusters/root/{RBAC}/clusterroles");
    world.make(&roles, &json!({"metadata": {"name": "makers"}, "rules": rules})).await;
    for name in ["eve", "bob"] {
        let user = json!({"kind": "User", "name": name});
        world.bind("root", name, "makers", &user).await;
    }
    let eve = world.person("eve", &[]).await;
    assert_eq!(eve.ask(Ask::get("/clusters/new/api")).await.status, 200);
    let ask = acting(Ask::get("/clusters/new/api"), "bob", &[]);
    let message = eve.ask(ask).await.fails(403, "Forbidden");
    assert!(message.ends_with("before the logical cluster is there"), "{message}");
    world.end().await;
}

/// GHSA-c8w2-fgvx-vhv4: headers by which a proxy in front says who a caller is were taken from the
/// caller. Here they are looked at on connections of such a proxy alone.
#[tokio::test]
async fn ghsa_c8w2_fgvx_vhv4_nobody_says_who_they_are() {
    let world = World::new().await;
    let with = |ask: Ask| {
        ask.header("x-remote-user", "master")
            .header("x-remote-group", "system:masters")
            .header("x-remote-uid", "0")
            .header("x-remote-extra-authentication.kubernetes.io%2fcluster-name", "b")
    };
    for (letter, name) in [
        ('A', "ann"),
        ('P', "system:serviceaccount:default:pod"),
        ('N', "ned"),
        ('X', "system:anonymous"),
    ] {
        let caller = world.by(letter);
        for place in ["b", "root", "*"] {
            let plain = caller.ask(Ask::get(&format!("/clusters/{place}/{SECRETS}"))).await;
            let smuggled =
                caller.ask(with(Ask::get(&format!("/clusters/{place}/{SECRETS}")))).await;
            assert!(matches!(plain.status.as_u16(), 401 | 403), "{letter} {place}");
            assert_eq!(smuggled.body, plain.body, "{letter} {place}");
        }
        let whoami = Ask::new(Method::POST, &format!("/clusters/a/{WHOAMI}")).json(&json!({}));
        let answer = caller.ask(with(whoami)).await;
        if letter == 'A' || letter == 'P' {
            let user = &answer.json()["status"]["userInfo"];
            assert_eq!(user["username"], name);
            assert!(!user.to_string().contains("masters"), "{user}");
            assert!(!user.to_string().contains("cluster-name"), "{user}");
        } else {
            let message = answer.fails(403, "Forbidden");
            assert!(message.contains(&format!("User \"{name}\"")), "{message}");
        }
    }
    world.end().await;
}
