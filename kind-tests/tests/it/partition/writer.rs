//! Somebody who changes objects all the time, and a controller that reports status.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use kind_tests::client::{Client, Request};
use parking_lot::{Condvar, Mutex};
use serde_json::{Value, json};

use super::model::{Model, value};
use super::schedule::Random;
use crate::site::TARGET;

/// Where all of it is, on both sides.
pub(super) const NAMESPACE: &str = "part";

/// The pause between two attempts.
const PACE: Duration = Duration::from_millis(25);

/// The objects: a few names, so that they are often made again.
const NAMES: [(&str, &str); 10] = [
    ("configmaps", "c0"),
    ("configmaps", "c1"),
    ("configmaps", "c2"),
    ("configmaps", "c3"),
    ("configmaps", "c4"),
    ("configmaps", "c5"),
    ("configmaps", "c6"),
    ("deployments", "d0"),
    ("deployments", "d1"),
    ("deployments", "d2"),
];

/// A server, and where objects are on it.
#[derive(Clone, Debug)]
pub(super) struct Side {
    client: Client,
    base: &'static str,
}

/// The thread that changes objects.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    control: Mutex<Control>,
    changed: Condvar,
    model: Mutex<Model>,
    failure: Mutex<Option<anyhow::Error>>,
}

#[derive(Debug, Default)]
struct Control {
    turns: u64,
    paused: bool,
    idle: bool,
    ended: bool,
}

/// What the thread works with.
struct Work {
    hub: Side,
    cluster: Side,
    random: Random,
    shared: Arc<Shared>,
    /// The last value that was written anywhere.
    value: u64,
}

// === impl Side ===

impl Side {
    pub(super) fn hub(kubeconfig: &Path) -> Result<Self> {
        Ok(Self { client: Client::new(kubeconfig, "")?, base: "/clusters/infra" })
    }

    pub(super) fn cluster(kubeconfig: &Path) -> Result<Self> {
        Ok(Self { client: Client::new(kubeconfig, "")?, base: "" })
    }

    fn collection(&self, resource: &str) -> String {
        let group = if resource == "deployments" { "apis/apps/v1" } else { "api/v1" };
        format!("{}/{group}/namespaces/{NAMESPACE}/{resource}", self.base)
    }

    /// A request, and what came back; an error if nobody has answered, or not in earnest.
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        let kind =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let headers = [("Content-Type".to_owned(), kind.to_owned())];
        let body = body.map(Value::to_string);
        let body = body.as_deref().map(str::as_bytes);
        let answer =
            self.client.ask(&Request { method, path, headers: &headers, body, lines: None })?;
        ensure!(answer.status < 500 && answer.status != 429, "{path} answers {}", answer.status);
        Ok((answer.status, serde_json::from_slice(&answer.body).unwrap_or_default()))
    }

    /// All objects that are there, by resource and name.
    pub(super) fn all(&self) -> Result<BTreeMap<String, Value>> {
        let mut all = BTreeMap::new();
        for resource in ["configmaps", "deployments"] {
            let (status, list) = self.ask("GET", &self.collection(resource), None)?;
            ensure!(status == 200, "the list of {resource} answers {status}");
            for item in list["items"].as_array().context("a list has items")? {
                let name = item["metadata"]["name"].as_str().context("a name")?;
                if NAMES.contains(&(resource, name)) {
                    all.insert(format!("{resource}/{name}"), item.clone());
                }
            }
        }
        Ok(all)
    }
}

// === impl Writer ===

impl Writer {
    /// Starts to change objects, paused.
    pub(super) fn start(hub: Side, cluster: Side) -> Self {
        let shared = Arc::<Shared>::default();
        shared.control.lock().paused = true;
        let random = Random::of(0);
        let mut work = Work { hub, cluster, random, shared: shared.clone(), value: 0 };
        let thread = thread::spawn(move || work.run());
        Self { shared, thread: Some(thread) }
    }

    /// Waits until there were so many turns more. Turns go on while it pauses.
    pub(super) fn turns(&self, more: u64) -> Result<()> {
        let mut control = self.shared.control.lock();
        let until = control.turns + more;
        while control.turns < until && !control.ended {
            self.shared.changed.wait(&mut control);
        }
        drop(control);
        self.check()
    }

    /// Pauses, when this returns, or goes on.
    pub(super) fn pause(&self, paused: bool) -> Result<()> {
        let mut control = self.shared.control.lock();
        control.paused = paused;
        self.shared.changed.notify_all();
        while paused && !control.idle && !control.ended {
            self.shared.changed.wait(&mut control);
        }
        drop(control);
        self.check()
    }

    /// Looks at what was asked for, or changes it.
    pub(super) fn model<T>(&self, look: impl FnOnce(&mut Model) -> T) -> T {
        look(&mut self.shared.model.lock())
    }

    /// Ends.
    pub(super) fn end(mut self) -> Result<()> {
        self.stop()?;
        self.check()
    }

    fn stop(&mut self) -> Result<()> {
        self.shared.control.lock().ended = true;
        self.shared.changed.notify_all();
        match self.thread.take() {
            Some(thread) => thread.join().map_err(|_| anyhow!("the writer has panicked")),
            None => Ok(()),
        }
    }

    fn check(&self) -> Result<()> {
        self.shared.failure.lock().take().map_or(Ok(()), Err)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop().unwrap_or_default();
    }
}

// === impl Work ===

