use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::conformance::harness::{Fixture, key, put};
use crate::memory::{MemoryStore, Options};
use crate::{EmbeddedOptions, EmbeddedStore, Expect, KeyPrefix, Op, ReadError, Revision};

/// A store with some history, and its export.
async fn exported() -> (Fixture, Vec<u8>) {
    let fixture = Fixture::new(MemoryStore::new(Options { rv_base: 500, ..Options::default() }));
    for number in 0..150 {
        fixture.put(&key("things", &format!("k{number:03}")), "old").await;
    }
    for number in (0..150).step_by(3) {
        fixture.delete(&key("things", &format!("k{number:03}"))).await;
    }
    let binary = Op::Put { key: key("others", "binary"), value: vec![0xff, 0, 0x80].into() };
    fixture
        .commit(&[], vec![binary, put(&key("things", "k001"), "{\"a\":\"\\n\"}")])
        .await
        .unwrap();
    let mut stream = Vec::new();
    let summary = export(&*fixture.store, &mut stream).await.unwrap();
    assert_eq!((summary.records, summary.revision), (101, Revision(201)));
    assert_eq!(summary.resource_version, 701);
    (fixture, stream)
}

fn target() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    (directory, path)
}

fn open(path: &Path) -> Fixture {
    Fixture::new(EmbeddedStore::open(path, EmbeddedOptions::default()).unwrap())
}

#[tokio::test]
async fn a_store_moves_whole() {
    let (source, stream) = exported().await;
    let (_directory, path) = target();
    let summary = import(&path, stream.as_slice()).unwrap();
    assert_eq!((summary.records, summary.revision), (101, Revision(201)));

    let moved = open(&path);
    let everything = KeyPrefix::everything;
    assert_eq!(moved.list(everything(), None).await, source.list(everything(), None).await);
    assert_eq!(moved.store.identity().hub_uid, source.store.identity().hub_uid);
    assert!(moved.store.identity().rv_base > 701, "above anything ever served");
    // It stands where the source stood, without the history before.
    assert_eq!(moved.store.revision().await.unwrap(), Revision(201));
    assert_eq!(moved.store.oldest().await.unwrap(), Revision(201));
    let old = moved.store.watch(Revision(200)).await.map(|_| ());
    assert!(matches!(old, Err(ReadError::Compacted { .. })), "{old:?}");
    let k001 = key("things", "k001");
    let next = moved.commit(&[(&k001, Expect::At(Revision(201)))], vec![put(&k001, "new")]).await;
    assert_eq!(next.unwrap(), Revision(202));

    // And once more: resourceVersions rise again, and the stream of a store's file is equal.
    let mut again = Vec::new();
    let second = export(&*moved.store, &mut again).await.unwrap();
    moved.end().await;
    let (_directory, path) = target();
    import(&path, again.as_slice()).unwrap();
    let moved = open(&path);
    let base = moved.store.identity().rv_base;
    assert!(base > second.resource_version);
    moved.end().await;
    // The same stream once more is another incarnation, above what the one before has served.
    let (_directory, path) = target();
    import(&path, again.as_slice()).unwrap();
    let twice = open(&path);
    assert!(twice.store.identity().rv_base > base + 1000);
    twice.end().await;
}

#[tokio::test]
async fn an_empty_store_moves() {
    let source = MemoryStore::new(Options::default());
    let mut stream = Vec::new();
    export(&*source, &mut stream).await.unwrap();
    let (_directory, path) = target();
    assert_eq!(import(&path, stream.as_slice()).unwrap().records, 0);
    let moved = open(&path);
    assert_eq!(moved.put(&key("things", "a"), "1").await, Revision(1));
    moved.end().await;
}

#[tokio::test]
async fn targets_that_exist_are_kept() {
    let (_source, stream) = exported().await;
    let (_directory, path) = target();
    std::fs::write(&path, "something").unwrap();
    let result = import(&path, stream.as_slice());
    assert!(matches!(result, Err(ImportError::Exists)), "{result:?}");
    assert_eq!(std::fs::read(&path).unwrap(), b"something");
}

