//! Agents meet objects: what `auth/agent/rights.rs` allows under a condition on the object is held to
//! that here.
//!
//! # Guarantees
//! - A write is judged on the stored object that it changes, within the write itself; whether the
//!   agent may touch that object is asked before its patch is tried, so that no patch tells what is
//!   in an object of others.
//! - What an agent may not see, and what is not there, is refused alike.

mod reach;

use std::sync::Arc;

use contract::{
    AGENT_SIGNER, HUB_INCARNATION, HUB_UID, LOGICAL_CLUSTER_UID, SYNC_TARGET_LABEL, YIELD,
    YIELD_REPLICAS, lease_name,
};
use machinery::GroupResource;
use machinery::meta::{get, get_str, remove, set};
use machinery::selector::{LabelOperator, LabelSelector};
use serde_json::{Value, json};
use store::cache::Object;

use super::managed::MANAGED_FIELDS;
use super::scale::SCALE;
use crate::auth::rights::Right;
use crate::auth::targets::is_sync_targets;
use crate::auth::{Agent, MASTERS, operator};
use crate::clusters::record;
use crate::registry::{ClusterScope, Context, Error, Reason, Registry, Target, View, Written};

pub(super) use reach::Reach;

/// Holds what somebody last applied, whole.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Registry {
    /// The agent that asks, and its right; `None` where the caller's rights come from elsewhere.
    pub(super) fn agent_right<'c>(
        &self,
        ctx: &'c Context,
        target: &Target,
        verb: &str,
    ) -> Option<(&'c Arc<Agent>, Right)> {
        let agent = ctx.user.agent.as_ref()?;
        let asked = target.attributes(verb);
        let right = self.authorizer.right_of_agent(agent, &target.cluster, &asked);
        (agent.is_certified() || right != Right::None).then_some((agent, right))
    }

    /// Refuses an agent that may not get, change or delete the stored object at all; `None` stands
    /// for one that is not there. It comes before a change is tried.
    pub(super) fn check_agent_touch(
        &self,
        ctx: &Context,
        target: &Target,
        verb: &str,
        object: Option<&Object>,
    ) -> Result<(), Error> {
        let Some((agent, right)) = self.agent_right(ctx, target, verb) else { return Ok(()) };
        let may = match right {
            Right::None => false,
            // It knows what these are called, so that it may know that they are missing.
            Right::Whole | Right::Leased => true,
            Right::Assigned => match object {
                Some(object) if carries(agent, object) => true,
                Some(object) => is_recorded(agent, object) && self.goes_up(agent, target),
                // Where it may make something, it may know that there is nothing.
                None => verb == "get" && self.goes_up(agent, target),
            },
            Right::Upsynced => object.is_some_and(|object| is_recorded(agent, object)),
            Right::Recorded => object.is_none_or(|object| is_recorded(agent, object)),
            Right::Requested => {
                verb == "get" && object.is_none_or(|object| is_requested(ctx, object))
            }
        };
        if may { Ok(()) } else { Err(refused(target, "it is not assigned to the agent")) }
    }

    /// Refuses an agent that asks for more than is its own in a list or watch. Over several logical
    /// clusters, or one that is not its own, what it sees is limited by what is returned.
    pub(super) fn check_agent_list(
        &self,
        ctx: &Context,
        target: &Target,
        labels: &LabelSelector,
        verb: &str,
        pinned: Option<&str>,
    ) -> Result<Option<Arc<Reach>>, Error> {
        let named;
        let named = match pinned {
            Some(name) if target.name.is_empty() => {
                named = Target { name: name.into(), ..target.clone() };
                &named
            }
            _ => target,
        };
        let Some((agent, right)) = self.agent_right(ctx, named, verb) else { return Ok(None) };
        match right {
            Right::Assigned
                if labels.exact(SYNC_TARGET_LABEL) == Some(&*agent.uid)
                    && self.goes_up(agent, target) => {}
            Right::Assigned if !requires(labels, &agent.state_label) => {
                let label = &agent.state_label;
                return Err(refused(target, &format!("agents must require the label {label}")));
            }
            Right::Recorded if labels.exact(SYNC_TARGET_LABEL) != Some(&*agent.uid) => {
                let uid = &agent.uid;
                let why = format!("agents must require the label {SYNC_TARGET_LABEL}={uid}");
                return Err(refused(target, &why));
            }
            Right::Assigned | Right::Recorded | Right::Leased => {}
            Right::None | Right::Whole | Right::Requested | Right::Upsynced => {
                return Err(refused(target, "agents may not"));
            }
        }
        let own = |scope: &ClusterScope| *scope == ClusterScope::One(agent.cluster.clone());
        let reach = || Arc::new(Reach::new(self.cache.clone(), agent.clone()));
        Ok((!own(&target.cluster)).then(reach))
    }

    /// Whether objects of the type go up from an agent's physical cluster.
    fn goes_up(&self, agent: &Agent, target: &Target) -> bool {
        self.authorizer.goes_up(agent, &target.resource.group, &target.resource.plural)
    }

    /// Refuses what an agent may not create.
    pub(super) fn check_agent_create(
        &self,
        ctx: &Context,
        target: &Target,
        object: &Value,
    ) -> Result<(), Error> {
        let Some((agent, right)) = self.agent_right(ctx, target, "create") else { return Ok(()) };
        let name = get_str(object, &["metadata", "name"]).unwrap_or_default();
        let may = match right {
            Right::None | Right::Assigned => false,
            Right::Whole => true,
            Right::Recorded => {
                get_str(object, &["metadata", "labels", SYNC_TARGET_LABEL]) == Some(&*agent.uid)
            }
            Right::Upsynced => is_mirror(agent, object),
            Right::Requested => get_str(object, &["spec", "signerName"]) == Some(AGENT_SIGNER),
            Right::Leased => name == lease_name(&agent.uid),
        };
        if may && !marks_others(agent, object) {
            return Ok(());
        }
        Err(refused(target, "agents may not create it"))
    }

    /// Refuses a change that an agent, or the operator, may not make of an object that it may touch.
    /// The change is theirs alone: webhooks come later.
    pub(super) fn check_agent_change(
        &self,
        ctx: &Context,
        target: &Target,
        old: &Value,
        new: &Value,
    ) -> Result<(), Error> {
        let Some((agent, right)) = self.agent_right(ctx, target, "patch") else {
            return self.check_operator_change(ctx, target, old, new);
        };
        let may = match right {
            Right::None | Right::Requested | Right::Upsynced => false,
            Right::Leased => !marks_differ(agent, old, new),
            // Which agents are let in is not theirs to say.
            Right::Whole => ["credentialsNotBefore", "clusterUID"].iter().all(|field| {
                let path = ["status", *field];
                get(old, &path) == get(new, &path)
            }),
            Right::Recorded => {
                let path = ["metadata", "labels", SYNC_TARGET_LABEL];
                let kept = get_str(new, &path) == Some(&*agent.uid);
                // A body for the status may leave the metadata out, which then stays.
                !target.subresource.is_empty() || (kept && !marks_differ(agent, old, new))
            }
            Right::Assigned => match &*target.subresource {
                "" => {
                    without_marks(agent, old) == without_marks(agent, new)
                        || (self.goes_up(agent, target) && changes_mirror(agent, old, new))
                }
                SCALE => yields_replicas(old),
                "status" => writes_status_alone(target, agent, old, new),
                _ => false,
            },
        };
        if may { Ok(()) } else { Err(refused(target, "agents may not change this of it")) }
    }

    /// The operator changes marks, where no role gives it more.
    fn check_operator_change(
        &self,
        ctx: &Context,
        target: &Target,
        old: &Value,
        new: &Value,
    ) -> Result<(), Error> {
        if ctx.inside || !operator::is_operator(&ctx.user) {
            return Ok(());
        }
        let asked = target.attributes("patch");
        if operator::right(&target.cluster, &asked) != operator::Right::Marks
            || self.authorizer.by_roles(&ctx.user, &target.cluster, &asked).is_allowed()
            || unmarked(old) == unmarked(new)
        {
            return Ok(());
        }
        let why = "the operator may change state labels and finalizers of SyncTargets alone";
        Err(refused(target, why))
    }

    /// A written object as its writer may see it.
    pub(super) fn written_for(
        &self,
        ctx: &Context,
        target: &Target,
        written: Written,
    ) -> Result<Written, Error> {
        let view = self.view_for(ctx, target, written.view)?;
        Ok(Written { view, ..written })
    }

    /// An object as its reader may see it. Of a SyncTarget, its agent, the operator and masters, who
    /// may sync by hand, are shown which hub and logical cluster it is of, by annotations that are never stored: what they
    /// remember of one counts only there. An agent sees no kubeconfig.
    pub(super) fn view_for(
        &self,
        ctx: &Context,
        target: &Target,
        view: View,
    ) -> Result<View, Error> {
        let of_targets = is_sync_targets(&target.resource);
        let is_agent = ctx.user.agent.is_some();
        let told = is_agent || operator::is_operator(&ctx.user) || ctx.user.is_in(MASTERS);
        if !of_targets || !told {
            return Ok(view);
        }
        let mut value: Value = serde_json::from_slice(&view.json).map_err(Error::internal)?;
        if is_agent {
            remove(&mut value, &["spec", "kubeconfig"]);
            remove(&mut value, &["metadata", "annotations", LAST_APPLIED]);
        }
        let cluster =
            target.one_cluster().and_then(|cluster| self.cache.get(&record::key(cluster)));
        let uid = cluster.map_or(Value::Null, |object| object.header.uid().to_string().into());
        let hub = self.store.identity();
        for (annotation, uid) in [
            (HUB_UID, json!(hub.hub_uid)),
            (HUB_INCARNATION, json!(hub.rv_base.to_string())),
            (LOGICAL_CLUSTER_UID, uid),
        ] {
            let path = ["metadata", "annotations", annotation];
            // What somebody has stored under such a name is none.
            remove(&mut value, &path);
            if uid.is_string() {
                set(&mut value, &path, uid);
            }
        }
        let json = serde_json::to_vec(&value).map_err(Error::internal)?;
        Ok(View { json: json.into(), ..view })
    }
}

