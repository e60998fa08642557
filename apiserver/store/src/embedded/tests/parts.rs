//! Large parts that values have in common: stored once, counted, and gone with the last reference.

use std::collections::BTreeMap;

use redb::{Database, ReadableDatabase, ReadableTable};

use super::{fixture, open};
use crate::conformance::harness::{delete, put};
use crate::embedded::format::{self, Entry, Hash, RawRecord, RawValue};
use crate::{Key, KeyPrefix, Revision, transfer};

/// The key of an object whose large parts are stored apart.
pub(super) fn definition(name: &str) -> Key {
    let key = format!("apiextensions.k8s.io/customresourcedefinitions/{name}//{name}");
    Key::parse(key).unwrap()
}

fn value(name: &str, filling: char) -> String {
    let filling = String::from(filling).repeat(5000);
    format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"x":"{filling}"}},"status":{{}}}}"#)
}

/// Checks that parts and counts are those that records and the log refer to, and returns the counts.
pub(super) fn audit(database: &Database) -> Vec<u64> {
    let read = database.begin_read().unwrap();
    let mut expect = BTreeMap::<Hash, u64>::new();
    let mut refer = |value: RawValue<'_>| {
        if let Some(parted) = value.parted().unwrap() {
            *expect.entry(parted.hash).or_default() += 1;
        }
    };
    for entry in read.open_table(format::OBJECTS).unwrap().iter().unwrap() {
        refer(RawRecord::decode(entry.unwrap().1.value()).unwrap().value);
    }
    for entry in read.open_table(format::LOG).unwrap().iter().unwrap() {
        for change in Entry::decode(entry.unwrap().1.value()).unwrap().changes() {
            let change = change.unwrap();
            change.value.into_iter().for_each(&mut refer);
            change.previous.into_iter().for_each(|previous| refer(previous.value));
        }
    }
    let mut found = BTreeMap::<Hash, u64>::new();
    for entry in read.open_table(format::PART_COUNTS).unwrap().iter().unwrap() {
        let (hash, count) = entry.unwrap();
        let count = u64::from_be_bytes(count.value().try_into().unwrap());
        found.insert(hash.value().try_into().unwrap(), count);
    }
    assert_eq!(found, expect);
    let parts = read.open_table(format::PARTS).unwrap();
    let parts = parts.iter().unwrap().map(|entry| entry.unwrap().0.value().to_vec());
    assert_eq!(
        parts.collect::<Vec<_>>(),
        found.keys().map(|hash| hash.to_vec()).collect::<Vec<_>>()
    );
    found.into_values().collect()
}

#[tokio::test]
async fn parts_are_stored_once_and_go_with_the_last_reference() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let names = ["a", "b", "c"];
    let store = fixture(open(&path));
    for name in names {
        store.put(&definition(name), &value(name, 'x')).await;
    }
    let all = store.list(KeyPrefix::everything(), None).await;
    let values = all.iter().map(|record| record.value.clone()).collect::<Vec<_>>();
    assert_eq!(values, names.map(|name| value(name, 'x')));
    store.put(&definition("a"), &value("a", 'y')).await;
    let last = store.delete(&definition("b")).await;
    store.end().await;
    // `x`: of three records one is left; three values in the log, and two that were replaced.
    let database = Database::open(&path).unwrap();
    let mut counts = audit(&database);
    counts.sort_unstable();
    assert_eq!(counts, [2, 6]);
    drop(database);

    let store = fixture(open(&path));
    assert_eq!(store.list(KeyPrefix::everything(), Some(Revision(3))).await, all);
    let changes = store.watch(Revision(3)).await.until(last).await;
    assert_eq!(changes[0].value.as_deref(), Some(value("a", 'y').as_bytes()));
    assert_eq!(changes[0].previous, Some(all[0].clone()));
    assert_eq!(changes[1].previous, Some(all[1].clone()));
    // Two of one resource can't be in one commit; what was parted becomes small.
    store.commit(&[], vec![put(&definition("c"), "{}")]).await.unwrap();
    let last = store.commit(&[], vec![delete(&definition("a"))]).await.unwrap();
    store.store.compact(last).await.unwrap();
    store.end().await;
    let (database, none) = (Database::open(&path).unwrap(), Vec::<u64>::new());
    assert_eq!(audit(&database), none, "history is forgotten, and its parts with it");
}

#[tokio::test]
async fn files_from_before_there_were_parts_get_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let old = format!("{}/tests/data/format-1.0.redb", env!("CARGO_MANIFEST_DIR"));
    std::fs::copy(old, &path).unwrap();
    let version = || {
        let database = Database::open(&path).unwrap();
        let read = database.begin_read().unwrap();
        let meta = read.open_table(format::META).unwrap();
        let version = meta.get(format::META_FORMAT).unwrap().unwrap();
        String::from_utf8(version.value().to_vec()).unwrap()
    };
    let store = fixture(open(&path));
    store.put(&definition("a"), "{}").await;
    store.end().await;
    assert_eq!(version(), "1.0", "what needs no part needs no other version");
    let store = fixture(open(&path));
    store.put(&definition("a"), &value("a", 'x')).await;
    store.put(&definition("b"), &value("b", 'x')).await;
    store.end().await;
    assert_eq!(version(), "1.1");
    assert_eq!(audit(&Database::open(&path).unwrap()), [4]);
}

#[tokio::test]
async fn imports_have_parts_too() {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["from", "to"].map(|name| directory.path().join(name));
    let store = fixture(open(&paths[0]));
    for name in ["a", "b"] {
        store.put(&definition(name), &value(name, 'x')).await;
    }
    let all = store.list(KeyPrefix::everything(), None).await;
    let mut stream = Vec::new();
    transfer::export(&*store.store, &mut stream).await.unwrap();
    store.end().await;
    transfer::import(&paths[1], stream.as_slice()).unwrap();
    let store = fixture(open(&paths[1]));
    assert_eq!(store.list(KeyPrefix::everything(), None).await, all);
    store.end().await;
    assert_eq!(audit(&Database::open(&paths[1]).unwrap()), [2]);
}
