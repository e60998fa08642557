//! The end of a SyncTarget: drained, uninstalled, released.
//!
//! # Flow
//! 1. Every object that the target holds is asked back (`Remove`), and its agent removes the copies.
//! 2. When none is left, what was installed is taken away, and the bootstrap token with it.
//! 3. What has a finalizer of the target and no label is released, and then the SyncTarget itself.
//!
//! # Guarantees
//! Finalizers are released without an agent's doing only if none ever came, if the cluster or its agent
//! could not be reached for a stated time, or if a person says so; then an Event names what is left.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

use super::drain::{Marked, Search, change, marked, some_of};
use super::heartbeat::Pulse;
use super::index::{Target, TargetKey};
use super::uninstall::{LeftBehind, installed_in, uninstall};
use super::{Controller, seen, token};
use crate::api::CallError;
use crate::assign::index::ObjectKey;
use crate::events::Weight;
use crate::marks::{Change, Marks, State};
use crate::queue::Done;

/// How often it is looked whether the copies are gone.
const POLL: Duration = Duration::from_secs(2);

/// How often the whole hub is searched for objects whose copies are not gone.
const SEARCH: Duration = Duration::from_secs(60);

/// The same where some are of types that no watch shows.
const SEARCH_UNSHOWN: Duration = Duration::from_secs(10);

/// A search of the whole hub for objects that a SyncTarget holds.
#[derive(Clone, Debug)]
pub(super) struct Searched {
    at: Instant,
    /// What is waited for, in words; `None` if nothing was found.
    waits: Option<String>,
    /// Whether watches do not show all of them.
    unshown: bool,
}

/// What a SyncTarget holds, as far as it is known without a search.
enum Held {
    /// A search is needed.
    Unknown,
    /// Something, in words.
    Waits(String),
    /// Nothing was found, and nothing is shown.
    Nothing,
}

/// Why nobody waits for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GivenUp {
    /// None ever came: there are no copies.
    NeverCame,
    /// It could not be reached for so long.
    TimedOut(Duration),
    /// A person says so.
    Abandoned,
}

impl Controller {
    pub(super) async fn remove(self: &Arc<Self>, target: &Arc<Target>) -> Done {
        if !target.metadata.finalizers.iter().any(|name| name == contract::TARGET_FINALIZER) {
            return Done::Settled;
        }
        match self.try_remove(target).await {
            Ok(Some(waits)) => {
                self.know(&target.key, |known| known.draining = Some(waits));
                Done::After(POLL)
            }
            Ok(None) => Done::Settled,
            Err(error) => {
                let waits = format!("the hub does not answer as it should: {error}");
                self.know(&target.key, |known| known.draining = Some(waits));
                Done::Failed
            }
        }
    }

