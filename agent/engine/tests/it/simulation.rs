//! Random schedules of changes and faults: watches that are late, cut, old or empty, answers that
//! are lost, refused credentials, restarts, clocks that jump, hubs that are restored from backups.
//!
//! In every run: nothing is deleted without evidence, nothing foreign is touched, and when the
//! faults end everything converges, and then nothing is written any more.
//!
//! `ENGINE_SEED=<seed>` runs one schedule alone, `ENGINE_RUNS=<count>` more of them.

use std::collections::BTreeMap;

use engine::{Action, Approvals, Failure, Kind, Outcome, Side, UpstreamChange};
use serde_json::{Value, json};

use crate::model::{Key, status};
use crate::objects::{FINALIZER, STATE, at_cluster, at_hub, config, deployment};
use crate::world::World;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const RESOURCES: [&str; 2] = ["configmaps", "deployments.apps"];

/// How long evidence counts, in milliseconds.
const FRESH: u64 = 10_000;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}

/// A request under way.
struct Flight {
    action: Action,
    outcome: Option<Outcome>,
    /// Whether the process that sent it has died since.
    dead: bool,
}

struct Run {
    seed: u64,
    random: Random,
    world: World,
    flights: Vec<Flight>,
    /// When the engine was last shown, live, that an object is to go: by the object's UID.
    evidence: BTreeMap<String, u64>,
    /// Objects whose removal was taken back, and that a restored hub wants removed again.
    protected: BTreeMap<String, u64>,
    foreign: BTreeMap<Key, Value>,
    backups: Vec<u64>,
    /// What the agent has kept for the next process.
    remembered: u64,
    steps: Vec<String>,
}

fn is_going(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
        || object["metadata"]["labels"][STATE] == "Remove"
}

fn upstream_uid(copy: &Value) -> Option<String> {
    let text = copy["metadata"]["annotations"]["workloads.kcp.io/upstream"].as_str()?;
    let locator: Value = serde_json::from_str(text).ok()?;
    Some(locator["uid"].as_str()?.to_owned())
}

