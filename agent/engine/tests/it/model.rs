//! A small model of a Kubernetes API server: objects, revisions, a log for watches, server-side
//! apply with managed fields, UID preconditions, finalizers, generations, and the subresources
//! `status` and `scale`. What it does, it does as a real one.

mod apply;
mod patch;

pub(crate) use patch::merge;

use std::collections::{BTreeMap, BTreeSet};

use engine::{Method, Request};
use serde_json::{Value, json};

use crate::objects::{FINALIZER, STATE, TARGET};

/// A key: resource, logical cluster, namespace, name.
pub(crate) type Key = (String, String, String, String);

/// What a watch needs to know of a write.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) key: Key,
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
}

/// An API server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Server {
    pub(crate) revision: u64,
    pub(crate) objects: BTreeMap<Key, Value>,
    pub(crate) log: Vec<Change>,
    uids: u64,
    /// What stands above all revisions from before it was made of an export.
    pub(crate) base: u64,
    /// Whether objects need their namespace.
    pub(crate) namespaces: bool,
    /// Refuses writes of objects: key's name, status code, body.
    pub(crate) refusals: BTreeMap<String, (u16, Value)>,
    /// Whether it forbids deletes.
    pub(crate) keeps: bool,
    /// Resources that are not served.
    pub(crate) unserved: BTreeSet<String>,
    /// Whether a webhook adds a sidecar to what is written.
    pub(crate) sidecar: bool,
    /// Fields of statuses that the type doesn't have.
    pub(crate) unknown_status: BTreeSet<String>,
    /// Whether it is a hub that agents see little of: for them what isn't assigned is as what isn't
    /// there, and of what is they change their marks and the status alone.
    pub(crate) guards: bool,
    /// Resources of which agents may make objects: there they are told that nothing is.
    pub(crate) rising: BTreeSet<String>,
    /// How many writes have changed anything.
    pub(crate) writes: u64,
}

/// Whether an object has a label; with a value, if one is given.
pub(crate) fn selects(selector: &str, object: &Value) -> bool {
    if selector.contains(',') {
        return selector.split(',').all(|one| selects(one, object));
    }
    if let Some(key) = selector.strip_prefix('!') {
        return object["metadata"]["labels"].get(key).is_none();
    }
    let (key, value) = match selector.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (selector, None),
    };
    let label = object["metadata"]["labels"].get(key).and_then(Value::as_str);
    label.is_some_and(|label| value.is_none_or(|value| value == label))
}

pub(crate) fn status(code: u16, reason: &str, text: &str, details: Value) -> (u16, Value) {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": text, "details": details,
    });
    (code, body)
}

/// Whether an object carries the state label or finalizer of the target of these tests.
fn is_assigned(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    object["metadata"]["labels"].get(STATE).is_some()
        || finalizers.is_some_and(|all| all.iter().any(|one| one == FINALIZER))
}

fn without_marks(object: &Value) -> Value {
    let mut rest = object.clone();
    let metadata = rest["metadata"].as_object_mut().unwrap();
    for key in ["managedFields", "resourceVersion", "finalizers"] {
        metadata.remove(key);
    }
    if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
        labels.remove(STATE);
    }
    rest
}

/// Times don't matter to the model.
const TIME: &str = "2026-01-01T00:00:00Z";

impl Server {
    /// Whose UIDs begin with `first`, so that no two servers give the same ones.
    pub(crate) fn new(first: u64) -> Self {
        Self { revision: first, uids: first, ..Self::default() }
    }

    pub(crate) fn key(request: &Request) -> Key {
        (
            request.resource.to_string(),
            request.cluster.as_deref().unwrap_or_default().to_owned(),
            request.namespace.to_string(),
            request.name.to_string(),
        )
    }

