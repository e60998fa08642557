//! A name that is given again: who has it now sees nothing of who had it before, and the other way
//! round.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use serde_json::{Value, json};

use super::world::{CLUSTERS, TREASURE, World, tells_nothing};
use crate::client::{Answer, Ask, PATIENCE};
use crate::deeds::eventually;

const SECRETS: &str = "/clusters/b/api/v1/namespaces/default/secrets";

/// Gives the name `b` to another logical cluster.
async fn give_away(world: &World) {
    let path = format!("{CLUSTERS}/b");
    let gone = world.by('M').ask(Ask::new(Method::DELETE, &path)).await;
    assert!(gone.status.is_success(), "{gone:?}");
    eventually(&world.hub, &path, |status, _| status == 404).await;
    world.make(CLUSTERS, &json!({"metadata": {"name": "b"}})).await;
    let ann = json!({"kind": "User", "name": "ann"});
    world.bind("b", "ann", "cluster-admin", &ann).await;
}

#[tokio::test]
async fn history_from_before_is_nobodys() {
    let world = World::new().await;
    let list = world.get(SECRETS).await;
    let old = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let page = world.get("/clusters/b/api/v1/serviceaccounts?limit=1").await;
    let page = page["metadata"]["continue"].as_str().unwrap().to_owned();
    give_away(&world).await;
    let ann = world.by('A');
    let token =
        json!({"v": "meta.k8s.io/v1", "rv": old.parse::<i64>().unwrap(), "start": "a\u{0}"});
    let token = URL_SAFE_NO_PAD.encode(token.to_string());
    for query in [
        format!("resourceVersion={old}&resourceVersionMatch=Exact"),
        format!("resourceVersion={old}&limit=5"),
        format!("continue={token}&limit=5"),
    ] {
        let answer = ann.ask(Ask::get(&format!("{SECRETS}?{query}"))).await;
        answer.fails(410, "Expired");
        tells_nothing(&query, &answer);
    }
    let accounts = "/clusters/b/api/v1/serviceaccounts";
    let rest = ann.ask(Ask::get(&format!("{accounts}?limit=1&continue={page}"))).await;
    rest.fails(410, "Expired");
    // A watch from then is told to begin anew, as from any revision that is gone.
    let watch = format!("{SECRETS}?watch=true&timeoutSeconds=1&resourceVersion={old}");
    let watched = ann.ask(Ask::get(&watch)).await;
    tells_nothing(&watch, &watched);
    let event: Value = serde_json::from_slice(&watched.body).unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    // From its own beginning on, all is as ever.
    let now = ann.ask(Ask::get(SECRETS)).await;
    assert_eq!(now.json()["items"], json!([]));
    let made = json!({"metadata": {"name": "mine"}});
    let made = ann.ask(Ask::new(Method::POST, SECRETS).json(&made)).await;
    assert_eq!(made.status, 201, "{made:?}");
    let since = now.json()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let watch = format!("{SECRETS}?watch=true&timeoutSeconds=1&resourceVersion={since}");
    let watched = ann.ask(Ask::get(&watch)).await;
    assert!(watched.text().contains("\"name\":\"mine\""), "{watched:?}");
    let exact = format!("{SECRETS}?resourceVersion={since}&resourceVersionMatch=Exact");
    assert_eq!(ann.ask(Ask::get(&exact)).await.json()["items"], json!([]));
    world.end().await;
}

#[tokio::test]
async fn a_watch_ends_with_its_logical_cluster() {
    let world = World::new().await;
    let (of_all, of_one) = (
        Ask::get(&format!("{SECRETS}?watch=true&timeoutSeconds=600")),
        Ask::get(&format!(
            "{SECRETS}?watch=true&timeoutSeconds=600&fieldSelector=metadata.name%3Dtreasure"
        )),
    );
    let far = world.by('F');
    let mut begun = Vec::new();
    for ask in [of_all, of_one] {
        let response = far.send(ask).await;
        assert_eq!(response.status(), 200);
        begun.push(response);
    }
    give_away(&world).await;
    let other = json!({"metadata": {"name": "treasure"}, "stringData": {"of": "another"}});
    world.make(SECRETS, &other).await;
    // They end by themselves, long before their time is up.
    for response in begun {
        let watched = tokio::time::timeout(PATIENCE, Answer::whole(response)).await;
        let watched = watched.expect("it ends").unwrap();
        let text = watched.text();
        assert!(text.contains("DELETED") && text.contains(TREASURE), "{text}");
        assert!(!text.contains("YW5vdGhlcg"), "what another wrote: {text}");
    }
    // Nor does the token of one open the other.
    far.ask(Ask::get(SECRETS)).await.fails(401, "Unauthorized");
    world.end().await;
}