/// Whether a new object is one that has come up from an agent's physical cluster, and no more.
fn is_mirror(agent: &Agent, object: &Value) -> bool {
    let empty = |field: &str| match get(object, &["metadata", field]) {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    };
    let labels = get(object, &["metadata", "labels"]).and_then(Value::as_object);
    let mut labels = labels.into_iter().flatten().map(|(key, _)| key.as_str());
    get_str(object, &["metadata", "labels", SYNC_TARGET_LABEL]) == Some(&*agent.uid)
        // What others do with it later is theirs; who makes it can neither hold it nor own it.
        && empty("finalizers")
        && empty("ownerReferences")
        && labels.all(|key| {
            key != contract::INTENT_LABEL && contract::target_of_state_label(key).is_none()
        })
}

/// Whether an object that has come up stays one, and what others have put on it stays as it is.
fn changes_mirror(agent: &Agent, old: &Value, new: &Value) -> bool {
    let label = ["metadata", "labels", SYNC_TARGET_LABEL];
    let both = [old, new].iter().all(|object| get_str(object, &label) == Some(&*agent.uid));
    let kept = |path: &[&str]| get(old, path) == get(new, path);
    both && kept(&["metadata", "ownerReferences"])
        && kept(&["metadata", "finalizers"])
        && marks(agent, old) == marks(agent, new)
        && kept(&["metadata", "labels", &agent.state_label])
}

