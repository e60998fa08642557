//! Power cuts at every sync, and at random points between.
//!
//! Two clients commit pairs of objects, a watch follows, and old history is compacted. After the
//! cut the store is opened again, through a second cut now and then, and must hold everything that
//! was acknowledged, nothing half, and a log that agrees with the objects.

use std::collections::BTreeMap;

use redb::Builder;
use tracing::Span;

use super::disk::{Cut, Disk, Random};
use super::fixture;
use super::parts::{audit, definition};
use crate::conformance::harness::{Fixture, Watch, key, put};
use crate::{
    Change, EmbeddedOptions, EmbeddedStore, Key, KeyPrefix, Op, Record, Revision, WatchMessage,
};

const CLIENTS: usize = 2;
const COMMITS: usize = 10;

/// What was known before the power went.
#[derive(Debug, Default)]
struct Before {
    /// For each client, how many of its commits were acknowledged.
    acknowledged: [usize; CLIENTS],
    /// What the watch had delivered.
    seen: Vec<Change>,
    /// The highest revision that anyone was told.
    told: Revision,
    /// What was asked to be compacted.
    compacted: Revision,
}

fn options() -> EmbeddedOptions {
    EmbeddedOptions { recent_bytes: 4096, ..EmbeddedOptions::default() }
}

/// What a client writes: a plain object, and one whose large parts are stored apart.
fn keys(client: usize) -> [Key; 2] {
    [key("things", &format!("c{client}")), definition(&format!("c{client}"))]
}

