//! Agents that a target has had and that are none of its any more: those of another physical cluster,
//! of another address of the hub, of another mode.
//!
//! # Guarantees
//! - They are locked out before the next one is let in: their certificates and their bootstrap token
//!   are void, and no Lease that they have renewed passes for a sign of life of the next one.
//! - Which physical cluster's agents are believed stands in the target's status, where no agent can
//!   change it: so it does not matter which operator does this, nor when.

use crds::ConditionStatus::False;
use crds::Mode;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::conditions::Verdict;
use super::heartbeat::Pulse;
use super::index::Target;
use super::physical::{self, Physical};
use super::uninstall::{holds_agent, uninstall};
use super::{Controller, token};
use crate::api::CallError;

impl Controller {
    /// What is known of the life of a target's agent. That of a former physical cluster is none of it.
    pub(super) fn pulse(&self, target: &Target) -> Pulse {
        if target.is_moving() {
            return Pulse::Never;
        }
        self.beats.pulse(&target.key.cluster, &target.key.uid, Instant::now())
    }

    /// From now on the agents of this physical cluster are believed, and of no other.
    pub(super) async fn settle(&self, target: &Target, physical: &Physical) -> Result<(), Verdict> {
        let uid = &physical.uid;
        if target.status.cluster_uid.as_ref() == Some(uid) {
            return Ok(());
        }
        let key = &target.key;
        // What the watch has shown may be older than what was written a moment ago: the next agent is
        // not to be locked out with the one before.
        let live = self.cluster(key).get(&key.path()).await;
        let live = live.map_err(|error| unwritten("the SyncTarget is not read", &error))?;
        let live = live.and_then(|live| Target::read(&key.cluster, &live));
        let meant = |live: &Target| {
            live.key.uid == key.uid && live.annotation(contract::CLUSTER_UID) == Some(uid.as_str())
        };
        let Some(live) = live.filter(meant) else {
            return Err(Verdict::new(False, "Pending", "the SyncTarget has just been changed"));
        };
        match live.status.cluster_uid.as_ref() {
            Some(known) if known == uid => Ok(()),
            Some(_) if live.spec.mode != Mode::None => self.lock_out(&live, Some(uid)).await,
            // The first one has none before it; who runs agents by hand vouches for them.
            Some(_) | None => self.say(&live, &json!({"clusterUID": uid})).await.map(drop),
        }
    }

    /// The agents that there have been are none of the target's any more. `cluster` is that of those
    /// that come, if it is another one.
    async fn lock_out(&self, target: &Target, cluster: Option<&str>) -> Result<(), Verdict> {
        let key = &target.key;
        tracing::info!(target = %key, "agents from before are locked out");
        let revoked = token::revoke(&self.cluster(key), key).await;
        revoked.map_err(|error| unwritten("the bootstrap token is not revoked", &error))?;
        let mut status = json!({"credentialsNotBefore": since(target, Timestamp::now())});
        if let Some(cluster) = cluster {
            status["clusterUID"] = cluster.into();
        }
        if let Some(revision) = self.say(target, &status).await? {
            self.beats.retire(&key.cluster, &key.uid, revision);
        }
        Ok(())
    }

    /// Writes into a target's status. Returns the resourceVersion of that.
    async fn say(&self, target: &Target, status: &Value) -> Result<Option<u64>, Verdict> {
        let key = &target.key;
        let patch = json!({"metadata": {"uid": &*key.uid}, "status": status});
        let written = self.cluster(key).merge(&format!("{}/status", key.path()), &patch).await;
        let written = written.map_err(|error| unwritten("the status is not written", &error))?;
        let version = written["metadata"]["resourceVersion"].as_str();
        Ok(version.and_then(|version| version.parse().ok()))
    }

    /// Uninstalls agents of the target in these namespaces, as two would work against each other.
    /// Returns whether there were any.
    pub(super) async fn take_away(
        &self,
        target: &Target,
        physical: &Physical,
        namespaces: &[String],
    ) -> Result<bool, Verdict> {
        let failed = |error: CallError| physical::unreached("the physical cluster", &error);
        let (api, uid) = (&physical.api, &target.key.uid);
        let mut retired = false;
        for namespace in namespaces {
            if !retired && holds_agent(api, namespace, uid).await.map_err(failed)? {
                self.lock_out(target, None).await?;
                retired = true;
            }
            tracing::info!(target = %target.key, namespace, "an agent is taken away");
            uninstall(api, namespace, uid).await.map_err(failed)?;
        }
        Ok(retired)
    }

    /// Ends the agent that runs in this process for a target, if one does. Returns whether nothing that
    /// it has done passes for a sign of life any more.
    pub(super) async fn end_push(&self, target: &Target) -> bool {
        if !self.pushes.runs(&target.key) {
            return true;
        }
        self.pushes.stop(&target.key);
        let locked_out = self.lock_out(target, None).await;
        if let Err(verdict) = &locked_out {
            tracing::debug!(target = %target.key, message = verdict.message, "it is believed still");
        }
        locked_out.is_ok()
    }
}

/// Since when credentials are to count: what a person has said stays, if it is later.
fn since(target: &Target, now: Timestamp) -> String {
    let said = target.status.credentials_not_before.as_deref();
    let said: Option<Timestamp> = said.and_then(|said| said.parse().ok());
    format!("{:.0}", said.map_or(now, |said| said.max(now)))
}

fn unwritten(what: &str, error: &CallError) -> Verdict {
    Verdict::new(False, "Pending", format!("agents from before are still let in: {what}: {error}"))
}
