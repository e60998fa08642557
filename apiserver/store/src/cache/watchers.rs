//! Watchers, indexed by what they watch, so that a change costs only those who see it.
//!
//! # Flow
//! Where few watch a scope, they are told of an event as it comes. Where many do, it takes a while to
//! tell them, and who only reads or writes would wait for that: there an event is put aside, and they
//! are told in turns ([`Watchers::turn`]), one scope after the other.
//!
//! # Guarantees
//! - A watcher gets the events of one scope in order. Those of its other scopes may overtake them while
//!   that one is behind; who needs to know sees that ([`Scopes::is_behind`]).
//! - The server's own watchers are always told at once.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use machinery::room::GiveRoomBack as _;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::event::Event;
use crate::{Key, KeyPrefix, Revision};

/// Events that wait for one watcher, or for all of a scope. A watcher that is further behind is ended:
/// it resumes from its last revision, and until then costs nothing. 1,000 is a second of a busy
/// server's writes.
const QUEUE: usize = 1000;

/// So many are told at once: less than a tenth of a millisecond.
const AT_ONCE: usize = 256;

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

/// Who watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The server itself: what the cache shows, it has been told of.
    Server,
    /// A client: one of many, who may hear of a change a moment after others can read it.
    Client,
}

/// All watchers, by the bytes of their scope.
#[derive(Default)]
pub(super) struct Watchers {
    by_scope: HashMap<Box<[u8]>, Crowd, ahash::RandomState>,
    /// Scopes with events that were put aside, in the order of their turns.
    behind: VecDeque<Box<[u8]>>,
}

/// Those who watch one scope.
#[derive(Default)]
struct Crowd {
    own: Vec<Watcher>,
    clients: Vec<Watcher>,
    /// Events that clients are not told of yet.
    aside: VecDeque<Arc<Event>>,
    /// Who is told next of the first of them.
    next: usize,
    is_behind: Arc<AtomicBool>,
}

struct Watcher {
    /// It is not told of events up to here.
    after: Revision,
    filter: Option<Filter>,
    events: mpsc::Sender<Arc<Event>>,
}

/// The scopes of one watcher.
#[derive(Debug)]
pub(super) struct Scopes(Box<[Arc<AtomicBool>]>);

// === impl Scope ===

impl Scope {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Everything => &[],
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

// === impl Scopes ===

impl Scopes {
    /// Whether events wait that the watcher was not told of.
    pub(super) fn is_behind(&self) -> bool {
        self.0.iter().any(|behind| behind.load(Ordering::Acquire))
    }
}

// === impl Watchers ===

impl Watchers {
    /// A watcher of several scopes, which have no key in common, gets the events after `after`: those
    /// up to there may still be on their way to others.
    pub(super) fn add(
        &mut self,
        scopes: &[Scope],
        filter: Option<&Filter>,
        audience: Audience,
        after: Revision,
    ) -> (mpsc::Receiver<Arc<Event>>, Scopes) {
        let (events, receiver) = mpsc::channel(QUEUE);
        let place = |scope: &Scope| {
            let crowd = self.by_scope.entry(scope.bytes().into()).or_default();
            let watcher = Watcher { after, filter: filter.cloned(), events: events.clone() };
            crowd.add(watcher, audience);
            crowd.is_behind.clone()
        };
        let places = scopes.iter().map(place).collect();
        (receiver, Scopes(places))
    }

    /// Tells of an event, or puts it aside. Whether it is the first that waits somewhere.
    pub(super) fn dispatch(&mut self, event: &Arc<Event>) -> bool {
        let mut is_first = false;
        if self.by_scope.is_empty() {
            return false;
        }
        for scope in scopes(event.key.as_bytes()) {
            let Some(crowd) = self.by_scope.get_mut(scope) else { continue };
            crowd.own.retain(|watcher| watcher.offer(event));
            if crowd.aside.is_empty() && crowd.clients.len() <= AT_ONCE {
                crowd.clients.retain(|watcher| watcher.offer(event));
            } else {
                crowd.aside.push_back(event.clone());
                if crowd.aside.len() > QUEUE {
                    crowd.end_clients();
                } else if !crowd.is_behind.swap(true, Ordering::AcqRel) {
                    is_first |= self.behind.is_empty();
                    self.behind.push_back(scope.into());
                }
            }
            if crowd.is_empty() {
                self.by_scope.remove(scope);
            }
        }
        is_first
    }