/// The operations of a client's commit: the pair carries one number, every fourth is a deletion.
fn operations(client: usize, number: usize) -> Vec<Op> {
    let keys = keys(client);
    if number % 4 == 3 {
        return keys.into_iter().map(|key| Op::Delete { key }).collect();
    }
    // Every other one has a part that both clients' commits have in common.
    let filling = "v".repeat(if number.is_multiple_of(2) { number * 150 } else { 4200 });
    let value = format!(r#"{{"n":{number},"spec":{{"v":"{filling}"}}}}"#);
    keys.iter().map(|key| put(key, &value)).collect()
}

/// Runs the clients until they are done or the power goes.
async fn work(disk: &Disk) -> Before {
    let mut before = Before::default();
    let Ok(store) = EmbeddedStore::open_on(disk.clone(), &options()) else { return before };
    let fixture = fixture(store);
    let mut watch = fixture.watch(Revision(0)).await;
    let tasks = runtime::Tasks::new();
    let clients = (0..CLIENTS).map(|client| {
        let store = fixture.store.clone();
        tasks.spawn(Span::none(), async move {
            let mut acknowledged = 0;
            let mut told = Revision(0);
            for number in 0..COMMITS {
                let txn = crate::Txn { ops: operations(client, number), ..crate::Txn::default() };
                let Ok(revision) = store.commit(txn).await else { break };
                (acknowledged, told) = (number + 1, revision);
                if number == COMMITS / 2 && client == 0 {
                    let before = Revision(told.0 / 2);
                    if store.compact(before).await.is_err() {
                        break;
                    }
                }
            }
            (acknowledged, told)
        })
    });
    for (client, task) in clients.collect::<Vec<_>>().into_iter().enumerate() {
        let (acknowledged, told) = task.await.unwrap();
        before.acknowledged[client] = acknowledged;
        before.told = before.told.max(told);
    }
    before.compacted = fixture.store.oldest().await.unwrap();
    let visible = fixture.store.revision().await.unwrap();
    assert!(visible >= before.told);
    before.seen = follow(&mut watch, visible).await;
    fixture.end().await;
    before
}

/// What a watch has to deliver up to a revision, if its history is still there.
async fn follow(watch: &mut Watch, until: Revision) -> Vec<Change> {
    let mut seen = Vec::new();
    let mut reached = Revision(0);
    while reached < until {
        match watch.message().await {
            Ok(WatchMessage::Changes(changes)) => {
                reached = changes.last().unwrap().revision;
                seen.extend(changes);
            }
            Ok(WatchMessage::Progress(progress)) => reached = progress,
            Err(_) => break,
        }
    }
    seen
}

async fn check(fixture: &Fixture, before: &Before) {
    let revision = fixture.store.revision().await.unwrap();
    let oldest = fixture.store.oldest().await.unwrap();
    assert!(revision >= before.told, "told {}, found {revision}", before.told);
    // Compaction itself was acknowledged as well.
    assert!(oldest >= before.compacted);

    let objects = fixture.list(KeyPrefix::everything(), None).await;
    for client in 0..CLIENTS {
        check_client(&objects, client, before.acknowledged[client]);
    }

    // A watch from the last that was seen repeats nothing and misses nothing.
    let from = before.seen.last().map_or(oldest, |last| last.revision.max(oldest));
    let later = fixture.watch(from).await.until(revision).await;
    let mut revisions = later.iter().map(|change| change.revision).collect::<Vec<_>>();
    revisions.dedup();
    let expect = (from.0 + 1..=revision.0).map(Revision).collect::<Vec<_>>();
    assert_eq!(revisions, expect);

    // The log leads from the oldest state to the present one, each change knowing what it replaced.
    let old = fixture.list(KeyPrefix::everything(), Some(oldest)).await;
    let mut state = old.into_iter().map(|record| (record.key.clone(), record)).collect();
    for change in fixture.watch(oldest).await.until(revision).await {
        replay(&mut state, change);
    }
    assert_eq!(state.into_values().collect::<Vec<_>>(), objects);
}

fn replay(state: &mut BTreeMap<Key, Record>, change: Change) {
    let Change { key, value, previous, revision } = change;
    let before = state.remove(&key);
    assert_eq!(before, previous);
    if let Some(value) = value {
        let created = before.map_or(revision, |before| before.created);
        state.insert(key.clone(), Record { key, value, revision, created });
    }
}

/// A client's pair is as after the acknowledged commits, or as after one more.
fn check_client(objects: &[Record], client: usize, acknowledged: usize) {
    let found = keys(client).map(|key| {
        objects.iter().find(|record| record.key == key).map(|record| record.value.clone())
    });
    let after = |commits: usize| match commits.checked_sub(1).map(|last| operations(client, last)) {
        None => None,
        Some(operations) => match &operations[0] {
            Op::Put { value, .. } => Some(value.clone()),
            Op::Delete { .. } => None,
        },
    };
    assert_eq!(found[0], found[1], "half a commit of client {client}");
    let possible = [after(acknowledged), after((acknowledged + 1).min(COMMITS))];
    assert!(possible.contains(&found[0]), "client {client} after {acknowledged} commits");
}

/// A disk with a new store: stores are made in a file of their own, which gets its name when it is
/// whole, so that a cut while one is made leaves none.
async fn made() -> Disk {
    let disk = Disk::new();
    fixture(EmbeddedStore::open_on(disk.clone(), &options()).unwrap()).end().await;
    disk.restart()
}

/// Works on a disk whose power goes at `cut`, and checks what is there afterwards. Returns whether
/// the power went at all.
async fn survive(cut: Cut, seed: u64) -> bool {
    println!("cut {cut:?}, seed {seed}");
    let mut random = Random(seed);
    let disk = made().await.cutting(cut);
    let before = work(&disk).await;
    let went = disk.is_off();
    let mut after = disk.after_cut(&mut random);
    for _ in 0..random.below(3) {
        // The power goes again while the store is being opened.
        let again = after.cutting(Cut::Operation(1 + random.below(12)));
        if let Ok(store) = EmbeddedStore::open_on(again.clone(), &options()) {
            fixture(store).end().await;
        }
        after = again.after_cut(&mut random);
    }
    let fixture = fixture(EmbeddedStore::open_on(after.clone(), &options()).unwrap());
    check(&fixture, &before).await;
    fixture.put(&key("things", "after"), "the store goes on").await;
    fixture.end().await;
    audit(&Builder::new().create_with_backend(after.restart()).unwrap());
    went
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn power_cuts_at_every_sync() {
    let mut number = 1;
    while survive(Cut::Sync(number), number).await {
        number += 1;
    }
    assert!(number > COMMITS as u64, "the clients' commits were synced");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn power_cuts_between_syncs() {
    let whole = made().await;
    work(&whole).await;
    let operations = whole.operations();
    for round in 0..300 {
        let seed = 0x5EED_0000 + round;
        let cut = Cut::Operation(1 + Random(seed).below(operations));
        survive(cut, seed).await;
    }
}
