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

/// The file, the UID that its store was made with, and whether it has values with parts.
const FILES: [(&str, &str, bool); 2] = [
    ("format-1.0.redb", "2ab51b3a-cb72-4f90-ac6c-72b8a62bac13", false),
    ("format-1.1.redb", "61b791af-3b5b-427f-8859-c0d415c6d8e5", true),
];

#[tokio::test]
async fn old_files_are_read_and_written() {
    for (name, hub_uid, parted) in FILES {
        let source = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        std::fs::copy(&source, &path).unwrap();
        let store = EmbeddedStore::open(&path, EmbeddedOptions::default()).unwrap();
        assert_eq!(store.identity().hub_uid, hub_uid, "{name}");
        assert_eq!(store.identity().rv_base, 0, "{name}");
        check(&*store, parted).await;
        store.close().await;
    }
}

async fn check(store: &dyn Store, parted: bool) {
    let last = if parted { 8 } else { 6 };
    assert_eq!(store.revision().await.unwrap(), Revision(last));
    assert_eq!(store.oldest().await.unwrap(), Revision(2));
    let large = "x".repeat(10_000);
    let now = [
        ("apps/deployments/root/one/d", b"\xff\x00\x80".as_slice(), 3, 3),
        ("core/configmaps/root/one/a", b"second", 3, 2),
        ("core/configmaps/root/one/large", large.as_bytes(), 6, 6),
        ("core/namespaces/root//one", b"{\"one\":1}", 1, 1),
    ];
    let values = ["a", "b"]
        .map(|name| format!(r#"{{"name":"{name}","spec":"{}"}}"#, "y".repeat(5000)).into_bytes());
    let definitions = [
        ("apiextensions.k8s.io/customresourcedefinitions/root//a", values[0].as_slice(), 7, 7),
        ("apiextensions.k8s.io/customresourcedefinitions/root//b", values[1].as_slice(), 8, 8),
    ];
    let definitions = if parted { definitions.as_slice() } else { &[] };
    assert_eq!(list(store, None).await, summary(&[now.as_slice(), definitions].concat()));
    let first = ("core/configmaps/root/one/a", b"first".as_slice(), 2, 2);
    assert_eq!(list(store, Some(Revision(2))).await, summary(&[first, now[3]]));
    let gone = ("core/secrets/root/one/gone", b"".as_slice(), 4, 4);
    assert_eq!(list(store, Some(Revision(4))).await, summary(&[now[0], now[1], now[3], gone]));

    let compacted = store.watch(Revision(1)).await.map(|_| ());
    assert!(matches!(compacted, Err(ReadError::Compacted { oldest: Revision(2) })));
    let mut changes = changes(store, Revision(2), if parted { 7 } else { 5 }).await;
    let later = changes.split_off(5);
    let later = later.iter().map(|change| change.value.as_deref().unwrap());
    assert!(later.eq(definitions.iter().map(|definition| definition.1)));
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
    let delete = store::Txn { ops: vec![store::Op::Delete { key }], ..store::Txn::default() };
    assert_eq!(store.commit(delete).await.unwrap(), Revision(last + 1));
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
