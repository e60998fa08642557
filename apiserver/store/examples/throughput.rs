//! Commits a second, their latency, and CPU of the process for each, with 1, 16 and 100 writers.
//!
//! `cargo run --release -p store --example throughput [directory]`; the directory, by default the
//! present one, says which disk. CPU is what the kernel accounts to the process, so it is Linux only.

#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use machinery::{ClusterName, GroupResource, ObjectKey};
use runtime::Tasks;
use store::{EmbeddedOptions, EmbeddedStore, Key, Op, Store, Txn};
use tokio::time::Instant;
use tracing::Span;

/// The allocator that the server has: a commit allocates enough for it to matter.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const TIME: Duration = Duration::from_secs(4);
const VALUE: usize = 1024;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    let directory = tempfile::tempdir_in(directory)?;
    println!(
        "{:>8} {:>8} {:>12} {:>12} {:>12}",
        "", "writers", "commits/s", "latency", "CPU/commit"
    );
    for (what, keys) in [("create", u64::MAX), ("update", 5_000)] {
        for writers in [1, 16, 100] {
            let path = directory.path().join(format!("{what}-{writers}"));
            let store = EmbeddedStore::open(&path, EmbeddedOptions::default())?;
            let (started, cpu) = (Instant::now(), cpu()?);
            let tasks = Tasks::new();
            let running = (0..writers).map(|writer| {
                let store = store.clone();
                tasks.spawn(Span::none(), async move {
                    let mut commits = 0_u64;
                    while started.elapsed() < TIME {
                        store.commit(put(writer + commits * writers, keys)).await?;
                        commits += 1;
                    }
                    anyhow::Ok(commits)
                })
            });
            let mut commits = 0;
            for writer in running.collect::<Vec<_>>() {
                commits += writer.await??;
            }
            let (elapsed, cpu) = (started.elapsed(), self::cpu()?.saturating_sub(cpu));
            store.close().await;
            let rate = commits as f64 / elapsed.as_secs_f64();
            let latency = Duration::from_secs_f64(writers as f64 / rate);
            let each = Duration::from_secs_f64(cpu.as_secs_f64() / commits as f64);
            println!("{what:>8} {writers:>8} {rate:>12.0} {latency:>12.1?} {each:>12.1?}");
        }
    }
    Ok(())
}

fn put(number: u64, keys: u64) -> Txn {
    let resource = GroupResource::new("", "configmaps");
    // Numbers are spread over the keys, as the names of real objects are.
    let name = format!("name-{}", (number % keys).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let key = Key::new(&resource, &ObjectKey::new(ClusterName::root(), "default", &name));
    let ops = vec![Op::Put { key, value: Bytes::from(vec![b'v'; VALUE]) }];
    Txn { ops, ..Txn::default() }
}

/// Time that the process has used, in user mode and in the kernel.
fn cpu() -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').unwrap_or_default();
    // Fields 14 and 15 of proc_pid_stat(5), in hundredths of a second.
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    Ok(Duration::from_millis(ticks.sum::<Result<u64, _>>()? * 10))
}
