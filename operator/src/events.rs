//! Kubernetes Events about what the operator does, on the objects that it does it for.
//!
//! Invariants: an Event is told when something changes, and not each time that it is looked at; a
//! logical cluster is told so many in a row and so many a second, whatever is done in it; what is
//! remembered for that is bounded; no Event holds anything of a Secret.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api::Api;

/// How many objects are remembered: all that have something to tell, in a large installation.
const MOST_REMEMBERED: usize = 20_000;

/// The longest text; Kubernetes takes 1024 bytes.
const LONGEST: usize = 1000;

/// How many Events a logical cluster is told in a row: enough for all of an application.
const BURST: f64 = 500.0;

/// How many it is told a second after that.
const RATE: f64 = 5.0;

/// How many logical clusters are remembered before those that may be told all again are forgotten.
const MOST_LIMITED: usize = 1_000;

/// What an Event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Regarding {
    pub(crate) cluster: String,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// Empty for what has none.
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// Whether somebody should look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Normal,
    Warning,
}

/// Tells Events.
#[derive(Clone, Default)]
pub(crate) struct Events {
    memory: Arc<Mutex<Memory>>,
}

#[derive(Default)]
struct Memory {
    /// The last reason and text, by the logical cluster and UID of the object, and topic.
    told: HashMap<(String, String, &'static str), (String, String)>,
    /// How many Events each logical cluster may be told at once; of those that may not be told all.
    left: HashMap<String, (f64, Instant)>,
}

// === impl Events ===

impl Events {
    /// Tells something about an object, unless that was the last thing told about it on this topic.
    pub(crate) async fn tell(
        &self,
        hub: &Api,
        regarding: &Regarding,
        topic: &'static str,
        (weight, reason, note): (Weight, &str, &str),
    ) {
        let mut note = note.to_owned();
        note.truncate(note.floor_char_boundary(LONGEST));
        if !self.memory.lock().is_due(regarding, topic, (reason, &note), Instant::now()) {
            return;
        }
        let event = render(regarding, weight, reason, &note, Timestamp::now());
        let namespace = event["metadata"]["namespace"].as_str().unwrap_or_default();
        let path = format!("/api/v1/namespaces/{namespace}/events");
        if let Err(error) = hub.create(&path, &event).await {
            // Nothing depends on it.
            tracing::debug!(%error, reason, "an Event was not told");
        }
    }

    /// There is nothing to tell about an object on a topic any more: the next time it is news.
    pub(crate) fn settled(&self, cluster: &str, uid: &str, topic: &'static str) {
        self.memory.lock().told.remove(&(cluster.to_owned(), uid.to_owned(), topic));
    }
}

// === impl Memory ===

impl Memory {
    /// Whether something is to be told now.
    fn is_due(
        &mut self,
        regarding: &Regarding,
        topic: &'static str,
        (reason, note): (&str, &str),
        now: Instant,
    ) -> bool {
        if !self.is_news(regarding, topic, reason, note) {
            return false;
        }
        let may = self.may_tell(&regarding.cluster, now);
        if !may {
            // It is news when it is looked at another time.
            self.told.remove(&regarding.topic(topic));
        }
        may
    }

    fn is_news(
        &mut self,
        regarding: &Regarding,
        topic: &'static str,
        reason: &str,
        note: &str,
    ) -> bool {
        if self.told.len() >= MOST_REMEMBERED {
            // Some are told twice then.
            self.told.clear();
        }
        let last = (reason.to_owned(), note.to_owned());
        self.told.insert(regarding.topic(topic), last.clone()) != Some(last)
    }

