//! Lists and watches of a real server, and what is made of odd answers.

use apiserver::Server;
use serde_json::json;

use super::*;
use crate::sync::testing::{link, server};

/// The longest that anything here may take.
const PATIENCE: Duration = Duration::from_secs(30);

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn watch_of(link: &Link) -> Watch {
    Watch {
        source: Source::Downstream(GroupResource::new("", "configmaps")),
        side: Side::Downstream,
        link: link.clone(),
        path: "/api/v1/configmaps".into(),
        query: "labelSelector=a%3Db".into(),
        partial: false,
        fresh: false,
        recovered: Arc::new(watch::Sender::new(0)),
        newest: Arc::default(),
        metrics: Metrics::new().unwrap(),
    }
}

async fn create(link: &Link, name: &str) {
    let map = json!({"metadata": {"name": name, "labels": {"a": "b"}}});
    let body = map.to_string().into_bytes();
    let ask = Ask::with(http::Method::POST, MAPS, client::JSON, body);
    assert_eq!(link.ask(ask).await.unwrap().status, 201);
}

async fn next(inputs: &mut mpsc::Receiver<Input>) -> Event {
    loop {
        let input = tokio::time::timeout(PATIENCE, inputs.recv()).await.unwrap().unwrap();
        if let Input::Seen(_, event, _) = input
            && !matches!(event, Event::Bookmark { .. })
        {
            return event;
        }
    }
}

fn name(event: &Event) -> &str {
    let (Event::Applied(object) | Event::Deleted(object)) = event else { panic!("{event:?}") };
    object["metadata"]["name"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_told_once_and_in_order() {
    let (running, link) = server().await;
    let total = PAGE + 5;
    for index in 0..total {
        create(&link, &format!("map-{index:04}")).await;
    }
    let (sender, mut inputs) = mpsc::channel(4);
    let tasks = runtime::Tasks::new();
    tasks.spawn(tracing::Span::none(), watch_of(&link).run(sender));
    assert_eq!(next(&mut inputs).await, Event::InitStart);
    for index in 0..total {
        let event = next(&mut inputs).await;
        assert_eq!(name(&event), format!("map-{index:04}"), "over more than one page");
    }
    assert!(matches!(next(&mut inputs).await, Event::InitDone { .. }));
    create(&link, "later").await;
    let event = next(&mut inputs).await;
    assert!(matches!(&event, Event::Applied(_)) && name(&event) == "later");
    let gone = format!("{MAPS}/later");
    let ask = Ask { method: http::Method::DELETE, ..Ask::get(&gone) };
    assert_eq!(link.ask(ask).await.unwrap().status, 200);
    let event = next(&mut inputs).await;
    assert!(matches!(&event, Event::Deleted(_)) && name(&event) == "later");
    // Nobody listens any more: it ends by itself.
    drop(inputs);
    assert_eq!(tasks.shutdown(PATIENCE).await, 0);
    running.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fresh_watches_tell_nothing_of_before() {
    let (running, link) = server().await;
    create(&link, "before").await;
    let (sender, mut inputs) = mpsc::channel(4);
    let tasks = runtime::Tasks::new();
    let watch = Watch { fresh: true, ..watch_of(&link) };
    tasks.spawn(tracing::Span::none(), watch.run(sender));
    assert_eq!(next(&mut inputs).await, Event::InitStart);
    assert!(matches!(next(&mut inputs).await, Event::InitDone { .. }));
    create(&link, "after").await;
    assert_eq!(name(&next(&mut inputs).await), "after");
    drop(inputs);
    running.shutdown().await;
}

/// A server that goes away is told as lost, and nothing else is told meanwhile; when it is back, the
/// watch goes on without another list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_no_news_about_objects() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("store");
    let start = async |port: u16| {
        let store = store::EmbeddedStore::open(&data, store::EmbeddedOptions::default());
        let server = Server::builder(store.unwrap()).root_directory(directory.path()).port(port);
        server.start().await.unwrap()
    };
    let first = start(0).await;
    let port = first.address().port();
    let link = link(&first);
    create(&link, "one").await;
    let (sender, mut inputs) = mpsc::channel(64);
    let tasks = runtime::Tasks::new();
    tasks.spawn(tracing::Span::none(), watch_of(&link).run(sender));
    assert_eq!(next(&mut inputs).await, Event::InitStart);
    assert_eq!(name(&next(&mut inputs).await), "one");
    assert!(matches!(next(&mut inputs).await, Event::InitDone { .. }));
    first.shutdown().await;
    loop {
        let input = tokio::time::timeout(PATIENCE, inputs.recv()).await.unwrap().unwrap();
        match input {
            Input::Lost(side) => {
                assert_eq!(side, Side::Downstream);
                break;
            }
            Input::Seen(_, event, _) => {
                assert!(matches!(event, Event::Bookmark { .. }), "{event:?}");
            }
            Input::Reached(_) | Input::Served(_) | Input::Asked(..) => {}
        }
    }
    let second = start(port).await;
    create(&link, "two").await;
    let event = next(&mut inputs).await;
    assert_eq!(name(&event), "two", "it goes on where it was");
    drop(inputs);
    second.shutdown().await;
}

#[tokio::test]
async fn frames() {
    let (running, link) = server().await;
    let watch = watch_of(&link);
    let check = async |line: &str, told: Option<Event>, moved: &str, ended: &str| {
        let (sender, mut inputs) = mpsc::channel(4);
        let mut place = "7".to_owned();
        let line_bytes = Bytes::copy_from_slice(line.as_bytes());
        let outcome = match watch.frame(&line_bytes, &mut place, &sender).await {
            Ok(()) => "",
            Err(Ended::Expired) => "expired",
            Err(Ended::Refused(_)) => "refused",
            Err(_) => "other",
        };
        let event = match inputs.try_recv() {
            Ok(Input::Seen(_, event, _)) => Some(event),
            _ => None,
        };
        assert_eq!((event, place.as_str(), outcome), (told, moved, ended), "{line}");
    };
    let object = json!({"metadata": {"resourceVersion": "8"}});
    let frame = |kind: &str| json!({"type": kind, "object": object}).to_string();
    check(&frame("ADDED"), Some(Event::Applied(object.clone())), "8", "").await;
    check(&frame("MODIFIED"), Some(Event::Applied(object.clone())), "8", "").await;
    check(&frame("DELETED"), Some(Event::Deleted(object.clone())), "8", "").await;
    let bookmark = Event::Bookmark { resource_version: "8".into() };
    check(&frame("BOOKMARK"), Some(bookmark), "8", "").await;
    check("", None, "7", "").await;
    check("{", None, "7", "expired").await;
    check(r#"{"type":"ERROR","object":{"code":410}}"#, None, "7", "expired").await;
    check(r#"{"type":"ERROR","object":{"code":500}}"#, None, "7", "refused").await;
    check(r#"{"type":"ERROR","object":{"code":70000}}"#, None, "7", "expired").await;
    check(r#"{"type":"BOOKMARK","object":{}}"#, None, "7", "expired").await;
    running.shutdown().await;
}
