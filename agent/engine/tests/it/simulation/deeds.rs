//! What people, the operator and controllers do on both sides.

use serde_json::{Value, json};

use super::run::{
    DEFINITIONS, NAMES, NOTE, RESOURCES, Run, WIDGETS, is_going, locator, upstream_uid,
};
use crate::model::Key;
use crate::objects::{FINALIZER, STATE, config, deployment};

const FIELDS: [&str; 3] = ["size", "colour", "shape"];

/// The fields that a definition knows.
pub(super) fn fields(definition: &Value) -> Vec<String> {
    let place = "/spec/versions/0/schema/openAPIV3Schema/properties";
    let fields = definition.pointer(place).and_then(Value::as_object);
    fields.into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

fn definition_spec(fields: &[&str]) -> Value {
    let fields: serde_json::Map<String, Value> =
        fields.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({
        "group": "example.org", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{
            "name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}},
        }],
    })
}

/// The key of the definition; of an empty cluster, that of its copy.
pub(super) fn definition(cluster: &str) -> Key {
    (DEFINITIONS.into(), cluster.into(), String::new(), WIDGETS.into())
}

pub(super) fn at_hub(cluster: &str, resource: &str, name: &str) -> Key {
    (resource.into(), cluster.into(), "shop".into(), name.into())
}

fn object(resource: &str, name: &str, value: usize) -> Value {
    match resource {
        "configmaps" => config(name, &value.to_string()),
        "deployments.apps" => deployment(name, &format!("web:{value}"), 1),
        _ => json!({
            "apiVersion": "example.org/v1", "kind": "Widget",
            "metadata": {
                "name": name, "namespace": "shop", "labels": {"app": name, STATE: "Sync"},
                "finalizers": [FINALIZER],
            },
            "spec": {"size": value},
        }),
    }
}

impl Run {
    fn pick(&mut self) -> (&'static str, &'static str, &'static str) {
        let cluster = self.clusters[self.random.below(self.clusters.len())];
        (
            cluster,
            RESOURCES[self.random.below(RESOURCES.len())],
            NAMES[self.random.below(NAMES.len())],
        )
    }

    fn pick_hub(&mut self) -> Option<(Key, Value)> {
        let key = if self.random.one_in(8) {
            definition("infra")
        } else {
            let (cluster, resource, name) = self.pick();
            at_hub(cluster, resource, name)
        };
        let object = self.world.hub.get(&key)?;
        Some((key, object))
    }

    /// A copy of ours, wherever it is.
    fn pick_copy(&mut self) -> Option<Key> {
        let is = |key: &&Key| RESOURCES.contains(&key.0.as_str());
        let all: Vec<Key> = self.world.cluster.objects.keys().filter(is).cloned().collect();
        let key = all.get(self.random.below(all.len().max(1)))?.clone();
        let object = self.world.cluster.get(&key)?;
        (!self.foreign.contains_key(&key) && upstream_uid(&object).is_some()).then_some(key)
    }

    /// The namespace that stands for one of a logical cluster, if it is there.
    fn space(&mut self) -> Option<String> {
        if self.world.target.mapping == engine::Mapping::Same {
            return Some("shop".to_owned());
        }
        let ours = |key: &&Key| {
            let object = &self.world.cluster.objects[*key];
            key.0 == "namespaces" && locator(object, "workloads.kcp.io/upstream").is_some()
        };
        let all: Vec<Key> = self.world.cluster.objects.keys().filter(ours).cloned().collect();
        let at = self.random.below(all.len().max(1));
        all.get(at).map(|key| key.3.clone())
    }

