//! Custom types: what a definition and its copies in other logical clusters cost.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kind_tests::client::{Client, Request};
use kind_tests::clock::Stopwatch;
use kind_tests::hub::{self, Hub};
use kind_tests::progress::say;
use kind_tests::{Run, cargo, eventually};
use serde_json::{Value, json};

use crate::setup;
use crate::steps::step;

use super::figures::megabytes;
use super::settle;
use super::spread::spread;

const CRDS: &str = "apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How long all definitions may take to be served.
const PATIENCE: Duration = Duration::from_secs(600);

/// Makes `definitions` CRDs in each of `clusters` logical clusters and prints what they cost.
pub(crate) fn types(definitions: usize, clusters: usize, workers: u32) -> Result<()> {
    setup::install_packages()?;
    let program = step("build the server", || hub::PROGRAM.path(cargo::Profile::Release))?;
    let run = Run::open("bench-types")?;
    let mut hub = Hub::with(&run, "hub", hub::Options::new(program))?;
    let client = Client::new(&hub.kubeconfig(), "")?;
    let empty = hub.memory()?;
    let first = made(&mut hub, &client, definitions, 0..1, workers)?;
    let one = settle(&[hub.process()])?;
    let rest = made(&mut hub, &client, definitions, 1..clusters, workers)?;
    let all = settle(&[hub.process()])?;
    hub.restart()?;
    let (ready, after) = (hub.ready_after(), hub.memory()?);
    hub.terminate()?;

    let each = |memory: u64, count: usize| memory / (count.max(1) as u64);
    let copies = definitions * clusters.saturating_sub(1);
    println!("{definitions} definitions of {} bytes in {clusters} logical clusters", size());
    println!("                             first cluster    further copies");
    let [a, b] = [&first, &rest].map(|made| made.until_served.as_millis());
    println!("  until all are served, ms   {a:>13}    {b:>14}");
    let [a, b] = [&first, &rest].map(|made| made.cpu.as_micros() / made.count.max(1) as u128);
    println!("  server CPU for each, µs    {a:>13}    {b:>14}");
    let a = each(one.resident.saturating_sub(empty.resident), definitions);
    let b = each(all.resident.saturating_sub(one.resident), copies);
    println!("  memory for each, bytes     {a:>13}    {b:>14}");
    println!(
        "resident memory: {} before, {} after",
        megabytes(empty.resident),
        megabytes(all.resident)
    );
    println!("after a restart: {}, ready in {} ms", megabytes(after.resident), ready.as_millis());
    Ok(())
}

struct Made {
    count: usize,
    until_served: Duration,
    cpu: Duration,
}

fn made(
    hub: &mut Hub,
    client: &Client,
    definitions: usize,
    clusters: std::ops::Range<usize>,
    workers: u32,
) -> Result<Made> {
    let (watch, cpu) = (Stopwatch::start(), hub.cpu()?);
    let count = definitions * clusters.len();
    let offset = clusters.start;
    spread(
        workers,
        count,
        || (),
        |(), at| create(client, offset + at / definitions, at % definitions),
    )?;
    for cluster in clusters {
        let path = format!("/clusters/c{cluster}/apis/bench.example.com/v1");
        let served = || -> Result<Option<()>> {
            let resources = get(client, &path)?;
            let count = resources["resources"].as_array().map_or(0, Vec::len);
            Ok((count == definitions).then_some(()))
        };
        eventually::within(PATIENCE, "all types are served", served)?;
    }
    say(format!("{count} definitions are served"));
    Ok(Made { count, until_served: watch.elapsed(), cpu: hub.cpu()?.saturating_sub(cpu) })
}

fn create(client: &Client, cluster: usize, at: usize) -> Result<()> {
    let body = serde_json::to_vec(&definition(at))?;
    let path = format!("/clusters/c{cluster}/{CRDS}");
    let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
    let request =
        Request { method: "POST", path: &path, headers: &headers, body: Some(&body), lines: None };
    let answer = client.ask(&request)?;
    ensure!(answer.status == 201, "{}", String::from_utf8_lossy(&answer.body));
    Ok(())
}

fn get(client: &Client, path: &str) -> Result<Value> {
    let request = Request { method: "GET", path, headers: &[], body: None, lines: None };
    let answer = client.ask(&request)?;
    match answer.status {
        200 => serde_json::from_slice(&answer.body).context("an answer in JSON"),
        404 => Ok(Value::Null),
        other => bail!("{path}: {other}"),
    }
}

fn size() -> usize {
    definition(0).to_string().len()
}

/// A definition of middling size, as operators have them.
fn definition(at: usize) -> Value {
    let leaf = |name: &str| {
        let description = format!("{name} of the thing, which is as long as such texts mostly are");
        json!({"type": "string", "maxLength": 253, "description": description})
    };
    let group = |name: usize| {
        let fields = (0..12).map(|at| (format!("field{at}"), leaf(&format!("field{at}"))));
        let fields = fields.collect::<serde_json::Map<_, _>>();
        json!({"type": "object", "description": format!("group {name} of {at}"), "properties": fields})
    };
    let groups = (0..12).map(|name| (format!("group{name}"), group(name)));
    let groups = groups.collect::<serde_json::Map<_, _>>();
    let name = format!("things{at}");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{name}.bench.example.com")},
        "spec": {
            "group": "bench.example.com",
            "scope": "Namespaced",
            "names": {"plural": name, "kind": format!("Thing{at}")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": groups}},
                }},
            }],
        },
    })
}
