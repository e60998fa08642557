//! Which objects of a server went, by their UIDs, however often the server goes and comes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use parking_lot::{Condvar, Mutex};
use serde_json::Value;

use crate::client::{Client, Request};

/// The pause after a server has not answered.
const AGAIN: Duration = Duration::from_millis(30);

/// How long one watch lasts; an end of all is noticed after it.
const WATCH_SECONDS: u32 = 3;

/// Objects that were there and are no more.
#[derive(Clone, Debug, PartialEq)]
pub struct Gone {
    /// The collection's path.
    pub collection: String,
    /// Its last metadata that was seen.
    pub metadata: Value,
}

/// Follows collections and remembers which objects have gone. An object that is made again under its
/// name is another one.
///
/// Missed is only what comes and goes while nobody can watch.
#[derive(Debug)]
pub struct Deletions {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    gone: Vec<Gone>,
    ended: bool,
}

/// One collection.
struct Collection {
    client: Client,
    path: String,
    shared: Arc<Shared>,
    /// What is there, by UID.
    known: HashMap<String, Value>,
}

// === impl Deletions ===

impl Deletions {
    /// Follows collections by their paths, as `/api/v1/configmaps`, from now on: what is there when
    /// this returns is known.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn watch(kubeconfig: &Path, collections: &[&str]) -> Result<Self> {
        let shared = Arc::<Shared>::default();
        let mut threads = Vec::new();
        for path in collections {
            let (client, path) = (Client::new(kubeconfig, "")?, (*path).to_owned());
            let shared = shared.clone();
            let mut collection = Collection { client, path, shared, known: HashMap::new() };
            let version = collection.list()?;
            threads.push(thread::spawn(move || collection.run(version)));
        }
        Ok(Self { shared, threads })
    }

    /// What has gone so far.
    pub fn so_far(&self) -> Vec<Gone> {
        self.shared.state.lock().gone.clone()
    }

    /// What has gone up to now, with a last look at each collection.
    ///
    /// # Errors
    /// When a thread has panicked.
    pub fn finish(mut self) -> Result<Vec<Gone>> {
        self.end();
        for thread in self.threads.drain(..) {
            thread.join().map_err(|_| anyhow!("a thread that watches has panicked"))?;
        }
        Ok(self.so_far())
    }

    fn end(&self) {
        self.shared.state.lock().ended = true;
        self.shared.ended.notify_all();
    }
}

impl Drop for Deletions {
    fn drop(&mut self) {
        self.end();
    }
}

// === impl Gone ===

impl Gone {
    /// The object's UID.
    pub fn uid(&self) -> &str {
        self.metadata["uid"].as_str().unwrap_or_default()
    }

    /// Collection, namespace and name, for people.
    pub fn name(&self) -> String {
        let part = |field: &str| self.metadata[field].as_str().unwrap_or_default();
        format!("{} {}/{}", self.collection, part("namespace"), part("name"))
    }
}

// === impl Collection ===

impl Collection {
    /// Follows it until the end.
    fn run(&mut self, version: String) {
        let mut version = Some(version);
        while !self.has_ended() {
            let followed = match version.take() {
                Some(since) => self.follow(&since),
                None => self.list().map(Some),
            };
            match followed {
                Ok(now) => version = now,
                Err(_unanswered) => self.pause(),
            }
        }
        // The server may be gone for good by now.
        self.list().ok();
    }

    /// Reads it whole: what was known and isn't there has gone. Returns its resource version.
    fn list(&mut self) -> Result<String> {
        let request =
            Request { method: "GET", path: &self.path, headers: &[], body: None, lines: None };
        let answer = self.client.ask(&request)?;
        ensure!(answer.status == 200, "{} answers {}", self.path, answer.status);
        let list: Value = serde_json::from_slice(&answer.body)?;
        let version = list["metadata"]["resourceVersion"].as_str().context("a list's version")?;
        let mut before = std::mem::take(&mut self.known);
        for item in list["items"].as_array().context("a list has items")? {
            let uid = item["metadata"]["uid"].as_str().context("an object has a UID")?;
            before.remove(uid);
            self.known.insert(uid.to_owned(), item["metadata"].clone());
        }
        for metadata in before.into_values() {
            self.gone(metadata);
        }
        Ok(version.to_owned())
    }

    /// Watches once. Returns from where to go on; without, it has to be listed again.
    fn follow(&mut self, since: &str) -> Result<Option<String>> {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&resourceVersion={since}&timeoutSeconds={WATCH_SECONDS}",
            self.path
        );
        let request = Request { method: "GET", path: &path, headers: &[], body: None, lines: None };
        let mut version = Some(since.to_owned());
        // As what is seen changes what is known, the client is taken out meanwhile.
        let client = self.client.clone();
        let status = client.follow(&request, |line| {
            version = serde_json::from_slice(line).ok().and_then(|event| self.see(&event));
            version.is_some() && !self.has_ended()
        });
        match status {
            Ok(200) => {}
            Ok(_) => return Ok(None),
            // One that breaks off is gone on with like one that ends.
            Err(_) => self.pause(),
        }
        Ok(version)
    }

    /// Takes in an event; returns its resource version, or nothing where the watch can't go on.
    fn see(&mut self, event: &Value) -> Option<String> {
        let metadata = &event["object"]["metadata"];
        let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str()? {
            "ADDED" | "MODIFIED" => {
                self.known.insert(uid, metadata.clone());
            }
            "DELETED" => {
                self.known.remove(&uid);
                self.gone(metadata.clone());
            }
            "BOOKMARK" => {}
            _error => return None,
        }
        Some(metadata["resourceVersion"].as_str()?.to_owned())
    }

    fn gone(&self, metadata: Value) {
        let gone = Gone { collection: self.path.clone(), metadata };
        self.shared.state.lock().gone.push(gone);
    }

    fn has_ended(&self) -> bool {
        self.shared.state.lock().ended
    }

    fn pause(&self) {
        let mut state = self.shared.state.lock();
        if !state.ended {
            self.shared.ended.wait_for(&mut state, AGAIN);
        }
    }
}
