//! The embedded store on the disk of the temporary directory, values of 1 KB.

use std::sync::Arc;

use bytes::Bytes;
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use futures::StreamExt;
use futures::future::join_all;
use machinery::{ClusterName, GroupResource, ObjectKey};
use store::{
    EmbeddedOptions, EmbeddedStore, Key, KeyPrefix, Op, Range, Revision, Store, Txn, WatchMessage,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The allocator that the server has: a commit allocates enough for it to matter.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Records that ranges and replays read.
const RECORDS: usize = 5_000;
const VALUE: usize = 1024;

fn main() {
    divan::main();
}

struct Bench {
    runtime: Runtime,
    store: Arc<EmbeddedStore>,
    _directory: TempDir,
}

impl Bench {
    fn new(records: usize, options: EmbeddedOptions) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("store");
        let store = EmbeddedStore::open(&path, options).expect("a new store");
        let runtime = Runtime::new().expect("a runtime");
        let bench = Self { runtime, store, _directory: directory };
        for first in (0..records).step_by(250) {
            bench.commit(first..(first + 250).min(records));
        }
        bench
    }

    /// Creates or updates the numbered records, all at once.
    fn commit(&self, numbers: std::ops::Range<usize>) {
        let commits = numbers.map(|number| self.store.commit(put(number)));
        for commit in self.runtime.block_on(join_all(commits)) {
            commit.expect("the disk has room");
        }
    }
}

fn put(number: usize) -> Txn {
    let resource = GroupResource::new("", "configmaps");
    let name = format!("name-{number:06}");
    let key = Key::new(&resource, &ObjectKey::new(ClusterName::root(), "default", &name));
    let ops = vec![Op::Put { key, value: Bytes::from(vec![b'v'; VALUE]) }];
    Txn { ops, ..Txn::default() }
}

/// Commits of records that are there already, this many at once.
#[divan::bench(args = [1, 16, 100], sample_count = 200)]
fn update(bencher: Bencher<'_, '_>, at_once: usize) {
    let bench = Bench::new(RECORDS, EmbeddedOptions::default());
    let mut first = 0;
    bencher.counter(ItemsCount::new(at_once)).bench_local(|| {
        bench.commit(first..first + at_once);
        first = (first + at_once) % (RECORDS - 100);
    });
}

/// Commits of new records, this many at once.
#[divan::bench(args = [1, 16, 100], sample_count = 200)]
fn create(bencher: Bencher<'_, '_>, at_once: usize) {
    let bench = Bench::new(0, EmbeddedOptions::default());
    let mut first = 0;
    bencher.counter(ItemsCount::new(at_once)).bench_local(|| {
        bench.commit(first..first + at_once);
        first += at_once;
    });
}

#[divan::bench]
fn get(bencher: Bencher<'_, '_>) {
    let bench = Bench::new(RECORDS, EmbeddedOptions::default());
    let Op::Put { key, .. } = put(RECORDS / 2).ops.remove(0) else { return };
    bencher.bench_local(|| bench.runtime.block_on(bench.store.get(black_box(&key))));
}

/// A page of this many records.
#[divan::bench(args = [500, RECORDS])]
fn range(bencher: Bencher<'_, '_>, limit: usize) {
    let bench = Bench::new(RECORDS, EmbeddedOptions::default());
    bencher.counter(BytesCount::new(limit * VALUE)).bench_local(|| {
        let range = Range { prefix: KeyPrefix::everything(), after: None, limit };
        let page = bench.runtime.block_on(bench.store.range(range, None)).expect("readable");
        assert_eq!(page.records.len(), limit);
        page
    });
}

/// A page of 500 records, as it was before this many updates, from disk.
#[divan::bench(args = [100, 5_000])]
fn range_at_old_revision(bencher: Bencher<'_, '_>, updates: usize) {
    let options = EmbeddedOptions { recent_bytes: 0, ..EmbeddedOptions::default() };
    let bench = Bench::new(RECORDS, options);
    let at = Revision(RECORDS as u64);
    for first in (0..updates).step_by(100) {
        bench.commit(first..first + 100);
    }
    bencher.bench_local(|| {
        let range = Range { prefix: KeyPrefix::everything(), after: None, limit: 500 };
        let page = bench.runtime.block_on(bench.store.range(range, Some(at))).expect("readable");
        assert_eq!(page.records.len(), 500);
        page
    });
}

/// All changes from the beginning, from memory or from disk.
#[divan::bench(args = [32 << 20, 0])]
fn replay(bencher: Bencher<'_, '_>, recent_bytes: usize) {
    let options = EmbeddedOptions { recent_bytes, ..EmbeddedOptions::default() };
    let bench = Bench::new(RECORDS, options);
    bencher.counter(ItemsCount::new(RECORDS)).bench_local(|| {
        bench.runtime.block_on(async {
            let mut watch = bench.store.watch(Revision(0)).await.expect("history is there");
            let mut seen = 0;
            while seen < RECORDS {
                match watch.next().await {
                    Some(Ok(WatchMessage::Changes(changes))) => seen += changes.len(),
                    other => assert!(matches!(other, Some(Ok(_)))),
                }
            }
            seen
        })
    });
}
