//! The program, killed under load again and again: nothing acknowledged is lost, and a watch that
//! resumes misses and repeats nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing::Span;

use crate::client::{Ask, PATIENCE};
use crate::program::{Client, Program, version};

/// Kills of one run. Each comes at another point of the load.
const ROUNDS: u64 = 12;

/// Writers beside each other, each with names of its own.
const WRITERS: usize = 4;

/// Names of one writer.
const NAMES: u64 = 5;

const MAPS: &str = "/clusters/one/api/v1/namespaces/default/configmaps";

/// What a writer knows of one of its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    /// The last acknowledged state: the value, or none after a delete.
    value: Option<u64>,
    /// The state that a write without an answer may have left.
    perhaps: Option<Option<u64>>,
}

#[derive(Debug, Default)]
struct Ledger {
    objects: BTreeMap<String, Known>,
    /// resourceVersions of acknowledged creates and updates.
    acknowledged: Vec<u64>,
}

/// Writes until the server is gone.
async fn write(mut client: Client, writer: usize, round: u64, ledger: Arc<Mutex<Ledger>>) {
    for step in 0.. {
        let name = format!("w{writer}-{}", (step + round) % NAMES);
        let known = ledger.lock().objects.get(&name).cloned().unwrap_or_default();
        let next = round << 32 | step;
        let delete = known.value.is_some() && step % 7 == 3;
        let object = json!({"metadata": {"name": name}, "data": {"n": next.to_string()}});
        let path = format!("{MAPS}/{name}");
        let ask = match known.value {
            None => Ask::new(Method::POST, MAPS).json(&object),
            Some(_) if delete => Ask::new(Method::DELETE, &path),
            Some(_) => Ask::new(Method::PUT, &path).json(&object),
        };
        let intended = (!delete).then_some(next);
        let perhaps = Known { perhaps: Some(intended), ..known };
        ledger.lock().objects.insert(name.clone(), perhaps);
        let Some(answer) = client.ask(&ask).await else {
            return;
        };
        assert!(answer.status.is_success(), "{answer:?}");
        let mut ledger = ledger.lock();
        ledger.objects.insert(name, Known { value: intended, perhaps: None });
        if !delete {
            ledger.acknowledged.push(version(&answer.json()));
        }
    }
}

/// Reads events after `from` until the server is gone or there is one of version `until`.
async fn watch(mut client: Client, from: u64, until: u64, events: Arc<Mutex<Vec<Value>>>) {
    let path = format!("{MAPS}?watch=true&resourceVersion={from}");
    let request = Ask::get(&path).request("https://localhost");
    let Ok(response) = client.sender.send_request(request).await else {
        return;
    };
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    let mut text = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        text.extend_from_slice(frame.data_ref().unwrap());
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let event: Value = serde_json::from_slice(&text[..end]).unwrap();
            text.drain(..=end);
            let seen = version(&event["object"]);
            events.lock().push(event);
            if seen >= until {
                return;
            }
        }
    }
}

fn last_seen(events: &Mutex<Vec<Value>>, before: u64) -> u64 {
    events.lock().last().map_or(before, |event| version(&event["object"]))
}

/// What the objects are now: those of a write without an answer are settled by looking.
async fn settle(client: &mut Client, ledger: &Mutex<Ledger>) -> BTreeMap<String, u64> {
    let list = client.ask(&Ask::get(MAPS)).await.unwrap().json();
    let mut present = BTreeMap::new();
    for item in list["items"].as_array().unwrap() {
        if let Some(value) = item["data"]["n"].as_str() {
            let name = item["metadata"]["name"].as_str().unwrap().to_owned();
            present.insert(name, value.parse::<u64>().unwrap());
        }
    }
    for (name, known) in &mut ledger.lock().objects {
        let found = present.get(name).copied();
        let allowed = found == known.value || known.perhaps == Some(found);
        assert!(allowed, "{name} is {found:?}, and should be {known:?}");
        *known = Known { value: found, perhaps: None };
    }
    present
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_and_watches_resume() {
    let root = tempfile::tempdir().unwrap();
    let mut program = Program::start(root.path());
    let running = runtime::Tasks::new();
    let begin = Ask::new(Method::POST, MAPS).json(&json!({"metadata": {"name": "begin"}}));
    let begun = program.client().await.ask(&begin).await.unwrap();
    let first = version(&begun.json());
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let events = Arc::new(Mutex::new(Vec::new()));
    for round in 1..=ROUNDS {
        let from = last_seen(&events, first);
        let mut tasks =
            vec![running.spawn(
                Span::none(),
                watch(program.client().await, from, u64::MAX, events.clone()),
            )];
        for writer in 0..WRITERS {
            let client = program.client().await;
            let work = write(client, writer, round, ledger.clone());
            tasks.push(running.spawn(Span::none(), work));
        }
        // The kill comes at another depth of the load in each round.
        let wanted = ledger.lock().acknowledged.len() + usize::try_from(round * 17 % 90).unwrap();
        while ledger.lock().acknowledged.len() <= wanted {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        program.kill();
        for task in tasks {
            task.await.unwrap();
        }
        program = Program::start(root.path());
        settle(&mut program.client().await, &ledger).await;
    }
    let mut client = program.client().await;
    let present = settle(&mut client, &ledger).await;
    let end = Ask::new(Method::POST, MAPS).json(&json!({"metadata": {"name": "end"}}));
    let end = version(&client.ask(&end).await.unwrap().json());
    let rest = watch(program.client().await, last_seen(&events, first), end, events.clone());
    tokio::time::timeout(PATIENCE, rest).await.unwrap();

    let events = events.lock();
    let versions = events.iter().map(|event| version(&event["object"])).collect::<Vec<_>>();
    assert!(versions.is_sorted_by(|a, b| a < b), "an event came twice or out of order");
    for acknowledged in &ledger.lock().acknowledged {
        assert!(versions.binary_search(acknowledged).is_ok(), "no event for {acknowledged}");
    }
    let mut replayed = BTreeMap::new();
    for event in events.iter() {
        let object = &event["object"];
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        match object["data"]["n"].as_str() {
            Some(value) if event["type"] != "DELETED" => {
                replayed.insert(name, value.parse::<u64>().unwrap());
            }
            _ => {
                replayed.remove(&name);
            }
        }
    }
    assert_eq!(replayed, present, "the events explain the objects");
}
