//! The faults end, and everything is as it is to be.

use engine::{Adoption, Approvals, Kind, UpstreamChange};
use serde_json::{Value, json};

use super::deeds::{at_hub, definition, fields};
use super::run::{NAMES, NOTE, RESOURCES, Run, WIDGETS, is_going, locator, upstream_uid};
use crate::model::Key;
use crate::objects::STATE;

impl Run {
    /// Copies of an object, by its UID.
    fn copies_of(&self, resource: &str, object: &Value) -> Vec<(Key, Value)> {
        let uid = object["metadata"]["uid"].as_str().unwrap();
        let is = |key: &Key, copy: &Value| {
            key.0 == resource && upstream_uid(copy).as_deref() == Some(uid)
        };
        let all = self.world.cluster.objects.iter().filter(|(key, copy)| is(key, copy));
        all.map(|(key, copy)| (key.clone(), copy.clone())).collect()
    }

    pub(super) fn converge(&mut self) {
        self.note("all is well again".to_owned());
        self.mend();
        for _ in 0..5 {
            self.world.settle(400_000);
            let number = match self.world.engine.summary().upstream_changed {
                Some(UpstreamChange::Older(number) | UpstreamChange::Restored(number)) => number,
                Some(UpstreamChange::Identity) => self.fail("the hub is taken for another one"),
                None => 0,
            };
            if number > 0 {
                self.note(format!("a person accepts {number}"));
                let approvals = Approvals { upstream: Some(number), ..Approvals::default() };
                self.world.approve(approvals, &[]);
                self.world.settle(400_000);
            }
            self.establish();
            let copies: Vec<Key> = { self.world.cluster.objects.iter() }
                .filter(|(key, copy)| {
                    RESOURCES.contains(&key.0.as_str()) && upstream_uid(copy).is_some()
                })
                .map(|(key, _)| key.clone())
                .collect();
            for key in copies {
                self.world.run(&key);
            }
        }
        self.world.settle(400_000);
    }

    pub(super) fn check(&mut self) {
        let names = || NAMES.into_iter().chain(["e", "f"]);
        let all: Vec<Key> = { self.clusters.iter() }
            .flat_map(|cluster| RESOURCES.into_iter().map(move |resource| (*cluster, resource)))
            .flat_map(|(cluster, resource)| {
                names().map(move |name| at_hub(cluster, resource, name))
            })
            .collect();
        for key in all {
            if let Some(object) = self.world.hub.get(&key) {
                self.check_object(&key, &object);
            }
        }
        self.check_definition();
        self.check_mirrors();
        self.rest();
    }

    fn check_object(&self, key: &Key, object: &Value) {
        if !object["metadata"]["labels"][STATE].is_string() {
            return;
        }
        let summary = self.world.engine.summary();
        if is_going(object) {
            self.fail(&format!("{key:?} has not gone: {summary:?}"));
        }
        if locator(object, "workloads.kcp.io/downstream").is_some() {
            return;
        }
        let copies = self.copies_of(&key.0, object);
        let copy = match &*copies {
            [(_, copy)] => copy,
            [] if ["Collision", "NameTaken"].iter().any(|r| summary.problems.contains_key(r)) => {
                return;
            }
            [] => self.fail(&format!("{key:?} has no copy: {summary:?}")),
            more => self.fail(&format!("{key:?} has several copies: {more:?}")),
        };
        for part in ["data", "spec"] {
            // What was adopted may have more.
            let fits = match (object.get(part), copy.get(part)) {
                (Some(Value::Object(wanted)), Some(there))
                    if self.world.target.adoption != Adoption::Never =>
                {
                    wanted.iter().all(|(key, value)| there.get(key) == Some(value))
                }
                (wanted, there) => wanted == there,
            };
            if !fits {
                self.fail(&format!("{key:?} is not as it should be: {object} {copy}"));
            }
        }
        if key.0 == "deployments.apps" {
            let generation = &object["metadata"]["generation"];
            let mut expect =
                json!({"observedGeneration": generation, "replicas": copy["spec"]["replicas"]});
            // What the hub says is on both sides; where it says nothing, nothing comes up.
            let note = object["status"].get(NOTE).cloned();
            if let Some(note) = &note {
                expect[NOTE] = note.clone();
            }
            let told = note.is_none() || copy["status"].get(NOTE) == note.as_ref();
            if object["status"] != expect || !told {
                self.fail(&format!("{key:?} has another status: {object} {copy}"));
            }
        }
    }

    fn check_definition(&self) {
        let object = self.world.hub.get(&definition("infra"));
        let Some(object) = object.filter(|one| one["metadata"]["labels"][STATE] == "Sync") else {
            return;
        };
        let problems = self.world.engine.summary().problems;
        let Some(copy) = self.world.cluster.get(&definition("")) else {
            self.fail(&format!("{WIDGETS} is not defined: {problems:?}"));
        };
        let (wanted, there) = (fields(&object), fields(&copy));
        let narrows = there.iter().any(|field| !wanted.contains(field));
        let known =
            ["Incompatible", "Collision"].iter().any(|reason| problems.contains_key(reason));
        if wanted != there && !known {
            self.fail(&format!("{wanted:?} should be there, {there:?} is: {problems:?}"));
        }
        if narrows && upstream_uid(&copy).is_some() && !known {
            self.fail("nobody says that the definition would narrow");
        }
    }

    /// What is born in the physical cluster is at the hub, and nothing else of it is.
    fn check_mirrors(&self) {
        let summary = self.world.engine.summary();
        let system = ("namespaces".into(), String::new(), String::new(), "kube-system".into());
        let cluster = self.world.cluster.get(&system).unwrap();
        let mirrors: Vec<(&Key, &Value, Value)> = { self.world.hub.objects.iter() }
            .filter(|(key, _)| key.0 == "configmaps")
            .filter_map(|(key, one)| Some((key, one, locator(one, "workloads.kcp.io/downstream")?)))
            .collect();
        for (key, source) in &self.world.cluster.objects {
            let labels = &source["metadata"]["labels"];
            let is_source = labels["workloads.kcp.io/upsync"] == "true"
                && labels.get("workloads.kcp.io/synctarget").is_none()
                && upstream_uid(source).is_none();
            if !is_source {
                continue;
            }
            let of = |of: &Value| of["uid"] == source["metadata"]["uid"];
            let mut found = mirrors.iter().filter(|(_, _, locator)| of(locator));
            match (found.next(), found.next()) {
                (Some((_, mirror, _)), None) if mirror["data"] == source["data"] => {}
                (None, None) if summary.failed_mirrors > 0 => {}
                found => self.fail(&format!("{key:?} has not gone up: {found:?} {summary:?}")),
            }
        }
        for (key, _, of) in &mirrors {
            let alive =
                self.world.cluster.objects.values().any(|one| one["metadata"]["uid"] == of["uid"]);
            let here = of["cluster"] == cluster["metadata"]["uid"];
            if !alive && here && summary.failed_mirrors == 0 {
                self.fail(&format!("the mirror {key:?} stays: {summary:?}"));
            }
        }
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
        self.world.memory = self.world.engine.memory();
        self.world.start();
        let idle = self.world.settle(400_000);
        // A new process doesn't know what it has told before.
        let idle: Vec<_> = idle.iter().filter(|(kind, _)| *kind != Kind::Record).collect();
        if !idle.is_empty() {
            self.fail(&format!("writes {idle:?} as a new process"));
        }
    }
}