impl Run {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            random: Random(seed),
            world: World::new(),
            flights: Vec::new(),
            evidence: BTreeMap::new(),
            protected: BTreeMap::new(),
            foreign: BTreeMap::new(),
            backups: Vec::new(),
            remembered: 0,
            steps: Vec::new(),
        }
    }

    #[track_caller]
    fn fail(&self, what: &str) -> ! {
        let tail = self.steps.len().saturating_sub(60);
        panic!("seed {}: {what}\n{}", self.seed, self.steps[tail..].join("\n"));
    }

    fn note(&mut self, what: String) {
        self.steps.push(format!("{:>9} {what}", self.world.clock));
    }

    fn pick(&mut self) -> (&'static str, &'static str) {
        (RESOURCES[self.random.below(2)], NAMES[self.random.below(4)])
    }

    fn pick_hub(&mut self) -> Option<(Key, Value)> {
        let (resource, name) = self.pick();
        let key = at_hub(resource, name);
        let object = self.world.hub.get(&key)?;
        Some((key, object))
    }

    fn pick_copy(&mut self) -> Option<Key> {
        let (resource, name) = self.pick();
        let key = at_cluster(resource, name);
        let object = self.world.cluster.get(&key)?;
        (!self.foreign.contains_key(&key) && upstream_uid(&object).is_some()).then_some(key)
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..24 => self.user(),
            24..34 => self.physical(),
            34..56 => self.watch(),
            56..68 => self.plan(),
            68..86 => self.land(),
            86..96 => self.fault(),
            _ => {
                let pause = [1, 50, 1000, 20_000, 400_000][self.random.below(5)];
                self.world.pass(pause as u64);
            }
        }
        self.world.pass(1);
        self.remembered = self.remembered.max(self.world.engine.newest_revision());
        for (key, object) in &self.foreign {
            if self.world.cluster.get(key).as_ref() != Some(object) {
                self.fail(&format!("{key:?} is foreign and was touched"));
            }
        }
    }

    /// People and the operator, at the hub.
    fn user(&mut self) {
        let what = self.random.below(12);
        if what < 4 {
            let (resource, name) = self.pick();
            let value = self.random.below(100);
            let key = at_hub(resource, name);
            let exists = self.world.hub.get(&key).is_some();
            self.note(format!("user writes {resource} {name} {value}"));
            let object = match resource {
                "configmaps" => config(name, &value.to_string()),
                _ => deployment(name, &format!("web:{value}"), 1),
            };
            if exists {
                let content = json!({"data": object["data"], "spec": object["spec"]});
                self.world.change(&key, content);
            } else {
                self.world.create(object);
            }
            return;
        }
        let Some((key, object)) = self.pick_hub() else { return };
        let uid = object["metadata"]["uid"].as_str().unwrap().to_owned();
        let deleting = object["metadata"]["deletionTimestamp"].is_string();
        match what {
            4 | 5 => {
                self.note(format!("user removes {key:?}"));
                self.protected.remove(&uid);
                self.world.set_state(&key, Some("Remove"));
            }
            6 | 7 if !deleting => {
                self.note(format!("user assigns {key:?}"));
                // As the operator does it: label and finalizer in one patch.
                let patch = json!({"metadata": {
                    "labels": {STATE: "Sync"}, "finalizers": [FINALIZER],
                }});
                self.world.change(&key, patch);
            }
            8 | 9 => {
                self.note(format!("user deletes {key:?}"));
                self.protected.remove(&uid);
                self.world.hub.delete(&key, None);
            }
            10 if self.random.one_in(3) => {
                self.note(format!("user forces {key:?} away"));
                self.world.change(&key, json!({"metadata": {"finalizers": []}}));
                self.world.hub.delete(&key, None);
            }
            11 if self.random.one_in(3) => {
                self.note(format!("user strips {key:?}"));
                self.world.set_state(&key, None);
            }
            _ => {}
        }
    }

    /// People and controllers, in the physical cluster.
    fn physical(&mut self) {
        match self.random.below(10) {
            0..4 => {
                if let Some(key) = self.pick_copy() {
                    self.world.run(&key);
                }
            }
            4 | 5 => {
                let Some(key) = self.pick_copy() else { return };
                self.note(format!("admin changes {key:?}"));
                let patch = if key.0 == "configmaps" {
                    json!({"data": {"key": "drift"}})
                } else {
                    json!({"spec": {"replicas": 9}})
                };
                self.world.meddle(&key, "", "admin", patch);
            }
            6 => {
                let Some(key) = self.pick_copy() else { return };
                self.note(format!("admin deletes the copy {key:?}"));
                self.world.cluster.delete(&key, None);
            }
            7 => {
                let Some(key) = self.pick_copy() else { return };
                self.note(format!("admin strips the copy {key:?}"));
                let label = json!({"metadata": {"labels": {"workloads.kcp.io/synctarget": null}}});
                self.world.meddle(&key, "", "admin", label);
            }
            8 => {
                let (resource, name) = self.pick();
                let key = at_cluster(resource, name);
                let object = json!({"metadata": {"name": name}, "data": {"key": "foreign"}});
                let made = self.world.cluster.create(&at_cluster(resource, ""), object, "admin");
                if made.0 == 201 {
                    self.note(format!("admin makes {key:?}"));
                    self.foreign.insert(key, made.1);
                }
            }
            _ => {
                let Some(key) = self.foreign.keys().next().cloned() else { return };
                self.note(format!("admin deletes {key:?}"));
                self.foreign.remove(&key);
                self.world.cluster.delete(&key, None);
            }
        }
    }

    fn stream(&mut self) -> (Side, String) {
        let streams: Vec<_> = self.world.streams.keys().cloned().collect();
        streams[self.random.below(streams.len())].clone()
    }

    fn watch(&mut self) {
        for _ in 0..=self.random.below(6) {
            let (side, resource) = self.stream();
            self.world.step(side, &resource);
        }
    }

    fn plan(&mut self) {
        let max = 1 + self.random.below(6);
        let now = self.world.now();
        for action in self.world.engine.plan(now, max) {
            self.note(format!("plans {:?} {}", action.kind, action.request.path()));
            self.judge(&action);
            self.flights.push(Flight { action, outcome: None, dead: false });
        }
    }

    /// A delete needs evidence that this engine was shown, live and just now.
    fn judge(&self, action: &Action) {
        if !matches!(action.kind, Kind::Delete | Kind::GiveUp | Kind::Orphan) {
            return;
        }
        let body: Value = serde_json::from_slice(&action.request.body).unwrap();
        let uid = body["preconditions"]["uid"].as_str().unwrap_or_default();
        let key = crate::model::Server::key(&action.request);
        let Some(copy) = self.world.cluster.get(&key).filter(|copy| copy["metadata"]["uid"] == uid)
        else {
            return;
        };
        let Some(of) = upstream_uid(&copy) else {
            self.fail("deletes what is not its own");
        };
        match self.evidence.get(&of) {
            Some(at) if at + FRESH >= self.world.clock => {}
            other => self.fail(&format!("deletes {key:?} on {other:?}")),
        }
        if self.protected.contains_key(&of) {
            self.fail(&format!("deletes {key:?}, on the word of a hub that has gone back"));
        }
    }

    /// A request under way goes on: it is made, or its answer arrives, or is lost.
    fn land(&mut self) {
        if self.flights.is_empty() {
            return;
        }
        let at = self.random.below(self.flights.len());
        let mut flight = self.flights.swap_remove(at);
        if flight.outcome.is_none() {
            let outcome = match self.random.below(20) {
                0 => Outcome::Failed(Failure::Unreachable),
                1 => Outcome::Failed(Failure::Timeout),
                2 => Outcome::answer(401, Value::Null),
                3 => status_of(503),
                _ => self.world.make(&flight.action),
            };
            flight.outcome = Some(match self.random.below(20) {
                0 => Outcome::Failed(Failure::Unreachable),
                1 => Outcome::Failed(Failure::Timeout),
                _ => outcome,
            });
            if !flight.dead {
                self.flights.push(flight);
            }
            return;
        }
        let outcome = flight.outcome.take().unwrap();
        if !flight.dead {
            self.answer(&flight.action, outcome);
        }
    }

    fn answer(&mut self, action: &Action, outcome: Outcome) {
        if action.kind == Kind::GetUpstream
            && let Outcome::Answer { status: 200, body, .. } = &outcome
        {
            let uid = body["metadata"]["uid"].as_str().unwrap().to_owned();
            if is_going(body) {
                self.evidence.insert(uid, self.world.clock);
            } else {
                self.evidence.remove(&uid);
            }
        }
        self.world.answer(action, outcome);
    }

    fn fault(&mut self) {
        let (side, resource) = self.stream();
        let what = self.random.below(12);
        self.note(format!("fault {what} {side:?} {resource}"));
        match what {
            0 | 1 => drop(self.world.streams.insert((side, resource), None)),
            2 | 3 => {
                // A slow cache.
                let server =
                    if side == Side::Upstream { &self.world.hub } else { &self.world.cluster };
                let first = if side == Side::Upstream { 1000 } else { 1_000_000 };
                let back = self.random.below((server.revision - first) as usize + 1) as u64;
                let at = server.revision - back;
                self.world.list(side, &resource, Some(at));
            }
            4 => {
                self.world.show(side, &resource, Vec::new(), 0);
                self.world.streams.insert((side, resource), None);
            }
            5 => self.world.identify(None),
            6 | 7 => {
                let identity = self.world.target.identity.clone();
                self.world.identify(Some(identity));
            }
            8 => self.restart(),
            9 => {
                let (resource, name) = self.pick();
                let _ = resource;
                let refusals = &mut self.world.cluster.refusals;
                if refusals.remove(name).is_none() {
                    let text = "field is immutable";
                    refusals.insert(name.to_owned(), status(422, "Invalid", text, json!({})));
                }
            }
            10 => self.backups.push(self.world.hub.revision),
            _ => self.restore(),
        }
    }

    fn restart(&mut self) {
        self.evidence.clear();
        for flight in &mut self.flights {
            flight.dead = true;
        }
        self.flights.retain(|flight| flight.outcome.is_none());
        self.world.start();
        self.world.engine.remember(self.remembered);
    }

    /// The hub is restored from a backup, once in a run.
    fn restore(&mut self) {
        let Some(backup) = self.backups.pop() else { return };
        self.backups.clear();
        if self.random.one_in(2) {
            return;
        }
        self.note(format!("the hub goes back to {backup}"));
        let before = self.world.hub.objects.clone();
        self.world.identify(None);
        self.world.hub.restore(backup);
        self.world.relist();
        // What was read before is not what is there now.
        let is_lost = |flight: &Flight| flight.action.request.side == Side::Upstream;
        let (lost, kept) = std::mem::take(&mut self.flights).into_iter().partition(is_lost);
        self.flights = kept;
        let lost: Vec<Flight> = lost;
        for flight in lost.iter().filter(|flight| !flight.dead) {
            self.world.lose(&flight.action);
        }
        self.evidence.clear();
        for (key, object) in &self.world.hub.objects {
            let now_going = is_going(object);
            let was_going = before.get(key).is_some_and(|before| {
                before["metadata"]["uid"] == object["metadata"]["uid"] && is_going(before)
            });
            if now_going && !was_going && before.contains_key(key) {
                let uid = object["metadata"]["uid"].as_str().unwrap().to_owned();
                self.protected.insert(uid, backup);
            }
        }
        if self.random.one_in(2) {
            self.restart();
        }
    }

    /// The faults end.
    fn converge(&mut self) {
        self.note("all is well again".to_owned());
        self.world.cluster.refusals.clear();
        for flight in std::mem::take(&mut self.flights) {
            let outcome = match flight.outcome {
                Some(outcome) => outcome,
                None => self.world.make(&flight.action),
            };
            if !flight.dead {
                self.answer(&flight.action, outcome);
            }
        }
        let identity = self.world.target.identity.clone();
        self.world.identify(Some(identity));
        self.world.relist();
        for _ in 0..4 {
            self.world.settle(400_000);
            if let Some(UpstreamChange::Older(number)) =
                self.world.engine.summary().upstream_changed
            {
                self.note(format!("a person accepts {number}"));
                let approvals = Approvals { upstream: Some(number), ..Approvals::default() };
                self.world.approve(approvals, &[]);
                self.world.settle(400_000);
            }
            for (resource, name) in all() {
                let key = at_cluster(resource, name);
                if !self.foreign.contains_key(&key) {
                    self.world.run(&key);
                }
            }
        }
        self.world.settle(400_000);
    }

    fn check(&mut self) {
        for (resource, name) in all() {
            let key = at_hub(resource, name);
            let copy = self.world.cluster.get(&at_cluster(resource, name));
            let Some(object) = self.world.hub.get(&key) else { continue };
            let marked = object["metadata"]["labels"][STATE].is_string();
            let of = copy.as_ref().and_then(upstream_uid);
            let is_copy = of.as_deref() == object["metadata"]["uid"].as_str();
            if !marked {
                continue;
            }
            if is_going(&object) {
                self.fail(&format!("{key:?} has not gone: {:?}", self.world.engine.summary()));
            }
            if copy.is_some() && !is_copy {
                let problems = self.world.engine.summary().problems;
                if !problems.contains_key("Collision") {
                    self.fail(&format!("{key:?} collides, and nobody says so: {problems:?}"));
                }
                continue;
            }
            let Some(copy) = copy else {
                self.fail(&format!("{key:?} has no copy: {:?}", self.world.engine.summary()));
            };
            for part in ["data", "spec"] {
                if object.get(part) != copy.get(part) {
                    self.fail(&format!("{key:?} is not as it should be: {object} {copy}"));
                }
            }
            if resource == "deployments.apps" {
                let expect = json!({
                    "observedGeneration": object["metadata"]["generation"], "replicas": 1,
                });
                if object["status"] != expect {
                    self.fail(&format!("{key:?} has another status: {object} {copy}"));
                }
            }
        }
        self.rest();
    }

    /// Nothing is written any more.
    fn rest(&mut self) {
        let idle = self.world.settle(2_000_000);
        if !idle.is_empty() {
            self.fail(&format!("writes {idle:?} by itself"));
        }
        self.world.relist();
        let idle = self.world.settle(400_000);
        if !idle.is_empty() {
            self.fail(&format!("writes {idle:?} after lists"));
        }
        self.world.start();
        let idle = self.world.settle(400_000);
        // A new process doesn't know what it has told before.
        let idle: Vec<_> = idle.iter().filter(|(kind, _)| *kind != Kind::Record).collect();
        if !idle.is_empty() {
            self.fail(&format!("writes {idle:?} as a new process"));
        }
    }

    fn run(mut self) {
        let namespace = ("namespaces".into(), String::new(), String::new(), "shop".into());
        self.world.cluster.create(&namespace, json!({"metadata": {"name": "shop"}}), "admin");
        for _ in 0..60 + self.random.below(120) {
            self.step();
        }
        self.converge();
        self.check();
    }
}

fn status_of(code: u16) -> Outcome {
    let (status, body) = status(code, "ServiceUnavailable", "not now", json!({}));
    Outcome::answer(status, body)
}

fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    RESOURCES.into_iter().flat_map(|resource| NAMES.into_iter().map(move |name| (resource, name)))
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs its share of the schedules: several tests, so that they run beside each other.
fn schedules(part: u64) {
    const PARTS: u64 = 4;
    let runs = number("ENGINE_RUNS").unwrap_or(1200);
    match number("ENGINE_SEED") {
        Some(seed) if seed % PARTS == part => Run::new(seed).run(),
        Some(_) => {}
        None => {
            { 0..runs }.filter(|seed| seed % PARTS == part).for_each(|seed| Run::new(seed).run());
        }
    }
}

#[test]
fn schedules_1() {
    schedules(0);
}

#[test]
fn schedules_2() {
    schedules(1);
}

#[test]
fn schedules_3() {
    schedules(2);
}

#[test]
fn schedules_4() {
    schedules(3);
}
