//! A running store: falling behind, forgetting history, filling disks.

use std::time::Duration;

use super::disk::Disk;
use super::fixture;
use crate::conformance::harness::{Fixture, key, prefix, put};
use crate::memory::{MemoryStore, Options};
use crate::{CommitError, EmbeddedOptions, EmbeddedStore, ReadError, Revision, WatchMessage};

/// A watch that is live and then not read, while more happens than memory keeps, is ended.
async fn falls_behind(fixture: Fixture) {
    let a = key("things", "a");
    let mut watch = fixture.watch(Revision(0)).await;
    assert_eq!(watch.message().await.unwrap(), WatchMessage::Progress(Revision(0)));
    let first = fixture.put(&a, "first").await;
    assert_eq!(watch.until(first).await.len(), 1);
    let mut last = first;
    for _ in 0..20 {
        last = fixture.put(&a, &"x".repeat(100)).await;
    }
    let error = watch.message().await.expect_err("it is too far behind");
    assert!(matches!(error, ReadError::Lagged), "{error}");
    // It starts again from what it has seen, and misses nothing.
    assert_eq!(fixture.watch(first).await.until(last).await.len(), 20);
    fixture.end().await;
}

#[tokio::test]
async fn watches_that_fall_behind_are_ended() {
    let options = EmbeddedOptions { recent_bytes: 2048, ..EmbeddedOptions::default() };
    falls_behind(fixture(EmbeddedStore::open_on(Disk::new(), &options).unwrap())).await;
    let options = Options { max_lag: Some(10), ..Options::default() };
    falls_behind(Fixture::new(MemoryStore::new(options))).await;
}

/// What memory no longer keeps is read from the file, and nobody misses it.
#[tokio::test]
async fn recent_commits_are_forgotten_by_memory_alone() {
    let options = EmbeddedOptions::default();
    let fixture = fixture(EmbeddedStore::open_on(Disk::new(), &options).unwrap());
    let a = key("things", "a");
    let mut live = fixture.watch(Revision(0)).await;
    let mut last = Revision(0);
    for round in 0..20 {
        last = fixture.put(&a, &round.to_string()).await;
    }
    live.until(last).await;
    let middle = Revision(last.0 - 5);
    fixture.store.forget_recent(middle);
    assert_eq!(fixture.store.figures().numbers.first(), Some(&("recentCommits", 5)));
    fixture.store.forget_recent(last);
    assert_eq!(fixture.store.figures().numbers[..2], [("recentCommits", 0), ("recentBytes", 0)]);
    assert_eq!(fixture.watch(Revision(0)).await.until(last).await.len(), 20);
    assert_eq!(fixture.list(prefix("things"), Some(middle)).await.len(), 1);
    // Who had seen everything goes on.
    last = fixture.put(&a, "next").await;
    assert_eq!(live.until(last).await.len(), 1);
    fixture.end().await;
}

/// History goes by itself when it is old enough, in parts and while commits go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_history_is_forgotten() {
    let options = EmbeddedOptions {
        history: Duration::from_millis(40),
        compaction_interval: Duration::from_millis(10),
        ..EmbeddedOptions::default()
    };
    let fixture = fixture(EmbeddedStore::open_on(Disk::new(), &options).unwrap());
    let a = key("things", "a");
    let mut last = Revision(0);
    for round in 0..2000 {
        last = fixture.put(&a, &round.to_string()).await;
    }
    let patience = tokio::time::Instant::now() + Duration::from_secs(30);
    let mut pace = tokio::time::interval(Duration::from_millis(5));
    while fixture.store.oldest().await.unwrap() < last {
        assert!(tokio::time::Instant::now() < patience, "history is still there");
        pace.tick().await;
    }
    assert_eq!(fixture.list(prefix("things"), None).await.len(), 1);
    assert_eq!(fixture.store.oldest().await.unwrap(), last);
    fixture.end().await;
}

/// What an earlier process wrote is as old as its log entries say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inherited_history_is_forgotten_by_its_time() {
    let disk = Disk::new();
    let first = fixture(EmbeddedStore::open_on(disk.clone(), &EmbeddedOptions::default()).unwrap());
    let a = key("things", "a");
    let mut last = Revision(0);
    for round in 0..50 {
        last = first.put(&a, &round.to_string()).await;
    }
    first.end().await;
    let disk = disk.restart();
    // Long enough that only the entries' own time can make them old at the first look.
    let history = Duration::from_millis(700);
    let compaction_interval = Duration::from_millis(500);
    let options = EmbeddedOptions { history, compaction_interval, ..EmbeddedOptions::default() };
    let again = fixture(EmbeddedStore::open_on(disk, &options).unwrap());
    assert_eq!(again.store.oldest().await.unwrap(), Revision(0), "nothing is compacted at start");
    let patience = tokio::time::Instant::now() + Duration::from_secs(30);
    let mut pace = tokio::time::interval(Duration::from_millis(5));
    while again.store.oldest().await.unwrap() < last {
        assert!(tokio::time::Instant::now() < patience, "history is still there");
        pace.tick().await;
    }
    again.end().await;
}

/// A disk that takes no more fails the commit, and every later one; what was read stays readable,
/// and a restart with room finds exactly what was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_acknowledges_nothing() {
    let disk = Disk::new();
    let options = EmbeddedOptions::default();
    let store = fixture(EmbeddedStore::open_on(disk.clone(), &options).unwrap());
    let a = key("things", "a");
    let kept = store.put(&a, "kept").await;
    disk.fill();
    let big = "x".repeat(100_000);
    let mut failures = 0;
    let mut acknowledged = kept;
    while failures < 3 {
        match store.commit(&[], vec![put(&a, &big)]).await {
            Ok(revision) => acknowledged = revision,
            Err(CommitError::Unavailable(_)) => failures += 1,
            Err(error) => panic!("{error}"),
        }
    }
    let seen = store.store.get(&a).await.unwrap().unwrap();
    assert_eq!(seen.revision, acknowledged);
    store.end().await;

    let again = fixture(EmbeddedStore::open_on(disk.restart(), &options).unwrap());
    let found = again.store.get(&a).await.unwrap().unwrap();
    // The failed commit may have happened; nothing else may.
    assert!(found.revision == acknowledged || found.revision == acknowledged.next());
    assert_eq!(again.store.revision().await.unwrap(), found.revision);
    again.put(&a, "goes on").await;
    again.end().await;
}
