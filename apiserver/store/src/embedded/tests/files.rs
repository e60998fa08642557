//! Opening files: what was written is there, other versions and foreign files are told apart.

use redb::{Database, ReadableDatabase, TableDefinition};

use super::{fixture, open};
use crate::conformance::harness::{delete, key, prefix, put, record, updated};
use crate::embedded::format;
use crate::{EmbeddedOptions, EmbeddedStore, Expect, OpenError, ReadError, Revision, Store};

const LATER: TableDefinition<'static, u64, u64> = TableDefinition::new("table_of_a_later_minor");

#[tokio::test]
async fn reopening_keeps_everything() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let (a, b) = (key("things", "a"), key("others", "b"));

    let first = fixture(open(&path));
    let identity = first.store.identity().clone();
    let created = first.commit(&[], vec![put(&a, "a1"), put(&b, "b1")]).await.unwrap();
    let changed = first.put(&a, "a2").await;
    let gone = first.delete(&b).await;
    first.store.compact(created).await.unwrap();
    first.end().await;

    let again = fixture(open(&path));
    assert_eq!(again.store.identity(), &identity);
    assert_eq!(again.store.revision().await.unwrap(), gone);
    assert_eq!(again.store.oldest().await.unwrap(), created);
    let now = updated(&a, "a2", changed, created);
    assert_eq!(again.list(prefix("things"), None).await, std::slice::from_ref(&now));
    assert_eq!(again.list(prefix("others"), Some(created)).await, [record(&b, "b1", created)]);
    let too_old = again.store.watch(Revision(0)).await.map(|_| ());
    assert!(matches!(too_old, Err(ReadError::Compacted { oldest }) if oldest == created));
    let mut watch = again.watch(created).await;
    let seen = watch.until(gone).await;
    assert_eq!(seen.iter().map(|change| change.revision).collect::<Vec<_>>(), [changed, gone]);
    assert_eq!(seen[0].previous, Some(record(&a, "a1", created)));
    assert_eq!(seen[1].previous, Some(record(&b, "b1", created)));

    // The line of revisions goes on, and compares hold against what was written before.
    let next = again.commit(&[(&a, Expect::At(changed))], vec![delete(&a)]).await.unwrap();
    assert_eq!(next, gone.next());
    let seen = watch.until(next).await;
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].previous, Some(now));
    again.end().await;
}

#[tokio::test]
async fn a_store_is_open_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path);
    let second = EmbeddedStore::open(&path, EmbeddedOptions::default());
    assert!(matches!(second, Err(OpenError::Locked)), "{second:?}");
    store.close().await;
    open(&path).close().await;
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    open(&path).close().await;
    let names = std::fs::read_dir(directory.path()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(names, ["store"], "nothing is left of making it");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn foreign_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let check = |name: &str, content: &[u8], expect: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        let error = EmbeddedStore::open(&path, EmbeddedOptions::default()).unwrap_err();
        assert_eq!(error.to_string(), expect, "{name}");
        assert_eq!(std::fs::read(&path).unwrap(), content, "{name} is left as it was");
    };
    check("text", b"this is not a database at all", "file is not a store");
    check("sqlite", &[b"SQLite format 3\0".as_slice(), &[0; 8192]].concat(), "file is not a store");

    // What a crash left while a store was made is in nobody's way, and stays as it may be in use.
    let half = directory.path().join("half.new-00000000");
    std::fs::write(&half, [0; 4096]).unwrap();
    open(&directory.path().join("half")).close().await;
    assert!(half.exists());

    let absent = directory.path().join("no").join("such").join("directory");
    let error = EmbeddedStore::open(&absent, EmbeddedOptions::default()).unwrap_err();
    assert!(matches!(error, OpenError::Io(_)), "{error}");

    let other = directory.path().join("other");
    let database = Database::create(&other).unwrap();
    let write = database.begin_write().unwrap();
    write.open_table(LATER).unwrap();
    write.commit().unwrap();
    drop(database);
    let error = EmbeddedStore::open(&other, EmbeddedOptions::default()).unwrap_err();
    assert!(matches!(error, OpenError::NotAStore), "{error}");

    // An empty file is what a crash while making a store leaves.
    let empty = directory.path().join("empty");
    std::fs::write(&empty, b"").unwrap();
    open(&empty).close().await;
}

fn edit(path: &std::path::Path, edit: impl FnOnce(&redb::WriteTransaction)) {
    let database = Database::create(path).unwrap();
    let write = database.begin_write().unwrap();
    edit(&write);
    write.commit().unwrap();
}

#[tokio::test]
async fn other_majors_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    open(&path).close().await;
    for version in ["2.0", "0.9", "1", "", "1.x", "10.0"] {
        edit(&path, |write| {
            let mut meta = write.open_table(format::META).unwrap();
            meta.insert(format::META_FORMAT, version.as_bytes()).unwrap();
        });
        let error = EmbeddedStore::open(&path, EmbeddedOptions::default()).unwrap_err();
        let expect = format!("store has format {version}, this program reads 1.x");
        assert_eq!(error.to_string(), expect);
    }
}

/// What a later minor version may have written is passed over by reads and kept by writes.
#[tokio::test]
async fn later_minors_are_read_and_preserved() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let a = key("things", "a");
    let first = fixture(open(&path));
    let written = first.put(&a, "1").await;
    first.end().await;

    let unknown_key = b"core/things/six/segments/in/key".as_slice();
    let mut entry = Vec::new();
    format::encode_entry(&mut entry, 1, std::iter::empty());
    entry.extend_from_slice(b"behind the changes");
    edit(&path, |write| {
        let mut meta = write.open_table(format::META).unwrap();
        meta.insert(format::META_FORMAT, b"1.7".as_slice()).unwrap();
        meta.insert(b"later".as_slice(), b"kept".as_slice()).unwrap();
        write.open_table(LATER).unwrap().insert(1, 2).unwrap();
        let mut objects = write.open_table(format::OBJECTS).unwrap();
        let bytes = b"\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x02\x0fvalue";
        objects.insert(unknown_key, bytes.as_slice()).unwrap();
        write.open_table(format::LOG).unwrap().insert(written.0 + 1, entry.as_slice()).unwrap();
    });

    let again = fixture(open(&path));
    assert_eq!(again.store.revision().await.unwrap(), written.next());
    assert_eq!(again.list(prefix("things"), None).await, [record(&a, "1", written)]);
    let last = again.put(&a, "2").await;
    assert_eq!(again.list(prefix("things"), Some(written)).await, [record(&a, "1", written)]);
    assert_eq!(again.watch(Revision(0)).await.until(last).await.len(), 2);
    again.end().await;

    let database = Database::open(&path).unwrap();
    let read = database.begin_read().unwrap();
    let meta = read.open_table(format::META).unwrap();
    assert_eq!(meta.get(format::META_FORMAT).unwrap().unwrap().value(), b"1.7");
    assert_eq!(meta.get(b"later".as_slice()).unwrap().unwrap().value(), b"kept");
    assert_eq!(read.open_table(LATER).unwrap().get(1).unwrap().unwrap().value(), 2);
    let log = read.open_table(format::LOG).unwrap();
    assert_eq!(log.get(written.0 + 1).unwrap().unwrap().value(), entry);
    let objects = read.open_table(format::OBJECTS).unwrap();
    assert!(objects.get(unknown_key).unwrap().is_some());
}
