//! One schedule: what is there, and its steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    Action, Adoption, Failure, GroupResource, Kind, Mapping, Outcome, Side, StatusDown, Target,
    Upsync,
};
use serde_json::{Value, json};

use super::Random;
use crate::model::{Key, Server, status};
use crate::objects::{STATE, TARGET, kind, target};
use crate::world::World;

pub(super) const NAMES: [&str; 4] = ["a", "b", "c", "d"];
pub(super) const WIDGETS: &str = "widgets.example.org";
pub(super) const RESOURCES: [&str; 3] = ["configmaps", "deployments.apps", WIDGETS];
pub(super) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// The field of the status of Deployments that controllers of the hub write.
pub(super) const NOTE: &str = "note";

/// How long evidence counts, in milliseconds.
const FRESH: u64 = 10_000;

/// A request under way.
pub(super) struct Flight {
    pub(super) action: Action,
    pub(super) outcome: Option<Outcome>,
    /// Whether the process that sent it has died since.
    pub(super) dead: bool,
}

pub(super) struct Run {
    pub(super) seed: u64,
    pub(super) random: Random,
    pub(super) world: World,
    /// The logical clusters.
    pub(super) clusters: &'static [&'static str],
    pub(super) flights: Vec<Flight>,
    /// When the engine was last shown, live, that an object is to go: by the object's UID.
    pub(super) evidence: BTreeMap<String, u64>,
    /// When it was last shown that an object of the physical cluster is gone, by its UID.
    pub(super) gone: BTreeMap<String, u64>,
    /// Objects whose removal was taken back, and that a restored hub wants removed again.
    pub(super) protected: BTreeMap<String, u64>,
    pub(super) foreign: BTreeMap<Key, Value>,
    pub(super) backups: Vec<u64>,
    pub(super) cluster_backups: Vec<u64>,
    /// The hub, while another one is at its address.
    pub(super) parked: Option<Server>,
    pub(super) steps: Vec<String>,
}

pub(super) fn is_going(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
        || object["metadata"]["labels"][STATE] == "Remove"
}

/// The annotation of a copy, or of a mirror.
pub(super) fn locator(object: &Value, annotation: &str) -> Option<Value> {
    let text = object["metadata"]["annotations"][annotation].as_str()?;
    serde_json::from_str(text).ok()
}

pub(super) fn upstream_uid(copy: &Value) -> Option<String> {
    Some(locator(copy, "workloads.kcp.io/upstream")?["uid"].as_str()?.to_owned())
}

fn target_of(random: &mut Random) -> Target {
    let adoptions = [Adoption::Never, Adoption::Never, Adoption::IfNoDiff, Adoption::Always];
    let upsync: Arc<[Upsync]> =
        Arc::from([Upsync { resource: GroupResource::new("", "configmaps"), all: false }]);
    let deployments = GroupResource::new("apps", "deployments");
    let status_down: Arc<[StatusDown]> = Arc::from([StatusDown::new(deployments, [NOTE])]);
    Target {
        mapping: if random.one_in(2) { Mapping::Hashed } else { Mapping::Same },
        adoption: adoptions[random.below(4)],
        upsync,
        status_down,
        ..target()
    }
}

// === impl Run ===

