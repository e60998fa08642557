//! How the cache follows a store that lags, fails, or is opened again.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use tokio::time::Instant;

use super::*;
use crate::{
    CommitError, EmbeddedOptions, EmbeddedStore, Figures, Identity, Page, Range, Record,
    WatchMessage,
};

/// Every event of the resource from the beginning up to `last`, each a put of one key.
async fn expect_every_revision(watch: &mut Subscription, last: Revision) {
    let mut seen = Revision(0);
    while seen < last {
        let event = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap().unwrap();
        assert_eq!(event.revision, seen.next());
        seen = event.revision;
    }
    assert!(watch.try_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn falling_behind_costs_no_pause() {
    let options = Options { max_lag: Some(10), ..Options::default() };
    let fixture = Fixture::new(NoOverlay, options).await;
    fixture.put("a", "x", "0").await;
    let scope = [Scope::Prefix(everything())];
    let mut watch = fixture.watch(&scope, Revision(0)).await;
    let started = Instant::now();
    let mut last = Revision(0);
    for round in 0..3 {
        // The memory store never yields: the feeder sees nothing of it before the end.
        for number in 0..100 {
            let label = format!("{round}-{number}");
            let op = Op::Put { key: key("a", "x"), value: value("x", &label) };
            let txn = Txn { ops: vec![op], ..Txn::default() };
            last = fixture.store.commit(txn).await.unwrap();
        }
        fixture.cache.wait_for(last, PATIENCE).await.unwrap();
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
    expect_every_revision(&mut watch, last).await;
}

#[tokio::test]
async fn a_burst_larger_than_the_stores_memory_arrives_whole() {
    let directory = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions { recent_bytes: 2048, ..EmbeddedOptions::default() };
    let store = EmbeddedStore::open(&directory.path().join("store"), options).unwrap();
    let fixture = Fixture::over(store, NoOverlay).await;
    let scope = [Scope::Prefix(everything())];
    let mut watch = fixture.watch(&scope, Revision(0)).await;
    let mut last = Revision(0);
    for round in 0..3 {
        // Whole groups of commits, each of which alone is larger than the ring.
        let names = (0..250).map(|number| format!("{round}-{number}"));
        let puts = names.map(async |name| {
            let op = Op::Put { key: key("a", &name), value: value(&name, "1") };
            fixture.store.commit(Txn { ops: vec![op], ..Txn::default() }).await.unwrap()
        });
        last = futures::future::join_all(puts).await.into_iter().max().unwrap();
        fixture.cache.wait_for(last, PATIENCE).await.unwrap();
    }
    expect_every_revision(&mut watch, last).await;
    assert_eq!(fixture.cache.len(), 750);
    fixture.store.close().await;
}

/// A store whose watch fails a number of times.
#[derive(Debug)]
struct Failing {
    store: Arc<MemoryStore>,
    failures: AtomicUsize,
}

#[async_trait]
impl Store for Failing {
    async fn commit(&self, txn: Txn) -> Result<Revision, CommitError> {
        self.store.commit(txn).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Record>, ReadError> {
        self.store.get(key).await
    }

    async fn range(&self, range: Range, at: Option<Revision>) -> Result<Page, ReadError> {
        self.store.range(range, at).await
    }

    async fn watch(
        &self,
        after: Revision,
    ) -> Result<BoxStream<'static, Result<WatchMessage, ReadError>>, ReadError> {
        let take = |left: usize| left.checked_sub(1);
        match self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Err(ReadError::Unavailable("not now".into())),
            Err(_) => self.store.watch(after).await,
        }
    }

    async fn revision(&self) -> Result<Revision, ReadError> {
        self.store.revision().await
    }

    async fn oldest(&self) -> Result<Revision, ReadError> {
        self.store.oldest().await
    }

    async fn compact(&self, before: Revision) -> Result<(), CommitError> {
        self.store.compact(before).await
    }

    fn identity(&self) -> &Identity {
        self.store.identity()
    }

    fn figures(&self) -> Figures {
        self.store.figures()
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn errors_that_repeat_are_answered_with_pauses() {
    // The sum of the pauses before the watch succeeds, in milliseconds.
    for (failures, expect) in [(0, 0), (1, 0), (2, 50), (4, 350), (7, 2550), (9, 4550)] {
        let failures = AtomicUsize::new(failures);
        let store = MemoryStore::new(Options::default());
        let fixture = Fixture::over(Arc::new(Failing { store, failures }), NoOverlay).await;
        let started = Instant::now();
        fixture.put("a", "x", "1").await;
        assert_eq!(started.elapsed(), Duration::from_millis(expect));
    }
}

#[tokio::test]
async fn virtual_objects_are_the_same_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        EmbeddedStore::open(&directory.path().join("store"), EmbeddedOptions::default()).unwrap()
    };
    let shown = |fixture: &Fixture, cluster: &str| {
        let object = fixture.cache.get(&key(cluster, "virtual")).unwrap();
        (object.revision, object.json())
    };
    let fixture = Fixture::over(open(), Owned).await;
    let created = fixture.put("a", "owner", "1").await;
    fixture.put("b", "owner", "1").await;
    fixture.put("c", "owner", "1").await;
    let before = shown(&fixture, "a");
    assert_eq!(before.0, created);
    fixture.put("a", "owner", "2").await;
    let updated = fixture.put("a", "owner", "3").await;
    // Owners that came back are new ones, whether they were deleted or hidden.
    fixture.delete("b", "owner").await;
    let b = fixture.put("b", "owner", "2").await;
    fixture.commit(Op::Put { key: key("c", "owner"), value: Bytes::new() }).await;
    let c = fixture.put("c", "owner", "2").await;
    let last = fixture.put("c", "owner", "3").await;
    let clusters = ["a", "b", "c"];
    let all = clusters.map(|cluster| shown(&fixture, cluster));
    assert_eq!(all.clone().map(|(revision, _)| revision), [created, b, c]);
    assert_eq!(all[0], before);
    let then = fixture.cache.list_at(&everything(), None, 0, updated).await.unwrap();
    fixture.store.close().await;

    let again = Fixture::over(open(), Owned).await;
    assert_eq!(again.cache.revision(), last);
    assert_eq!(clusters.map(|cluster| shown(&again, cluster)), all);
    // What memory does not have any more comes from history.
    let from_history = again.cache.list_at(&everything(), None, 0, updated).await.unwrap();
    let of_a = |listed: &Listed| {
        let objects = listed.objects.iter().filter(|object| object.key.parts().0 == "a");
        objects.map(|o| (o.key.clone(), o.json(), o.created)).collect::<Vec<_>>()
    };
    assert_eq!(of_a(&from_history), of_a(&then));
    again.put("a", "owner", "4").await;
    assert_eq!(shown(&again, "a"), before);
    again.store.close().await;
}
