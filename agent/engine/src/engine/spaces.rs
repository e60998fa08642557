//! Downstream namespaces: those that we make, and those that are there.
//!
//! A namespace that is there without our locator is used as it is (mapping `Same`) or refused
//! (`Hashed`); nothing of it is ever changed. One that we have made is deleted when the last copy
//! in it has gone for a while and nothing else is in it; what can't be looked at counts as
//! something.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contract::{SYNC_TARGET_LABEL, SYNCER, UPSTREAM};
use serde_json::{Value, json};

use super::agenda::Agenda;
use super::answers::{Ask, Subject};
use super::decide::Wake;
use super::entry::{Hold, Id, Work};
use super::observe::text;
use super::requests::deletion;
use super::{Engine, millis};
use crate::locator::Locator;
use crate::{Action, Event, GroupResource, Mapping, Method, Now, Outcome, Request, Side};

const JSON: &str = "application/json";

/// Lists without the objects' content.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// After something foreign was found, how long until the next look, in milliseconds.
const LOOK_AGAIN: u64 = 600_000;

/// What every namespace has by itself: (resource, name); an empty name stands for all.
const BY_ITSELF: [(&str, &str); 5] = [
    ("configmaps", "kube-root-ca.crt"),
    ("configmaps", "openshift-service-ca.crt"),
    ("serviceaccounts", "default"),
    ("events", ""),
    ("events.events.k8s.io", ""),
];

/// All downstream namespaces that matter, by name.
#[derive(Debug, Default)]
pub(super) struct Spaces {
    spaces: BTreeMap<Arc<str>, Space>,
    agenda: Agenda<Arc<str>>,
    /// What may be in a namespace.
    resources: Vec<(GroupResource, String)>,
}

/// A downstream namespace.
#[derive(Debug, Default)]
struct Space {
    state: State,
    in_flight: bool,
    /// The logical cluster and namespace that it stands for.
    of: Option<(Arc<str>, Arc<str>)>,
    waiting: BTreeSet<Id>,
    hold: Hold,
    /// When to see whether it can go.
    check: Option<u64>,
    /// How many resources have been looked through.
    looked: usize,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unknown,
    Absent,
    /// It is there; with its UID, if we have made it.
    Ready(Option<String>),
    /// It isn't ours, and has to be.
    Refused,
}

// === impl Spaces ===

impl Spaces {
    pub(super) fn set_resources(&mut self, resources: Vec<(GroupResource, String)>) {
        self.resources = resources;
    }

    /// The logical cluster and namespace that one that we have made stands for.
    pub(super) fn stands_for(&self, name: &Arc<str>) -> Option<(Arc<str>, Arc<str>)> {
        let space = self.spaces.get(name)?;
        if matches!(space.state, State::Ready(Some(_))) { space.of.clone() } else { None }
    }

    pub(super) fn agenda(&self) -> &Agenda<Arc<str>> {
        &self.agenda
    }

    /// Forgets whether a namespace is there: a write has said something else.
    pub(super) fn doubt(&mut self, name: &Arc<str>) {
        if let Some(space) = self.spaces.get_mut(name) {
            space.state = State::Unknown;
        }
    }
}

// === impl Engine ===

impl Engine {
    /// Whether the namespace of an entry's place is there; if not, it is made, and the entry looked
    /// at again.
    pub(super) fn space_is_ready(&mut self, id: Id, now: Now, wake: &mut Wake) -> bool {
        let Some(entry) = self.index.get(id) else { return false };
        let name = entry.place.namespace.clone();
        let of = (entry.key.cluster.clone(), entry.key.namespace.clone());
        let space = self.spaces.spaces.entry(name.clone()).or_default();
        space.of.get_or_insert(of);
        space.check = None;
        match space.state {
            State::Ready(_) => return true,
            State::Refused => {
                space.state = State::Unknown;
                let message = format!("the namespace {name:?} is there already and not ours");
                self.set_problem(id, Work::Down, "Collision", message, now);
                self.pause(id, Work::Down, now);
                let held = self.index.get(id).map_or(0, |entry| entry.held_until(Work::Down));
                wake.at(held);
            }
            State::Unknown | State::Absent => {
                space.waiting.insert(id);
                self.spaces.agenda.touch(name);
            }
        }
        false
    }