#[tokio::test]
async fn a_stream_cut_anywhere_is_refused() {
    let (_source, stream) = exported().await;
    let (directory, path) = target();
    let lines = stream.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let ends = lines.map(|(end, _)| end).collect::<Vec<_>>();
    let whole = stream.len();
    let some = [0, 1, ends[0], ends[0] + 1, ends[40], ends[40] + 1, whole - 2, whole - 1];
    for end in some {
        let result = import(&path, &stream[..end]);
        let truncated = matches!(result, Err(ImportError::Stream(StreamError::Truncated)));
        assert!(truncated, "cut at {end}: {result:?}");
        let left = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(left, 0, "nothing is left of an import that failed");
    }
}

#[tokio::test]
async fn changed_streams_are_refused() {
    let (_source, stream) = exported().await;
    let (_directory, path) = target();
    let text = String::from_utf8(stream).unwrap();
    let lines = text.lines().collect::<Vec<_>>();
    let check = |lines: &[&str], expect: &str| {
        let stream = lines.join("\n") + "\n";
        let error = import(&path, stream.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), expect);
    };
    let edit = |line: usize, from: &str, to: &str| {
        let mut text = lines.join("\n");
        assert!(lines[line].contains(from), "{}", lines[line]);
        text = text.replacen(lines[line], &lines[line].replace(from, to), 1);
        text
    };
    let checked = |line, from, to, expect| {
        let text = edit(line, from, to);
        check(&text.lines().collect::<Vec<_>>(), expect);
    };
    check(&["{}"], "line 1: no line of an export at column 2");
    check(&["not json"], "line 1: no line of an export at column 2");
    checked(
        0,
        "kcp-store/1",
        "kcp-store/2",
        "stream has format \"kcp-store/2\", this program reads \"kcp-store/1\"",
    );
    checked(0, "hub_uid\":\"", "hub_uid\":\"x", "line 1: hub_uid is not a UUID");
    checked(
        0,
        ":701",
        ":9223372036854775807",
        "line 1: revision and resource_version are out of range",
    );
    checked(1, "core/others", "core//others", "line 2: it has no valid key");
    checked(1, "/wCA", "/w!A", "line 2: its base64 is invalid");
    checked(1, "base64", "unknown", "line 2: it must have one of value and base64");
    checked(1, ":201", ":202", "line 2: its revision is not of the stream");
    let creation = "line 2: its creation is not between 1 and its revision";
    checked(1, "created\":201", "created\":202", creation);
    checked(1, "created\":201", "created\":0", creation);
    checked(1, "created", "made", creation);
    checked(3, "old", "new", "stream was changed: its hash differs");
    let swapped = [&lines[..2], &[lines[3], lines[2]], &lines[4..]].concat();
    check(&swapped, "line 4: keys are not in ascending order");
    check(
        &[&lines[..50], &lines[51..]].concat(),
        "stream was changed: its number of records differs",
    );
    check(&[&lines[..], &lines[101..]].concat(), "line 104: it stands behind the trailer");
}

#[tokio::test]
async fn a_file_shrinks() {
    let (_directory, path) = target();
    let store = open(&path);
    let value = "v".repeat(100_000);
    for number in 0..60 {
        store.put(&key("things", &format!("k{number}")), &value).await;
    }
    let mut last = Revision(0);
    for number in 1..60 {
        last = store.delete(&key("things", &format!("k{number}"))).await;
    }
    store.store.compact(last).await.unwrap();
    let locked = compact_file(&path);
    assert!(matches!(locked, Err(OpenError::Locked)), "{locked:?}");
    store.end().await;

    let shrunk = compact_file(&path).unwrap();
    assert!(shrunk.after < shrunk.before / 4, "{shrunk:?}");
    assert_eq!(shrunk.after, std::fs::metadata(&path).unwrap().len());
    let store = open(&path);
    assert_eq!(store.list(KeyPrefix::everything(), None).await.len(), 1);
    assert_eq!(store.store.revision().await.unwrap(), last);
    store.end().await;

    let absent = compact_file(&path.with_file_name("absent"));
    assert!(matches!(absent, Err(OpenError::Io(_))), "{absent:?}");
    assert!(!path.with_file_name("absent").exists());
}
