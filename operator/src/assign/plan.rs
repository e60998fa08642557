//! What is to become of the marks of one object. Pure.
//!
//! # Guarantees
//! - A copy is asked back (`Remove`) only where the intent that put it there is gone or names another
//!   target that can take the object. An intent that leads nowhere changes nothing: a slip of the pen
//!   costs no running application.
//! - Nothing new is given to an object or a target that is being deleted.
//! - A target that is gone, or that the object's logical cluster may no longer use, is released: no agent
//!   could answer any more. Its copies stay where they are.

use std::collections::BTreeMap;

use contract::parse_global_name;

use crate::marks::{Change, Marks, State};

/// A resource, whatever its version: group and plural.
pub(crate) type GroupResource = (String, String);

/// What is known of a SyncTarget that an object names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It takes objects of this type from this logical cluster.
    Fit,
    /// As before, and it isn't ready.
    NotReady,
    /// It doesn't sync this type, now.
    OtherTypes,
    /// It is being deleted.
    Deleting,
    /// It doesn't serve this logical cluster.
    NotAllowed,
    /// There is none of this name.
    Gone,
    /// There is one, and nothing is known of it.
    Unknown,
}

/// Tells what is known of SyncTargets.
pub(crate) trait Targets {
    /// The standing of the one with this global name, for an object of `resource` in `cluster`.
    fn standing(&self, global: &str, cluster: &str, resource: &GroupResource) -> Standing;
}

/// An object, and what is around it.
#[derive(Clone, Debug)]
pub(crate) struct Subject<'a> {
    /// Its logical cluster.
    pub(crate) cluster: &'a str,
    /// Its type.
    pub(crate) resource: &'a GroupResource,
    /// Its name.
    pub(crate) name: &'a str,
    /// Its marks.
    pub(crate) marks: &'a Marks,
    /// What its namespace wants: nothing for what has no namespace.
    pub(crate) around: Around<'a>,
}

/// What the namespace of an object wants of what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Around<'a> {
    /// Nothing: it has no intent, or there is no namespace.
    Nothing,
    /// Everything is to be there.
    Intent(&'a str),
    /// It is being deleted, and everything in it.
    Deleting,
}

/// What to do about an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// By the target's global name.
    pub(crate) changes: BTreeMap<String, Change>,
    /// What a person should know.
    pub(crate) problem: Option<Problem>,
}

/// What a person should know about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// In CamelCase.
    pub(crate) reason: &'static str,
    /// For people.
    pub(crate) message: String,
}

/// What is to become of an object's marks.
pub(crate) fn plan(subject: &Subject<'_>, targets: &dyn Targets) -> Plan {
    let marks = subject.marks;
    let standing = |global: &str| targets.standing(global, subject.cluster, subject.resource);
    let mut plan = Plan::default();
    let wanted = wanted(subject);
    // Where the object is to be from now on; `None` if that is nowhere, or can't be done.
    let place = wanted.as_ref().map(|global| (global.as_str(), standing(global)));
    let settled = match place {
        None => true,
        Some((global, Standing::Fit | Standing::NotReady)) => {
            let present = marks.states.get(global) == Some(&State::Sync)
                && (marks.finalizers.contains(global) || marks.deleting);
            // What is on its way out is not sent anywhere.
            if !present && !marks.deleting && subject.around != Around::Deleting {
                plan.changes.insert(global.to_owned(), Change::Assign);
            }
            true
        }
        Some(_) => false,
    };
    for global in marks.targets() {
        if plan.changes.contains_key(global) {
            continue;
        }
        let is_place = place.is_some_and(|(place, _)| place == global);
        let change = match standing(global) {
            Standing::Gone | Standing::NotAllowed => Some(Change::Release),
            Standing::Deleting => Some(Change::Unassign),
            Standing::Unknown => None,
            Standing::Fit | Standing::NotReady | Standing::OtherTypes if is_place => None,
            // The namespace's deletion takes the object, and its copy, along.
            _ if marks.deleting || subject.around == Around::Deleting => None,
            _ if settled => Some(Change::Unassign),
            _ => None,
        };
        // A finalizer alone is seen by no agent.
        let unseen = !marks.states.contains_key(global);
        let change = match change {
            None if unseen && is_place && !marks.deleting => Some(Change::Assign),
            None if unseen && marks.deleting => Some(Change::Unassign),
            change => change,
        };
        if let Some(change) = change.filter(|change| !is_made(marks, global, *change)) {
            plan.changes.insert(global.to_owned(), change);
        }
    }
    if !marks.deleting && subject.around != Around::Deleting {
        plan.problem =
            place.and_then(|(global, standing)| problem(subject.resource, global, standing));
    }
    plan
}

