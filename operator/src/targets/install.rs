//! Installing an agent, and keeping it as it should be.
//!
//! # Guarantees
//! - Nothing is written before the cluster is known to be the one that is meant: the one whose UID
//!   stands on the SyncTarget, or, the first time, the one that is noted there before.
//! - Nothing of others is overwritten: a namespace, or a cluster-scoped object of the name, without
//!   our labels is left alone.
//! - A cluster in which nothing has changed costs two reads a turn. A Deployment that somebody has
//!   changed or made again is put right in the next one.

use std::time::Duration;

use agent::manifest::{AGENT_NAME, Kind, PULL_SECRET, Settings, SyncedType, describe, namespace};
use crds::ConditionStatus::{False, True};
use crds::SyncedState;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::conditions::Verdict;
use super::index::Target;
use super::physical::Physical;
use super::rights;
use super::seen;
use super::uninstall::{installed_in, is_ours};
use crate::api::{Api, CallError};
use crate::args::AgentOptions;

/// How often everything is applied again, changed or not.
const WHOLE: Duration = Duration::from_secs(600);

/// What is remembered of the last time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// The UID of the physical cluster.
    cluster: String,
    /// When everything was applied.
    applied: Option<Instant>,
    /// The digest of what was applied.
    digest: String,
    /// Whether a token is in the cluster.
    token: bool,
    /// The Deployment as it was after that: another one, or one that was changed since, is put right.
    deployment: Option<Standing>,
    /// What agents have seen of the hub that were taken away, for the next one.
    pub(crate) seen: Option<String>,
}

/// A Deployment as it is to be: its UID, and a digest of its spec. How many pods there are to be doesn't
/// count: who scales an agent away does that on purpose, and is told by the SyncTarget first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Standing {
    uid: String,
    spec: [u8; 32],
}

// === impl Memory ===

impl Memory {
    /// What was done in another physical cluster than this one is forgotten.
    pub(crate) fn begin_at(&mut self, cluster: &str) {
        if self.cluster != cluster {
            *self = Self { cluster: cluster.to_owned(), ..Self::default() };
        }
    }
}

// === impl Standing ===

impl Standing {
    fn of(deployment: &Value) -> Self {
        let mut spec = deployment["spec"].clone();
        if let Value::Object(spec) = &mut spec {
            spec.remove("replicas");
        }
        let uid = deployment["metadata"]["uid"].as_str().unwrap_or_default();
        Self { uid: uid.to_owned(), spec: Sha256::digest(spec.to_string()).into() }
    }
}

/// The settings of the agent of a target.
pub(crate) fn settings(options: &AgentOptions, target: &Target, token: Option<String>) -> Settings {
    let accepted = target.status.synced_resources.iter();
    let accepted = accepted.filter(|synced| synced.state == SyncedState::Accepted);
    let mut types: Vec<SyncedType> = accepted
        .map(|synced| SyncedType { group: synced.group.clone(), resource: synced.resource.clone() })
        .collect();
    types.sort();
    let mut statuses: Vec<SyncedType> = { target.spec.status_down.iter() }
        .map(|one| contract::parse_type_name(&one.resource))
        .filter(|(group, resource)| contract::status_may_go_down(group, resource))
        .map(|(group, resource)| SyncedType {
            group: group.to_owned(),
            resource: resource.to_owned(),
        })
        // Nothing is to be held for what isn't there.
        .filter(|synced| types.contains(synced))
        .collect();
    statuses.sort();
    Settings {
        hub: options.hub.clone(),
        authority: options.authority.clone(),
        token,
        cluster: target.key.cluster.to_string(),
        target: target.key.name.to_string(),
        uid: target.key.uid.to_string(),
        image: options.image.clone(),
        pull_secret: options.pull_secret.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        types,
        statuses,
    }
}

/// Whether everything is to be applied, which needs a token if the agent has not come.
pub(crate) async fn is_due(
    physical: &Physical,
    settings: &Settings,
    memory: &Memory,
    agent_lives: bool,
    now: Instant,
) -> Result<Due, CallError> {
    let recent =
        memory.applied.is_some_and(|applied| now.saturating_duration_since(applied) < WHOLE);
    // A token is taken away as soon as it isn't needed any more.
    if !recent || !agent_lives || memory.token {
        return Ok(Due::Now);
    }
    let found = physical.api.get(&deployment(settings)).await?;
    let kept =
        found.as_ref().map(|found| &found["metadata"]["annotations"][contract::MANIFEST_DIGEST]);
    let same = kept.is_some_and(|kept| *kept == settings.digest())
        && found.as_ref().map(Standing::of) == memory.deployment;
    Ok(if same { Due::Later(available(found.as_ref())) } else { Due::Now })
}

/// Whether something is to be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// It is.
    Now,
    /// Nothing has changed; whether the agent's pod runs.
    Later(bool),
}

/// Makes sure that everything can be installed. Returns the namespaces in which an agent of the target
/// was installed for another address of the hub.
pub(crate) async fn prepare(
    physical: &Physical,
    settings: &Settings,
    memory: &Memory,
) -> Result<Vec<String>, Verdict> {
    match try_prepare(&physical.api, settings, memory).await {
        Ok(old) => Ok(old),
        Err(Failure::Verdict(verdict)) => Err(verdict),
        Err(Failure::Call(what, error)) => Err(failed(&what, &error)),
    }
}

