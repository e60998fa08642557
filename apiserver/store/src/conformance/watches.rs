//! Watches.

use super::harness::{Fixture, delete, key, put, record, updated};
use crate::{Change, Key, ReadError, Record, Revision, WatchMessage};

fn change(key: &Key, value: Option<&str>, previous: Option<Record>, revision: Revision) -> Change {
    let value = value.map(|value| value.to_owned().into());
    Change { key: key.clone(), value, previous, revision }
}

pub(super) async fn watch_from_the_beginning(fixture: &Fixture) {
    let a = key("things", "a");
    let first = fixture.put(&a, "1").await;
    let second = fixture.put(&a, "2").await;
    let changes = fixture.watch(Revision(0)).await.until(second).await;
    let expect = [
        change(&a, Some("1"), None, first),
        change(&a, Some("2"), Some(record(&a, "1", first)), second),
    ];
    assert_eq!(changes, expect);
}

pub(super) async fn watch_from_a_revision(fixture: &Fixture) {
    let a = key("things", "a");
    let mut revisions = Vec::new();
    for round in 0..10 {
        revisions.push(fixture.put(&a, &round.to_string()).await);
    }
    for (index, after) in revisions.iter().enumerate() {
        let end = *revisions.last().unwrap();
        let changes = fixture.watch(*after).await.until(end).await;
        let seen = changes.iter().map(|change| change.revision).collect::<Vec<_>>();
        assert_eq!(seen, revisions[index + 1..]);
    }
    // From the present: that there is nothing to catch up with is said at once.
    let now = fixture.store.revision().await.unwrap();
    let message = fixture.watch(now).await.message().await.unwrap();
    match message {
        WatchMessage::Progress(progress) => assert!(progress >= now),
        WatchMessage::Changes(changes) => assert!(changes[0].revision > now),
    }
}

pub(super) async fn watch_what_happens(fixture: &Fixture) {
    let a = key("things", "a");
    let mut watch = fixture.watch(fixture.store.revision().await.unwrap()).await;
    let mut previous = None::<Record>;
    for round in 0..5 {
        let value = round.to_string();
        let revision = fixture.put(&a, &value).await;
        let changes = watch.until(revision).await;
        let created = previous.as_ref().map_or(revision, |previous| previous.created);
        assert_eq!(changes, [change(&a, Some(&value), previous, revision)]);
        previous = Some(updated(&a, &value, revision, created));
    }
    let gone = fixture.delete(&a).await;
    assert_eq!(watch.until(gone).await, [change(&a, None, previous, gone)]);
}

pub(super) async fn watch_one_commit_together(fixture: &Fixture) {
    let keys = ["c", "a", "b"].map(|resource| key(resource, "x"));
    let mut watch = fixture.watch(fixture.store.revision().await.unwrap()).await;
    for round in 0..5 {
        let value = round.to_string();
        let ops = keys.iter().map(|key| put(key, &value)).collect();
        let revision = fixture.commit(&[], ops).await.unwrap();
        // `until` checks that no commit is split over messages.
        let changes = watch.until(revision).await;
        assert!(changes.iter().all(|change| change.revision == revision));
        let seen = changes.into_iter().map(|change| change.key).collect::<Vec<_>>();
        assert_eq!(seen, keys, "in the order of the operations");
    }
}

pub(super) async fn watch_previous_values(fixture: &Fixture) {
    let (a, b) = (key("things", "a"), key("others", "b"));
    let start = fixture.store.revision().await.unwrap();
    let created = fixture.commit(&[], vec![put(&a, "a1"), put(&b, "b1")]).await.unwrap();
    let mixed = fixture.commit(&[], vec![delete(&a), put(&b, "b2")]).await.unwrap();
    let again = fixture.commit(&[], vec![put(&a, "a2"), delete(&b)]).await.unwrap();
    let changes = fixture.watch(start).await.until(again).await;
    let expect = [
        change(&a, Some("a1"), None, created),
        change(&b, Some("b1"), None, created),
        change(&a, None, Some(record(&a, "a1", created)), mixed),
        change(&b, Some("b2"), Some(record(&b, "b1", created)), mixed),
        change(&a, Some("a2"), None, again),
        change(&b, None, Some(updated(&b, "b2", mixed, created)), again),
    ];
    assert_eq!(changes, expect);
}

pub(super) async fn watch_over_a_compaction(fixture: &Fixture) {
    let a = key("things", "a");
    let first = fixture.put(&a, "1").await;
    let mut watch = fixture.watch(Revision(0)).await;
    assert_eq!(watch.until(first).await.len(), 1);
    // A watch that has seen what is compacted goes on.
    fixture.store.compact(first).await.unwrap();
    let second = fixture.put(&a, "2").await;
    assert_eq!(watch.until(second).await.len(), 1);

    // One that has not is told, unless it can still have everything: nothing is left out.
    let mut late = fixture.watch(first).await;
    let third = fixture.put(&a, "3").await;
    fixture.store.compact(third).await.unwrap();
    loop {
        match late.message().await {
            Err(error) => {
                let told = matches!(error, ReadError::Compacted { .. } | ReadError::Lagged);
                break assert!(told, "{error}");
            }
            Ok(WatchMessage::Changes(changes)) => {
                break assert!(changes[0].revision > first && changes[0].revision <= second);
            }
            Ok(WatchMessage::Progress(reached)) => assert!(reached < second, "skips changes"),
        }
    }
}

/// Watches begin at every point of a line of commits that is still being written.
pub(super) async fn watch_many_commits_exactly_once(fixture: &Fixture) {
    const COMMITS: usize = 60;
    let start = fixture.store.revision().await.unwrap();
    let tasks = runtime::Tasks::new();
    let mut watches = Vec::new();
    let mut revisions = Vec::new();
    for round in 0..COMMITS {
        revisions.push(fixture.put(&key("things", &format!("k{}", round % 5)), "v").await);
        let watch = fixture.watch(start).await;
        let end = Revision(start.0 + COMMITS as u64);
        watches.push(tasks.spawn(tracing::Span::none(), async move {
            let mut watch = watch;
            watch.until(end).await
        }));
    }
    // With a second writer the line is longer than our commits.
    for watch in watches {
        let seen = watch.await.unwrap();
        let seen = seen.iter().map(|change| change.revision).collect::<Vec<_>>();
        assert!(!seen.is_empty());
        assert_eq!(seen, revisions[..seen.len()]);
    }
    let mut watch = fixture.watch(start).await;
    let seen = watch.until(*revisions.last().unwrap()).await;
    assert_eq!(seen.iter().map(|change| change.revision).collect::<Vec<_>>(), revisions);
}