    /// One turn. `Some` says what it waits for, `None` that it is done.
    async fn try_remove(&self, target: &Target) -> Result<Option<String>, CallError> {
        let global = target.key.global();
        let given_up = self.given_up(target);
        let held = match self.held(&target.key) {
            Held::Waits(waits) if given_up.is_none() => return Ok(Some(waits)),
            Held::Nothing => Vec::new(),
            Held::Waits(_) | Held::Unknown => {
                let found = marked(&self.hub, &global, Search::Labelled).await?;
                self.note_search(&target.key, &found);
                found
            }
        };
        if !held.is_empty() {
            let Some(given_up) = given_up else {
                return self.ask_back(&global, &held).await.map(Some);
            };
            let unreleased = change(&self.hub, &global, &held, Change::Release).await?;
            self.tell_left(target, given_up, &held).await;
            if unreleased > 0 {
                return Ok(Some(format!("{unreleased} objects are still to be released")));
            }
        }
        self.pushes.stop(&target.key);
        if let Some(waits) = self.take_down(target, given_up).await {
            return Ok(Some(waits));
        }
        token::revoke(&self.cluster(&target.key), &target.key).await?;
        // Nobody is there any more who could act on these.
        let rest = marked(&self.hub, &global, Search::Everything).await?;
        if change(&self.hub, &global, &rest, Change::Release).await? > 0 {
            return Ok(Some("finalizers are being released".to_owned()));
        }
        let finalizers = target.metadata.finalizers.iter();
        let others: Vec<&String> =
            finalizers.filter(|name| *name != contract::TARGET_FINALIZER).collect();
        match self.write(target, &json!({"finalizers": others})).await {
            Ok(()) | Err(CallError::Refused { code: 404, .. }) => Ok(None),
            // Its status was written meanwhile: again with what the watch brings.
            Err(CallError::Refused { code: 409, .. }) => {
                Ok(Some("it is being released".to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    /// What is held still, as far as it is known without a search of the whole hub: watches show the
    /// objects of types that are synced, and the other controller asks the agent for these.
    fn held(&self, key: &TargetKey) -> Held {
        let Some(searched) = self.known(key).searched else { return Held::Unknown };
        let named = self.shown(key);
        let elapsed = searched.at.elapsed();
        match (named.is_empty(), searched.waits) {
            (true, None) => Held::Nothing,
            (true, Some(waits)) if searched.unshown && elapsed < SEARCH_UNSHOWN => {
                Held::Waits(waits)
            }
            (false, _) if elapsed < SEARCH => Held::Waits(waiting(&named)),
            _ => Held::Unknown,
        }
    }

    /// The objects that a target may hold, as watches show them.
    fn shown(&self, key: &TargetKey) -> Vec<String> {
        let objects = self.objects.lock();
        objects.held_by(&key.global()).map(ObjectKey::label).collect()
    }

    fn note_search(&self, key: &TargetKey, found: &[Marked]) {
        let shown: BTreeSet<String> = self.shown(key).into_iter().collect();
        let found: Vec<String> = found.iter().map(Marked::name).collect();
        let unshown = found.iter().any(|name| !shown.contains(name));
        let waits = (!found.is_empty()).then(|| waiting(&found));
        let searched = Searched { at: Instant::now(), waits, unshown };
        self.know(key, |known| known.searched = Some(searched));
    }

    /// Asks the agent to remove all copies.
    async fn ask_back(&self, global: &str, held: &[Marked]) -> Result<String, CallError> {
        let state = |object: &Marked| Marks::of(&object.metadata).states.get(global).copied();
        let asked: Vec<Marked> =
            held.iter().filter(|object| state(object) != Some(State::Remove)).cloned().collect();
        change(&self.hub, global, &asked, Change::Unassign).await?;
        Ok(waiting(&held.iter().map(Marked::name).collect::<Vec<_>>()))
    }

    /// Why nobody waits for the agent; `None` while it may still do its work.
    fn given_up(&self, target: &Target) -> Option<GivenUp> {
        if target.annotation(contract::ABANDON) == Some("true") {
            return Some(GivenUp::Abandoned);
        }
        let pulse = self.pulse(target);
        let came = target.status.agent_version.is_some()
            || target.annotation(contract::CLUSTER_UID).is_some();
        match pulse {
            Pulse::Alive(_) if !is_cut_off(target) => None,
            Pulse::Never if !came => Some(GivenUp::NeverCame),
            Pulse::Unsure(_) => None,
            _ => {
                let since = target.metadata.deleted.map_or(Duration::ZERO, |deleted| {
                    let elapsed = Timestamp::now().duration_since(deleted);
                    Duration::try_from(elapsed).unwrap_or_default()
                });
                // Both must have waited: a process that has just begun has not seen anything yet.
                let waited = since.min(self.watched_for());
                (waited >= self.options.drain_timeout).then_some(GivenUp::TimedOut(since))
            }
        }
    }

    /// Uninstalls what was installed. `Some` says what it waits for.
    async fn take_down(&self, target: &Target, given_up: Option<GivenUp>) -> Option<String> {
        // Nothing was ever written there.
        let known = target.annotation(contract::CLUSTER_UID)?;
        let why = match self.reach(target).await {
            Ok(physical) if physical.uid != known => {
                "the kubeconfig leads to another physical cluster by now".to_owned()
            }
            Ok(physical) => match self.uninstall_all(target, &physical).await {
                Ok(left) if left.is_empty() => return None,
                Ok(left) => {
                    let note = format!("left in the physical cluster: {}", left.join("; "));
                    self.event(target, Weight::Warning, "LeftBehind", &note).await;
                    return None;
                }
                Err(error) => error.to_string(),
            },
            // Who joined by a manifest takes it away with the manifest.
            Err(verdict) if verdict.reason == "NoKubeconfig" => return None,
            Err(verdict) => verdict.message,
        };
        let waited = self.waited_out(target);
        if given_up == Some(GivenUp::Abandoned) || waited {
            let namespace = agent::manifest::namespace(&self.options.agents.hub, &target.key.uid);
            let note = format!(
                "the agent is not uninstalled, and the namespace {namespace} and the ClusterRole and \
                 ClusterRoleBinding of that name are left in the physical cluster: {why}"
            );
            self.event(target, Weight::Warning, "LeftBehind", &note).await;
            return None;
        }
        Some(format!("waiting to uninstall the agent: {why}"))
    }

    async fn uninstall_all(
        &self,
        target: &Target,
        physical: &super::physical::Physical,
    ) -> Result<LeftBehind, CallError> {
        let own = agent::manifest::namespace(&self.options.agents.hub, &target.key.uid);
        let mut namespaces = installed_in(&physical.api, &target.key.uid).await?;
        if !namespaces.contains(&own) {
            // What has no namespace may still be there.
            namespaces.push(own);
        }
        let mut left = LeftBehind::new();
        for namespace in namespaces {
            left.extend(uninstall(&physical.api, &namespace, &target.key.uid).await?);
        }
        seen::forget_push(&physical.api, &target.key.uid).await?;
        Ok(left)
    }

    fn waited_out(&self, target: &Target) -> bool {
        let since = target.metadata.deleted.map_or(Duration::ZERO, |deleted| {
            Duration::try_from(Timestamp::now().duration_since(deleted)).unwrap_or_default()
        });
        since >= self.options.drain_timeout
    }

    async fn tell_left(&self, target: &Target, given_up: GivenUp, held: &[Marked]) {
        let number = held.len();
        let named: Vec<String> = held.iter().map(Marked::name).collect();
        let why = match given_up {
            GivenUp::NeverCame => return,
            GivenUp::TimedOut(since) => {
                format!("the agent could not be reached for {} s", since.as_secs())
            }
            GivenUp::Abandoned => "it was abandoned".to_owned(),
        };
        let note = format!(
            "{why}: {number} objects are released, and their copies, if there are any, are left in \
             the physical cluster: {}",
            some_of(&named)
        );
        self.event(target, Weight::Warning, "LeftBehind", &note).await;
    }

    async fn event(&self, target: &Target, weight: Weight, reason: &str, note: &str) {
        let (regarding, hub) = (Self::regarding(&target.key), self.cluster(&target.key));
        self.events.tell(&hub, &regarding, "removal", (weight, reason, note)).await;
    }
}

fn waiting(named: &[String]) -> String {
    format!("waiting for the agent to remove {} objects: {}", named.len(), some_of(named))
}

/// Whether the agent says that its cluster does not answer it.
fn is_cut_off(target: &Target) -> bool {
    target.status.conditions.iter().any(|condition| {
        condition.type_ == "ClusterReachable" && condition.status == crds::ConditionStatus::False
    })
}
