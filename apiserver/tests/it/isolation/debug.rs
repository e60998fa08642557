//! What is for those who debug the server, asked for by everybody else.

use futures::{StreamExt, stream};
use http::Method;
use serde_json::json;

use super::world::{RBAC, World};
use crate::agents::yard;
use crate::client::{Answer, Ask, Who};

/// What is there, and what one might hope for.
const PAGES: [&str; 7] = [
    "/debug/",
    "/debug/flags/v",
    "/debug/pprof/",
    "/debug/pprof/cmdline",
    "/debug/pprof/profile?seconds=1",
    "/debug/pprof/heap",
    "/debug/state",
];

/// Ways to write a path that might lead to the server's own pages.
const FORMS: [&str; 22] = [
    "",
    "/",
    "/.",
    "/a/..",
    "/%2e",
    "/%2f",
    "/clusters",
    "/clusters/",
    "/clusters/a",
    "/clusters/a/",
    "/clusters/a/..",
    "/clusters/a/../..",
    "/clusters/a/%2e%2e/%2e%2e",
    "/clusters/a%2f..%2f..",
    "/clusters/b",
    "/clusters/root",
    "/clusters/%72oot",
    "/clusters//root",
    "/clusters/*",
    "/clusters/system:crds",
    "/api/v1/namespaces/default/services/kubernetes/proxy",
    "/healthz/..",
];

/// What leads other servers astray.
const HEADERS: [&[(&str, &str)]; 8] = [
    &[],
    &[("x-remote-user", "master"), ("x-remote-group", "system:masters")],
    &[("impersonate-user", "master"), ("impersonate-group", "system:masters")],
    &[("x-forwarded-client-cert", "Subject=\"CN=master,O=system:masters\"")],
    &[("x-original-url", "/debug/state"), ("x-rewrite-url", "/debug/state")],
    &[("x-forwarded-for", "127.0.0.1"), ("forwarded", "for=127.0.0.1")],
    &[("x-kcp-cluster", "root"), ("x-kubernetes-cluster", "root")],
    &[("x-http-method-override", "GET"), ("host", "127.0.0.1")],
];

/// That somebody learned nothing, however they were turned away.
#[track_caller]
fn is_turned_away(what: &str, answer: &Answer) {
    let code = answer.status.as_u16();
    assert!(matches!(code, 400 | 401 | 403 | 404), "{what}: {answer:?}");
    let text = String::from_utf8_lossy(&answer.body);
    for told in ["pprof/\n", "kcp-apiserver", "\"fairness\"", "seconds", "info"] {
        assert!(!text.contains(told), "{what}: {text}");
    }
    assert!(!answer.body.starts_with(&[0x1f, 0x8b]), "{what}: a profile");
}

#[tokio::test]
async fn no_tenant_debugs_the_server() {
    let world = World::new().await;
    let before = world.state().await;
    for letter in "OAPRSNFX".chars() {
        let caller = world.by(letter);
        let formed = FORMS.iter().flat_map(|form| {
            let asks = PAGES.iter().map(move |page| format!("{form}{page}"));
            asks.flat_map(|path| [Method::GET, Method::PUT].map(|m| Ask::new(m, &path).body("10")))
        });
        let headed = HEADERS.iter().flat_map(|set| {
            PAGES.iter().flat_map(|page| ["", "/clusters/a"].map(|place| (place, page))).map(
                |(place, page)| {
                    let ask = Ask::get(&format!("{place}{page}"));
                    set.iter().fold(ask, |ask, (name, value)| ask.header(name, value))
                },
            )
        });
        let answers = stream::iter(formed.chain(headed)).map(async |ask| {
            let what = format!("{letter} {ask:?}");
            (what, caller.ask(ask).await)
        });
        let mut answers = std::pin::pin!(answers.buffer_unordered(8));
        while let Some((what, answer)) = answers.next().await {
            is_turned_away(&what, &answer);
        }
    }
    assert_eq!(world.state().await, before, "nothing was written");
    world.end().await;
}

/// A path that names no logical cluster leads ServiceAccounts home, where they may have every right.
#[tokio::test]
async fn rights_of_a_logical_cluster_lead_to_nothing() {
    let world = World::new().await;
    let rules = json!([{"verbs": ["*"], "nonResourceURLs": ["*"]}]);
    let roles = format!("/clusters/a/{RBAC}/clusterroles");
    world.make(&roles, &json!({"metadata": {"name": "paths"}, "rules": rules})).await;
    for (name, subject) in [
        ("paths-ann", json!({"kind": "User", "name": "ann"})),
        ("paths-all", json!({"kind": "Group", "name": "system:authenticated"})),
        ("paths-any", json!({"kind": "Group", "name": "system:unauthenticated"})),
    ] {
        world.bind("a", name, "paths", &subject).await;
    }
    for page in ["/debug/state", "/debug/pprof/", "/debug/pprof/profile?seconds=1"] {
        // Allowed at home, and not there; elsewhere not allowed.
        for letter in ["P", "S"] {
            let caller = world.by(letter.chars().next().unwrap());
            for place in ["", "/clusters/a"] {
                let answer = caller.ask(Ask::get(&format!("{place}{page}"))).await;
                assert_eq!(answer.status, 404, "{letter} {place}{page}: {answer:?}");
                assert_eq!(answer.text(), "404 page not found\n");
            }
        }
        for letter in ['A', 'N', 'X'] {
            let answer = world.by(letter).ask(Ask::get(page)).await;
            answer.fails(403, "Forbidden");
        }
        let answer = world.by('A').ask(Ask::get(&format!("/clusters/a{page}"))).await;
        assert_eq!(answer.status, 404, "{answer:?}");
        // Nor does a master find it anywhere but at the server's own address.
        for place in ["/clusters/a", "/clusters/root", "/clusters/*", "/clusters/none"] {
            let answer = world.by('M').ask(Ask::get(&format!("{place}{page}"))).await;
            assert_eq!(answer.status, 404, "{place}{page}: {answer:?}");
        }
    }
    assert_eq!(world.by('M').ask(Ask::get("/debug/state")).await.status, 200);
    world.end().await;
}

#[tokio::test]
async fn no_agent_debugs_the_hub() {
    let (yard, east, agent) = yard().await;
    for page in PAGES {
        for place in ["", "/clusters/infra", "/clusters/app", "/clusters/root", "/clusters/*"] {
            for method in [Method::GET, Method::PUT] {
                let path = format!("{place}{page}");
                let ask = || Ask::new(method.clone(), &path).body("10");
                let what = format!("{method} {path}");
                is_turned_away(&what, &yard.ask(&agent, ask()).await);
                is_turned_away(&what, &yard.by_token(&east.token, ask()).await);
                is_turned_away(&what, &yard.hub.ask(Who::Anonymous, ask()).await);
            }
        }
    }
    yard.hub.shutdown().await;
}