/// Whether a change would change nothing.
fn is_made(marks: &Marks, global: &str, change: Change) -> bool {
    let state = marks.states.get(global);
    match change {
        Change::Assign => state == Some(&State::Sync) && marks.finalizers.contains(global),
        // Where no copy may be, there is nothing to remove.
        Change::Unassign => state == Some(&State::Remove),
        Change::Release => state.is_none() && !marks.finalizers.contains(global),
    }
}

/// The global name of the target that the object is to run on. Its own label goes before that of its
/// namespace; an empty one says nowhere.
fn wanted(subject: &Subject<'_>) -> Option<String> {
    let own = subject.marks.intent.as_deref();
    let intent = match (own, subject.around) {
        (Some(own), _) => own,
        (None, Around::Intent(intent)) if !is_everywhere(subject) => intent,
        _ => return None,
    };
    (!intent.is_empty()).then(|| global(subject.cluster, intent))
}

/// The global name that an intent means: a name is of the object's own logical cluster.
pub(crate) fn global(cluster: &str, intent: &str) -> String {
    match parse_global_name(intent) {
        Some(_) => intent.to_owned(),
        None => contract::global_name(cluster, intent),
    }
}

/// Whether an object is one that every namespace has by itself, in each cluster with a content of its
/// own, or that is of no use anywhere else: what a namespace wants is not meant for it.
fn is_everywhere(subject: &Subject<'_>) -> bool {
    let (group, resource) = subject.resource;
    match (group.as_str(), resource.as_str()) {
        ("", "configmaps") => subject.name == "kube-root-ca.crt",
        ("", "serviceaccounts") => subject.name == "default",
        // The history of releases is of who releases.
        ("", "secrets") => subject.name.starts_with("sh.helm.release."),
        ("", "services") => subject.name == "kubernetes",
        _ => false,
    }
}

/// What people should know of a namespace whose label means a target: there is none, or it takes nothing
/// from there. Of which types it takes objects is not told of the namespace, but of the objects.
pub(crate) fn problem_around(global: &str, standing: Standing) -> Option<Problem> {
    match standing {
        Standing::Fit | Standing::NotReady | Standing::OtherTypes | Standing::Unknown => None,
        Standing::Deleting | Standing::NotAllowed | Standing::Gone => {
            problem(&(String::new(), "namespaces".to_owned()), global, standing)
        }
    }
}

fn problem(resource: &GroupResource, global: &str, standing: Standing) -> Option<Problem> {
    let (group, resource) = resource;
    let kind = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
    let (reason, message) = match standing {
        Standing::Fit | Standing::Unknown => return None,
        Standing::NotReady => (
            "TargetNotReady",
            format!("the SyncTarget {global} is not ready: the object goes there as soon as it is"),
        ),
        Standing::OtherTypes => {
            let why = contract::why_not_hashed(group, resource);
            let why = why.unwrap_or("see its status.syncedResources");
            ("TypeNotSynced", format!("the SyncTarget {global} does not sync {kind}: {why}"))
        }
        Standing::Deleting => {
            ("TargetDeleting", format!("the SyncTarget {global} is being deleted"))
        }
        Standing::NotAllowed => (
            "TargetNotAllowed",
            format!(
                "the SyncTarget {global} does not serve this logical cluster: its \
                 spec.allowedClusters does not name it"
            ),
        ),
        Standing::Gone => ("TargetNotFound", format!("there is no SyncTarget {global}")),
    };
    Some(Problem { reason, message })
}

#[cfg(test)]
mod tests;
