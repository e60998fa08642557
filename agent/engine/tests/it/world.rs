//! A hub, a physical cluster, and an engine between them, with a driver that tests hold in hand.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::{
    Action, Approvals, Engine, Event, Exemption, Failure, GroupResource, Identity, Kind, Memory,
    Now, Outcome, Side, SyncedType, Target,
};
use serde_json::{Value, json};

use crate::model::{Key, Server, selects};
use crate::objects::{kinds, target};

/// How far a watch has come; `None`: it needs a list.
type Streams = BTreeMap<(Side, String), Option<u64>>;

/// Everything.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) hub: Server,
    pub(crate) cluster: Server,
    pub(crate) engine: Engine,
    pub(crate) target: Target,
    pub(crate) kinds: Vec<SyncedType>,
    pub(crate) clock: u64,
    /// Whether the hub at the address doesn't know the agent: it is told nothing there.
    pub(crate) locked_out: bool,
    /// How far the time of day is off, in milliseconds.
    pub(crate) skew: i64,
    pub(crate) streams: Streams,
    /// What the agent has kept for the next process.
    pub(crate) memory: Option<Memory>,
    /// Actions that were planned and not yet made.
    pub(crate) pending: Vec<Action>,
    /// Actions that were made, as (kind, key).
    pub(crate) made: Vec<(Kind, Key)>,
    /// Actions that were made and changed something, or were meant to.
    pub(crate) identity: Option<Identity>,
    /// What to check of each action before it is made.
    pub(crate) check: fn(&World, &Action),
}

pub(crate) const NAMESPACES: &str = "namespaces";
const RECORDS: &str = "objectsyncs.workload.kcp.io";

/// What stands before the type in the names of streams of what goes up.
const BORN: &str = "born/";
const RISEN: &str = "risen/";

