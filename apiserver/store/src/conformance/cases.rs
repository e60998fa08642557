//! Commits and reads.

use std::sync::Arc;

use super::harness::{Fixture, conflict, delete, key, prefix, put, record, updated};
use crate::{
    CommitError, Compare, Expect, Key, KeyPrefix, MAX_COMMIT_BYTES, Op, Range, ReadError, Revision,
    Txn,
};

pub(super) async fn compare_and_swap(fixture: &Fixture) {
    let a = key("things", "a");
    assert_eq!(fixture.store.get(&a).await.unwrap(), None);

    // Create.
    let first = fixture.commit(&[(&a, Expect::Absent)], vec![put(&a, "1")]).await.unwrap();
    let present = Some(record(&a, "1", first));
    assert_eq!(fixture.store.get(&a).await.unwrap(), present);
    let again = fixture.commit(&[(&a, Expect::Absent)], vec![put(&a, "x")]).await;
    assert_eq!(conflict(again, &a), present);

    // Update.
    let second = fixture.commit(&[(&a, Expect::At(first))], vec![put(&a, "2")]).await.unwrap();
    assert!(second > first);
    let stale = fixture.commit(&[(&a, Expect::At(first))], vec![put(&a, "x")]).await;
    assert_eq!(conflict(stale, &a), Some(updated(&a, "2", second, first)));
    let third = fixture.commit(&[(&a, Expect::Present)], vec![put(&a, "3")]).await.unwrap();

    // Delete.
    let stale = fixture.commit(&[(&a, Expect::At(second))], vec![delete(&a)]).await;
    assert_eq!(conflict(stale, &a), Some(updated(&a, "3", third, first)));
    fixture.commit(&[(&a, Expect::At(third))], vec![delete(&a)]).await.unwrap();
    assert_eq!(fixture.store.get(&a).await.unwrap(), None);
    for expect in [Expect::Present, Expect::At(third)] {
        let gone = fixture.commit(&[(&a, expect)], vec![put(&a, "x")]).await;
        assert_eq!(conflict(gone, &a), None);
    }
}

pub(super) async fn compares_over_several_keys(fixture: &Fixture) {
    let (a, b, c) = (key("things", "a"), key("others", "b"), key("guards", "c"));
    let guard = fixture.put(&c, "guard").await;

    let compares = [
        (&c, Expect::At(guard)),
        (&a, Expect::Absent),
        (&b, Expect::Absent),
        (&c, Expect::Present),
    ];
    let both = fixture.commit(&compares, vec![put(&a, "1"), put(&b, "1")]).await.unwrap();
    assert_eq!(fixture.store.get(&a).await.unwrap(), Some(record(&a, "1", both)));
    assert_eq!(fixture.store.get(&b).await.unwrap(), Some(record(&b, "1", both)));

    // One failing compare stops all operations, and the first that fails is told.
    let compares = [(&a, Expect::At(both)), (&b, Expect::Absent), (&c, Expect::Absent)];
    let result = fixture.commit(&compares, vec![put(&a, "2"), delete(&b)]).await;
    assert_eq!(conflict(result, &b), Some(record(&b, "1", both)));
    assert_eq!(fixture.store.get(&a).await.unwrap(), Some(record(&a, "1", both)));

    // Compares look at the state before the commit.
    let compares = [(&a, Expect::Present), (&a, Expect::At(both))];
    fixture.commit(&compares, vec![delete(&a), put(&b, "2")]).await.unwrap();
    assert_eq!(fixture.store.get(&a).await.unwrap(), None);
}

pub(super) async fn malformed_commits(fixture: &Fixture) {
    let (a, b) = (key("things", "a"), key("things", "b"));
    let malformed = [
        vec![put(&a, "1"), put(&a, "2")],
        vec![put(&a, "1"), delete(&a)],
        vec![put(&a, "1"), put(&b, "1")],
        vec![delete(&b), put(&a, "1")],
    ];
    for ops in malformed {
        let result = fixture.commit(&[], ops).await;
        assert!(matches!(result, Err(CommitError::Malformed(_))), "{result:?}");
    }
    let value = vec![b'x'; MAX_COMMIT_BYTES].into();
    let result = fixture.commit(&[], vec![Op::Put { key: a.clone(), value }]).await;
    assert!(matches!(result, Err(CommitError::TooLarge { .. })), "{result:?}");
    let value = vec![b'x'; MAX_COMMIT_BYTES - a.as_bytes().len() - fixture.added].into();
    fixture.commit(&[], vec![Op::Put { key: a.clone(), value }]).await.unwrap();
    assert_eq!(fixture.list(prefix("things"), None).await.len(), 1);
}