    /// Serves a request as whoever asks is called by the field manager.
    pub(crate) fn serve(&mut self, request: &Request) -> (u16, Value) {
        let resource = request.resource.to_string();
        if self.unserved.contains(&resource) {
            return (404, Value::Null);
        }
        let key = Self::key(request);
        let manager = request.query.iter().find(|(key, _)| *key == "fieldManager");
        let manager = manager.map_or("unknown", |(_, manager)| manager.as_str()).to_owned();
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let is_own = ["events", "objectsyncs.workload.kcp.io"].contains(&resource.as_str());
        if self.guards && !is_own {
            let object = self.get(&key);
            let is_mirror = |object: &Value| {
                object["metadata"]["labels"]["workloads.kcp.io/synctarget"] == TARGET
            };
            let applies = request.content_type == "application/apply-patch+yaml";
            let makes = object.is_none() && applies && is_mirror(&body);
            if makes || object.as_ref().is_some_and(is_mirror) {
                let (code, body) = self.answer(request, &key, &manager, &body);
                let kept = self.get(&key).is_none_or(|object| is_mirror(&object));
                assert!(kept, "agents may not change whose it is");
                return (code, body);
            }
            let reads = request.method == Method::Get;
            if object.is_none() && reads && self.rising.contains(&resource) {
                return Self::missing(&key);
            }
            if !object.as_ref().is_some_and(is_assigned) {
                let text = "it is not assigned to the agent";
                return status(403, "Forbidden", text, json!({"name": key.3}));
            }
            let answer = self.answer(request, &key, &manager, &body);
            let written = self.get(&key).or_else(|| Some(answer.1.clone()));
            if answer.0 == 200 && request.subresource.is_empty() {
                let without = |object: &Option<Value>| object.as_ref().map(without_marks);
                assert_eq!(without(&object), without(&written), "agents may not change this");
            }
            return answer;
        }
        self.answer(request, &key, &manager, &body)
    }

