//! Mass deletion: what others notice while many logical clusters go, and what is left of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kind_tests::client::{Client, Session};
use kind_tests::clock::Stopwatch;
use kind_tests::hub::{self, Hub};
use kind_tests::progress::say;
use kind_tests::{Run, cargo, eventually};
use serde_json::{Value, json};

use crate::setup;
use crate::steps::step;

use super::figures::megabytes;
use super::spread::spread;
use super::{rest, settle};

const CLUSTERS: &str = "/clusters/root/apis/core.kcp.io/v1alpha1/logicalclusters";

/// The one who works on while the others go.
const TENANT: &str = "/clusters/tenant/api/v1/namespaces/default/configmaps";

/// How long the tenant works before anything is deleted.
const QUIET: Duration = Duration::from_secs(10);

/// Logical clusters that come and go before anything is measured.
const WARM: usize = 50;

/// How long the server keeps recent events in memory, and some more.
const RECENT: Duration = Duration::from_secs(110);

/// How long the tenant rests between two requests.
const REST: Duration = Duration::from_millis(2);

/// How long everything may take to go.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Fills `clusters` logical clusters with `objects` objects each, a third of them owned by another,
/// and deletes them all while a tenant works.
pub(crate) fn garbage(clusters: usize, objects: usize, workers: u32) -> Result<()> {
    setup::install_packages()?;
    let program = step("build the server", || hub::PROGRAM.path(cargo::Profile::Release))?;
    let run = Run::open("bench-gc")?;
    let mut hub = Hub::with(&run, "hub", hub::Options::new(program))?;
    let client = Client::new(&hub.kubeconfig(), "")?;
    let mut first = client.session();
    for n in 0..10 {
        post(&mut first, TENANT, &map(&format!("m{n}"), None))?;
    }
    // As a server is that has worked for a while: its caches are warm.
    let warm = clusters.min(WARM);
    step(&format!("{warm} logical clusters come and go"), || {
        let fill = |session: &mut Session<'_>, cluster| fill(session, cluster, objects);
        spread(workers, warm, || client.session(), fill)?;
        delete_all(&client, warm, workers)
    })?;
    rest(RECENT);
    let empty = settle(&[hub.process()])?;
    step(&format!("{objects} objects in each of {clusters} logical clusters"), || {
        let fill = |session: &mut Session<'_>, cluster| fill(session, cluster, objects);
        spread(workers, clusters, || client.session(), fill)
    })?;
    let full = settle(&[hub.process()])?;

    let before = at_work(&client, || {
        rest(QUIET);
        Ok(())
    })?;
    let watch = Stopwatch::start();
    let during =
        step("delete them", || at_work(&client, || delete_all(&client, clusters, workers)))?;
    let took = watch.elapsed();
    let after = settle(&[hub.process()])?;
    step("wait until recent events are old", || {
        rest(RECENT);
        Ok(())
    })?;
    let late = settle(&[hub.process()])?;
    hub.terminate()?;

    println!("{clusters} logical clusters of {objects} objects each, deleted while a tenant works");
    println!("                        before    meanwhile");
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        let [a, b] = [&before, &during].map(|taken| quantile(taken, share).as_micros());
        println!("  tenant's {name}, µs   {a:>8}    {b:>9}");
    }
    println!("  tenant's requests   {:>8}    {:>9}", before.len(), during.len());
    println!("until all have gone   {:>6.1} s", took.as_secs_f64());
    println!(
        "resident memory: {} before, {} full, {} after, {} when recent events are old",
        megabytes(empty.resident),
        megabytes(full.resident),
        megabytes(after.resident),
        megabytes(late.resident)
    );
    Ok(())
}

fn fill(session: &mut Session<'_>, cluster: usize, objects: usize) -> Result<()> {
    let path = format!("/clusters/c{cluster}/api/v1/namespaces/default/configmaps");
    let mut owner = None;
    for n in 0..objects {
        let owned = owner.as_ref().filter(|_| n % 3 == 0);
        let made = post(session, &path, &map(&format!("m{n}"), owned))?;
        owner.get_or_insert(made);
    }
    Ok(())
}

fn map(name: &str, owner: Option<&Value>) -> Value {
    let owners = owner.map(|owner| {
        let metadata = &owner["metadata"];
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"],
               "uid": metadata["uid"]})
    });
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": owners.into_iter().collect::<Vec<_>>()},
        "data": {"key": "a value as long as those of small settings mostly are"},
    })
}

/// Deletes all logical clusters that were filled, and waits until they have gone.
fn delete_all(client: &Client, clusters: usize, workers: u32) -> Result<()> {
    spread(
        workers,
        clusters,
        || client.session(),
        |session, cluster| {
            let path = format!("{CLUSTERS}/c{cluster}");
            let status = session.json("DELETE", &path, None)?.0;
            ensure!(status == 200, "{path}: {status}");
            Ok(())
        },
    )?;
    say("all are marked");
    let mut session = client.session();
    // No other name is before theirs. To read them all again and again would take the tenant's cores.
    let first = format!("{CLUSTERS}?limit=1");
    eventually::within(PATIENCE, "all logical clusters have gone", || {
        let (status, list) = session.json("GET", &first, None)?;
        ensure!(status == 200, "{status}: {list}");
        let name = list["items"][0]["metadata"]["name"].as_str().context("the tenant is there")?;
        Ok((!name.starts_with('c')).then_some(()))
    })
}

/// How long the tenant's requests take while `meanwhile` runs.
fn at_work(
    client: &Client,
    meanwhile: impl FnOnce() -> Result<()> + Send,
) -> Result<Vec<Duration>> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let outcome = meanwhile();
            done.store(true, Ordering::Relaxed);
            outcome
        });
        let mut taken = Vec::new();
        let mut session = client.session();
        let mut turn = 0_usize;
        while !done.load(Ordering::Relaxed) {
            let path = format!("{TENANT}/m{}", turn % 10);
            let mut body = map(&format!("m{}", turn % 10), None);
            body["data"]["turn"] = json!(turn.to_string());
            let watch = Stopwatch::start();
            // Reads and writes in turn.
            let (status, answer) = match turn % 2 {
                0 => session.json("PUT", &path, Some(&body))?,
                _ => session.json("GET", &path, None)?,
            };
            taken.push(watch.elapsed());
            ensure!(status == 200, "{path}: {status}: {answer}");
            turn += 1;
            rest(REST);
        }
        match other.join() {
            Ok(outcome) => outcome.map(|()| taken),
            Err(_) => bail!("a worker panicked"),
        }
    })
}

fn quantile(taken: &[Duration], share: f64) -> Duration {
    let mut sorted = taken.to_vec();
    sorted.sort();
    let at = (sorted.len().saturating_sub(1)) as f64 * share;
    sorted.get(at.round() as usize).copied().unwrap_or_default()
}

fn post(session: &mut Session<'_>, path: &str, body: &Value) -> Result<Value> {
    let (status, answer) = session.json("POST", path, Some(body))?;
    ensure!(status == 201, "{path}: {status}: {answer}");
    Ok(answer)
}