impl Work {
    fn run(&mut self) {
        while let Some(works) = self.next_turn() {
            // What nobody has answered is noted; what was answered wrongly ends it.
            if works && let Err(error) = self.attempt() {
                *self.shared.failure.lock() = Some(error);
                self.shared.control.lock().ended = true;
            }
            self.shared.control.lock().turns += 1;
            self.shared.changed.notify_all();
        }
        self.shared.changed.notify_all();
    }

    /// Waits for the next turn. Whether anything is to be done in it; nothing at the end.
    fn next_turn(&self) -> Option<bool> {
        let mut control = self.shared.control.lock();
        control.idle = control.paused;
        self.shared.changed.notify_all();
        self.shared.changed.wait_for(&mut control, PACE);
        control.idle = control.paused;
        (!control.ended).then_some(!control.paused)
    }

    /// One change of one object, or a look at what became of one that nobody has answered.
    fn attempt(&mut self) -> Result<()> {
        let (resource, name) = self.random.pick(&NAMES);
        let what = format!("{resource}/{name}");
        self.value += 1;
        let uid = self.shared.model.lock().uid(&what);
        // Deletes are rare: many in a minute would be held up as a wave.
        match (uid, self.random.below(120)) {
            (_, 0..=30) if resource == "deployments" => self.report(name),
            (Some(uid), 31..=32) => self.delete(resource, &what, name, &uid),
            (Some(uid), 33) => {
                // It is taken from the cluster and stays at the hub.
                self.shared.model.lock().doom(&uid);
                self.update(resource, &what, name, &Value::Null)
            }
            (Some(_), _) => self.update(resource, &what, name, &TARGET.into()),
            (None, _) => self.create(resource, &what, name),
        }
    }

    fn create(&mut self, resource: &str, what: &str, name: &str) -> Result<()> {
        let collection = self.hub.collection(resource);
        // What is there may be what nobody has answered, or be going.
        let Ok((status, found)) = self.hub.ask("GET", &format!("{collection}/{name}"), None) else {
            return Ok(());
        };
        if status == 200 {
            if found["metadata"]["deletionTimestamp"].is_null() {
                let uid = found["metadata"]["uid"].as_str().context("a UID")?;
                self.shared.model.lock().written(what, value(&found), uid);
            }
            return Ok(());
        }
        let number = self.value.to_string();
        let metadata = json!({
            "name": name, "annotations": {"value": number},
            "labels": {contract::INTENT_LABEL: TARGET},
        });
        let object = if resource == "deployments" {
            let labels = json!({"app": name});
            let pod = json!({"containers": [{"name": "main", "image": "sample:dev"}]});
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
                "spec": {
                    "replicas": self.value % 10, "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                },
            })
        } else {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
                "data": {"value": number},
            })
        };
        let asked = self.hub.ask("POST", &collection, Some(&object));
        let mut model = self.shared.model.lock();
        match asked {
            Ok((201, made)) => {
                let uid = made["metadata"]["uid"].as_str().context("a UID")?;
                model.written(what, self.value, uid);
            }
            Ok((409, _)) => {}
            Ok((status, answer)) => bail!("creating {what} is answered {status}: {answer}"),
            Err(_unanswered) => model.unanswered(what),
        }
        Ok(())
    }

    fn update(&mut self, resource: &str, what: &str, name: &str, intent: &Value) -> Result<()> {
        let path = format!("{}/{name}", self.hub.collection(resource));
        let number = self.value.to_string();
        let metadata = json!({
            "annotations": {"value": number}, "labels": {contract::INTENT_LABEL: intent},
        });
        let patch = if resource == "deployments" {
            json!({"metadata": metadata, "spec": {"replicas": self.value % 10}})
        } else {
            json!({"metadata": metadata, "data": {"value": number}})
        };
        let asked = self.hub.ask("PATCH", &path, Some(&patch));
        match asked {
            Ok((200, changed)) => {
                let uid = changed["metadata"]["uid"].as_str().context("a UID")?;
                self.shared.model.lock().written(what, self.value, uid);
                Ok(())
            }
            Ok((404, _)) => bail!("{what} is lost: a change is answered 404"),
            Ok((status, answer)) => bail!("changing {what} is answered {status}: {answer}"),
            // Values only grow, so whether it was done makes no difference.
            Err(_unanswered) => Ok(()),
        }
    }

    fn delete(&mut self, resource: &str, what: &str, name: &str, uid: &str) -> Result<()> {
        let path = format!("{}/{name}", self.hub.collection(resource));
        self.shared.model.lock().doom(uid);
        let asked = self.hub.ask("DELETE", &path, None);
        let mut model = self.shared.model.lock();
        match asked {
            Ok((200 | 202, _)) => model.deleted(what),
            Ok((404, _)) => bail!("{what} is lost: its deletion is answered 404"),
            Ok((status, answer)) => bail!("deleting {what} is answered {status}: {answer}"),
            Err(_unanswered) => model.unanswered(what),
        }
        Ok(())
    }

    /// What a controller of the cluster does.
    fn report(&mut self, name: &str) -> Result<()> {
        let path = format!("{}/{name}/status", self.cluster.collection("deployments"));
        let ready = self.value % 5;
        let patch = json!({"status": {"replicas": 5, "readyReplicas": ready}});
        // There may be no copy, and nobody may answer.
        self.cluster.ask("PATCH", &path, Some(&patch)).map(drop).or(Ok(()))
    }
}