    /// People and the operator, at the hub.
    pub(super) fn user(&mut self) {
        let what = self.random.below(14);
        if what < 4 {
            let (cluster, resource, name) = self.pick();
            let value = self.random.below(100);
            let key = at_hub(cluster, resource, name);
            let object = object(resource, name, value);
            let exists = self.world.hub.get(&key);
            self.note(format!("user writes {cluster} {resource} {name} {value}"));
            match exists {
                // What has come up from the physical cluster isn't people's to change.
                Some(there) if locator(&there, "workloads.kcp.io/downstream").is_some() => {}
                Some(_) => {
                    let content = json!({"data": object["data"], "spec": object["spec"]});
                    self.world.change(&key, content);
                }
                None => drop(self.world.hub.create(&key, object, "kubectl")),
            }
            return;
        }
        if what == 12 {
            return self.define();
        }
        let Some((key, object)) = self.pick_hub() else { return };
        if what == 13 {
            return self.note_at_hub(&key);
        }
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

    /// A controller of the hub says something in the status of a Deployment, or takes it back.
    fn note_at_hub(&mut self, key: &Key) {
        if key.0 != "deployments.apps" {
            return;
        }
        let note = [json!("one"), json!("two"), Value::Null][self.random.below(3)].clone();
        self.note(format!("the hub notes {note} on {key:?}"));
        let status = json!({"status": {NOTE: note}});
        self.world.hub.patch(key, "status", "hub-controller", |object| {
            crate::model::merge(object, &status);
            true
        });
    }

    /// A person writes the definition of a type, with more or fewer fields than before.
    fn define(&mut self) {
        let chosen = 1 + self.random.below(7);
        let fields: Vec<&str> = { FIELDS.iter().enumerate() }
            .filter(|(bit, _)| chosen & (1 << bit) != 0)
            .map(|(_, name)| *name)
            .collect();
        self.note(format!("user defines widgets with {fields:?}"));
        let (key, spec) = (definition("infra"), definition_spec(&fields));
        if self.world.hub.get(&key).is_some() {
            self.world.change(&key, json!({"spec": {"versions": spec["versions"]}}));
            return;
        }
        let object = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {
                "name": WIDGETS, "labels": {STATE: "Sync"}, "finalizers": [FINALIZER],
            },
            "spec": spec,
        });
        self.world.hub.create(&key, object, "kubectl");
    }

    /// People and controllers, in the physical cluster.
    pub(super) fn physical(&mut self) {
        match self.random.below(15) {
            14 => {
                // Who writes what is the hub's has written it in vain.
                let Some(key) = self.pick_copy().filter(|key| key.0 == "deployments.apps") else {
                    return;
                };
                self.note(format!("a controller notes something on {key:?}"));
                let status = json!({"status": {NOTE: "mine"}});
                self.world.meddle(&key, "status", "controller", status);
            }
            0..4 => {
                if let Some(key) = self.pick_copy() {
                    self.world.run(&key);
                }
            }
            4 | 5 => {
                let Some(key) = self.pick_copy() else { return };
                self.note(format!("admin changes {key:?}"));
                let patch = match key.0.as_str() {
                    "configmaps" => json!({"data": {"key": "drift"}}),
                    "deployments.apps" => json!({"spec": {"replicas": 9}}),
                    _ => json!({"spec": {"size": 999}}),
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
            8 => self.make_foreign(),
            9 => {
                let Some(key) = self.foreign.keys().next().cloned() else { return };
                self.note(format!("admin deletes {key:?}"));
                self.foreign.remove(&key);
                self.world.cluster.delete(&key, None);
            }
            10 => self.establish(),
            _ => self.bear(),
        }
    }

    fn make_foreign(&mut self) {
        let (_, resource, name) = self.pick();
        let Some(namespace) = self.space() else { return };
        let key = (resource.to_owned(), String::new(), namespace, name.to_owned());
        // Sometimes as the copy would be.
        let like = self.random.one_in(2);
        let of = self.world.hub.get(&at_hub("infra", resource, name)).filter(|_| like);
        let mut object = json!({"metadata": {"name": name, "labels": {"app": name}}});
        match of {
            Some(of) if resource == "configmaps" => object["data"] = of["data"].clone(),
            _ if resource == "configmaps" => object["data"] = json!({"key": "foreign"}),
            Some(of) => object["spec"] = of["spec"].clone(),
            None => object["spec"] = json!({"replicas": 3}),
        }
        let made = self.world.cluster.create(&key, object, "admin");
        if made.0 == 201 {
            self.note(format!("admin makes {key:?}"));
            self.foreign.insert(key, made.1);
        }
    }

    /// The physical cluster serves what is defined.
    pub(super) fn establish(&mut self) {
        let key = definition("");
        if self.world.cluster.get(&key).is_some() {
            let conditions = json!([{"type": "Established", "status": "True"}]);
            let status = json!({"conditions": conditions, "storedVersions": ["v1"]});
            self.world.meddle(&key, "status", "apiserver", json!({"status": status}));
        }
    }

    /// Objects that go up are born, change, and go.
    fn bear(&mut self) {
        let Some(namespace) = self.space() else { return };
        let name = ["a", "e", "f"][self.random.below(3)];
        let key = ("configmaps".to_owned(), String::new(), namespace, name.to_owned());
        let value = self.random.below(100).to_string();
        let there = self.world.cluster.get(&key);
        let is_born = |object: &Value| {
            object["metadata"]["labels"]["workloads.kcp.io/upsync"] == "true"
                && upstream_uid(object).is_none()
        };
        match there {
            None => {
                self.note(format!("{key:?} is born with {value}"));
                let object = json!({
                    "metadata": {"name": name, "labels": {"workloads.kcp.io/upsync": "true"}},
                    "data": {"key": value},
                });
                // Whoever has the name there first keeps it.
                let (status, body) = self.world.cluster.create(&key, object, "admin");
                assert_eq!(status, 201, "{body}");
            }
            Some(object) if is_born(&object) && !self.foreign.contains_key(&key) => {
                if self.random.one_in(2) {
                    self.note(format!("{key:?} becomes {value}"));
                    self.world.meddle(&key, "", "admin", json!({"data": {"key": value}}));
                } else {
                    self.note(format!("{key:?} goes"));
                    self.world.cluster.delete(&key, None);
                }
            }
            Some(_) => {}
        }
    }

    /// What a hub that has gone back wants removed, though that was taken back.
    pub(super) fn protect(&mut self, before: &std::collections::BTreeMap<Key, Value>, back: u64) {
        for (key, object) in &self.world.hub.objects {
            let was_going = before.get(key).is_some_and(|before| {
                before["metadata"]["uid"] == object["metadata"]["uid"] && is_going(before)
            });
            if is_going(object) && !was_going && before.contains_key(key) {
                let uid = object["metadata"]["uid"].as_str().unwrap().to_owned();
                self.protected.insert(uid, back);
            }
        }
    }
}
