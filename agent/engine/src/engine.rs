//! The engine's entry: what is told to it and what it asks for.
//!
//! `observe` turns what was seen into entries, `decide` and `remove` say what an entry needs next,
//! `report` what the hub is to be told, `requests` writes requests, `answers` judges what came back.
//! An entry that anything happened to is put into a queue and looked at once, whole: what to do
//! follows from what is known, never from what has just happened.

mod agenda;
mod answers;
mod decide;
mod define;
mod entry;
mod events;
mod identity;
mod index;
mod merging;
mod observe;
mod remove;
mod report;
mod requests;
mod spaces;
mod status_down;
mod summary;
mod upsync;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::brake::Brake;
use crate::rules::{Class, Rule, Rules};
use crate::{
    Action, ActionId, Approvals, Event, Exemption, GroupResource, Identity, Memory, Now, Outcome,
    Side, SyncedType, Target,
};
use answers::Flight;
use entry::{Entry, Hold, Id, Problem, TypeId, Work};
use identity::Upstream;
use index::Index;
use spaces::Spaces;
use upsync::Mirrors;

/// The sync engine of one SyncTarget.
#[derive(Debug)]
pub struct Engine {
    target: Target,
    /// The finalizer and the state label of the target.
    finalizer: String,
    state_label: String,
    rules: Rules,
    kinds: Vec<Kind>,
    /// As told last; `None`: nobody has told them yet.
    approvals: Option<Approvals>,
    exemptions: BTreeSet<Exemption>,
    hub: Upstream,
    /// Whether the hub was trusted when it was planned last.
    trusted: bool,
    index: Index,
    spaces: Spaces,
    mirrors: Mirrors,
    brake: Brake,
    /// Orphans that a person has given up.
    given_up: BTreeSet<Id>,
    /// What is being removed, by upstream namespace: how many of each class, and who waits.
    removing: BTreeMap<(Arc<str>, Arc<str>), Removing>,
    /// What autoscalers scale: how many do.
    scaled: BTreeMap<Scaled, u32>,
    /// ObjectSyncs of ours.
    records: BTreeSet<RecordKey>,
    /// Those in the list that is being shown.
    listed_records: Option<BTreeSet<RecordKey>>,
    /// Whether a list of them was complete: before that none is written.
    knows_records: bool,
    flights: BTreeMap<ActionId, Flight>,
    next_action: u64,
    /// Pauses of whole sides: upstream, downstream.
    gates: [Hold; 2],
    /// Events told in this minute, and when it began.
    told: (u32, u64),
    dropped_events: u64,
}

/// The key of an ObjectSync: logical cluster, namespace, name.
type RecordKey = (Arc<str>, Arc<str>, Arc<str>);

/// Logical cluster, namespace, kind and name of what is scaled.
type Scaled = (Arc<str>, Arc<str>, Box<str>, Box<str>);

/// A type, and how far its watches are.
#[derive(Debug)]
struct Kind {
    resource: GroupResource,
    /// `None`: it is not synced any more.
    synced: Option<SyncedType>,
    rule: Arc<Rule>,
    /// Upstream and downstream.
    streams: [Stream; 2],
    /// Until when its collection is taken for missing, on each side.
    missing: [Hold; 2],
}

/// How far a watch is.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// Counts lists.
    list: u32,
    listing: bool,
    /// Whether a list has been complete.
    complete: bool,
    /// The newest revision that the hub had shown when the list was asked for.
    mark: u64,
    /// That of a list that has not begun yet.
    asked: Option<u64>,
}

/// What is being removed in an upstream namespace.
#[derive(Debug, Default)]
struct Removing {
    classes: BTreeMap<Class, BTreeSet<Id>>,
    waiting: BTreeSet<Id>,
}

/// Milliseconds of a clock.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A side as an index.
fn side(side: Side) -> usize {
    match side {
        Side::Upstream => 0,
        Side::Downstream => 1,
    }
}

// === impl Engine ===

