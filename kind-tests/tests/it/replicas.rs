//! Two servers over one etcd: what is written to one is there on the other, and either may die.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use kind_tests::client::{Client, Request, Response};
use kind_tests::conformance::{check_passed, list, run as run_suite};
use kind_tests::etcd::Options;
use kind_tests::progress::say;
use kind_tests::scenario::Need;
use kind_tests::{Balancer, Etcd, Hub, Kubectl, Run, Tool, eventually, scenario};
use serde_json::{Value, json};

use crate::support::{check_contains, json as parse};

const MAPS: &str = "/clusters/one/api/v1/namespaces/default/configmaps";

/// A type to be made on one server and used on the other.
const WIDGETS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

/// Two servers over one etcd, and a kubectl for each.
struct Pair {
    // Fields drop in this order: an etcd that still has watches is slow to end.
    hubs: [Hub; 2],
    etcd: Etcd,
}

// === impl Pair ===

impl Pair {
    fn start(run: &Run) -> Result<Self> {
        let etcd = Etcd::start(run, "etcd", Options::default())?;
        let first = Hub::over(run, "a", &etcd, None)?;
        let second = Hub::over(run, "b", &etcd, Some(&first))?;
        Ok(Self { etcd, hubs: [first, second] })
    }

    fn clients(&self) -> Result<[Client; 2]> {
        let [a, b] = &self.hubs;
        Ok([Client::new(&a.kubeconfig(), "")?, Client::new(&b.kubeconfig(), "")?])
    }

    /// One for each server, in the logical cluster `one`.
    fn kubectls(&self, run: &Run) -> Result<[Kubectl; 2]> {
        let kubectl = |hub: &Hub| {
            let kubectl = Kubectl::new(run, Tool::Kubectl, &hub.kubeconfig())?;
            Ok::<_, anyhow::Error>(kubectl.server(&hub.cluster_url("one")))
        };
        let [a, b] = &self.hubs;
        Ok([kubectl(a)?, kubectl(b)?])
    }

    fn stop(self) -> Result<()> {
        for mut hub in self.hubs {
            hub.terminate()?;
        }
        self.etcd.stop()
    }
}

fn with_pair(name: &str, test: impl FnOnce(&Run, &mut Pair) -> Result<()>) {
    scenario(name, &[Need::Tool(Tool::Etcd), Need::Tool(Tool::Kubectl)], |run| {
        let mut pair = Pair::start(run)?;
        test(run, &mut pair)?;
        pair.stop()
    });
}

fn ask(client: &Client, method: &str, path: &str, body: Option<&Value>) -> Result<Response> {
    let body = body.map(ToString::to_string);
    let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
    let body = body.as_ref().map(String::as_bytes);
    client.ask(&Request { method, path, headers: &headers, body, lines: None })
}

fn object(response: &Response) -> Result<Value> {
    serde_json::from_slice(&response.body).context("parse the answer")
}

fn map(name: &str, value: usize) -> Value {
    json!({"metadata": {"name": name}, "data": {"n": value.to_string()}})
}

#[test]
fn a_write_to_one_is_read_from_the_other() {
    const ROUNDS: usize = 50;
    with_pair("a_write_to_one_is_read_from_the_other", |_run, pair| {
        let clients = pair.clients()?;
        for round in 0..ROUNDS {
            let (writer, reader) = (&clients[round % 2], &clients[(round + 1) % 2]);
            let made = ask(writer, "POST", MAPS, Some(&map(&format!("m{round}"), round)))?;
            ensure!(made.status == 201, "{made:?}");
            let made = object(&made)?;
            let version = made["metadata"]["resourceVersion"].as_str().context("a version")?;
            // At once, as the most recent state and as one not older than the write.
            let one = ask(reader, "GET", &format!("{MAPS}/m{round}"), None)?;
            ensure!(one.status == 200 && object(&one)? == made, "{one:?}");
            let all = ask(reader, "GET", &format!("{MAPS}?resourceVersion={version}"), None)?;
            let items = object(&all)?["items"].as_array().map_or(0, Vec::len);
            ensure!(items == round + 2, "{items} after {round}: {all:?}");
            // A stale update is refused, whichever server is asked.
            let path = format!("{MAPS}/m{round}");
            let update = |client, value| {
                let mut new = made.clone();
                new["data"]["n"] = json!(value);
                ask(client, "PUT", &path, Some(&new))
            };
            ensure!(update(reader, "new")?.status == 200);
            let stale = update(writer, "stale")?;
            ensure!(stale.status == 409, "{stale:?}");
        }
        Ok(())
    });
}