async fn try_prepare(
    api: &Api,
    settings: &Settings,
    memory: &Memory,
) -> Result<Vec<String>, Failure> {
    check_free(api, settings).await?;
    // What went once with the same rights goes again.
    if memory.digest != settings.digest()
        && let Some(missing) = rights::missing(api, settings).await
    {
        return Err(Failure::Verdict(Verdict::new(False, "MissingRights", missing)));
    }
    let own = settings.namespace();
    let mut found =
        installed_in(api, &settings.uid).await.map_err(at("look for what is installed"))?;
    found.retain(|namespace| *namespace != own);
    Ok(found)
}

/// Applies everything.
pub(crate) async fn install(
    physical: &Physical,
    settings: &Settings,
    memory: &mut Memory,
    now: Instant,
) -> Verdict {
    let api = &physical.api;
    match apply(api, settings, memory.seen.as_deref()).await {
        Ok(deployment) => {
            memory.seen = None;
            memory.applied = Some(now);
            memory.deployment = Some(Standing::of(&deployment));
            (memory.token, memory.digest) = (settings.token.is_some(), settings.digest());
            installed(settings, available(Some(&deployment)))
        }
        Err(Failure::Verdict(verdict)) => verdict,
        Err(Failure::Call(what, error)) => failed(&what, &error),
    }
}

/// That the agent is installed.
pub(crate) fn installed(settings: &Settings, available: bool) -> Verdict {
    let namespace = settings.namespace();
    let state = if available { "and its pod runs" } else { "and its pod does not run yet" };
    Verdict::new(True, "Installed", format!("the agent is in the namespace {namespace}, {state}"))
}

enum Failure {
    Verdict(Verdict),
    /// While doing something.
    Call(String, CallError),
}

fn failed(what: &str, error: &CallError) -> Verdict {
    let reason = match error {
        CallError::Refused { code: 401, .. } => "Unauthorized",
        CallError::Refused { code: 403, .. } => "MissingRights",
        error if error.is_unreachable() => "Unreachable",
        _ => "ApplyFailed",
    };
    Verdict::new(False, reason, format!("{what}: {error}"))
}

/// That a call has failed while something was done.
fn at(what: &str) -> impl FnOnce(CallError) -> Failure + use<> {
    let what = what.to_owned();
    move |error| Failure::Call(what, error)
}

async fn apply(api: &Api, settings: &Settings, seen: Option<&str>) -> Result<Value, Failure> {
    let mut last = Value::Null;
    for object in settings.render() {
        if object["kind"] == "Deployment"
            && let Some(seen) = seen
        {
            // Before there is anybody who would go without.
            let left = seen::to_installed(api, &settings.namespace(), seen).await;
            left.map_err(at("apply Lease kcp-agent"))?;
        }
        let what = format!("apply {}", describe(&object));
        let path = path(&object);
        last = api.apply(&path, &object).await.map_err(at(&what))?;
    }
    if settings.pull_secret.is_none() {
        let what = format!("remove the Secret {PULL_SECRET}");
        remove_pull_secret(api, settings).await.map_err(at(&what))?;
    }
    Ok(last)
}

/// Removes what images were pulled with once, now that nothing is needed.
async fn remove_pull_secret(api: &Api, settings: &Settings) -> Result<(), CallError> {
    let Some(kind) = Kind::named("Secret") else { return Ok(()) };
    let path = kind.path(&settings.namespace(), PULL_SECRET);
    let Some(found) = api.metadata(&path).await? else { return Ok(()) };
    if !is_ours(&found, &settings.uid) {
        return Ok(());
    }
    api.delete(&path, found["metadata"]["uid"].as_str().unwrap_or_default()).await
}

/// That the names are free, or taken by us.
async fn check_free(api: &Api, settings: &Settings) -> Result<(), Failure> {
    let own = settings.namespace();
    for kind in Kind::ALL.iter().filter(|kind| !kind.namespaced) {
        let what = format!("{} {own}", kind.kind);
        let found = api.metadata(&kind.path("", &own)).await;
        let found = found.map_err(|error| Failure::Call(format!("read {what}"), error))?;
        let Some(found) = found else { continue };
        if !is_ours(&found, &settings.uid) {
            let message =
                format!("there is a {what} that was not installed by us: it is left alone");
            return Err(Failure::Verdict(Verdict::new(False, "NameTaken", message)));
        }
        if !found["metadata"]["deletionTimestamp"].is_null() {
            let message = format!("the {what} is still being deleted");
            return Err(Failure::Verdict(Verdict::new(False, "NamespaceTerminating", message)));
        }
    }
    Ok(())
}

fn path(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = Kind::named(text("/kind"));
    kind.map(|kind| kind.path(text("/metadata/namespace"), text("/metadata/name")))
        .unwrap_or_default()
}

fn deployment(settings: &Settings) -> String {
    let namespace = namespace(&settings.hub, &settings.uid);
    Kind::named("Deployment").map(|kind| kind.path(&namespace, AGENT_NAME)).unwrap_or_default()
}

/// Whether a Deployment has a pod that is available.
fn available(deployment: Option<&Value>) -> bool {
    deployment.is_some_and(|found| found["status"]["availableReplicas"].as_i64() > Some(0))
}
