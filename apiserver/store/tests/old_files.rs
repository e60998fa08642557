//! Store files of every version that was ever released stay readable.
//!
//! The files are written by `examples/format_file.rs`, once for each version.

#![allow(clippy::unwrap_used, reason = "a test; clippy's exception for tests ends at helpers")]

use std::collections::BTreeMap;

use futures::StreamExt;
use store::{
    Change, EmbeddedOptions, EmbeddedStore, KeyPrefix, Range, ReadError, Record, Revision, Store,
    WatchMessage,
};

/// The file, and the UID that its store was made with.
const FILES: [(&str, &str); 1] = [("format-1.0.redb", "2ab51b3a-cb72-4f90-ac6c-72b8a62bac13")];

#[tokio::test]
async fn old_files_are_read_and_written() {
    for (name, hub_uid) in FILES {
        let source = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        std::fs::copy(&source, &path).unwrap();
        let store = EmbeddedStore::open(&path, EmbeddedOptions::default()).unwrap();
        assert_eq!(store.identity().hub_uid, hub_uid, "{name}");
        assert_eq!(store.identity().rv_base, 0, "{name}");
        check(&*store).await;
        store.close().await;
    }
}

async fn check(store: &dyn Store) {
    assert_eq!(store.revision().await.unwrap(), Revision(6));
    assert_eq!(store.oldest().await.unwrap(), Revision(2));
    let large = "x".repeat(10_000);
    let now = [
        ("apps/deployments/root/one/d", b"\xff\x00\x80".as_slice(), 3, 3),
        ("core/configmaps/root/one/a", b"second", 3, 2),
        ("core/configmaps/root/one/large", large.as_bytes(), 6, 6),
        ("core/namespaces/root//one", b"{\"one\":1}", 1, 1),
    ];
    assert_eq!(list(store, None).await, summary(&now));
    let first = ("core/configmaps/root/one/a", b"first".as_slice(), 2, 2);
    assert_eq!(list(store, Some(Revision(2))).await, summary(&[first, now[3]]));
    let gone = ("core/secrets/root/one/gone", b"".as_slice(), 4, 4);
    assert_eq!(list(store, Some(Revision(4))).await, summary(&[now[0], now[1], now[3], gone]));

    let compacted = store.watch(Revision(1)).await.map(|_| ());
    assert!(matches!(compacted, Err(ReadError::Compacted { oldest: Revision(2) })));
    let changes = changes(store, Revision(2), 5).await;
    let seen = changes.iter().map(|change| (change.revision.0, change.key.as_str()));
    let expect = [
        (3, "core/configmaps/root/one/a"),
        (3, "apps/deployments/root/one/d"),
        (4, "core/secrets/root/one/gone"),
        (5, "core/secrets/root/one/gone"),
        (6, "core/configmaps/root/one/large"),
    ];
    assert_eq!(seen.collect::<Vec<_>>(), expect);
    let previous = Record {
        key: changes[0].key.clone(),
        value: "first".into(),
        revision: Revision(2),
        created: Revision(2),
    };
    assert_eq!(changes[0].previous, Some(previous));
    assert_eq!(changes[0].created(), Revision(2));
    assert_eq!(changes[3].value, None);

    // The line of commits goes on.
    let key = changes[0].key.clone();
    let delete = store::Txn { compares: vec![], ops: vec![store::Op::Delete { key }] };
    assert_eq!(store.commit(delete).await.unwrap(), Revision(7));
}

/// Value, revision and revision of creation, by key.
type Summary = BTreeMap<String, (Vec<u8>, u64, u64)>;

fn summary(records: &[(&str, &[u8], u64, u64)]) -> Summary {
    let each = records.iter();
    each.map(|(key, value, revision, created)| {
        ((*key).to_owned(), (value.to_vec(), *revision, *created))
    })
    .collect()
}

async fn list(store: &dyn Store, at: Option<Revision>) -> Summary {
    let range = Range { prefix: KeyPrefix::everything(), after: None, limit: 0 };
    let page = store.range(range, at).await.unwrap();
    let each = page.records.into_iter();
    each.map(|Record { key, value, revision, created }| {
        (key.as_str().to_owned(), (value.to_vec(), revision.0, created.0))
    })
    .collect()
}

async fn changes(store: &dyn Store, after: Revision, count: usize) -> Vec<Change> {
    let mut watch = store.watch(after).await.unwrap();
    let mut all = Vec::new();
    while all.len() < count {
        match watch.next().await.unwrap().unwrap() {
            WatchMessage::Changes(changes) => all.extend(changes),
            WatchMessage::Progress(reached) => panic!("only {} until {reached}", all.len()),
        }
    }
    all
}