impl Engine {
    /// An engine that knows nothing yet. Nothing is asked for until [`Engine::types`],
    /// [`Engine::identity`] and whole lists of both sides are in.
    pub fn new(target: Target) -> Self {
        let global = target.global_name();
        Self {
            finalizer: contract::finalizer(&global),
            state_label: contract::state_label(&global),
            target,
            rules: Rules::new(),
            kinds: Vec::new(),
            approvals: None,
            exemptions: BTreeSet::new(),
            hub: Upstream::default(),
            trusted: false,
            index: Index::default(),
            spaces: Spaces::default(),
            mirrors: Mirrors::default(),
            brake: Brake::default(),
            given_up: BTreeSet::new(),
            removing: BTreeMap::new(),
            scaled: BTreeMap::new(),
            records: BTreeSet::new(),
            listed_records: None,
            knows_records: false,
            flights: BTreeMap::new(),
            next_action: 0,
            gates: [Hold::default(); 2],
            told: (0, 0),
            dropped_events: 0,
        }
    }

    /// Changes adoption, limits and the like: what the SyncTarget's spec says. The identity and
    /// the names stay; another mapping counts for copies that are made from now on.
    pub fn set_target(&mut self, target: Target, now: Now) {
        let Target { identity, cluster, name, .. } = self.target.clone();
        let adopts = target.adoption != self.target.adoption;
        let shares = target.status_down != self.target.status_down;
        self.target = Target { identity, cluster, name, ..target };
        let all: Vec<_> = self.index.iter().map(|(id, _)| id).collect();
        for id in all {
            if shares {
                self.share_anew(id);
            }
            if let Some(entry) = self.index.get_mut(id)
                && adopts
                && matches!(entry.copy, entry::Copy::Foreign(_))
            {
                *entry.hold(Work::Down) = Hold::default();
            }
            self.touch(id);
        }
        self.mirrors.touch_all();
        self.advance(now);
    }

    /// What is synced from now on. A type that is no longer in here is left as it is: its copies
    /// stay, and nothing is done about them. The watches of a type that is new, or back, begin
    /// with lists.
    pub fn types(&mut self, types: Vec<SyncedType>, _now: Now) {
        for kind in &mut self.kinds {
            let still = types.iter().find(|new| new.resource == kind.resource).cloned();
            if still.is_none() || still != kind.synced {
                kind.streams = [0, 1]
                    .map(|side| Stream { list: kind.streams[side].list, ..Stream::default() });
            }
            kind.synced = still;
        }
        for new in types {
            if self.kinds.iter().all(|kind| kind.resource != new.resource) {
                self.kinds.push(Kind {
                    rule: self.rules.of(&new.resource),
                    resource: new.resource.clone(),
                    synced: Some(new),
                    streams: [Stream::default(); 2],
                    missing: [Hold::default(); 2],
                });
            }
        }
    }

    /// The types to watch on both sides, with [`Target::upstream_selector`] and
    /// [`Target::downstream_selector`]. Types that are never synced are not among them.
    pub fn watched(&self) -> impl Iterator<Item = &SyncedType> {
        let kinds = self.kinds.iter().filter(|kind| !kind.rule.never);
        kinds.filter_map(|kind| kind.synced.as_ref())
    }

    /// Who is upstream, as just read, live, from the SyncTarget; `None` as soon as the connection
    /// to the hub breaks, until it has been read again. Deletes wait while it is not known.
    #[expect(clippy::needless_pass_by_value, reason = "it was read for this alone")]
    pub fn identity(&mut self, identity: Option<Identity>, now: Now) {
        self.see_identity(identity.as_ref());
        self.advance(now);
    }

    /// What the next process is to know of the hub; `None` while there is doubt about it, so that what
    /// was kept before stays. A driver that keeps it where its cluster keeps things (in a Lease that
    /// it renews anyway), and tells the next process by [`Engine::remember`], makes that process know
    /// at once that a hub has gone back in time, even if no copy says so.
    pub fn memory(&self) -> Option<Memory> {
        self.hub_memory()
    }

    /// What [`Engine::memory`] was in an earlier process. Told before anything else; what is of
    /// another hub or SyncTarget is nothing.
    pub fn remember(&mut self, memory: &Memory) {
        let identity = &self.target.identity;
        if memory.hub == identity.hub && memory.target == identity.target {
            self.hub.remember(memory);
        }
    }