    /// A copy has left its namespace: perhaps it was the last.
    pub(super) fn leave_space(&mut self, id: Id) {
        let Some(entry) = self.index.get(id) else { return };
        let name = entry.place.namespace.clone();
        if let Some(space) = self.spaces.spaces.get_mut(&name)
            && matches!(space.state, State::Ready(Some(_)))
        {
            space.check.get_or_insert(0);
            self.spaces.agenda.touch(name);
        }
    }

    pub(super) fn see_namespace(&mut self, event: Event, _now: Now) {
        match event {
            Event::Applied(object) => {
                let name = text(&object, "name");
                let locator = Locator::of(&object).filter(|locator| self.made(locator, name));
                let Some(locator) = locator else { return };
                let name: Arc<str> = name.into();
                let space = self.spaces.spaces.entry(name.clone()).or_default();
                if !space.in_flight && text(&object, "deletionTimestamp").is_empty() {
                    space.of = Some((locator.cluster.into(), locator.namespace.into()));
                    space.state = State::Ready(Some(text(&object, "uid").to_owned()));
                    space.check.get_or_insert(0);
                    self.spaces.agenda.touch(name);
                    // What is born in it may be known already.
                    self.mirrors.touch_all();
                }
            }
            Event::Deleted(object) => self.spaces.doubt(&text(&object, "name").into()),
            Event::InitStart | Event::InitDone { .. } | Event::Bookmark { .. } => {}
        }
    }

    /// Whether a namespace with this locator is one that we have made.
    fn made(&self, locator: &Locator, name: &str) -> bool {
        *locator.hub == *self.target.identity.hub && locator.copy == name && locator.uid.is_empty()
    }

    /// The next request for a namespace.
    pub(super) fn plan_space(&mut self, now: Now) -> Option<Action> {
        let clock = millis(now.clock);
        self.spaces.agenda.advance(clock);
        let gate = self.gates[super::side(Side::Downstream)].until;
        while let Some(name) = self.spaces.agenda.pop() {
            if gate > clock {
                self.spaces.agenda.at(gate, name);
                continue;
            }
            if let Some((ask, request)) = self.space_step(&name, clock) {
                if let Some(space) = self.spaces.spaces.get_mut(&name) {
                    space.in_flight = true;
                }
                let kind = ask.kind();
                return Some(self.launch(Subject::Space(name), ask, kind, request));
            }
        }
        None
    }

    fn space_step(&mut self, name: &Arc<str>, clock: u64) -> Option<(Ask, Request)> {
        let used = self.index.uses(name);
        let grace = millis(self.target.limits.namespace_grace);
        let space = self.spaces.spaces.get_mut(name)?;
        if space.in_flight {
            return None;
        }
        if space.hold.until > clock {
            self.spaces.agenda.at(space.hold.until, name.clone());
            return None;
        }
        if !space.waiting.is_empty() {
            return match &space.state {
                State::Unknown => {
                    Some((Ask::GetNamespace, namespace_request(name, Method::Get, Vec::new())))
                }
                State::Absent => {
                    let body = self.namespace_body(name)?;
                    let mut request = namespace_request("", Method::Post, body);
                    request.query = vec![("fieldManager", SYNCER.to_owned())];
                    Some((Ask::CreateNamespace, request))
                }
                State::Ready(_) | State::Refused => {
                    for id in std::mem::take(&mut space.waiting) {
                        self.touch(id);
                    }
                    None
                }
            };
        }
        let due = space.check?;
        let State::Ready(Some(uid)) = &space.state else { return None };
        if used {
            space.check = None;
            return None;
        }
        if due == 0 {
            space.check = Some(clock.saturating_add(grace).max(1));
            space.looked = 0;
            self.spaces.agenda.at(clock.saturating_add(grace), name.clone());
            return None;
        }
        if due > clock {
            self.spaces.agenda.at(due, name.clone());
            return None;
        }
        if self.spaces.resources.is_empty() {
            space.check = None;
            return None;
        }
        if let Some((resource, version)) = self.spaces.resources.get(space.looked) {
            let mut request = namespace_request("", Method::Get, Vec::new());
            request.resource = resource.clone();
            request.version = version.as_str().into();
            request.namespace = name.clone();
            request.query = vec![("limit", "20".to_owned())];
            request.accept = METADATA;
            return Some((Ask::ListNamespace, request));
        }
        let request = namespace_request(name, Method::Delete, deletion(uid));
        Some((Ask::DeleteNamespace, request))
    }