    fn answer(
        &mut self,
        request: &Request,
        key: &Key,
        manager: &str,
        body: &Value,
    ) -> (u16, Value) {
        match request.method {
            Method::Get if request.name.is_empty() => {
                let named = request.query.iter().find(|(key, _)| *key == "fieldSelector");
                let named = named.and_then(|(_, value)| value.strip_prefix("metadata.name="));
                self.list(key, named)
            }
            Method::Get => self.get(key).map_or_else(|| Self::missing(key), |object| (200, object)),
            Method::Post => self.create(key, body.clone(), manager),
            Method::Delete if self.keeps => status(403, "Forbidden", "not you", json!({})),
            Method::Delete => self.delete(key, body["preconditions"]["uid"].as_str()),
            Method::Patch => {
                if let Some((code, body)) = self.refusals.get(&key.3) {
                    return (*code, body.clone());
                }
                match request.content_type {
                    "application/apply-patch+yaml" => {
                        let has = |key: &str, value: &str| {
                            request.query.iter().any(|(k, v)| *k == key && v == value)
                        };
                        self.apply(
                            key,
                            body,
                            manager,
                            request.subresource,
                            has("force", "true"),
                            has("dryRun", "All"),
                        )
                    }
                    "application/merge-patch+json" => {
                        self.patch(key, request.subresource, manager, |object| {
                            patch::merge(object, body);
                            true
                        })
                    }
                    _ => self.patch(key, request.subresource, manager, |object| {
                        patch::json_patch(object, body)
                    }),
                }
            }
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Value> {
        self.objects.get(key).cloned()
    }

    fn missing(key: &Key) -> (u16, Value) {
        status(404, "NotFound", "not found", json!({"name": key.3, "kind": key.0}))
    }

    fn list(&self, key: &Key, named: Option<&str>) -> (u16, Value) {
        let is_in = |other: &&Key| {
            other.0 == key.0 && other.2 == key.2 && named.is_none_or(|name| *other.3 == *name)
        };
        let items: Vec<_> =
            { self.objects.keys() }.filter(is_in).map(|key| self.objects[key].clone()).collect();
        let metadata = json!({"resourceVersion": self.revision.to_string()});
        (200, json!({"items": items, "metadata": metadata}))
    }

    /// Creates an object, as a user would.
    pub(crate) fn create(&mut self, key: &Key, mut object: Value, manager: &str) -> (u16, Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let key = (key.0.clone(), key.1.clone(), key.2.clone(), name);
        if self.objects.contains_key(&key) {
            return status(409, "AlreadyExists", "exists", json!({"name": key.3, "kind": key.0}));
        }
        if let Some(refused) = self.lacks_namespace(&key) {
            return refused;
        }
        object["metadata"]["managedFields"] = json!([]);
        self.mutate(&mut object);
        let fields = apply::fields_of(&object);
        apply::set_managed(&mut object, manager, "Update", "", &fields);
        (201, self.put_new(&key, object))
    }

    fn lacks_namespace(&self, key: &Key) -> Option<(u16, Value)> {
        if !self.namespaces || key.2.is_empty() {
            return None;
        }
        let namespace = ("namespaces".to_owned(), key.1.clone(), String::new(), key.2.clone());
        match self.objects.get(&namespace) {
            None => {
                let details = json!({"name": key.2, "kind": "namespaces"});
                Some(status(404, "NotFound", "namespaces not found", details))
            }
            Some(found) if found["metadata"]["deletionTimestamp"].is_string() => {
                let text = "unable to create new content because it is being terminated";
                Some(status(403, "Forbidden", text, json!({})))
            }
            Some(_) => None,
        }
    }

    fn put_new(&mut self, key: &Key, mut object: Value) -> Value {
        self.uids += 1;
        object["metadata"]["uid"] = format!("uid-{}", self.uids).into();
        object["metadata"]["generation"] = 1.into();
        object["metadata"]["creationTimestamp"] = TIME.into();
        object["metadata"]["name"] = key.3.clone().into();
        if !key.2.is_empty() {
            object["metadata"]["namespace"] = key.2.clone().into();
        }
        if !key.1.is_empty() {
            object["metadata"]["annotations"]["kcp.io/cluster"] = key.1.clone().into();
        }
        self.commit(key, Some(object)).unwrap()
    }

    fn commit(&mut self, key: &Key, mut new: Option<Value>) -> Option<Value> {
        self.revision += 1;
        self.writes += 1;
        if let Some(new) = &mut new {
            new["metadata"]["resourceVersion"] = self.revision.to_string().into();
        }
        let mut old = match &new {
            Some(new) => self.objects.insert(key.clone(), new.clone()),
            None => self.objects.remove(key),
        };
        if new.is_none()
            && let Some(old) = &mut old
        {
            old["metadata"]["resourceVersion"] = self.revision.to_string().into();
        }
        self.log.push(Change { revision: self.revision, key: key.clone(), old, new: new.clone() });
        new
    }

    /// What admission adds and defaults set: nobody owns defaults, a webhook its sidecar.
    fn mutate(&self, object: &mut Value) {
        let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
        if spec.contains_key("containers") {
            spec.entry("restartPolicy").or_insert_with(|| "Always".into());
            if self.sidecar {
                let containers = spec["containers"].as_array_mut().unwrap();
                if containers.iter().all(|container| container["name"] != "sidecar") {
                    containers.insert(0, json!({"name": "sidecar", "image": "proxy"}));
                }
            }
        }
    }

    /// Puts a changed object, with what follows from the change.
    fn put_changed(&mut self, key: &Key, mut new: Value, subresource: &str) -> (u16, Value) {
        let old = self.objects[key].clone();
        if subresource != "status" {
            self.mutate(&mut new);
            new["status"] = old["status"].clone();
        } else if let Some(Value::Object(status)) = new.get_mut("status") {
            status.retain(|key, _| !self.unknown_status.contains(key));
        }
        if new["status"].is_null() {
            new.as_object_mut().unwrap().remove("status");
        }
        let content = |object: &Value| {
            let mut rest = object.clone();
            let members = rest.as_object_mut().unwrap();
            members.remove("metadata");
            members.remove("status");
            rest
        };
        if content(&old) != content(&new) {
            let generation = old["metadata"]["generation"].as_i64().unwrap();
            new["metadata"]["generation"] = (generation + 1).into();
        }
        for field in ["uid", "creationTimestamp", "deletionTimestamp"] {
            match old["metadata"].get(field) {
                Some(value) => new["metadata"][field] = value.clone(),
                None => drop(new["metadata"].as_object_mut().unwrap().remove(field)),
            }
        }
        if old == new {
            return (200, old);
        }
        let finalizers = new["metadata"]["finalizers"].as_array().map_or(0, Vec::len);
        if new["metadata"]["deletionTimestamp"].is_string() && finalizers == 0 {
            self.commit(key, None);
            return (200, new);
        }
        (200, self.commit(key, Some(new)).unwrap())
    }

    /// Changes an object by a function; it says whether its tests have passed.
    pub(crate) fn patch(
        &mut self,
        key: &Key,
        subresource: &str,
        manager: &str,
        change: impl FnOnce(&mut Value) -> bool,
    ) -> (u16, Value) {
        let Some(old) = self.get(key) else { return Self::missing(key) };
        let mut new = old.clone();
        if !change(&mut new) {
            return status(422, "Invalid", "a test failed", json!({}));
        }
        if new["metadata"]["uid"] != old["metadata"]["uid"] {
            return status(409, "Conflict", "Precondition failed: UID", json!({}));
        }
        match subresource {
            "status" => {
                let status = new["status"].take();
                new = old.clone();
                new["status"] = status;
            }
            "scale" => {
                let replicas = new["spec"]["replicas"].clone();
                new = old.clone();
                new["spec"]["replicas"] = replicas;
            }
            _ => new["status"] = old["status"].clone(),
        }
        apply::update(&old, &mut new, manager, subresource);
        self.put_changed(key, new, subresource)
    }

    pub(crate) fn delete(&mut self, key: &Key, uid: Option<&str>) -> (u16, Value) {
        let Some(mut object) = self.get(key) else { return Self::missing(key) };
        if uid.is_some_and(|uid| object["metadata"]["uid"] != uid) {
            return status(409, "Conflict", "Precondition failed: UID", json!({}));
        }
        let finalizers = object["metadata"]["finalizers"].as_array().map_or(0, Vec::len);
        if finalizers > 0 {
            if !object["metadata"]["deletionTimestamp"].is_string() {
                object["metadata"]["deletionTimestamp"] = TIME.into();
                self.commit(key, Some(object.clone()));
            }
            return (202, object);
        }
        if key.0 == "namespaces" {
            let inside: Vec<_> = { self.objects.keys() }
                .filter(|other| other.1 == key.1 && other.2 == key.3)
                .cloned()
                .collect();
            for key in inside {
                self.commit(&key, None);
            }
        }
        self.commit(key, None);
        (200, json!({"kind": "Status", "status": "Success"}))
    }

    /// The objects as they were at a revision.
    pub(crate) fn at(&self, revision: u64) -> BTreeMap<Key, Value> {
        let mut objects = BTreeMap::new();
        for change in self.log.iter().take_while(|change| change.revision <= revision) {
            match &change.new {
                Some(new) => drop(objects.insert(change.key.clone(), new.clone())),
                None => drop(objects.remove(&change.key)),
            }
        }
        objects
    }

    /// Becomes one that was made of an export of itself: all revisions are above `base`, and there is
    /// no history.
    pub(crate) fn import(&mut self, base: u64) {
        self.base = base;
        self.revision += base;
        for object in self.objects.values_mut() {
            let version = object["metadata"]["resourceVersion"].as_str().unwrap();
            let version: u64 = version.parse::<u64>().unwrap() + base;
            object["metadata"]["resourceVersion"] = version.to_string().into();
        }
        let revision = |object: &Value| -> u64 {
            object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
        };
        let change = |(key, object): (&Key, &Value)| Change {
            revision: revision(object),
            key: key.clone(),
            old: None,
            new: Some(object.clone()),
        };
        self.log = self.objects.iter().map(change).collect();
        self.log.sort_by_key(|change| change.revision);
    }

    /// Becomes another one, at the same address: nothing is left, and revisions begin anew.
    pub(crate) fn wipe(&mut self) {
        self.objects.clear();
        self.log.clear();
        self.revision = 500_000 + self.uids % 1000;
    }

    /// Goes back to a revision, as by the restore of a backup.
    pub(crate) fn restore(&mut self, revision: u64) {
        self.objects = self.at(revision);
        self.log.retain(|change| change.revision <= revision);
        self.revision = revision;
    }
}
