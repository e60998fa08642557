//! What a SyncTarget's status says by the operator: `Installed`, `Heartbeat`, and `Ready`, which sums
//! everything up. Pure.
//!
//! Invariants: `Ready` is True only if an agent was seen alive lately, and neither it nor the operator
//! has anything against; what nobody can tell is Unknown; a condition keeps its time while its status
//! stays.

use crds::{Condition, ConditionStatus, Mode};

use super::heartbeat::Pulse;
use super::index::Target;
use ConditionStatus::{False, True, Unknown};

/// Whether an agent is installed, or something else is in its place.
pub(crate) const INSTALLED: &str = "Installed";
/// Whether the agent lives.
pub(crate) const HEARTBEAT: &str = "Heartbeat";
/// Whether the target takes and runs objects.
pub(crate) const READY: &str = "Ready";
/// A warning: that a kubeconfig is where everybody reads it who may read SyncTargets.
pub(crate) const INLINE: &str = "InlineKubeconfig";
/// By the controller of types: whether the hub serves what the cluster serves.
const TYPES_IMPORTED: &str = "TypesImported";
/// By the agent: whether the hub lets it in.
const AUTHORIZED: &str = "Authorized";
/// By the agent: whether the physical API answers.
const CLUSTER_REACHABLE: &str = "ClusterReachable";
/// By the agent: whether the physical cluster is one that it can't work with.
const UNSUPPORTED: &str = "Unsupported";
/// By the agent: whether the hub is another one than before.
const UPSTREAM_CHANGED: &str = "UpstreamChanged";

/// The longest message; the schema takes eight times as much.
const LONGEST_MESSAGE: usize = 4096;

/// Whether a condition holds, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) status: ConditionStatus,
    /// In CamelCase.
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// What the operator knows.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// What became of the installation; `None` until it was tried.
    pub(crate) installed: Option<Verdict>,
    /// Whether the agent lives.
    pub(crate) pulse: Pulse,
    /// What a deletion waits for.
    pub(crate) draining: Option<String>,
}

// === impl Verdict ===

impl Verdict {
    pub(crate) fn new(
        status: ConditionStatus,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        let mut message: String = message.into();
        if message.len() > LONGEST_MESSAGE {
            let end = message.floor_char_boundary(LONGEST_MESSAGE);
            message.truncate(end);
        }
        Self { status, reason, message }
    }
}

/// The conditions of a target, in the order in which they are written.
pub(crate) fn conditions(target: &Target, facts: &Facts, now: &str) -> Vec<Condition> {
    let installed = facts.installed.clone();
    let installed = installed.or_else(|| kept(target, INSTALLED)).unwrap_or_else(|| {
        Verdict::new(Unknown, "Pending", "the physical cluster has not been looked at yet")
    });
    let heartbeat = heartbeat(target, facts.pulse);
    let ready = ready(target, facts, &installed, &heartbeat);
    let inline = target.spec.kubeconfig.as_ref().map(|_| {
        let message = "everybody who may read this SyncTarget can use its kubeconfig: put it into \
                       a Secret, and name that in kubeconfigSecretRef";
        (INLINE, Verdict::new(True, "UseSecret", message))
    });
    [(INSTALLED, installed), (HEARTBEAT, heartbeat), (READY, ready)]
        .into_iter()
        .chain(inline)
        .map(|(kind, verdict)| condition(target, kind, verdict, now))
        .collect()
}

/// The condition of a kind, with the time at which its status came about.
fn condition(target: &Target, kind: &str, verdict: Verdict, now: &str) -> Condition {
    let before = find(target, kind).filter(|before| before.status == verdict.status);
    let since = before.map_or(now, |before| &before.last_transition_time);
    Condition {
        type_: kind.to_owned(),
        status: verdict.status,
        observed_generation: Some(target.metadata.generation),
        last_transition_time: since.to_owned(),
        reason: verdict.reason.to_owned(),
        message: verdict.message,
    }
}

fn find<'t>(target: &'t Target, kind: &str) -> Option<&'t Condition> {
    target.status.conditions.iter().find(|condition| condition.type_ == kind)
}

/// What the status says already: until this process knows better.
fn kept(target: &Target, kind: &str) -> Option<Verdict> {
    let found = find(target, kind)?;
    let reason = REASONS.iter().find(|reason| **reason == found.reason)?;
    Some(Verdict::new(found.status, reason, found.message.clone()))
}