/// Both servers count with the same object at the same time: nothing is lost.
#[test]
fn both_may_write_the_same_object() {
    const EACH: usize = 40;
    with_pair("both_may_write_the_same_object", |_run, pair| {
        let clients = pair.clients()?;
        ensure!(ask(&clients[0], "POST", MAPS, Some(&map("counter", 0)))?.status == 201);
        let path = format!("{MAPS}/counter");
        let count = |client: &Client| -> Result<()> {
            let mut done = 0;
            while done < EACH {
                let mut current = object(&ask(client, "GET", &path, None)?)?;
                let value = current["data"]["n"].as_str().context("a number")?.parse::<usize>()?;
                current["data"]["n"] = json!((value + 1).to_string());
                match ask(client, "PUT", &path, Some(&current))?.status {
                    200 => done += 1,
                    409 => {}
                    other => bail!("status {other}"),
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads = clients.each_ref().map(|client| scope.spawn(|| count(client)));
            let joined = threads.map(|thread| thread.join().expect("counting does not panic"));
            joined.into_iter().collect::<Result<()>>()
        })?;
        for client in &clients {
            let counted = object(&ask(client, "GET", &path, None)?)?;
            ensure!(counted["data"]["n"] == json!((2 * EACH).to_string()), "{counted}");
        }
        Ok(())
    });
}

#[test]
fn types_and_deletions_reach_both() {
    with_pair("types_and_deletions_reach_both", |run, pair| {
        let [a, b] = &pair.kubectls(run)?;
        // A namespace with what every namespace has, made on one and deleted on the other.
        a.ok(&["create", "namespace", "n"])?;
        b.ok(&["get", "--namespace=n", "serviceaccount/default", "configmap/kube-root-ca.crt"])?;
        b.ok(&["create", "--namespace=n", "configmap", "c"])?;
        b.ok(&["delete", "namespace", "n", "--wait"])?;
        check_contains(&a.fails(&["get", "namespace", "n"])?, &["NotFound"])?;
        // A type made on one is served by the other.
        a.ok_with_input(&["apply", "--filename=-"], WIDGETS)?;
        b.ok(&["wait", "--for=condition=Established", "crd/widgets.example.com"])?;
        let widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}";
        eventually("the type to be served", || {
            b.ok_with_input(&["apply", "--filename=-"], widget)
        })?;
        a.ok(&["get", "widgets", "w"])?;
        a.ok(&["delete", "crd", "widgets.example.com", "--wait"])?;
        eventually("the type to be gone", || b.fails(&["get", "widgets"]))?;
        // A whole logical cluster.
        b.ok(&["create", "configmap", "last"])?;
        let root = a.server(&pair.hubs[0].cluster_url("root"));
        root.ok(&["delete", "logicalclusters.core.kcp.io", "one", "--wait"])?;
        check_contains(&b.fails(&["get", "configmaps"])?, &["NotFound"])?;
        // Nothing of it is left for one that takes its name.
        b.ok(&["create", "configmap", "first"])?;
        let maps = parse(&a.ok(&["get", "configmaps", "--output=json"])?)?;
        let names = maps["items"].as_array().context("items")?.iter();
        let names = names.filter_map(|map| map["metadata"]["name"].as_str());
        let names = names.collect::<BTreeSet<_>>();
        ensure!(names == BTreeSet::from(["first", "kube-root-ca.crt"]), "{names:?}");
        Ok(())
    });
}

/// One server is killed, again and again: the other answers, and watches through it are whole.
#[test]
fn one_server_may_be_killed() {
    const ROUNDS: usize = 3;
    with_pair("one_server_may_be_killed", |run, pair| {
        let [mut a, b] = pair.kubectls(run)?;
        b.ok(&["create", "namespace", "w"])?;
        let mut watch =
            b.spawn(run, "watch", &["get", "configmaps", "--namespace=w", "-w", "-o", "name"])?;
        let log = watch.log().to_owned();
        let seen = |parts: &[&str]| {
            eventually("the watch to show it", || {
                check_contains(&std::fs::read_to_string(&log)?, parts)
            })
        };
        seen(&["kube-root-ca.crt"])?;
        for round in 0..ROUNDS {
            let [before, between, after] =
                ["before", "between", "after"].map(|when| format!("{when}-{round}"));
            let create = |kubectl: &Kubectl, name: &str| {
                kubectl.ok(&["create", "configmap", name, "--namespace=w"])
            };
            create(&a, &before)?;
            pair.hubs[0].kill()?;
            create(&b, &between)?;
            b.ok(&["get", "configmap", &before, &between, "--namespace=w"])?;
            // It has another port now.
            pair.hubs[0].restart()?;
            a = a.server(&pair.hubs[0].cluster_url("one"));
            create(&a, &after)?;
            a.ok(&["get", "configmap", &before, &between, "--namespace=w"])?;
            seen(&[&before, &between, &after].map(String::as_str))?;
        }
        watch.check_running()?;
        watch.terminate().map(|_| ())
    });
}

/// A client of both servers by turns, as one behind a load balancer is.
#[test]
fn two_servers_pass_conformance() {
    let needs = [Tool::Etcd, Tool::E2eTest, Tool::Kubectl].map(Need::Tool);
    scenario("two_servers_pass_conformance", &needs, |run| {
        let pair = Pair::start(run)?;
        let [a, b] = &pair.hubs;
        let balancer = Balancer::start(&[a.url(), b.url()])?;
        // The kubeconfig names the host, and the port of one of them.
        let (_, port) = a.url().rsplit_once(':').context("a port")?;
        let balanced = balancer.url();
        let (_, balanced) = balanced.rsplit_once(':').context("a port")?;
        let text = std::fs::read_to_string(a.kubeconfig())?;
        let kubeconfig = run.folder().join("balanced.kubeconfig");
        std::fs::write(&kubeconfig, text.replace(&format!(":{port}"), &format!(":{balanced}")))?;
        let names = list("conformance-api-only.txt")?;
        let ran = run_suite(run, "conformance", &kubeconfig, &names)?;
        check_passed(&ran)?;
        ensure!(ran.len() == 68, "{} specs ran", ran.len());
        say(format!("{} conformance specs passed over two servers and etcd", ran.len()));
        drop(balancer);
        pair.stop()
    });
}