/// The one answer to what is not an agent's business.
fn refused(target: &Target, why: &str) -> Error {
    let resource: GroupResource = Registry::group_resource(&target.resource);
    Error::forbidden(&resource, &target.name, why)
}

/// What a missing object is to an agent: as one that is there and not its own.
pub(super) fn hidden(ctx: &Context, target: &Target, error: Error) -> Error {
    if ctx.user.certified_agent().is_some() && error.reason() == Reason::NotFound {
        return refused(target, "it is not assigned to the agent");
    }
    error
}

/// Whether an object is assigned to the agent's SyncTarget, or may be held by it.
fn carries(agent: &Agent, object: &Object) -> bool {
    let header = &object.header;
    header.label(&agent.state_label).is_some() || header.finalizers().contains(&agent.finalizer)
}

fn is_recorded(agent: &Agent, object: &Object) -> bool {
    object.header.label(SYNC_TARGET_LABEL) == Some(&*agent.uid)
}

fn is_requested(ctx: &Context, object: &Object) -> bool {
    let value = serde_json::from_slice::<Value>(&object.json()).unwrap_or_default();
    get_str(&value, &["spec", "username"]) == Some(&*ctx.user.name)
}

/// Whether a selector leaves only objects that have a label.
fn requires(labels: &LabelSelector, key: &str) -> bool {
    labels.requirements().iter().any(|requirement| {
        let has = matches!(
            requirement.operator,
            LabelOperator::Exists | LabelOperator::Equals | LabelOperator::In
        );
        *requirement.key == *key && has
    })
}

