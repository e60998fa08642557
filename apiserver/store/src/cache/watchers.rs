//! Watchers, indexed by what they watch, so that a change costs only those who see it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::event::Event;
use crate::{Key, KeyPrefix};

/// Events that wait for one watcher. A watcher that is further behind is ended: it resumes from
/// its last revision, and until then costs nothing. 1,000 is a second of a busy server's writes.
const QUEUE: usize = 1000;

/// Whether a watcher wants an event.
pub type Filter = Arc<dyn Fn(&Event) -> bool + Send + Sync>;

/// What a watcher watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every object of every resource.
    Everything,
    /// Every object under a prefix that ends with a whole segment.
    Prefix(KeyPrefix),
    /// One object.
    Key(Key),
}

/// All watchers, by the bytes of their scope.
#[derive(Default)]
pub(super) struct Watchers {
    by_scope: HashMap<Bytes, Vec<Watcher>, ahash::RandomState>,
}

struct Watcher {
    filter: Option<Filter>,
    events: mpsc::Sender<Arc<Event>>,
}

// === impl Scope ===

impl Scope {
    pub(super) fn bytes(&self) -> &Bytes {
        static EVERYTHING: Bytes = Bytes::new();
        match self {
            Self::Everything => &EVERYTHING,
            Self::Prefix(prefix) => prefix.as_bytes(),
            Self::Key(key) => key.as_bytes(),
        }
    }

    pub(super) fn contains(&self, key: &Key) -> bool {
        match self {
            Self::Everything => true,
            Self::Prefix(prefix) => prefix.contains(key),
            Self::Key(own) => own == key,
        }
    }
}

// === impl Watchers ===

impl Watchers {
    /// A watcher of several scopes, which have no key in common, gets the events of all in order.
    pub(super) fn add(
        &mut self,
        scopes: &[Scope],
        filter: Option<&Filter>,
    ) -> mpsc::Receiver<Arc<Event>> {
        let (events, receiver) = mpsc::channel(QUEUE);
        for scope in scopes {
            let watchers = self.by_scope.entry(scope.bytes().clone()).or_default();
            // Watchers that have gone are dropped with the next event or registration of a scope.
            watchers.retain(|watcher| !watcher.events.is_closed());
            watchers.push(Watcher { filter: filter.cloned(), events: events.clone() });
        }
        receiver
    }

    pub(super) fn dispatch(&mut self, event: &Arc<Event>) {
        if self.by_scope.is_empty() {
            return;
        }
        for scope in scopes(event.key.as_bytes()) {
            let Some(watchers) = self.by_scope.get_mut(scope) else {
                continue;
            };
            watchers.retain(|watcher| watcher.offer(event));
            if watchers.is_empty() {
                self.by_scope.remove(scope);
            }
        }
    }

    /// Who watches. One of several scopes counts for each of them.
    pub(super) fn count(&self) -> usize {
        let open = |watchers: &Vec<Watcher>| {
            watchers.iter().filter(|watcher| !watcher.events.is_closed()).count()
        };
        self.by_scope.values().map(open).sum()
    }

    /// The scopes that are watched.
    pub(super) fn scopes(&self) -> usize {
        self.by_scope.len()
    }

    /// Ends every watch, as when the history between two states is unknown.
    pub(super) fn end_all(&mut self) {
        self.by_scope.clear();
    }

    /// Forgets scopes whose watchers have all gone without an event since.
    pub(super) fn sweep(&mut self) {
        self.by_scope.retain(|_, watchers| {
            watchers.retain(|watcher| !watcher.events.is_closed());
            !watchers.is_empty()
        });
    }
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watchers({} scopes)", self.by_scope.len())
    }
}

// === impl Watcher ===

impl Watcher {
    /// Whether the watcher stays.
    fn offer(&self, event: &Arc<Event>) -> bool {
        if self.filter.as_ref().is_some_and(|wants| !wants(event)) {
            return !self.events.is_closed();
        }
        match self.events.try_send(event.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => false,
        }
    }
}

/// The scopes that hold a key: everything, the resource, its logical cluster there, the namespace, the object.
fn scopes(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = key.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at + 1);
    let prefixes = slashes.skip(1).filter_map(|end| key.get(..end));
    std::iter::once(&[][..]).chain(prefixes).chain(std::iter::once(key))
}