/// Every reason that the operator gives.
const REASONS: [&str; 26] = [
    "Abandoned",
    "AddressNotAllowed",
    "AgentNotConnected",
    "ApplyFailed",
    "ClusterIdentityChanged",
    "ClusterUnreachable",
    "CredentialsExpired",
    "Draining",
    "HubChanged",
    "Installed",
    "InvalidKubeconfig",
    "LeaseExpired",
    "LeaseRenewed",
    "MissingRights",
    "NameTaken",
    "NamespaceTerminating",
    "NotInstalled",
    "NotNeeded",
    "NoKubeconfig",
    "Pending",
    "Ready",
    "SecretNotFound",
    "TypesNotImported",
    "Unauthorized",
    "Unreachable",
    "Unsupported",
];

fn heartbeat(target: &Target, pulse: Pulse) -> Verdict {
    match pulse {
        Pulse::Alive(_) => Verdict::new(True, "LeaseRenewed", "the agent renews its lease"),
        Pulse::Never => {
            Verdict::new(False, "AgentNotConnected", "no agent of this target has come yet")
        }
        Pulse::Silent => Verdict::new(
            Unknown,
            "LeaseExpired",
            "the agent has not renewed its lease for 40 s: it has ended, or cannot reach the hub",
        ),
        Pulse::Unsure(_) => kept(target, HEARTBEAT).unwrap_or_else(|| {
            Verdict::new(Unknown, "Pending", "the agent's lease has not been watched for 40 s yet")
        }),
    }
}

/// What the agent says of itself, if that is bad.
fn complaint(target: &Target) -> Option<Verdict> {
    let bad = |kind: &str, bad: ConditionStatus, reason: &'static str| {
        let found = find(target, kind).filter(|condition| condition.status == bad)?;
        let message = match &*found.message {
            "" => found.reason.clone(),
            message => format!("{}: {message}", found.reason),
        };
        Some(Verdict::new(False, reason, message))
    };
    bad(UNSUPPORTED, True, "Unsupported")
        .or_else(|| bad(AUTHORIZED, False, "Unauthorized"))
        .or_else(|| bad(CLUSTER_REACHABLE, False, "ClusterUnreachable"))
        .or_else(|| bad(UPSTREAM_CHANGED, True, "HubChanged"))
}

/// That nothing can be sent there, as the hub doesn't have the types yet.
fn typeless(target: &Target) -> Option<Verdict> {
    let message = match find(target, TYPES_IMPORTED) {
        Some(found) if found.status == True => return None,
        Some(found) => format!("{}: {}", found.reason, found.message),
        None => "the types of the cluster have not been looked at yet".to_owned(),
    };
    Some(Verdict::new(False, "TypesNotImported", message))
}

fn ready(target: &Target, facts: &Facts, installed: &Verdict, heartbeat: &Verdict) -> Verdict {
    if target.is_deleting() {
        let waits = facts.draining.clone().unwrap_or_else(|| "it is being deleted".to_owned());
        return Verdict::new(False, "Draining", waits);
    }
    // Whatever lives belongs to another cluster than the one that is meant.
    if installed.reason == "ClusterIdentityChanged" {
        return Verdict { status: False, ..installed.clone() };
    }
    match heartbeat.status {
        True => complaint(target).or_else(|| typeless(target)).unwrap_or_else(|| {
            Verdict::new(True, "Ready", "the agent is connected and its cluster answers")
        }),
        Unknown => {
            // An agent whose cluster is gone is gone, too.
            let cause = (installed.status == False).then(|| {
                format!("{}; {}: {}", heartbeat.message, installed.reason, installed.message)
            });
            Verdict::new(
                Unknown,
                heartbeat.reason,
                cause.unwrap_or_else(|| heartbeat.message.clone()),
            )
        }
        False if installed.status == True && target.spec.mode == Mode::Pull => {
            Verdict::new(False, "AgentNotConnected", "the agent is installed and has not come yet")
        }
        False if installed.status == True => heartbeat.clone(),
        // Why there is no agent is why it isn't ready.
        False => Verdict { status: False, ..installed.clone() },
    }
}

#[cfg(test)]
mod tests;