    fn namespace_body(&self, name: &str) -> Option<Vec<u8>> {
        let (cluster, namespace) = self.spaces.spaces.get(name)?.of.clone()?;
        let locator = Locator {
            hub: self.target.identity.hub.to_string(),
            cluster: cluster.to_string(),
            namespace: namespace.to_string(),
            name: namespace.to_string(),
            uid: String::new(),
            copy: name.to_owned(),
            generation: 0,
            resource_version: String::new(),
            digest: String::new(),
            added: None,
        };
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {
                "name": name,
                "labels": {SYNC_TARGET_LABEL: &*self.target.identity.target},
                "annotations": {UPSTREAM: locator.to_string()},
            },
        });
        Some(object.to_string().into_bytes())
    }

    /// Judges an answer about a namespace.
    pub(super) fn land_space(&mut self, name: &Arc<str>, ask: &Ask, outcome: &Outcome, now: Now) {
        let clock = millis(now.clock);
        let (status, body) = match outcome {
            Outcome::Answer { status, body, .. } => (*status, body),
            Outcome::Failed(_) => (0, &Value::Null),
        };
        let ours = Locator::of(body).filter(|locator| self.made(locator, name));
        let hashed = self.target.mapping == Mapping::Hashed;
        let limit = self.target.limits.longest_backoff.min(std::time::Duration::from_secs(30));
        let longer = |engine: &Self, hold: Hold| {
            let mut hold = hold;
            engine.lengthen(&mut hold, clock, limit);
            hold
        };
        let known = self.spaces.spaces.get(name).map(|space| space.hold).unwrap_or_default();
        let longer = longer(self, known);
        let Some(space) = self.spaces.spaces.get_mut(name) else { return };
        space.in_flight = false;
        space.hold = Hold::default();
        match (ask, status) {
            (Ask::GetNamespace | Ask::CreateNamespace, 200 | 201) => {
                let uid = text(body, "uid").to_owned();
                if !text(body, "deletionTimestamp").is_empty() {
                    space.hold = longer;
                } else if let Some(locator) = ours {
                    let of = (locator.cluster.into(), locator.namespace.into());
                    let same = space.of.as_ref().is_none_or(|known| *known == of);
                    space.state = if same { State::Ready(Some(uid)) } else { State::Refused };
                } else {
                    space.state = if hashed { State::Refused } else { State::Ready(None) };
                }
            }
            (Ask::GetNamespace, 404) => space.state = State::Absent,
            (Ask::CreateNamespace, 409) => space.state = State::Unknown,
            (Ask::ListNamespace, 200) => {
                let resource = self.spaces.resources.get(space.looked);
                let resource = resource.map(|(resource, _)| resource.to_string());
                let items = body.get("items").and_then(Value::as_array);
                let by_itself = |item: &Value| {
                    BY_ITSELF.iter().any(|(of, called)| {
                        Some(*of) == resource.as_deref()
                            && (called.is_empty() || text(item, "name") == *called)
                    })
                };
                let more = body.pointer("/metadata/continue").and_then(Value::as_str);
                let is_empty = items.is_some_and(|items| items.iter().all(by_itself))
                    && more.is_none_or(str::is_empty);
                if is_empty {
                    space.looked += 1;
                } else {
                    space.check = Some(clock.saturating_add(LOOK_AGAIN));
                    space.looked = 0;
                }
            }
            // The resource has gone, or can't be listed.
            (Ask::ListNamespace, 404 | 405) => space.looked += 1,
            (Ask::ListNamespace, 403) => {
                space.check = Some(clock.saturating_add(LOOK_AGAIN));
                space.looked = 0;
            }
            (Ask::DeleteNamespace, 200 | 202 | 404 | 409) => {
                space.check = None;
                space.state = State::Unknown;
            }
            _ => space.hold = longer,
        }
        let failing = space.hold.failures > 2 && !space.waiting.is_empty();
        if failing {
            let waiting: Vec<_> = space.waiting.iter().copied().collect();
            let why = super::answers::message(body, status);
            for id in waiting {
                let message = format!("the namespace {name:?} cannot be made: {why}");
                self.set_problem(id, Work::Down, "NamespaceFailed", message, now);
                self.touch(id);
            }
        }
        self.spaces.agenda.touch(name.clone());
    }
}

fn namespace_request(name: &str, method: Method, body: Vec<u8>) -> Request {
    Request {
        side: Side::Downstream,
        cluster: None,
        method,
        resource: GroupResource::new("", "namespaces"),
        version: "v1".into(),
        namespace: "".into(),
        name: name.into(),
        subresource: "",
        query: Vec::new(),
        content_type: if body.is_empty() { "" } else { JSON },
        accept: JSON,
        body,
    }
}
