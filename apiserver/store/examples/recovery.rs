//! How long a store takes to open after its process was killed, and a cache to load from it.
//!
//! `cargo run --release -p store --example recovery [megabytes [objects [directory]]]`. The example
//! starts itself a second time as the writer, kills it with SIGKILL while it writes, opens what it
//! left, and loads a cache. By default the file is filled to 1024 MB with objects of 1 KB; with a
//! number of objects the writer goes on over the same ones.

#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures::future::try_join_all;
use machinery::{ClusterName, GroupResource, ObjectKey};
use runtime::Tasks;
use serde_json::json;
use store::cache::{Cache, NoOverlay};
use store::{EmbeddedOptions, EmbeddedStore, Key, KeyPrefix, Op, Range, Revision, Store, Txn};
use tokio::time::Instant;

/// The allocator that the server has: loading a cache allocates enough for it to matter.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Commits that are under way at once: as many as one group takes.
const TOGETHER: u64 = 256;

fn main() -> anyhow::Result<()> {
    let arguments = std::env::args().collect::<Vec<_>>();
    let number = |at: usize, default: u64| {
        arguments.get(at).map_or(Ok(default), |text| text.parse::<u64>().context("no number"))
    };
    let runtime = tokio::runtime::Runtime::new()?;
    if arguments.get(1).is_some_and(|first| first == "write") {
        let path = PathBuf::from(arguments.get(2).context("no path")?);
        return runtime.block_on(write(&path, number(3, 0)?));
    }
    let (megabytes, objects) = (number(1, 1024)?, number(2, u64::MAX)?);
    let parent = PathBuf::from(arguments.get(3).map_or(".", String::as_str));
    let directory = tempfile::tempdir_in(parent)?;
    let path = directory.path().join("store");
    let acknowledged = write_and_kill(&path, objects, megabytes << 20)?;
    runtime.block_on(recover(&path, acknowledged))
}

/// Commits objects until it is killed, and says after each group which revision it has reached.
async fn write(path: &Path, objects: u64) -> anyhow::Result<()> {
    // Little history: the file is to be filled by objects.
    let (history, compaction_interval) = (Duration::from_secs(3), Duration::from_secs(1));
    let options = EmbeddedOptions { history, compaction_interval, ..EmbeddedOptions::default() };
    let store = EmbeddedStore::open(path, options)?;
    let mut out = std::io::stdout();
    for group in 0.. {
        let numbers = group * TOGETHER..(group + 1) * TOGETHER;
        let commits = try_join_all(numbers.map(|number| store.commit(put(number % objects))));
        let last = commits.await?.into_iter().max().unwrap_or_default();
        writeln!(out, "{last}")?;
    }
    Ok(())
}

fn put(number: u64) -> Txn {
    // Numbers are spread over the keys, as the names of real objects are.
    let name = format!("name-{:016x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let namespace = format!("ns-{}", number % 100);
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": format!("4eb39bf2-52e6-401e-{:04x}-{:012x}", number >> 48, number & 0xFFFF_FFFF_FFFF),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "recovery", "part": number.to_string()},
        },
        "data": {"text": "v".repeat(750)},
    });
    let resource = GroupResource::new("", "configmaps");
    let key = Key::new(&resource, &ObjectKey::new(ClusterName::root(), &namespace, &name));
    let ops = vec![Op::Put { key, value: store::object::encode(&object) }];
    Txn { ops, ..Txn::default() }
}

/// Lets a writer work until the file is so long, and kills it. Returns what it had acknowledged.
fn write_and_kill(path: &Path, objects: u64, bytes: u64) -> anyhow::Result<Revision> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("write").arg(path).arg(objects.to_string()).stdout(Stdio::piped());
    let mut writer = command.spawn()?;
    let mut lines = BufReader::new(writer.stdout.take().context("it is piped")?).lines();
    let mut last = Revision(0);
    // Commits go on while it is killed: each of its lines was acknowledged.
    while let Some(line) = lines.next().transpose()? {
        last = Revision(line.parse()?);
        let enough = objects == u64::MAX || last.0 >= objects;
        if enough && std::fs::metadata(path)?.len() >= bytes {
            writer.kill()?;
            break;
        }
    }
    writer.wait()?;
    for line in lines {
        // The last line may be cut short.
        last = line
            .ok()
            .and_then(|line| line.parse().ok())
            .map_or(last, |line| last.max(Revision(line)));
    }
    Ok(last)
}

async fn recover(path: &Path, acknowledged: Revision) -> anyhow::Result<()> {
    let length = std::fs::metadata(path)?.len();
    let started = Instant::now();
    let store = EmbeddedStore::open(path, EmbeddedOptions::default())?;
    let opened = started.elapsed();
    let revision = store.revision().await?;
    ensure!(revision >= acknowledged, "{acknowledged} was acknowledged, {revision} is there");

    let started = Instant::now();
    let mut after = None;
    loop {
        let range = Range { prefix: KeyPrefix::everything(), after, limit: 2000 };
        let page = store.range(range, Some(revision)).await?;
        after = page.records.last().map(|record| record.key.clone());
        if !page.more {
            break;
        }
    }
    let read = started.elapsed();

    let tasks = Tasks::new();
    let started = Instant::now();
    let cache = Cache::start(store.clone(), Arc::new(NoOverlay), &tasks).await?;
    let loaded = started.elapsed();
    println!(
        "file of {} MB at revision {revision}: opened in {opened:.2?}; its {} objects read in \
         {read:.2?}, and loaded into a cache in {loaded:.2?}",
        length >> 20,
        cache.len(),
    );
    store.close().await;
    Ok(())
}
