//! The store over a real etcd: what every backend must do, and what only a remote one can meet.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::{FutureExt, StreamExt};
use kind_tests::clock::Stopwatch;
use kind_tests::etcd::Options;
use kind_tests::progress::say;
use kind_tests::scenario::Need;
use kind_tests::{Etcd, Run, Tool, scenario};
use store::conformance::harness::{key, prefix, put, record};
use store::conformance::{CASES, Fixture};
use store::etcd::{OpenError, TlsFiles};
use store::transfer;
use store::{
    CommitError, EmbeddedOptions, EmbeddedStore, EtcdOptions, EtcdStore, KeyPrefix, Op, Page,
    Range, ReadError, Revision, Store, Txn, WatchMessage,
};

const NEEDS: [Need; 1] = [Need::Tool(Tool::Etcd)];

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test over an etcd.
fn with_etcd(name: &str, options: Options, test: impl AsyncFnOnce(&Run, &mut Etcd) -> Result<()>) {
    scenario(name, &NEEDS, |run| {
        let mut etcd = Etcd::start(run, "etcd", options)?;
        let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        threads.block_on(async {
            let done = tokio::time::timeout(10 * PATIENCE, test(run, &mut etcd)).await;
            done.context("the test takes too long")?
        })
    });
}

fn options(etcd: &Etcd, prefix: &str) -> EtcdOptions {
    let tls = etcd.certificates().map_or_else(TlsFiles::default, |files| TlsFiles {
        authorities: Some(files.authority.clone()),
        client: Some((files.certificate.clone(), files.key.clone())),
    });
    let prefix = prefix.to_owned();
    EtcdOptions { endpoints: etcd.urls(), tls, prefix, compaction_interval: None }
}

async fn open(etcd: &Etcd, prefix: &str) -> Result<Arc<EtcdStore>> {
    EtcdStore::open(&options(etcd, prefix)).await.context("open the store")
}

async fn write(store: &EtcdStore, name: &str, value: &str) -> Result<Revision, CommitError> {
    store.commit(Txn { ops: vec![put(&key("things", name), value)], ..Txn::default() }).await
}

async fn names(store: &EtcdStore) -> Result<Vec<String>> {
    let range = Range { prefix: prefix("things"), after: None, limit: 0 };
    let page = store.range(range, None).await?;
    Ok(page.records.into_iter().map(|record| record.key.object().name.to_string()).collect())
}

/// One after the other, each under a prefix of its own: what one compacts is history to all.
async fn conformance(etcd: &Etcd, mark: &str, with: impl Fn(Fixture) -> Fixture) -> Result<()> {
    for (name, case) in CASES {
        let fixture = with(Fixture::new(open(etcd, &format!("/{mark}/{name}")).await?));
        case(&fixture).await;
        fixture.end().await;
    }
    say(format!("{} cases over etcd, {mark}", CASES.len()));
    Ok(())
}

#[test]
fn the_etcd_store_is_as_every_store() {
    with_etcd("the_etcd_store_is_as_every_store", Options::default(), async |_, etcd| {
        conformance(etcd, "alone", |fixture| fixture).await?;
        conformance(etcd, "with a second writer", Fixture::with_second_writer).await?;
        // One whose keys the store does not see uses up revisions.
        let foreign = Fixture::new(open(etcd, "/foreign").await?).with_second_writer();
        conformance(etcd, "beside a foreign writer", |fixture| fixture).await?;
        foreign.end().await;
        Ok(())
    });
}

#[test]
fn etcd_by_tls_with_a_client_certificate() {
    let options = Options { tls: true, ..Options::default() };
    with_etcd("etcd_by_tls_with_a_client_certificate", options, async |_, etcd| {
        let store = open(etcd, "/kcp").await?;
        let first = write(&store, "a", "1").await?;
        ensure!(
            store.get(&key("things", "a")).await? == Some(record(&key("things", "a"), "1", first))
        );
        let mut nobody = self::options(etcd, "/kcp");
        nobody.tls.client = None;
        match EtcdStore::open(&nobody).await {
            Err(OpenError::Unavailable(_)) => Ok(()),
            other => bail!("without a certificate: {other:?}"),
        }
    });
}