    /// What people have approved and deleted as a whole, as the SyncTarget says, each time that it
    /// is read. Numbers of deletes and orphans count only when they come or change: what is there
    /// when this is told first may have been used before.
    pub fn approvals(&mut self, approvals: Approvals, exemptions: BTreeSet<Exemption>, now: Now) {
        let exempted = exemptions != self.exemptions;
        self.exemptions = exemptions;
        let before = self.approvals.replace(approvals);
        self.see_approvals(before, exempted);
        self.advance(now);
    }

    /// The newest revision of the hub that is known.
    pub fn newest(&self) -> u64 {
        self.hub.newest
    }

    /// What [`Engine::newest`] was when the list of a synced type was asked for that comes next. The hub
    /// shows no less then, if it has not gone back. A driver that doesn't tell must tell of a list's
    /// beginning before it asks for it.
    pub fn listing(&mut self, resource: &GroupResource, newest: u64) {
        if let Some(kind) = self.kind_id(resource)
            && let Some(kind) = self.kinds.get_mut(usize::from(kind))
        {
            kind.streams[side(Side::Upstream)].asked = Some(newest);
        }
    }

    /// What a watch of a synced type has shown in the hub. Lists should be consistent reads.
    pub fn upstream(&mut self, resource: &GroupResource, event: Event, now: Now) {
        if let Some(kind) = self.kind_id(resource) {
            self.see_upstream(kind, event, now);
        }
    }

    /// What a watch of a synced type has shown in the physical cluster.
    pub fn downstream(&mut self, resource: &GroupResource, event: Event, now: Now) {
        if let Some(kind) = self.kind_id(resource) {
            self.see_downstream(kind, event, now);
        }
    }

    /// What a watch of one of the types that go up ([`Engine::upsynced`]) has shown in the physical
    /// cluster.
    pub fn born(&mut self, resource: &GroupResource, event: Event, now: Now) {
        if let Some(kind) = self.kind_id(resource) {
            self.see_born(kind, event);
        }
        self.advance(now);
    }

    /// What a watch of such a type has shown in the hub, of objects with the label of our copies
    /// ([`Target::downstream_selector`]).
    pub fn risen(&mut self, resource: &GroupResource, event: Event, now: Now) {
        if let Some(kind) = self.kind_id(resource) {
            self.see_risen(kind, event);
        }
        self.advance(now);
    }

    /// What a watch of our ObjectSyncs ([`Engine::record_type`]) in the hub has shown; metadata are
    /// enough. Until a list of them is complete none is written: a hub without that type gets none.
    pub fn records(&mut self, event: Event, _now: Now) {
        self.see_record(event);
    }

    /// What a watch of namespaces with our label in the physical cluster has shown; metadata are
    /// enough.
    pub fn namespaces(&mut self, event: Event, now: Now) {
        self.see_namespace(event, now);
    }

    /// An Event of the physical cluster (`v1 events`). Those of copies are told upstream, so far
    /// as limits allow.
    pub fn event(&mut self, event: &Value, _now: Now) {
        self.see_event(event);
    }

    /// All resources in namespaces that the physical cluster serves and can list, with their
    /// versions: what is looked through before a namespace that we made is deleted. Without it
    /// none is deleted.
    pub fn resources(&mut self, resources: Vec<(GroupResource, String)>) {
        self.spaces.set_resources(resources);
    }

    /// Tells what became of an action.
    pub fn outcome(&mut self, id: ActionId, outcome: Outcome, now: Now) {
        if let Some(flight) = self.flights.remove(&id) {
            self.land(flight, outcome, now);
        }
    }

