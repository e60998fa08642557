//! One turn of looking after a SyncTarget's physical cluster.

use std::sync::Arc;
use std::time::Duration;

use crds::ConditionStatus::{False, True};
use crds::Mode;
use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

use super::conditions::Verdict;
use super::index::{Target, TargetKey};
use super::install::{Due, Memory, install, installed, is_due, prepare, settings};
use super::physical::{self, Physical};
use super::uninstall::installed_in;
use super::{Controller, seen, token};
use crate::api::CallError;
use crate::queue::Done;

/// How often an installation is looked at while its agent has not come.
const IMPATIENT: Duration = Duration::from_secs(15);

/// When a target is looked at again whose own change the watch has not brought yet.
const SOON: Duration = Duration::from_secs(2);

impl Controller {
    /// Looks after a target. What became of it is remembered, and told by its status.
    pub(super) async fn look_after(self: Arc<Self>, key: &TargetKey) -> Done {
        let Some(target) = self.targets.get(key) else { return Done::Settled };
        if target.is_deleting() {
            return self.remove(&target).await;
        }
        match self.hold(&target).await {
            Ok(true) => {}
            // The watch brings what was written.
            Ok(false) => return Done::After(SOON),
            Err(error) => {
                tracing::debug!(target = %key, %error, "the finalizer is not set");
                return Done::Failed;
            }
        }
        if target.spec.mode != Mode::Push && !self.end_push(&target).await {
            return Done::Failed;
        }
        let alive = self.pulse(&target).is_alive();
        let mut memory = self.known(key).memory;
        let verdict = match target.spec.mode {
            Mode::Pull => self.pull(&target, &mut memory, alive).await,
            Mode::Push => self.push(&target, alive).await,
            Mode::None => self.leave(&target).await,
        };
        if verdict.status != True {
            tracing::info!(target = %key, reason = verdict.reason, message = verdict.message, "not installed");
        }
        self.metrics.installed(verdict.status == True);
        let (status, reason) = (verdict.status, verdict.reason);
        self.know(key, |known| {
            known.installed = Some(verdict);
            known.memory = memory;
        });
        match (status, reason) {
            (True, _) if alive => Done::About(self.options.check_interval),
            (True, _) => Done::About(IMPATIENT),
            // Nothing happens until somebody writes something; a Secret is read again.
            (_, "NoKubeconfig" | "NotNeeded") => Done::Settled,
            (_, "InvalidKubeconfig") if target.spec.kubeconfig.is_some() => Done::Settled,
            _ => Done::Failed,
        }
    }

    /// Sets the finalizer: from now on something may be in the physical cluster. Returns whether it
    /// was there before.
    async fn hold(&self, target: &Target) -> Result<bool, CallError> {
        let finalizers = &target.metadata.finalizers;
        if finalizers.iter().any(|name| name == contract::TARGET_FINALIZER) {
            return Ok(true);
        }
        let mut finalizers = finalizers.clone();
        finalizers.push(contract::TARGET_FINALIZER.to_owned());
        self.write(target, &json!({"finalizers": finalizers})).await.map(|()| false)
    }

    /// Changes metadata of a target, if it has not changed meanwhile.
    pub(super) async fn write(
        &self,
        target: &Target,
        metadata: &serde_json::Value,
    ) -> Result<(), CallError> {
        let mut metadata = metadata.clone();
        metadata["uid"] = (&*target.key.uid).into();
        metadata["resourceVersion"] = target.metadata.resource_version.as_str().into();
        let patch = json!({"metadata": metadata});
        self.cluster(&target.key).merge(&target.key.path(), &patch).await.map(drop)
    }

    /// Reaches the physical cluster, if it is the one that is meant.
    pub(super) async fn reach(&self, target: &Target) -> Result<Physical, Verdict> {
        let hub = self.cluster(&target.key);
        let kubeconfig = physical::kubeconfig(&hub, target).await?;
        let access = physical::read(&kubeconfig, Timestamp::now())?;
        let physical = physical::reach(access, self.options.reachable.clone()).await?;
        Ok(Physical { kubeconfig, ..physical })
    }

    /// That a cluster is the one that is meant. The first time it is noted which one that is, before
    /// anything is written there.
    async fn identify(&self, target: &Target, physical: &Physical) -> Result<(), Verdict> {
        match target.annotation(contract::CLUSTER_UID) {
            Some(known) if known == physical.uid => Ok(()),
            Some(known) => {
                let (key, new) = (contract::CLUSTER_UID, &physical.uid);
                let message = format!(
                    "the kubeconfig leads to another physical cluster than before: its kube-system \
                     has the UID {new}, and not {known}. If that is meant, confirm it: kubectl \
                     annotate --overwrite synctarget {} {key}={new}",
                    target.key.name
                );
                Err(Verdict::new(False, "ClusterIdentityChanged", message))
            }
            None => {
                let annotations = json!({contract::CLUSTER_UID: physical.uid});
                let written = self.write(target, &json!({"annotations": annotations})).await;
                written.map_err(|error| {
                    let message = format!("the cluster's UID cannot be noted: {error}");
                    Verdict::new(False, "Pending", message)
                })
            }
        }
    }