/// Writes and watches go on when the member that serves them is killed: what was acknowledged is
/// there, and a watch that is resumed has it once.
#[test]
fn etcd_members_may_be_killed() {
    const WRITES: usize = 200;
    let options = Options { members: 3, ..Options::default() };
    with_etcd("etcd_members_may_be_killed", options, async |_, etcd| {
        let store = open(etcd, "/kcp").await?;
        let writing = async {
            let mut acknowledged = BTreeMap::new();
            for number in 0..WRITES {
                if number == WRITES / 3 {
                    // The first endpoint is the one in use.
                    etcd.kill(0)?;
                }
                let value = number.to_string();
                let written = eventually(async || Ok(write(&store, "a", &value).await?)).await?;
                acknowledged.insert(value, written);
            }
            Ok(acknowledged)
        };
        let both = futures::future::try_join(writing, follow(&store, WRITES));
        let (acknowledged, seen) = both.await?;
        for (value, revision) in &acknowledged {
            ensure!(seen.get(revision) == Some(value), "{value} of {revision} is not in {seen:?}");
        }
        // A write whose answer was lost may have been made twice.
        ensure!(seen.len() < WRITES + 5, "{} changes of {WRITES} writes", seen.len());
        Ok(())
    });
}

/// All values and their revisions, until the last; a watch that ends is resumed.
async fn follow(store: &EtcdStore, writes: usize) -> Result<BTreeMap<Revision, String>> {
    let (mut reached, mut seen) = (Revision(0), BTreeMap::new());
    let last = (writes - 1).to_string();
    loop {
        let mut messages = eventually(async || Ok(store.watch(reached).await?)).await?;
        while let Some(message) = messages.next().await {
            let changes = match message {
                Ok(WatchMessage::Changes(changes)) => changes,
                Ok(WatchMessage::Progress(progress)) => {
                    ensure!(progress >= reached, "{progress} after {reached}");
                    reached = progress;
                    continue;
                }
                Err(_) => break,
            };
            for change in changes {
                ensure!(change.revision > reached, "{} after {reached}", change.revision);
                reached = change.revision;
                let value = change.value.context("nothing is deleted here")?;
                seen.insert(reached, String::from_utf8(value.to_vec())?);
            }
            if seen.values().next_back() == Some(&last) {
                return Ok(seen);
            }
        }
    }
}

/// Tries again until it succeeds: etcd may be electing a leader.
async fn eventually<T>(mut work: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let watch = Stopwatch::start();
    loop {
        match work().await {
            Err(_) if watch.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            done => return done,
        }
    }
}

#[test]
fn a_full_etcd_is_told() {
    let options = Options { quota: Some(4 << 20), ..Options::default() };
    with_etcd("a_full_etcd_is_told", options, async |_, etcd| {
        let store = open(etcd, "/kcp").await?;
        let value = "x".repeat(1 << 20);
        let error = loop {
            match write(&store, "a", &value).await {
                Ok(revision) => ensure!(revision < Revision(100), "the quota is not kept"),
                Err(error) => break error,
            }
        };
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        ensure!(cause.contains("alarm NOSPACE"), "{error}: {cause}");
        // It can be read, and history be forgotten.
        ensure!(names(&store).await? == ["a"]);
        Ok(())
    });
}

/// Replicas share the work: each interval is compacted once, and all know to where.
#[test]
fn compaction_is_shared() {
    with_etcd("compaction_is_shared", Options::default(), async |_, etcd| {
        let every = Some(Duration::from_millis(400));
        let options = EtcdOptions { compaction_interval: every, ..options(etcd, "/kcp") };
        let stores = [EtcdStore::open(&options).await?, EtcdStore::open(&options).await?];
        ensure!(stores[0].identity() == stores[1].identity());
        let mut watches = Vec::new();
        for store in &stores {
            watches.push(store.watch(store.revision().await?).await?);
        }
        let first = write(&stores[0], "a", "1").await?;
        let followed = async {
            let mut pace = tokio::time::interval(Duration::from_millis(20));
            loop {
                pace.tick().await;
                let mut oldest = Vec::new();
                for (store, messages) in stores.iter().zip(&mut watches) {
                    while let Some(Some(message)) = messages.next().now_or_never() {
                        message?;
                    }
                    oldest.push(store.oldest().await?);
                }
                if oldest.iter().all(|oldest| *oldest >= first) {
                    return Ok::<_, anyhow::Error>(oldest);
                }
            }
        };
        let oldest = tokio::time::timeout(PATIENCE, followed).await.context("no compaction")??;
        let error = stores[1].watch(Revision(first.0 - 1)).await.map(|_| ());
        ensure!(matches!(error, Err(ReadError::Compacted { .. })), "{error:?}, oldest {oldest:?}");
        ensure!(names(&stores[1]).await? == ["a"]);
        Ok(())
    });
}

