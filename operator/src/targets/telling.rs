//! Writing the status of a SyncTarget, and Events about what has changed in it.

use crds::{Condition, ConditionStatus};
use jiff::Timestamp;
use serde_json::json;

use super::Controller;
use super::conditions::{Facts, INLINE, INSTALLED, READY, conditions};
use super::heartbeat::Pulse;
use super::index::{Target, TargetKey};
use crate::api::CallError;
use crate::events::Weight;
use crate::queue::Done;

impl Controller {
    /// Writes what is to be said of a target, if that isn't what its status says.
    pub(super) async fn tell(&self, key: &TargetKey) -> Done {
        let Some(target) = self.targets.get(key) else { return Done::Settled };
        let known = self.known(key);
        let pulse = self.pulse(&target);
        let facts =
            Facts { installed: known.installed.clone(), pulse, draining: known.draining.clone() };
        let now = format!("{:.0}", Timestamp::now());
        let wanted = conditions(&target, &facts, &now);
        let again = match pulse {
            Pulse::Alive(left) | Pulse::Unsure(left) => Done::After(left),
            Pulse::Never | Pulse::Silent => Done::Settled,
        };
        if is_said(&target, &wanted) {
            return again;
        }
        if pulse == Pulse::Silent {
            // Perhaps what was installed is no more.
            self.installing.add(key.clone());
        }
        let status = json!({
            "apiVersion": format!("{}/v1alpha1", contract::WORKLOAD_GROUP),
            "kind": "SyncTarget",
            // Another one of the name is not meant.
            "metadata": {"name": &*key.name, "uid": &*key.uid},
            "status": {"conditions": wanted},
        });
        match self.cluster(key).apply(&format!("{}/status", key.path()), &status).await {
            Ok(_) => {
                self.metrics.statuses.inc();
                self.announce(&target, &wanted).await;
                again
            }
            // It is gone, or another one has its name: the watch will say so.
            Err(CallError::Refused { code: 404 | 409, .. }) => Done::Settled,
            Err(error) => {
                tracing::warn!(target = %key, %error, "a status is not written");
                Done::Failed
            }
        }
    }

    /// Events about what is another thing than before.
    async fn announce(&self, target: &Target, wanted: &[Condition]) {
        for condition in wanted {
            let topic = match condition.type_.as_str() {
                INSTALLED => INSTALLED,
                READY => READY,
                _ => continue,
            };
            let before = said(target, &condition.type_);
            let same = before.is_some_and(|before| {
                before.status == condition.status && before.reason == condition.reason
            });
            // While nothing is known there is nothing to tell.
            if same || condition.reason == "Pending" {
                continue;
            }
            let weight = match condition.status {
                ConditionStatus::True => Weight::Normal,
                _ if condition.reason == "Draining" || condition.reason == "NotNeeded" => {
                    Weight::Normal
                }
                _ => Weight::Warning,
            };
            let (regarding, hub) = (Self::regarding(&target.key), self.cluster(&target.key));
            let told = (weight, condition.reason.as_str(), condition.message.as_str());
            self.events.tell(&hub, &regarding, topic, told).await;
        }
    }
}

fn said<'t>(target: &'t Target, kind: &str) -> Option<&'t Condition> {
    target.status.conditions.iter().find(|condition| condition.type_ == kind)
}

/// Whether a status says all of it, and nothing else that is ours.
fn is_said(target: &Target, wanted: &[Condition]) -> bool {
    let all = wanted.iter().all(|condition| said(target, &condition.type_) == Some(condition));
    let inline = wanted.iter().any(|condition| condition.type_ == INLINE);
    all && (inline || said(target, INLINE).is_none())
}