    async fn pull(&self, target: &Target, memory: &mut Memory, alive: bool) -> Verdict {
        match self.try_pull(target, memory, alive).await {
            Ok(verdict) | Err(verdict) => verdict,
        }
    }

    async fn try_pull(
        &self,
        target: &Target,
        memory: &mut Memory,
        alive: bool,
    ) -> Result<Verdict, Verdict> {
        let physical = self.reach(target).await?;
        self.identify(target, &physical).await?;
        self.settle(target, &physical).await?;
        memory.begin_at(&physical.uid);
        let plain = settings(&self.options.agents, target, None);
        let failed = |error: CallError| physical::unreached("the physical cluster", &error);
        let now = Instant::now();
        if let Due::Later(available) =
            is_due(&physical, &plain, memory, alive, now).await.map_err(failed)?
        {
            return Ok(installed(&plain, available));
        }
        let old = prepare(&physical, &plain, memory).await?;
        let pushed = seen::of_push(&physical.api, &target.key.uid).await.map_err(failed)?;
        let left = match &pushed {
            Some(left) => Some(left.clone()),
            None => seen::of_installed(&physical.api, &old).await.map_err(failed)?,
        };
        memory.seen = left.or(memory.seen.take());
        // The next agent finds no certificate of the one before.
        let retired = self.take_away(target, &physical, &old).await?;
        let token = self.introduce(target, alive && !retired).await?;
        let settings = settings(&self.options.agents, target, token);
        let verdict = install(&physical, &settings, memory, now).await;
        if pushed.is_some() && verdict.status == True {
            let uid = &target.key.uid;
            seen::forget_push(&physical.api, uid).await.map_err(failed)?;
        }
        Ok(verdict)
    }

    /// The operator goes to the cluster itself; an agent that is there from before is taken away, as
    /// two would work against each other.
    async fn push(&self, target: &Target, alive: bool) -> Verdict {
        match self.try_push(target, alive).await {
            Ok(()) => Verdict::new(True, "Installed", "the operator itself syncs this target"),
            Err(verdict) => {
                // What syncs goes on while a cluster is away, but not into another one, and not for
                // somebody whose kubeconfig is not good any more.
                if !matches!(verdict.reason, "Unreachable" | "Pending") {
                    self.end_push(target).await;
                }
                verdict
            }
        }
    }

    async fn try_push(&self, target: &Target, alive: bool) -> Result<(), Verdict> {
        let physical = self.reach(target).await?;
        self.identify(target, &physical).await?;
        self.settle(target, &physical).await?;
        let (api, uid) = (&physical.api, &target.key.uid);
        let failed = |error: CallError| physical::unreached("the physical cluster", &error);
        let installed = installed_in(api, uid).await.map_err(failed)?;
        if let Some(left) = seen::of_installed(api, &installed).await.map_err(failed)? {
            seen::to_push(api, uid, &left).await.map_err(failed)?;
        }
        let retired = self.take_away(target, &physical, &installed).await?;
        // One that begins anew has no certificate, whoever was alive.
        let same = self.pushes.runs_by(&target.key, &physical.kubeconfig);
        let token = self.introduce(target, alive && same && !retired).await?;
        let pushed = self.pushes.ensure(&target.key, &physical.kubeconfig, &physical.link, token);
        pushed.map_err(|error| Verdict::new(False, "ApplyFailed", error.to_string()))
    }

    /// A bootstrap token for an agent that has not come; of one that has it is taken away.
    async fn introduce(&self, target: &Target, alive: bool) -> Result<Option<String>, Verdict> {
        let hub = self.cluster(&target.key);
        let untold = |error: CallError| {
            Verdict::new(False, "ApplyFailed", format!("the hub takes no bootstrap token: {error}"))
        };
        if alive {
            token::revoke(&hub, &target.key).await.map_err(untold)?;
            return Ok(None);
        }
        token::ensure(&hub, &target.key, Timestamp::now()).await.map(Some).map_err(untold)
    }

    /// Nothing is installed; an agent from before is taken away.
    async fn leave(&self, target: &Target) -> Verdict {
        let unneeded = || {
            let message = "mode None: nothing is installed, an agent is run by hand";
            Verdict::new(False, "NotNeeded", message)
        };
        // Where nothing was ever installed, there is nothing to go to.
        if target.annotation(contract::CLUSTER_UID).is_none() {
            return unneeded();
        }
        let taken = async {
            let physical = self.reach(target).await?;
            self.identify(target, &physical).await?;
            self.settle(target, &physical).await?;
            self.take_away_all(target, &physical).await
        };
        match taken.await {
            Ok(_) => unneeded(),
            Err(verdict) if verdict.reason == "NoKubeconfig" => unneeded(),
            Err(verdict) => verdict,
        }
    }

    /// Uninstalls all agents of the target. Returns whether there were any.
    async fn take_away_all(&self, target: &Target, physical: &Physical) -> Result<bool, Verdict> {
        let failed = |error: CallError| physical::unreached("the physical cluster", &error);
        let found = installed_in(&physical.api, &target.key.uid).await.map_err(failed)?;
        self.take_away(target, physical, &found).await
    }
}