    /// Takes one of what a logical cluster may be told.
    fn may_tell(&mut self, cluster: &str, now: Instant) -> bool {
        let grown = |left: f64, since: Instant| {
            left + RATE * now.saturating_duration_since(since).as_secs_f64()
        };
        let (left, since) = self.left.get(cluster).copied().unwrap_or((BURST, now));
        let left = grown(left, since).min(BURST);
        if left < 1.0 {
            return false;
        }
        self.left.insert(cluster.to_owned(), (left - 1.0, now));
        // A logical cluster that has been quiet is forgotten.
        if self.left.len() > MOST_LIMITED {
            self.left.retain(|_, (left, since)| grown(*left, *since) < BURST);
        }
        true
    }
}

// === impl Regarding ===

impl Regarding {
    fn topic(&self, topic: &'static str) -> (String, String, &'static str) {
        (self.cluster.clone(), self.uid.clone(), topic)
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

fn render(about: &Regarding, weight: Weight, reason: &str, note: &str, now: Timestamp) -> Value {
    let namespace = match about.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    };
    let kind = match weight {
        Weight::Normal => "Normal",
        Weight::Warning => "Warning",
    };
    // As client-go names them; nobody else tells something at the same nanosecond.
    let nanos = now.as_nanosecond();
    let prefix: String = about.name.chars().take(200).collect();
    let second = format!("{now:.0}");
    let mut object = json!({
        "apiVersion": about.api_version, "kind": about.kind, "name": about.name, "uid": about.uid,
    });
    if !about.namespace.is_empty() {
        object["namespace"] = about.namespace.as_str().into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": format!("{prefix}.{nanos:x}"), "namespace": namespace},
        "involvedObject": object,
        "type": kind,
        "reason": reason,
        "message": note,
        "source": {"component": contract::OPERATOR_MANAGER},
        "firstTimestamp": second,
        "lastTimestamp": second,
        "count": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(namespace: &str) -> Regarding {
        Regarding {
            cluster: "a".into(),
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: namespace.into(),
            name: "c".into(),
            uid: "u".into(),
        }
    }

    #[test]
    fn news_are_told_once() {
        let mut memory = Memory::default();
        let other = Regarding { uid: "v".into(), ..about("n") };
        assert!(memory.is_news(&about("n"), "install", "Installed", "x"));
        assert!(!memory.is_news(&about("n"), "install", "Installed", "x"));
        assert!(memory.is_news(&about("n"), "other", "Installed", "x"));
        assert!(memory.is_news(&about("n"), "install", "Unreachable", "x"));
        assert!(memory.is_news(&about("n"), "install", "Installed", "x"), "again");
        assert!(memory.is_news(&other, "install", "Installed", "x"));
        let events = Events { memory: Arc::new(Mutex::new(memory)) };
        events.settled("a", "u", "install");
        assert!(events.memory.lock().is_news(&about("n"), "install", "Installed", "x"));
        assert!(!events.memory.lock().is_news(&other, "install", "Installed", "x"));
    }

    #[test]
    fn a_logical_cluster_is_told_so_many() {
        let mut memory = Memory::default();
        let begin = Instant::now();
        let told = (0..2000).filter(|_| memory.may_tell("a", begin)).count();
        assert_eq!(told, 500);
        assert!(memory.may_tell("b", begin), "others are told all the same");
        let later = begin + std::time::Duration::from_secs(2);
        assert_eq!((0..100).filter(|_| memory.may_tell("a", later)).count(), 10);
        // Those that are quiet are forgotten.
        let end = begin + std::time::Duration::from_secs(3600);
        for number in 0..5_000 {
            assert!(
                memory
                    .may_tell(&format!("c{number}"), end + std::time::Duration::from_secs(number))
            );
            assert!(memory.left.len() <= MOST_LIMITED + 1);
        }
    }

    #[test]
    fn where_events_are() {
        let event =
            |namespace| render(&about(namespace), Weight::Normal, "R", "n", Timestamp::UNIX_EPOCH);
        assert_eq!(event("n")["metadata"]["namespace"], "n");
        assert_eq!(event("")["metadata"]["namespace"], "default");
        assert_eq!(event("")["involvedObject"].get("namespace"), None);
    }
}
