//! What goes wrong.

use engine::{Identity, Side};
use serde_json::json;

use super::run::{Flight, NAMES, Run};
use crate::model::{Server, status};

impl Run {
    pub(super) fn fault(&mut self) {
        let (side, resource) = self.stream();
        let what = self.random.below(16);
        self.note(format!("fault {what} {side:?} {resource}"));
        let silent = side == Side::Upstream && self.world.locked_out;
        match what {
            2..5 if silent => {}
            // It is cut, or its place has expired: it begins again with a list.
            0 | 1 => drop(self.world.streams.insert((side, resource), None)),
            2 | 3 => {
                // A slow cache.
                let server =
                    if side == Side::Upstream { &self.world.hub } else { &self.world.cluster };
                let first = server.log.first().map_or(server.revision, |change| change.revision);
                let back = self.random.below((server.revision - first) as usize + 1) as u64;
                let at = server.revision - back;
                self.world.list(side, &resource, Some(at));
            }
            4 => {
                self.world.show(side, &resource, Vec::new(), 0);
                self.world.streams.insert((side, resource), None);
            }
            5 => self.world.identify(None),
            6 | 7 => self.identify(),
            8 => self.restart(),
            9 => {
                let name = NAMES[self.random.below(NAMES.len())];
                let refusals = &mut self.world.cluster.refusals;
                if refusals.remove(name).is_none() {
                    let text = "field is immutable";
                    refusals.insert(name.to_owned(), status(422, "Invalid", text, json!({})));
                }
            }
            // Of another hub there is none.
            10 if self.parked.is_some() => {}
            10 => {
                self.backups.push(self.world.hub.revision);
                self.cluster_backups.push(self.world.cluster.revision);
            }
            11 => self.restore(false),
            12 => self.restore(true),
            13 => self.make_anew(),
            14 => self.wipe(),
            // The time of day jumps.
            _ => self.world.skew = [-86_400_000, 86_400_000, 0][self.random.below(3)],
        }
    }

    /// Who is upstream is read.
    fn identify(&mut self) {
        let own = self.world.target.identity.clone();
        let identity = if self.parked.is_some() {
            Identity { hub: "hub-2".into(), logical_cluster: "lc-2".into(), ..own }
        } else {
            Identity { incarnation: self.world.hub.base, ..own }
        };
        self.world.identify(Some(identity));
    }

    pub(super) fn restart(&mut self) {
        self.evidence.clear();
        self.gone.clear();
        for flight in &mut self.flights {
            flight.dead = true;
        }
        self.flights.retain(|flight| flight.outcome.is_none());
        // Of whom it is told first is what it begins with.
        if self.world.identity.as_ref().is_some_and(|identity| *identity.hub != *"hub-1") {
            self.world.identity = None;
        }
        self.world.start();
    }

    /// Connections to the hub break.
    fn cut(&mut self) {
        self.world.identify(None);
        self.world.relist();
        // What was read before is not what is there now.
        let is_lost = |flight: &Flight| flight.action.request.side == Side::Upstream;
        let (lost, kept): (Vec<Flight>, Vec<Flight>) =
            std::mem::take(&mut self.flights).into_iter().partition(is_lost);
        self.flights = kept;
        for flight in lost.iter().filter(|flight| !flight.dead) {
            self.world.lose(&flight.action);
        }
        self.evidence.clear();
    }

    /// The hub is restored from a backup, once in a run: its file is put back, or imported.
    fn restore(&mut self, imported: bool) {
        if self.parked.is_some() {
            return;
        }
        let Some(backup) = self.backups.pop() else { return };
        self.backups.clear();
        if self.random.one_in(2) {
            return;
        }
        self.note(format!("the hub goes back to {backup}; imported: {imported}"));
        let before = self.world.hub.objects.clone();
        self.cut();
        let served = self.world.hub.revision;
        self.world.hub.restore(backup);
        if imported {
            self.world.hub.import(served + 1000);
        }
        self.protect(&before, backup);
        if self.random.one_in(2) {
            self.restart();
        }
    }

    /// Another hub is at the address, for a while, with objects of the same names.
    fn make_anew(&mut self) {
        self.cut();
        match self.parked.take() {
            Some(hub) => {
                self.note("the hub is back".to_owned());
                self.world.hub = hub;
                self.world.locked_out = false;
            }
            None => {
                self.note("another hub is at the address".to_owned());
                let mut other = Server::new(700_000);
                other.guards = true;
                other.rising.clone_from(&self.world.hub.rising);
                self.parked = Some(std::mem::replace(&mut self.world.hub, other));
                // It knows no SyncTarget of that UID, so the agent is nobody there.
                self.world.locked_out = true;
            }
        }
    }

    /// The physical cluster is made anew at the same address, or restored from a backup.
    fn wipe(&mut self) {
        let backup = self.cluster_backups.pop();
        if !self.random.one_in(3) {
            return;
        }
        for flight in std::mem::take(&mut self.flights) {
            let is_lost = flight.action.request.side == Side::Downstream;
            if !is_lost {
                self.flights.push(flight);
            } else if !flight.dead {
                self.world.lose(&flight.action);
            }
        }
        self.world.relist();
        self.gone.clear();
        self.foreign.clear();
        match backup {
            Some(backup) if self.random.one_in(2) => {
                self.note(format!("the physical cluster goes back to {backup}"));
                self.world.cluster.restore(backup);
            }
            _ => {
                self.note("the physical cluster is wiped".to_owned());
                self.cluster_backups.clear();
                self.world.cluster.wipe();
                self.world.begin_cluster();
                self.make_shop();
            }
        }
        // Whatever is there now that isn't ours is what has to stay.
        self.remember_foreign();
    }

    pub(super) fn remember_foreign(&mut self) {
        for (key, object) in &self.world.cluster.objects {
            let marked = ["workloads.kcp.io/synctarget", "workloads.kcp.io/upsync"]
                .iter()
                .any(|label| object["metadata"]["labels"].get(label).is_some());
            if super::run::RESOURCES.contains(&key.0.as_str())
                && !marked
                && super::run::upstream_uid(object).is_none()
            {
                self.foreign.insert(key.clone(), object.clone());
            }
        }
    }

    pub(super) fn make_shop(&mut self) {
        let namespace = ("namespaces".into(), String::new(), String::new(), "shop".into());
        self.world.cluster.create(&namespace, json!({"metadata": {"name": "shop"}}), "admin");
    }

    /// Everything that was wrong is over.
    pub(super) fn mend(&mut self) {
        if let Some(hub) = self.parked.take() {
            self.world.hub = hub;
            self.world.locked_out = false;
            self.cut();
        }
        self.world.skew = 0;
        self.world.cluster.refusals.clear();
        for flight in std::mem::take(&mut self.flights) {
            let outcome = match flight.outcome {
                Some(outcome) => outcome,
                None => self.make(&flight.action),
            };
            if !flight.dead {
                self.answer(&flight.action, outcome);
            }
        }
        self.identify();
        self.world.relist();
    }
}