pub(super) async fn revisions_increase(fixture: &Fixture) {
    let mut last = fixture.store.revision().await.unwrap();
    for round in 0..20 {
        let a = key("things", &format!("k{}", round % 3));
        let revision = fixture.put(&a, &round.to_string()).await;
        assert!(revision > last);
        // Reads without a revision see the commit, and say a revision at which it is there.
        assert_eq!(fixture.store.get(&a).await.unwrap().unwrap().revision, revision);
        assert!(fixture.store.revision().await.unwrap() >= revision);
        last = revision;
    }
}

pub(super) async fn no_change_takes_no_revision(fixture: &Fixture) {
    let (a, b) = (key("things", "a"), key("others", "b"));
    let written = fixture.put(&a, "1").await;
    let before = fixture.store.revision().await.unwrap();
    let absent = fixture.commit(&[], vec![delete(&b)]).await.unwrap();
    let nothing = fixture.commit(&[(&a, Expect::At(written))], vec![]).await.unwrap();
    assert!(absent >= before && nothing >= absent);
    let end = fixture.put(&a, "2").await;
    let changes = fixture.watch(written).await.until(end).await;
    assert_eq!(changes.len(), 1, "only the last put changed anything");
    // The same value again is a change.
    assert!(fixture.put(&a, "2").await > end);
}

pub(super) async fn ranges_are_ordered_and_bounded(fixture: &Fixture) {
    let names =
        ["core/things/a/ns/x", "core/things/b//x", "core/things/b/ns/x", "core/things/b/ns/y"];
    let others = ["core/thing/b/ns/x", "core/thingsy/b/ns/x", "apps/things/b/ns/x"];
    for text in others.iter().chain(&names).rev() {
        fixture.put(&Key::parse(text).unwrap(), text).await;
    }
    let cluster = |name| machinery::ClusterName::parse(name).unwrap();
    let resource = machinery::GroupResource::new("", "things");
    let check = async |prefix: KeyPrefix, after: Option<&str>, limit, expect: &[&str], more| {
        let after = after.map(|after| Key::parse(after).unwrap());
        let range = Range { prefix, after, limit };
        let page = fixture.store.range(range, None).await.unwrap();
        let found = page.records.iter().map(|record| record.key.as_str()).collect::<Vec<_>>();
        assert_eq!((found.as_slice(), page.more), (expect, more));
        assert!(page.records.iter().all(|record| record.value == record.key.as_bytes()));
    };
    let all = || KeyPrefix::resource(&resource);
    check(all(), None, 0, &names, false).await;
    check(all(), None, 4, &names, false).await;
    check(all(), None, 3, &names[..3], true).await;
    check(all(), Some(names[0]), 2, &names[1..3], true).await;
    check(all(), Some(names[2]), 2, &names[3..], false).await;
    check(all(), Some(names[3]), 2, &[], false).await;
    // A start between keys, before the prefix, and behind it.
    check(all(), Some("core/things/b/nr/z"), 0, &names[2..], false).await;
    check(all(), Some("apps/things/a/b/c"), 0, &names, false).await;
    check(all(), Some("core/zzz/a/b/c"), 0, &[], false).await;
    check(KeyPrefix::cluster(&resource, &cluster("b")), None, 0, &names[1..], false).await;
    check(KeyPrefix::namespace(&resource, &cluster("b"), "ns"), None, 0, &names[2..], false).await;
    check(KeyPrefix::namespace(&resource, &cluster("b"), ""), None, 0, &names[1..2], false).await;
    check(KeyPrefix::cluster(&resource, &cluster("c")), None, 0, &[], false).await;
}

pub(super) async fn ranges_at_old_revisions(fixture: &Fixture) {
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| key("things", name));
    let start = fixture.store.revision().await.unwrap();
    let a1 = fixture.put(&a, "a1").await;
    let b1 = fixture.put(&b, "b1").await;
    let b2 = fixture.put(&b, "b2").await;
    let d1 = fixture.put(&d, "d1").await;
    let gone = fixture.delete(&b).await;
    let c1 = fixture.put(&c, "c1").await;
    let b3 = fixture.put(&b, "b3").await;
    let d2 = fixture.put(&d, "d2").await;

    let (at_a1, at_b3) = (record(&a, "a1", a1), record(&b, "b3", b3));
    let (at_c1, at_d1) = (record(&c, "c1", c1), record(&d, "d1", d1));
    let check = async |at, expect: Vec<_>| {
        assert_eq!(fixture.list(prefix("things"), Some(at)).await, expect, "at {at}");
    };
    check(start, vec![]).await;
    check(a1, vec![at_a1.clone()]).await;
    check(b1, vec![at_a1.clone(), record(&b, "b1", b1)]).await;
    check(b2, vec![at_a1.clone(), updated(&b, "b2", b2, b1)]).await;
    check(d1, vec![at_a1.clone(), updated(&b, "b2", b2, b1), at_d1.clone()]).await;
    check(gone, vec![at_a1.clone(), at_d1.clone()]).await;
    check(c1, vec![at_a1.clone(), at_c1.clone(), at_d1.clone()]).await;
    check(b3, vec![at_a1.clone(), at_b3.clone(), at_c1.clone(), at_d1]).await;
    check(d2, vec![at_a1, at_b3, at_c1, updated(&d, "d2", d2, d1)]).await;
}