    /// Tells some of those who are behind. Whether there are more.
    pub(super) fn turn(&mut self) -> bool {
        let Some(scope) = self.behind.pop_front() else { return false };
        if let Some(crowd) = self.by_scope.get_mut(&scope) {
            crowd.turn();
            if !crowd.aside.is_empty() {
                self.behind.push_back(scope);
            } else {
                crowd.is_behind.store(false, Ordering::Release);
                if crowd.is_empty() {
                    self.by_scope.remove(&scope);
                }
            }
        }
        !self.behind.is_empty()
    }

    /// Who watches. One of several scopes counts for each of them.
    pub(super) fn count(&self) -> usize {
        let open = |crowd: &Crowd| {
            let all = crowd.own.iter().chain(&crowd.clients);
            all.filter(|watcher| !watcher.events.is_closed()).count()
        };
        self.by_scope.values().map(open).sum()
    }

    /// The scopes that are watched.
    pub(super) fn scopes(&self) -> usize {
        self.by_scope.len()
    }

    /// Events that wait where many watch.
    pub(super) fn aside(&self) -> usize {
        self.by_scope.values().map(|crowd| crowd.aside.len()).sum()
    }

    /// Ends every watch, as when the history between two states is unknown.
    pub(super) fn end_all(&mut self) {
        self.by_scope.clear();
        self.behind.clear();
    }

    /// Forgets scopes whose watchers have all gone without an event since.
    pub(super) fn sweep(&mut self) {
        self.by_scope.retain(|_, crowd| {
            crowd.sweep();
            !crowd.is_empty()
        });
        self.by_scope.give_room_back();
    }
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watchers({} scopes)", self.by_scope.len())
    }
}

// === impl Crowd ===

impl Crowd {
    fn add(&mut self, watcher: Watcher, audience: Audience) {
        // Watchers that have gone are dropped with the next event, or before their list has to grow.
        if self.own.len() == self.own.capacity() || self.clients.len() == self.clients.capacity() {
            self.sweep();
        }
        match audience {
            Audience::Server => self.own.push(watcher),
            Audience::Client => self.clients.push(watcher),
        }
    }

    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.clients.is_empty() && self.aside.is_empty()
    }

    /// Drops watchers that have gone. While events are aside, who is told next goes by its place.
    fn sweep(&mut self) {
        self.own.retain(|watcher| !watcher.events.is_closed());
        if self.aside.is_empty() {
            self.clients.retain(|watcher| !watcher.events.is_closed());
        }
    }

    /// Tells the next clients of the first event that is aside.
    fn turn(&mut self) {
        let Some(event) = self.aside.front() else { return };
        for _ in 0..AT_ONCE {
            let Some(watcher) = self.clients.get(self.next) else { break };
            if watcher.offer(event) {
                self.next += 1;
            } else {
                // The last one, which has not been told, comes in its place.
                self.clients.swap_remove(self.next);
            }
        }
        if self.next >= self.clients.len() {
            self.aside.pop_front();
            self.next = 0;
        }
    }

    /// They are too far behind. Their place among those who are is left with the next turn.
    fn end_clients(&mut self) {
        self.clients.clear();
        self.aside.clear();
        self.next = 0;
    }
}

// === impl Watcher ===

impl Watcher {
    /// Whether the watcher stays.
    fn offer(&self, event: &Arc<Event>) -> bool {
        let is_known = event.revision <= self.after;
        if is_known || self.filter.as_ref().is_some_and(|wants| !wants(event)) {
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

#[cfg(test)]
mod tests;
