//! Objects over HTTP: written, read in every form, watched, deleted.

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

use crate::client::{Ask, Hub, PATIENCE, Who};
use crate::deeds::gone;

const MAPS: &str = "/clusters/one/api/v1/namespaces/default/configmaps";

fn create(name: &str) -> Ask {
    Ask::new(Method::POST, MAPS).json(&json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"},
    }))
}

#[tokio::test]
async fn an_object_s_life() {
    let hub = Hub::start().await;
    let text = hub.get("/clusters/one/api/v1/namespaces").await.fails(404, "NotFound");
    assert_eq!(text, "logicalclusters.core.kcp.io \"one\" not found");
    let created = hub.admin(create("a")).await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(created.json()["data"]["k"], "v");
    hub.admin(create("a")).await.fails(409, "AlreadyExists");
    let path = format!("{MAPS}/a");
    assert_eq!(hub.get(&path).await.json(), created.json());
    let yaml = hub.admin(Ask::get(&path).header("accept", "application/yaml")).await;
    assert_eq!(yaml.header("content-type"), "application/yaml");
    let protobuf = "application/vnd.kubernetes.protobuf";
    let protobuf = hub.admin(Ask::get(&path).header("accept", protobuf)).await;
    assert!(protobuf.body.starts_with(b"k8s\0"), "{protobuf:?}");
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let table = hub.admin(Ask::get(MAPS).header("accept", table)).await.json();
    assert_eq!((&table["kind"], &table["rows"][0]["cells"][0]), (&json!("Table"), &json!("a")));
    let list = hub.get("/clusters/*/api/v1/configmaps").await.json();
    let listed = list["items"].as_array().unwrap();
    let found = listed.iter().find(|item| item["metadata"]["name"] == "a").unwrap();
    assert_eq!(found["metadata"]["annotations"]["kcp.io/cluster"], "one");
    hub.get("/clusters/two/api/v1/namespaces/default/configmaps/a").await.fails(404, "NotFound");
    let body = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
    let deleted = hub.admin(Ask::new(Method::DELETE, &path).json(&body)).await.json();
    assert_eq!((&deleted["kind"], &deleted["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(deleted["details"]["kind"], "configmaps");
    hub.get(&path).await.fails(404, "NotFound");
    hub.shutdown().await;
}

#[tokio::test]
async fn unknown_fields_are_warned_of_or_refused() {
    let hub = Hub::start().await;
    let body = json!({"metadata": {"name": "b"}, "wrong": {"k": "v"}});
    let warned = hub.admin(Ask::new(Method::POST, MAPS).json(&body)).await;
    assert_eq!(warned.status, 201, "{warned:?}");
    assert_eq!(warned.header("warning"), "299 - \"unknown field \\\"wrong\\\"\"");
    let strict = Ask::new(Method::POST, &format!("{MAPS}?fieldValidation=Strict")).json(&body);
    let text = hub.admin(strict).await.fails(400, "BadRequest");
    assert!(text.contains("unknown field \"wrong\""), "{text}");
    hub.shutdown().await;
}

/// Reads the next line of a watch.
async fn next_event(body: &mut hyper::body::Incoming, rest: &mut Vec<u8>) -> Option<Value> {
    loop {
        if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            return Some(serde_json::from_slice(&line).unwrap());
        }
        let frame =
            tokio::time::timeout(PATIENCE, body.frame()).await.expect("an event in time")?;
        let data: Bytes = frame.unwrap().into_data().unwrap_or_default();
        rest.extend_from_slice(&data);
    }
}

#[tokio::test]
async fn watches_tell_what_happens_and_end_with_the_server() {
    let hub = Hub::start().await;
    assert_eq!(hub.admin(create("a")).await.status, 201);
    let stream = hub.connect(Who::Admin, b"http/1.1").await;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let tasks = runtime::Tasks::new();
    drop(tasks.spawn(tracing::Span::none(), connection));
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                 &allowWatchBookmarks=true";
    let request = Ask::get(&format!("{MAPS}?{query}")).header("host", "localhost").request("");
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    let mut rest = Vec::new();
    let mut seen = Vec::new();
    loop {
        let event = next_event(&mut body, &mut rest).await.unwrap();
        let end = event["type"] == "BOOKMARK";
        seen.push(event);
        if end {
            break;
        }
    }
    let annotations = &seen.last().unwrap()["object"]["metadata"]["annotations"];
    assert_eq!(annotations["k8s.io/initial-events-end"], "true");
    assert!(seen.iter().any(|event| event["object"]["metadata"]["name"] == "a"));
    assert_eq!(hub.admin(create("b")).await.status, 201);
    let event = next_event(&mut body, &mut rest).await.unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("b"))
    );
    let delete = Ask::new(Method::DELETE, &format!("{MAPS}/b"));
    assert_eq!(hub.admin(delete).await.status, 200);
    assert_eq!(next_event(&mut body, &mut rest).await.unwrap()["type"], "DELETED");
    let ended = tokio::time::timeout(PATIENCE, hub.shutdown());
    let (ended, last) = tokio::join!(ended, next_event(&mut body, &mut rest));
    assert!(ended.is_ok() && last.is_none(), "{last:?}");
}

#[tokio::test]
async fn a_watch_from_the_future_is_refused_in_one_line() {
    let hub = Hub::start().await;
    assert_eq!(hub.admin(create("a")).await.status, 201);
    let answer = hub.get(&format!("{MAPS}?watch=1&resourceVersion=999999999")).await;
    assert_eq!(answer.status, 504);
    assert_eq!(answer.text().trim_end().lines().count(), 1);
    hub.shutdown().await;
}

#[tokio::test]
async fn events_vanish_and_nothing_else_does() {
    let ttl = std::time::Duration::from_millis(300);
    let hub = Hub::start_with(|server| server.event_ttl(ttl)).await;
    let core = "/clusters/one/api/v1/namespaces/default";
    let event = json!({
        "metadata": {"name": "e"}, "involvedObject": {"namespace": "default"},
        "lastTimestamp": "2999-01-01T00:00:00Z",
    });
    for (path, body) in [("events", event), ("configmaps", json!({"metadata": {"name": "m"}}))] {
        let ask = Ask::new(Method::POST, &format!("{core}/{path}")).json(&body);
        assert_eq!(hub.admin(ask).await.status, 201);
    }
    let other = "/clusters/one/apis/events.k8s.io/v1/namespaces/default/events/e";
    assert_eq!(hub.get(other).await.status, 200);
    gone(&hub, &format!("{core}/events/e")).await;
    assert_eq!(hub.get(other).await.status, 404);
    assert_eq!(hub.get(&format!("{core}/configmaps/m")).await.status, 200);
    hub.shutdown().await;
}
