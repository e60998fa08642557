//! Changes on one side, and when they are seen on the other.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use client::{Ask, JSON};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::side::{PATIENCE, Side, THINGS};
use crate::{Load, fleet};

/// How long it took until each change was seen, sorted.
pub(crate) struct Latencies(pub(crate) Vec<Duration>);

const MERGE: &str = "application/merge-patch+json";

/// Creates the objects, marked as the operator does.
pub(crate) async fn create(side: &Side, load: Load) -> Result<()> {
    spread(load.workers, load.objects, async |n| {
        let target = match load.agents {
            Some(agents) => fleet::target(n % agents.max(1)),
            None => "bench".to_owned(),
        };
        let mut object = json!({
            "apiVersion": "bench.io/v1",
            "kind": "Thing",
            "metadata": {"name": format!("thing-{n}")},
            "spec": {"n": 0, "template": "x".repeat(800)},
        });
        // Where an operator runs, it marks what a person labels; else the marks are made here.
        if load.agents.is_some() {
            object["metadata"]["labels"] = json!({"workloads.kcp.io/cluster": target});
        } else {
            let global = format!("root.{target}");
            let state = format!("sync.workloads.kcp.io/{global}");
            object["metadata"]["labels"] = json!({state: "Sync"});
            object["metadata"]["finalizers"] = json!([format!("workloads.kcp.io/{global}")]);
        }
        let path = format!("{}{THINGS}", side.base);
        side.send(Method::POST, &path, JSON, object.to_string()).await.map(drop)
    })
    .await
}

/// Waits until so many objects are there.
pub(crate) async fn until_all(side: &Side, objects: usize) -> Result<()> {
    side.until(THINGS, objects, "objects are there", |_| true).await
}

/// Changes a field of objects on one side at a steady rate, and measures from when each change is
/// sent to when the other side's watch shows it.
pub(crate) async fn propagate(
    from: &Side,
    to: &Side,
    field: &'static str,
    load: Load,
) -> Result<Latencies> {
    let total = usize::try_from(u64::from(load.rate) * load.seconds)?;
    let sent: Arc<Mutex<HashMap<usize, Instant>>> = Arc::default();
    let mut watching = tokio::task::JoinSet::new();
    watching.spawn(watch(to.clone(), field, total, sent.clone()));
    // The watch is to be open before the first change.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let pause = Duration::from_secs(1) / load.rate.max(1);
    let mut ticks = tokio::time::interval(pause);
    let mut running = tokio::task::JoinSet::new();
    for n in 1..=total {
        ticks.tick().await;
        let subresource = if field == "status" { "/status" } else { "" };
        let name = n % load.objects.max(1);
        let base = match (load.agents, from.base) {
            (Some(agents), "/clusters/*") => fleet::base(name % agents.max(1)),
            _ => from.base.to_owned(),
        };
        let path = format!("{base}{THINGS}/thing-{name}{subresource}");
        let (from, sent) = (from.clone(), sent.clone());
        running.spawn(async move {
            let body = json!({field: {"n": n}}).to_string();
            sent.lock().await.insert(n, Instant::now());
            from.send(Method::PATCH, &path, MERGE, body).await
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    let seen = tokio::time::timeout(PATIENCE, watching.join_next()).await;
    let seen = seen.context("changes are missing")?.context("there is a watch")?;
    let mut taken = seen??;
    taken.sort();
    Ok(Latencies(taken))
}

async fn watch(
    side: Side,
    field: &'static str,
    total: usize,
    sent: Arc<Mutex<HashMap<usize, Instant>>>,
) -> Result<Vec<Duration>> {
    let path = format!("{}{THINGS}?watch=true", side.base);
    let mut lines = match side.link.follow(Ask::get(&path)).await? {
        Ok(lines) => lines,
        Err(told) => bail!("{path}: {}", told.status),
    };
    let mut taken = Vec::with_capacity(total);
    while taken.len() < total {
        let line = lines.next().await?.context("the watch ended early")?;
        let at = Instant::now();
        let event: Value = serde_json::from_slice(&line)?;
        let n = event["object"][field]["n"].as_u64().and_then(|n| usize::try_from(n).ok());
        // Each change once, and none of before.
        if let Some(begun) = sent.lock().await.remove(&n.unwrap_or(0)) {
            taken.push(at.duration_since(begun));
        }
    }
    Ok(taken)
}

/// Changes all objects, three times over, as fast as the hub takes it, and waits for the last change
/// of each to be on the other side.
pub(crate) async fn saturate(from: &Side, to: &Side, load: Load) -> Result<()> {
    const ROUNDS: usize = 3;
    for round in 1..=ROUNDS {
        let n = 1_000_000 + round;
        spread(load.workers, load.objects, async |at| {
            let path = format!("{}{THINGS}/thing-{at}", from.base);
            let body = json!({"spec": {"n": n}}).to_string();
            from.send(Method::PATCH, &path, MERGE, body).await.map(drop)
        })
        .await?;
        let is_new = |item: &Value| item["spec"]["n"].as_u64() == u64::try_from(n).ok();
        to.until(THINGS, load.objects, "changes are there", is_new).await?;
    }
    Ok(())
}

/// Does `work` for each of `count`, so many at a time.
async fn spread(
    workers: usize,
    count: usize,
    work: impl AsyncFn(usize) -> Result<()>,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let one = || async {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return Ok(());
            }
            work(at).await?;
        }
    };
    let all = futures::future::try_join_all((0..workers.max(1)).map(|_| one()));
    all.await.map(drop)
}

/// The duration that this share of all is below, of sorted ones.
pub(crate) fn quantile(taken: &[Duration], share: f64) -> Duration {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index between 0 and some thousands"
    )]
    let at = (taken.len().saturating_sub(1) as f64 * share).round() as usize;
    taken.get(at).copied().unwrap_or_default()
}
