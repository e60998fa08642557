//! Kubernetes Events about what the operator does, on the objects that it does it for.
//!
//! Invariants: an Event is told when something changes, and not each time that it is looked at; what
//! is remembered for that is bounded; no Event holds anything of a Secret.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::api::Api;

/// How many objects are remembered: all that have something to tell, in a large installation.
const MOST_REMEMBERED: usize = 20_000;

/// The longest text; Kubernetes takes 1024 bytes.
const LONGEST: usize = 1000;

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
    told: Arc<Mutex<Told>>,
}

/// The last reason and text, by object and topic.
type Told = HashMap<(Regarding, &'static str), (String, String)>;

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
        if !self.is_news(regarding, topic, reason, &note) {
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

    fn is_news(
        &self,
        regarding: &Regarding,
        topic: &'static str,
        reason: &str,
        note: &str,
    ) -> bool {
        let mut told = self.told.lock();
        if told.len() >= MOST_REMEMBERED {
            // Some are told twice then.
            told.clear();
        }
        let last = (reason.to_owned(), note.to_owned());
        told.insert((regarding.clone(), topic), last.clone()) != Some(last)
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
        let events = Events::default();
        assert!(events.is_news(&about("n"), "install", "Installed", "x"));
        assert!(!events.is_news(&about("n"), "install", "Installed", "x"));
        assert!(events.is_news(&about("n"), "other", "Installed", "x"));
        assert!(events.is_news(&about("n"), "install", "Unreachable", "x"));
        assert!(events.is_news(&about("n"), "install", "Installed", "x"), "again");
        assert!(events.is_news(&about("m"), "install", "Installed", "x"));
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