pub(super) async fn pages_at_one_revision_while_writes_go_on(fixture: &Fixture) {
    let name = |number: usize| key("things", &format!("k{number:03}"));
    for number in 0..40 {
        fixture.put(&name(number * 2), &number.to_string()).await;
    }
    let at = fixture.store.revision().await.unwrap();
    let expect = fixture.list(prefix("things"), Some(at)).await;
    assert_eq!(expect.len(), 40);
    for limit in [1, 7, 39, 40, 41] {
        let mut found = Vec::new();
        let mut after = None;
        for round in 0.. {
            // Before, in and behind the page: deleted, created, updated, made again.
            fixture.delete(&name((round * 14 + 4) % 80)).await;
            fixture.put(&name((round * 10 + 3) % 80), "new").await;
            fixture.put(&name((round * 26 + 2) % 80), "updated").await;
            let range = Range { prefix: prefix("things"), after: after.clone(), limit };
            let page = fixture.store.range(range, Some(at)).await.unwrap();
            assert_eq!(page.revision, at);
            assert_eq!(page.more, found.len() + page.records.len() < expect.len());
            assert!(page.records.len() == limit || !page.more);
            found.extend(page.records);
            if !page.more {
                break;
            }
            after = found.last().map(|record| record.key.clone());
        }
        assert_eq!(found, expect, "pages of {limit}");
    }
}

/// Creation stays over updates, and is new after a deletion, real or by the empty value.
pub(super) async fn creation_revisions(fixture: &Fixture) {
    let a = key("things", "a");
    let first = fixture.put(&a, "1").await;
    let second = fixture.put(&a, "2").await;
    let third = fixture.commit(&[(&a, Expect::At(second))], vec![put(&a, "3")]).await.unwrap();
    let gone = fixture.delete(&a).await;
    let again = fixture.commit(&[(&a, Expect::Absent)], vec![put(&a, "4")]).await.unwrap();
    let fifth = fixture.put(&a, "5").await;
    let hidden = fixture.put(&a, "").await;
    let anew = fixture.put(&a, "6").await;
    let last = fixture.put(&a, "7").await;

    let line = [
        Some(record(&a, "1", first)),
        Some(updated(&a, "2", second, first)),
        Some(updated(&a, "3", third, first)),
        None,
        Some(record(&a, "4", again)),
        Some(updated(&a, "5", fifth, again)),
        Some(updated(&a, "", hidden, again)),
        Some(record(&a, "6", anew)),
        Some(updated(&a, "7", last, anew)),
    ];
    assert_eq!(fixture.store.get(&a).await.unwrap(), line[8]);
    let revisions = [first, second, third, gone, again, fifth, hidden, anew, last];
    for (at, expect) in revisions.into_iter().zip(&line) {
        let found = fixture.list(prefix("things"), Some(at)).await;
        assert_eq!(found, expect.iter().cloned().collect::<Vec<_>>(), "at {at}");
    }
    let changes = fixture.watch(Revision(0)).await.until(last).await;
    assert_eq!(changes.len(), line.len());
    let before = std::iter::once(&None).chain(&line);
    for ((change, previous), now) in changes.iter().zip(before).zip(&line) {
        assert_eq!((&change.previous, &change.record()), (previous, now), "at {}", change.revision);
    }
}