    /// Requests to make now, most urgent first; at most `max`, which should be what the driver can
    /// make at once.
    pub fn plan(&mut self, now: Now, max: usize) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.hub.is_strange() {
            return actions;
        }
        if !std::mem::replace(&mut self.trusted, self.hub.is_trusted()) && self.trusted {
            self.touch_removals();
            self.mirrors.touch_all();
        }
        self.advance(now);
        while actions.len() < max {
            let Some(action) = self.plan_space(now) else { break };
            actions.push(action);
        }
        while actions.len() < max {
            let Some(action) = self.plan_mirror(now) else { break };
            actions.push(action);
        }
        while actions.len() < max {
            let Some(id) = self.index.pop() else { break };
            actions.extend(self.plan_entry(id, now));
        }
        actions
    }

    /// When [`Engine::plan`] may have something to do, if nothing is told to the engine before:
    /// a time of [`Now::clock`].
    pub fn next_due(&self) -> Option<Duration> {
        if self.hub.is_strange() {
            return None;
        }
        let news = self.hub.is_trusted() && !self.trusted;
        let (spaces, mirrors) = (self.spaces.agenda(), self.mirrors.agenda());
        if news || self.index.has_ready() || spaces.has_ready() || mirrors.has_ready() {
            return Some(Duration::ZERO);
        }
        let others = [spaces.next_due(), mirrors.next_due()];
        let due = self.index.next_due().into_iter().chain(others.into_iter().flatten()).min();
        due.map(Duration::from_millis)
    }

    /// Drops the pause of a side after failures: it is known to answer again.
    pub fn reachable(&mut self, which: Side, now: Now) {
        self.gates[side(which)] = Hold::default();
        self.wake_all(now);
    }

    fn kind_id(&self, resource: &GroupResource) -> Option<TypeId> {
        let found = self.kinds.iter().position(|kind| kind.resource == *resource)?;
        TypeId::try_from(found).ok()
    }

    fn kind(&self, id: TypeId) -> Option<&Kind> {
        self.kinds.get(usize::from(id))
    }

    fn synced(&self, id: TypeId) -> Option<&SyncedType> {
        self.kind(id)?.synced.as_ref()
    }

    /// How urgent an entry is: kinds in their order, then removals the other way round.
    fn priority(kinds: &[Kind], entry: &Entry) -> u8 {
        let class = kinds.get(usize::from(entry.key.kind)).map_or(0, |kind| kind.rule.class as u8);
        if entry.is_going() { 64 - class } else { class }
    }

    /// Has an entry looked at.
    fn touch(&mut self, id: Id) {
        if let Some(entry) = self.index.get(id) {
            let priority = Self::priority(&self.kinds, entry);
            self.index.touch(id, priority);
        }
    }

    fn advance(&mut self, now: Now) {
        let kinds = &self.kinds;
        self.index.advance(millis(now.clock), |entry| Self::priority(kinds, entry));
    }

    /// Has everything looked at that waits for a time.
    fn wake_all(&mut self, _now: Now) {
        let kinds = &self.kinds;
        self.index.advance(u64::MAX, |entry| Self::priority(kinds, entry));
    }

    fn set_problem(&mut self, id: Id, of: Work, reason: &'static str, message: String, now: Now) {
        let Some(entry) = self.index.get_mut(id) else { return };
        let since = entry.problem.as_ref().filter(|problem| problem.reason == reason);
        let since = since.map_or(now.wall, |problem| problem.since);
        if entry.problem.as_ref().is_none_or(|problem| problem.reason != reason) {
            let note =
                entry::Note { warning: true, reason: reason.into(), message: message.clone() };
            entry.note = Some(Box::new(note));
        }
        entry.problem = Some(Box::new(Problem { of, reason, message, since }));
    }

    fn clear_problem(&mut self, id: Id, of: Work) {
        if let Some(entry) = self.index.get_mut(id)
            && entry.problem.as_ref().is_some_and(|problem| problem.of == of)
        {
            entry.problem = None;
        }
    }

    /// Lengthens a pause: how long it is now.
    fn lengthen(&self, hold: &mut Hold, now: u64, longest: Duration) -> u64 {
        let doubled = millis(self.target.limits.backoff) << hold.failures.min(20);
        let pause = doubled.min(millis(longest));
        hold.failures = hold.failures.saturating_add(1);
        hold.until = now.saturating_add(pause);
        pause
    }
}
