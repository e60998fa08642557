//! What somebody has asked for, and what is known to have been done.

use std::collections::{BTreeMap, HashSet};

use anyhow::{Result, bail, ensure};
use serde_json::Value;

/// What is asked for, by object; and which copies may go.
#[derive(Debug, Default)]
pub(super) struct Model {
    objects: BTreeMap<String, Asked>,
    /// UIDs of objects that somebody has asked to delete or to take from the cluster, whether that
    /// was acknowledged or not.
    doomed: HashSet<String>,
    /// Changes that were acknowledged.
    pub(super) acknowledged: u64,
}

/// What was asked of one object.
#[derive(Clone, Debug, Default)]
struct Asked {
    /// The last thing that was acknowledged.
    known: Known,
    /// Whether something that nobody has answered may have been done since: a creation or deletion.
    open: bool,
    /// Its UID, if it is known.
    uid: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    #[default]
    Absent,
    /// It has at least this value, as values only grow.
    Present(u64),
}

// === impl Model ===

impl Model {
    /// The UID that an object has, if it is there.
    pub(super) fn uid(&self, what: &str) -> Option<String> {
        self.objects.get(what)?.uid.clone()
    }

    /// A copy of an object of this UID may go from now on.
    pub(super) fn doom(&mut self, uid: &str) {
        self.doomed.insert(uid.to_owned());
    }

    pub(super) fn is_doomed(&self, uid: &str) -> bool {
        self.doomed.contains(uid)
    }

    /// An object was created or changed.
    pub(super) fn written(&mut self, what: &str, value: u64, uid: &str) {
        self.acknowledged += 1;
        let asked = Asked { known: Known::Present(value), open: false, uid: Some(uid.to_owned()) };
        self.objects.insert(what.to_owned(), asked);
    }

    /// An object was deleted, or was not there.
    pub(super) fn deleted(&mut self, what: &str) {
        self.acknowledged += 1;
        self.objects.insert(what.to_owned(), Asked::default());
    }

    /// Nobody has answered whether an object was created or deleted.
    pub(super) fn unanswered(&mut self, what: &str) {
        let asked = self.objects.entry(what.to_owned()).or_default();
        asked.open = true;
        asked.uid = None;
    }

    /// The hub is as it was before: what it shows is what counts.
    pub(super) fn goes_back(&mut self, present: &BTreeMap<String, Value>) {
        self.objects.clear();
        for (what, object) in present {
            let uid = object["metadata"]["uid"].as_str().map(str::to_owned);
            // What was being deleted then goes on to be.
            let known =
                if is_going(object) { Known::Absent } else { Known::Present(value(object)) };
            self.objects.insert(what.clone(), Asked { known, open: false, uid });
        }
    }

    /// Fails if something that was acknowledged is not so.
    pub(super) fn check(&self, present: &BTreeMap<String, Value>) -> Result<()> {
        for (what, asked) in self.objects.iter().filter(|(_, asked)| !asked.open) {
            match (asked.known, present.get(what)) {
                (Known::Absent, None) => {}
                (Known::Absent, Some(object)) => {
                    // Deleted, and held by a finalizer until its copy has gone.
                    ensure!(is_going(object), "{what} was deleted and is there");
                }
                (Known::Present(_), None) => bail!("{what} is lost"),
                (Known::Present(least), Some(object)) => {
                    let is = value(object);
                    ensure!(is >= least, "{what} has the value {is}, and not {least}");
                }
            }
        }
        Ok(())
    }
}

fn is_going(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The value that an object has: values only grow.
pub(super) fn value(object: &Value) -> u64 {
    let annotations = &object["metadata"]["annotations"];
    annotations["value"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}