/// An object without what an agent may change of it, and what the server keeps of writes.
fn without_marks(agent: &Agent, object: &Value) -> Value {
    let mut rest = object.clone();
    remove(&mut rest, &["metadata", "labels", &agent.state_label]);
    keep_finalizers(&mut rest, |finalizer| *finalizer != *agent.finalizer);
    settled(rest)
}

/// Whether a write of a status leaves alone what else that subresource may write.
fn writes_status_alone(target: &Target, agent: &Agent, old: &Value, new: &Value) -> bool {
    let subresource = target.resource.subresource(&target.subresource);
    let writes = subresource.map_or(&[][..], |subresource| &subresource.writes);
    let (old, new) = (without_marks(agent, old), without_marks(agent, new));
    let mut others = writes.iter().filter(|field| &***field != "status");
    others.all(|field| get(&old, &[field]) == get(&new, &[field]))
}

/// An object without any marks of SyncTargets.
fn unmarked(object: &Value) -> Value {
    let mut rest = object.clone();
    if let Some(Value::Object(labels)) = rest.pointer_mut("/metadata/labels") {
        labels.retain(|key, _| contract::target_of_state_label(key).is_none());
    }
    keep_finalizers(&mut rest, |finalizer| contract::target_of_finalizer(finalizer).is_none());
    settled(rest)
}

fn keep_finalizers(object: &mut Value, keep: impl Fn(&str) -> bool) {
    if let Some(Value::Array(finalizers)) = object.pointer_mut("/metadata/finalizers") {
        finalizers.retain(|finalizer| finalizer.as_str().is_none_or(&keep));
    }
}

/// An object without what the server keeps of writes; nothing is as good as an empty list or map.
fn settled(mut object: Value) -> Value {
    remove(&mut object, &MANAGED_FIELDS);
    for field in ["labels", "finalizers"] {
        let path = ["metadata", field];
        let empty = match get(&object, &path) {
            Some(Value::Object(members)) => members.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            _ => false,
        };
        if empty {
            remove(&mut object, &path);
        }
    }
    object
}

/// Whether a new object has marks of other SyncTargets than the agent's, or says where it belongs.
fn marks_others(agent: &Agent, object: &Value) -> bool {
    let mut nothing = json!({});
    if let Some(kind) = get(object, &["metadata", "name"]) {
        set(&mut nothing, &["metadata", "name"], kind.clone());
    }
    marks_differ(agent, &nothing, object)
}

/// Whether marks other than the agent's own differ between two objects.
fn marks_differ(agent: &Agent, old: &Value, new: &Value) -> bool {
    marks(agent, old) != marks(agent, new)
}

/// The marks of an object that are not the agent's own: labels and finalizers.
fn marks<'o>(agent: &Agent, object: &'o Value) -> (Vec<(&'o str, &'o Value)>, Vec<&'o str>) {
    let labels = get(object, &["metadata", "labels"]).and_then(Value::as_object);
    let labels = labels.into_iter().flatten().map(|(key, value)| (key.as_str(), value));
    let is_mark = |key: &str| {
        let state = contract::target_of_state_label(key).is_some() && *key != *agent.state_label;
        state || key == contract::INTENT_LABEL
    };
    let labels = labels.filter(|(key, _)| is_mark(key)).collect();
    let finalizers = get(object, &["metadata", "finalizers"]).and_then(Value::as_array);
    let finalizers = finalizers.into_iter().flatten().filter_map(Value::as_str);
    let other = |finalizer: &&str| {
        contract::target_of_finalizer(finalizer).is_some() && **finalizer != *agent.finalizer
    };
    (labels, finalizers.filter(other).collect())
}

fn yields_replicas(object: &Value) -> bool {
    ["annotations", "labels"]
        .iter()
        .any(|place| get_str(object, &["metadata", place, YIELD]) == Some(YIELD_REPLICAS))
}
