//! The engine's entry: what is told to it and what it asks for.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use crate::{
    Action, ActionId, Approvals, Event, Exemption, GroupResource, Identity, Now, Outcome, Side,
    Summary, SyncedType, Target,
};

/// The sync engine of one SyncTarget.
#[derive(Debug)]
pub struct Engine {
    target: Target,
    types: Vec<SyncedType>,
    approvals: Approvals,
    exemptions: BTreeSet<Exemption>,
}

// === impl Engine ===

impl Engine {
    /// An engine that knows nothing yet. Nothing is asked for until [`Engine::types`],
    /// [`Engine::identity`] and whole lists of both sides are in.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            types: Vec::new(),
            approvals: Approvals::default(),
            exemptions: BTreeSet::new(),
        }
    }

    /// Changes mapping, adoption, limits: what the SyncTarget's spec says. The identity stays.
    pub fn set_target(&mut self, target: Target) {
        let identity = self.target.identity.clone();
        self.target = Target { identity, ..target };
    }

    /// What is synced from now on. A type that is no longer in here is left as it is: its copies
    /// stay, and nothing is known of them.
    pub fn types(&mut self, types: Vec<SyncedType>, _now: Now) {
        self.types = types;
    }

    /// The types to watch on both sides, with [`Target::upstream_selector`] and
    /// [`Target::downstream_selector`]. Types that are never synced are not among them.
    pub fn watched(&self) -> impl Iterator<Item = &SyncedType> {
        self.types.iter()
    }

    /// Who is upstream, as just read, live, from the SyncTarget; `None` as soon as the connection
    /// to the hub breaks, until it has been read again. Deletes wait while it is not known.
    pub fn identity(&mut self, _identity: Option<Identity>, _now: Now) {}

    /// What people have approved and deleted as a whole, as the SyncTarget says.
    pub fn approvals(&mut self, approvals: Approvals, exemptions: BTreeSet<Exemption>, _now: Now) {
        self.approvals = approvals;
        self.exemptions = exemptions;
    }

    /// What a watch of a synced type has shown in the hub. Lists should be consistent reads.
    pub fn upstream(&mut self, _type: &GroupResource, _event: Event, _now: Now) {}

    /// What a watch of a synced type has shown in the physical cluster.
    pub fn downstream(&mut self, _type: &GroupResource, _event: Event, _now: Now) {}

    /// What a watch of our ObjectSyncs in the hub has shown; metadata are enough.
    pub fn records(&mut self, _event: Event, _now: Now) {}

    /// What a watch of namespaces with our label in the physical cluster has shown; metadata are
    /// enough, with `status.phase` if it is known.
    pub fn namespaces(&mut self, _event: Event, _now: Now) {}

    /// An Event of the physical cluster (`v1 events`). Those of copies are told upstream, so far
    /// as limits allow.
    pub fn event(&mut self, _event: &Value, _now: Now) {}

    /// All resources in namespaces that the physical cluster serves, with their versions: what
    /// is looked through before a namespace that we made is deleted. Without it none is deleted.
    pub fn resources(&mut self, _resources: Vec<(GroupResource, String)>) {}

    /// Tells what became of an action.
    pub fn outcome(&mut self, _id: ActionId, _outcome: Outcome, _now: Now) {}

    /// Requests to make now, most urgent first; at most `max`, which should be what the driver can
    /// make at once.
    pub fn plan(&mut self, _now: Now, _max: usize) -> Vec<Action> {
        Vec::new()
    }

    /// When [`Engine::plan`] may have something to do, if nothing is told to the engine before:
    /// a time of [`Now::clock`].
    pub fn next_due(&self) -> Option<Duration> {
        None
    }

    /// Drops the pauses after failures of a side: it is known to answer again.
    pub fn reachable(&mut self, _side: Side, _now: Now) {}

    /// Counts and conditions as of now.
    pub fn summary(&self) -> Summary {
        Summary::default()
    }
}