/// What somebody else compacts is told as such, though this store did not hear of it.
#[test]
fn foreign_compactions_are_met() {
    with_etcd("foreign_compactions_are_met", Options::default(), async |_, etcd| {
        let (ours, theirs) = (open(etcd, "/kcp").await?, open(etcd, "/other").await?);
        let first = write(&ours, "a", "1").await?;
        write(&ours, "a", "2").await?;
        let last = write(&ours, "a", "3").await?;
        theirs.compact(last).await?;
        let range = Range { prefix: prefix("things"), after: None, limit: 0 };
        let page = ours.range(range, Some(first)).await;
        ensure!(matches!(page, Err(ReadError::Compacted { oldest }) if oldest > first), "{page:?}");
        let fresh = open(etcd, "/kcp").await?;
        let mut messages = fresh.watch(first).await?;
        match messages.next().await {
            Some(Err(ReadError::Compacted { oldest })) => ensure!(oldest == last),
            other => bail!("{other:?}"),
        }
        ensure!(fresh.oldest().await? == last);
        Ok(())
    });
}

#[test]
fn stores_move_into_etcd_and_back() {
    with_etcd("stores_move_into_etcd_and_back", Options::default(), async |run, etcd| {
        let embedded =
            EmbeddedStore::open(&run.folder().join("from.redb"), EmbeddedOptions::default())?;
        for number in 0..300 {
            let op = put(&key("things", &format!("k{number:03}")), &number.to_string());
            embedded.commit(Txn { ops: vec![op], ..Txn::default() }).await?;
        }
        let (hidden, large) = (key("others", "hidden"), vec![b'x'; 1 << 20]);
        let ops = vec![
            put(&hidden, ""),
            Op::Put { key: key("large", "a"), value: large.clone().into() },
            Op::Put { key: key("large2", "b"), value: large[..1 << 18].to_vec().into() },
        ];
        embedded.commit(Txn { ops, ..Txn::default() }).await?;
        let mut stream = Vec::new();
        let there = transfer::export(embedded.as_ref(), &mut stream).await?;

        // What is cut short leaves nothing.
        let cut = store::etcd::import(&options(etcd, "/kcp"), &stream[..stream.len() / 2]).await;
        ensure!(cut.is_err());
        let imported = store::etcd::import(&options(etcd, "/kcp"), stream.as_slice()).await?;
        ensure!(imported == there, "{imported:?} and {there:?}");
        let again = store::etcd::import(&options(etcd, "/kcp"), stream.as_slice()).await;
        ensure!(again.is_err(), "there is a store already");

        let moved = open(etcd, "/kcp").await?;
        ensure!(moved.identity().hub_uid == embedded.identity().hub_uid);
        ensure!(moved.identity().rv_base > there.resource_version);
        ensure!(moved.oldest().await? > Revision(0), "how it came about is not to be seen");
        let mut back = Vec::new();
        let here = transfer::export(moved.as_ref(), &mut back).await?;
        ensure!(here.records == there.records);
        let target = run.folder().join("to.redb");
        transfer::import(&target, back.as_slice())?;
        let returned = EmbeddedStore::open(&target, EmbeddedOptions::default())?;
        ensure!(returned.identity().rv_base > here.resource_version);
        let all = || Range { prefix: KeyPrefix::everything(), after: None, limit: 0 };
        let values = |page: Page| {
            page.records.into_iter().map(|record| (record.key, record.value)).collect::<Vec<_>>()
        };
        let (before, after) =
            (embedded.range(all(), None).await?, returned.range(all(), None).await?);
        ensure!(values(before) == values(after), "values differ");
        Ok(())
    });
}

#[test]
fn what_cannot_be_reached_is_told() {
    with_etcd("what_cannot_be_reached_is_told", Options::default(), async |_, etcd| {
        let nothing =
            EtcdOptions { endpoints: vec!["http://127.0.0.1:1".into()], ..options(etcd, "") };
        let error = EtcdStore::open(&nothing).await;
        ensure!(matches!(error, Err(OpenError::Unavailable(_))), "{error:?}");
        let endpoints = vec!["ftp://x".to_owned()];
        let error = EtcdStore::open(&EtcdOptions { endpoints, ..options(etcd, "") }).await;
        ensure!(matches!(error, Err(OpenError::Endpoint { .. })), "{error:?}");
        Ok(())
    });
}