pub(super) async fn compacted_revisions(fixture: &Fixture) {
    let [a, b] = ["a", "b"].map(|name| key("things", name));
    let a1 = fixture.put(&a, "a1").await;
    let a2 = fixture.put(&a, "a2").await;
    let b1 = fixture.put(&b, "b1").await;
    fixture.store.compact(a2).await.unwrap();
    let end = fixture.delete(&a).await;
    assert_eq!(fixture.store.oldest().await.unwrap(), a2);

    for before in [Revision(0), a1, Revision(a2.0 - 1)] {
        assert_compacted(fixture, before, a2).await;
    }
    assert_eq!(fixture.list(prefix("things"), Some(a2)).await, [updated(&a, "a2", a2, a1)]);
    let changes = fixture.watch(a2).await.until(end).await;
    let revisions = changes.iter().map(|change| change.revision).collect::<Vec<_>>();
    assert_eq!(revisions, [b1, end]);

    // Compaction does not go back, nor beyond the present.
    fixture.store.compact(a1).await.unwrap();
    assert_eq!(fixture.store.oldest().await.unwrap(), a2);
    fixture.store.compact(Revision(u64::MAX)).await.unwrap();
    let oldest = fixture.store.oldest().await.unwrap();
    assert!(oldest >= end && oldest <= fixture.store.revision().await.unwrap());
    assert_eq!(fixture.list(prefix("things"), None).await, [record(&b, "b1", b1)]);
}

async fn assert_compacted(fixture: &Fixture, at: Revision, expect: Revision) {
    let range = Range { prefix: prefix("things"), after: None, limit: 0 };
    let page = fixture.store.range(range, Some(at)).await;
    assert!(matches!(page, Err(ReadError::Compacted { oldest }) if oldest == expect), "{page:?}");
    let watch = fixture.store.watch(at).await.map(|_| ());
    assert!(matches!(watch, Err(ReadError::Compacted { oldest }) if oldest == expect), "{watch:?}");
}

pub(super) async fn future_revisions(fixture: &Fixture) {
    let written = fixture.put(&key("things", "a"), "1").await;
    let future = Revision(fixture.store.revision().await.unwrap().0 + 1_000_000);
    let range = Range { prefix: prefix("things"), after: None, limit: 0 };
    let result = fixture.store.range(range, Some(future)).await;
    assert!(
        matches!(result, Err(ReadError::Future { current }) if current >= written),
        "{result:?}"
    );
    let result = fixture.store.watch(future).await.map(|_| ());
    assert!(
        matches!(result, Err(ReadError::Future { current }) if current >= written),
        "{result:?}"
    );
}

/// Several writers increment one counter: no increment is lost, no revision is given twice.
pub(super) async fn counting_by_compare_and_swap(fixture: &Fixture) {
    const WRITERS: usize = 6;
    const ROUNDS: usize = 20;
    let counter = key("things", "counter");
    let count = async |store: Arc<dyn crate::Store>, counter: Key| {
        let mut revisions = Vec::new();
        while revisions.len() < ROUNDS {
            let current = store.get(&counter).await.unwrap();
            let value = current.as_ref().map_or(0, |record| {
                std::str::from_utf8(&record.value).unwrap().parse::<usize>().unwrap()
            });
            let expect = current.map_or(Expect::Absent, |record| Expect::At(record.revision));
            let txn = Txn {
                compares: vec![Compare { key: counter.clone(), expect }],
                ops: vec![put(&counter, &(value + 1).to_string())],
                ..Txn::default()
            };
            match store.commit(txn).await {
                Ok(revision) => revisions.push(revision),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        revisions
    };
    let tasks = runtime::Tasks::new();
    let writers = (0..WRITERS)
        .map(|_| tasks.spawn(tracing::Span::none(), count(fixture.store.clone(), counter.clone())));
    let mut revisions = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        revisions.extend(writer.await.unwrap());
    }
    revisions.sort_unstable();
    revisions.dedup();
    assert_eq!(revisions.len(), WRITERS * ROUNDS);
    let last = fixture.store.get(&counter).await.unwrap().unwrap();
    let (first, end) = (revisions[0], revisions[WRITERS * ROUNDS - 1]);
    assert_eq!(last, updated(&counter, &(WRITERS * ROUNDS).to_string(), end, first));
}

pub(super) async fn closing(fixture: &Fixture) {
    let identity = fixture.store.identity().clone();
    assert_eq!(identity.hub_uid.len(), 36);
    let a = key("things", "a");
    let end = fixture.put(&a, "1").await;
    let mut watch = fixture.watch(Revision(0)).await;
    assert_eq!(watch.until(end).await.len(), 1);
    fixture.store.close().await;
    let error = loop {
        // With a second writer there may be more before the end.
        if let Err(error) = watch.message().await {
            break error;
        }
    };
    assert!(matches!(error, ReadError::Unavailable(_)), "{error}");
    let result = fixture.commit(&[], vec![put(&a, "2")]).await;
    assert!(matches!(result, Err(CommitError::Unavailable(_))), "{result:?}");
}