/// The type that a stream is of.
fn plain(stream: &str) -> &str {
    stream.strip_prefix(BORN).or_else(|| stream.strip_prefix(RISEN)).unwrap_or(stream)
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(target())
    }

    pub(crate) fn with(target: Target) -> Self {
        let mut cluster = Server::new(1_000_000);
        cluster.namespaces = true;
        let mut hub = Server::new(1000);
        hub.guards = true;
        hub.rising = { target.upsync.iter() }.map(|one| one.resource.to_string()).collect();
        let mut world = Self {
            hub,
            cluster,
            engine: Engine::new(target.clone()),
            identity: Some(target.identity.clone()),
            target,
            kinds: kinds(),
            clock: 1000,
            locked_out: false,
            skew: 0,
            streams: Streams::new(),
            memory: None,
            pending: Vec::new(),
            made: Vec::new(),
            check: |_, _| {},
        };
        world.begin_cluster();
        world.start();
        world
    }

    /// What every physical cluster has.
    pub(crate) fn begin_cluster(&mut self) {
        let system = ("namespaces".into(), String::new(), String::new(), String::new());
        self.cluster.create(&system, json!({"metadata": {"name": "kube-system"}}), "apiserver");
    }

    /// Starts a new engine, as a new process does: it knows nothing.
    pub(crate) fn start(&mut self) {
        self.engine = Engine::new(self.target.clone());
        if let Some(memory) = &self.memory {
            self.engine.remember(memory);
        }
        self.engine.types(self.kinds.clone(), self.now());
        self.engine.identity(self.identity.clone(), self.now());
        self.approve(Approvals::default(), &[]);
        self.streams.clear();
        for kind in self.engine.watched() {
            for side in [Side::Upstream, Side::Downstream] {
                self.streams.insert((side, kind.resource.to_string()), None);
            }
        }
        for (kind, _) in self.engine.upsynced() {
            self.streams.insert((Side::Downstream, format!("{BORN}{}", kind.resource)), None);
            self.streams.insert((Side::Upstream, format!("{RISEN}{}", kind.resource)), None);
        }
        self.streams.insert((Side::Upstream, RECORDS.into()), None);
        self.streams.insert((Side::Downstream, NAMESPACES.into()), None);
    }

    pub(crate) fn now(&self) -> Now {
        let wall =
            jiff::Timestamp::from_millisecond(1_790_000_000_000 + self.clock as i64 + self.skew);
        Now { clock: Duration::from_millis(self.clock), wall: wall.unwrap() }
    }

    pub(crate) fn pass(&mut self, millis: u64) {
        self.clock += millis;
    }

    fn server(&self, side: Side) -> &Server {
        match side {
            Side::Upstream => &self.hub,
            Side::Downstream => &self.cluster,
        }
    }

    fn selector(&self, side: Side, resource: &str) -> String {
        if let Some(resource) = resource.strip_prefix(BORN) {
            let mut kinds = self.engine.upsynced();
            let (_, selector) =
                kinds.find(|(kind, _)| kind.resource.to_string() == resource).unwrap();
            return selector.to_owned();
        }
        if side == Side::Downstream || resource == RECORDS || resource.starts_with(RISEN) {
            self.target.downstream_selector()
        } else {
            self.target.upstream_selector()
        }
    }

    fn tell(&mut self, side: Side, resource: &str, event: Event) {
        let now = self.now();
        if resource == RECORDS {
            return self.engine.records(event, now);
        }
        if resource == NAMESPACES {
            return self.engine.namespaces(event, now);
        }
        let plain = plain(resource);
        let (name, group) = plain.split_once('.').unwrap_or((plain, ""));
        let (stream, resource) = (resource, GroupResource::new(group, name));
        if stream.starts_with(BORN) {
            return self.engine.born(&resource, event, now);
        }
        if stream.starts_with(RISEN) {
            return self.engine.risen(&resource, event, now);
        }
        match side {
            Side::Upstream => self.engine.upstream(&resource, event, now),
            Side::Downstream => self.engine.downstream(&resource, event, now),
        }
    }

    /// Shows a list; of an earlier revision, if one is given.
    pub(crate) fn list(&mut self, side: Side, resource: &str, at: Option<u64>) {
        let selector = self.selector(side, resource);
        let server = self.server(side);
        let revision = at.unwrap_or(server.revision);
        let is = |key: &Key, object: &Value| key.0 == plain(resource) && selects(&selector, object);
        let items: Vec<Value> = if at.is_some() {
            let objects = server.at(revision).into_iter();
            objects.filter(|(key, object)| is(key, object)).map(|(_, object)| object).collect()
        } else {
            let objects = server.objects.iter().filter(|(key, object)| is(key, object));
            objects.map(|(_, object)| object.clone()).collect()
        };
        self.show(side, resource, items, revision);
    }

    /// Shows a list that the test has made up.
    pub(crate) fn show(&mut self, side: Side, resource: &str, items: Vec<Value>, revision: u64) {
        self.tell(side, resource, Event::InitStart);
        for item in items {
            self.tell(side, resource, Event::Applied(item));
        }
        let resource_version = revision.to_string();
        self.tell(side, resource, Event::InitDone { resource_version });
        self.streams.insert((side, resource.into()), Some(revision));
    }

    /// Shows the next event of a watch, or its list. Whether there was anything.
    pub(crate) fn step(&mut self, side: Side, resource: &str) -> bool {
        if side == Side::Upstream && self.locked_out {
            return false;
        }
        let Some(at) = self.streams[&(side, resource.to_owned())] else {
            self.list(side, resource, None);
            return true;
        };
        let selector = self.selector(side, resource);
        let server = self.server(side);
        if at > server.revision {
            // The server has gone back: it says so, and the watch begins again.
            self.streams.insert((side, resource.into()), None);
            return true;
        }
        let later = server.log.partition_point(|change| change.revision <= at);
        let next = server.log[later..].iter().find(|change| change.key.0 == plain(resource));
        let Some(change) = next.cloned() else {
            let revision = server.revision;
            self.streams.insert((side, resource.into()), Some(revision));
            return false;
        };
        let is =
            |object: &Option<Value>| object.as_ref().is_some_and(|one| selects(&selector, one));
        let event = match (is(&change.old), is(&change.new)) {
            (_, true) => Some(Event::Applied(change.new.clone().unwrap())),
            (true, false) => {
                let mut last = change.old.clone().unwrap();
                last["metadata"]["resourceVersion"] = change.revision.to_string().into();
                Some(Event::Deleted(last))
            }
            (false, false) => None,
        };
        if let Some(event) = event {
            self.tell(side, resource, event);
        }
        self.streams.insert((side, resource.into()), Some(change.revision));
        true
    }

    /// Shows all that watches have to show.
    pub(crate) fn watch(&mut self) {
        loop {
            // Streams that are where their server is have nothing to show.
            let behind = |((side, _), at): &(&(Side, String), &Option<u64>)| {
                **at != Some(self.server(*side).revision)
            };
            let behind: Vec<_> =
                self.streams.iter().filter(behind).map(|(key, _)| key.clone()).collect();
            if behind.is_empty() {
                return;
            }
            for (side, resource) in behind {
                while self.step(side, &resource) {}
            }
        }
    }

    /// Breaks all watches: they begin again with lists.
    pub(crate) fn relist(&mut self) {
        for stream in self.streams.values_mut() {
            *stream = None;
        }
    }

    /// Makes an action, and returns what the server has answered.
    pub(crate) fn make(&mut self, action: &Action) -> Outcome {
        (self.check)(self, action);
        self.made.push((action.kind, Server::key(&action.request)));
        let side = action.request.side;
        if side == Side::Upstream && self.locked_out {
            return Outcome::answer(401, Value::Null);
        }
        let server = if side == Side::Upstream { &mut self.hub } else { &mut self.cluster };
        let (status, body) = server.serve(&action.request);
        Outcome::answer(status, body)
    }

    pub(crate) fn answer(&mut self, action: &Action, outcome: Outcome) {
        let now = self.now();
        self.engine.outcome(action.id, outcome, now);
    }

    /// Plans, makes all actions, and shows what watches show, until nothing happens any more and
    /// nothing is due within `patience` milliseconds. Returns what was written.
    pub(crate) fn settle(&mut self, patience: u64) -> Vec<(Kind, Key)> {
        let before = self.made.len();
        let end = self.clock + patience;
        for _ in 0..10_000 {
            self.watch();
            let now = self.now();
            let mut actions = std::mem::take(&mut self.pending);
            actions.extend(self.engine.plan(now, 8));
            if actions.is_empty() {
                match self.engine.next_due().map(|due| due.as_millis() as u64) {
                    Some(due) if due <= end => self.clock = self.clock.max(due),
                    _ => {
                        self.clock = end;
                        return self.writes_since(before);
                    }
                }
                continue;
            }
            for action in actions {
                let outcome = self.make(&action);
                self.answer(&action, outcome);
            }
        }
        panic!("it does not come to rest: {:?}", &self.made[self.made.len() - 20..]);
    }

    pub(crate) fn writes_since(&self, before: usize) -> Vec<(Kind, Key)> {
        let writes = self.made[before..].iter().filter(|(kind, _)| kind.is_write());
        writes.filter(|(kind, _)| *kind != Kind::Event).cloned().collect()
    }

    /// How often actions of a kind were made.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.made.iter().filter(|(made, _)| *made == kind).count()
    }

    /// Gives up what is under way, as when the connection breaks.
    pub(crate) fn lose(&mut self, action: &Action) {
        self.answer(action, Outcome::Failed(Failure::Unreachable));
    }

    /// Creates an object at the hub.
    pub(crate) fn create(&mut self, object: Value) -> Value {
        let resource = { kinds().into_iter() }
            .find(|kind| *kind.kind == *object["kind"].as_str().unwrap())
            .unwrap();
        let key = (resource.resource.to_string(), "infra".into(), "shop".into(), String::new());
        let (status, body) = self.hub.create(&key, object, "kubectl");
        assert_eq!(status, 201, "{body}");
        body
    }

    /// Changes an object at the hub by a merge patch, as a user.
    pub(crate) fn change(&mut self, key: &Key, patch: Value) {
        let (status, body) = self.hub.patch(key, "", "kubectl", |object| {
            merge(object, &patch);
            true
        });
        assert_eq!(status, 200, "{body}");
    }

    /// Changes an object in the physical cluster by a merge patch.
    pub(crate) fn meddle(&mut self, key: &Key, subresource: &str, manager: &str, patch: Value) {
        let (status, body) = self.cluster.patch(key, subresource, manager, |object| {
            merge(object, &patch);
            true
        });
        assert_eq!(status, 200, "{body}");
    }

    pub(crate) fn set_state(&mut self, key: &Key, state: Option<&str>) {
        self.change(key, json!({"metadata": {"labels": {crate::objects::STATE: state}}}));
    }

    /// What a controller of the physical cluster says of a copy as it is.
    pub(crate) fn run(&mut self, key: &Key) {
        let Some(object) = self.cluster.get(key) else { return };
        let status = json!({"status": {
            "observedGeneration": object["metadata"]["generation"],
            "replicas": object["spec"]["replicas"],
        }});
        self.meddle(key, "status", "controller", status);
    }

    pub(crate) fn approve(&mut self, approvals: Approvals, exemptions: &[Exemption]) {
        let now = self.now();
        self.engine.approvals(approvals, exemptions.iter().cloned().collect(), now);
    }

    pub(crate) fn identify(&mut self, identity: Option<Identity>) {
        self.identity = identity.clone();
        let now = self.now();
        self.engine.identity(identity, now);
    }
}

fn merge(into: &mut Value, patch: &Value) {
    crate::model::merge(into, patch);
}