impl Run {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let target = target_of(&mut random);
        let clusters: &[&str] =
            if target.mapping == Mapping::Hashed { &["infra", "web"] } else { &["infra"] };
        let mut world = World::with(target);
        world.kinds.push(kind("example.org", "widgets", "Widget", false));
        world.start();
        Self {
            seed,
            random,
            world,
            clusters,
            flights: Vec::new(),
            evidence: BTreeMap::new(),
            gone: BTreeMap::new(),
            protected: BTreeMap::new(),
            foreign: BTreeMap::new(),
            backups: Vec::new(),
            cluster_backups: Vec::new(),
            parked: None,
            steps: Vec::new(),
        }
    }

    #[track_caller]
    pub(super) fn fail(&self, what: &str) -> ! {
        let tail = self.steps.len().saturating_sub(80);
        let Target { mapping, adoption, .. } = &self.world.target;
        let head = format!("seed {} ({mapping:?}, {adoption:?}): {what}", self.seed);
        panic!("{head}\n{}", self.steps[tail..].join("\n"));
    }

    pub(super) fn note(&mut self, what: String) {
        self.steps.push(format!("{:>9} {what}", self.world.clock));
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..24 => self.user(),
            24..36 => self.physical(),
            36..58 => self.watch(),
            58..70 => self.plan(),
            70..87 => self.land(),
            87..96 => self.fault(),
            _ => {
                let pause = [1, 50, 1000, 20_000, 400_000][self.random.below(5)];
                self.world.pass(pause as u64);
            }
        }
        self.world.pass(1);
        if let Some(memory) = self.world.engine.memory() {
            self.world.memory = Some(memory);
        }
        self.look_at_foreign();
    }

    /// Nothing foreign is touched; where the SyncTarget says so it may become ours, and only what is
    /// as it would be where it says that.
    fn look_at_foreign(&mut self) {
        let mut taken = Vec::new();
        for (key, object) in &self.foreign {
            let now = self.world.cluster.get(key);
            if now.as_ref() == Some(object) {
                continue;
            }
            let adoption = self.world.target.adoption;
            let is_ours = now.as_ref().is_some_and(|now| {
                now["metadata"]["uid"] == object["metadata"]["uid"]
                    && now["metadata"]["labels"]["workloads.kcp.io/synctarget"] == TARGET
            });
            let same = |part: &str| now.as_ref().and_then(|now| now.get(part)) == object.get(part);
            let fits = match adoption {
                Adoption::Never => false,
                Adoption::IfNoDiff => same("data") && same("spec"),
                Adoption::Always => true,
            };
            if !is_ours || !fits {
                self.fail(&format!("{key:?} is foreign and was touched: {now:?}"));
            }
            taken.push(key.clone());
        }
        for key in taken {
            self.foreign.remove(&key);
        }
    }

    pub(super) fn stream(&mut self) -> (Side, String) {
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
        let body: Value = serde_json::from_slice(&action.request.body).unwrap_or_default();
        let uid = body["preconditions"]["uid"].as_str().unwrap_or_default();
        let key = Server::key(&action.request);
        let is_fresh = |at: Option<&u64>| at.is_some_and(|at| at + FRESH >= self.world.clock);
        let other = |identity: &engine::Identity| *identity.hub != *"hub-1";
        if self.world.identity.as_ref().is_some_and(other) {
            self.fail(&format!("plans {:?} {key:?} for another hub", action.kind));
        }
        match action.kind {
            Kind::MirrorDelete => {
                let Some(mirror) = self.world.hub.get(&key).filter(|o| o["metadata"]["uid"] == uid)
                else {
                    return;
                };
                let Some(of) = locator(&mirror, "workloads.kcp.io/downstream") else {
                    self.fail("deletes at the hub what is not its own");
                };
                if !is_fresh(self.gone.get(of["uid"].as_str().unwrap())) {
                    self.fail(&format!("deletes the mirror {key:?} without evidence"));
                }
            }
            Kind::Delete | Kind::GiveUp | Kind::Orphan => {
                let copy = self.world.cluster.get(&key);
                let Some(copy) = copy.filter(|copy| copy["metadata"]["uid"] == uid) else { return };
                let Some(of) = upstream_uid(&copy) else {
                    self.fail("deletes what is not its own");
                };
                if key.0 == DEFINITIONS && action.kind == Kind::Delete {
                    self.fail("deletes a definition");
                }
                if !is_fresh(self.evidence.get(&of)) {
                    self.fail(&format!("deletes {key:?} on {:?}", self.evidence.get(&of)));
                }
                if self.protected.contains_key(&of) {
                    self.fail(&format!("deletes {key:?}, on the word of a hub that has gone back"));
                }
            }
            // Each field of a status has one owner.
            Kind::Status if body["status"].get(NOTE).is_some() => {
                self.fail(&format!("{key:?} sends up what is the hub's: {body}"));
            }
            Kind::StatusDown => {
                let fields = body.get("status").and_then(Value::as_object);
                if !fields.is_none_or(|fields| fields.keys().all(|field| field == NOTE)) {
                    self.fail(&format!("{key:?} sends down what is the cluster's: {body}"));
                }
            }
            _ => {}
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
                _ => self.make(&flight.action),
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

    /// Makes a request; no definition may lose fields by it.
    pub(super) fn make(&mut self, action: &Action) -> Outcome {
        let key = Server::key(&action.request);
        let guarded = key.0 == DEFINITIONS && action.request.side == Side::Downstream;
        let before = self.world.cluster.get(&key).filter(|_| guarded);
        let outcome = self.world.make(action);
        if let Some(before) = before {
            let after = self.world.cluster.get(&key).unwrap_or_default();
            let fields = |object: &Value| super::deeds::fields(object);
            if let Some(lost) = fields(&before).iter().find(|one| !fields(&after).contains(one)) {
                self.fail(&format!("the field {lost} of {key:?} is lost"));
            }
        }
        outcome
    }

    pub(super) fn answer(&mut self, action: &Action, outcome: Outcome) {
        if let Outcome::Answer { status: 200, body, .. } = &outcome {
            let at = self.world.clock;
            match action.kind {
                Kind::GetUpstream => {
                    let uid = body["metadata"]["uid"].as_str().unwrap().to_owned();
                    if is_going(body) {
                        self.evidence.insert(uid, at);
                    } else {
                        self.evidence.remove(&uid);
                    }
                }
                // Which of the mirrors' sources are really gone, of those that are of this cluster.
                Kind::FindSource => {
                    let system =
                        ("namespaces".into(), String::new(), String::new(), "kube-system".into());
                    let cluster = self.world.cluster.get(&system).unwrap_or_default();
                    for (_, mirror) in
                        self.world.hub.objects.iter().filter(|(key, _)| key.0 == "configmaps")
                    {
                        let Some(of) = locator(mirror, "workloads.kcp.io/downstream") else {
                            continue;
                        };
                        let revision =
                            |text: &Value| text.as_str().and_then(|t| t.parse::<u64>().ok());
                        let alive = self.world.cluster.objects.values().any(|one| {
                            one["metadata"]["uid"] == of["uid"]
                                && !one["metadata"]["deletionTimestamp"].is_string()
                        });
                        let same = of["cluster"] == cluster["metadata"]["uid"]
                            && revision(&of["resourceVersion"])
                                <= Some(self.world.cluster.revision);
                        if same && !alive {
                            self.gone.insert(of["uid"].as_str().unwrap().to_owned(), at);
                        }
                    }
                }
                _ => {}
            }
        }
        self.world.answer(action, outcome);
    }

    pub(super) fn run(mut self) {
        let namespace = ("namespaces".into(), String::new(), String::new(), "shop".into());
        self.world.cluster.create(&namespace, json!({"metadata": {"name": "shop"}}), "admin");
        for _ in 0..80 + self.random.below(140) {
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
