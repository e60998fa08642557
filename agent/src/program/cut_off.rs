//! What an agent goes on telling when its physical cluster no longer answers.
//!
//! It has lost its term then, as it can't renew it, and syncs nothing: another may lead. But nobody
//! else may be able to say why, and an agent that is silent looks lost. So it keeps up its sign of
//! life, and says `ClusterReachable=False`, until it sees the Lease again.

use std::time::Duration;

use client::{Ask, Link};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use tracing::debug;

use super::setup::Setup;
use crate::heartbeat;
use crate::metrics::Metrics;
use crate::sync::Shape;
use crate::target::{Read, TargetRef};

/// How often the condition is looked at.
const PERIOD: Duration = Duration::from_secs(5);

const CONDITION: &str = "ClusterReachable";

/// Tells it for as long as it is not dropped, if the physical cluster is silent.
pub(super) async fn run(setup: &Setup, metrics: &Metrics) {
    let (Shape::Hub, Some(uid)) = (setup.upstream.shape, &setup.uid) else {
        return std::future::pending().await;
    };
    let target = TargetRef::new(&setup.cluster, &setup.name, uid);
    let hub = &setup.upstream.link;
    let Some(why) = silent(&setup.downstream).await else {
        // Another leads, and will say what there is to say.
        return std::future::pending().await;
    };
    let holder = setup.candidate.as_ref().map_or("kcp-agent", |candidate| &candidate.identity);
    let telling = async {
        loop {
            tell(hub, &target, &why).await;
            tokio::time::sleep(PERIOD).await;
        }
    };
    tokio::join!(heartbeat::run(hub, &target, holder, &metrics.heartbeats), telling);
}

/// Why the physical cluster gives no answer, if it gives none.
async fn silent(link: &Link) -> Option<String> {
    link.ask(Ask::get("/version")).await.err().map(|error| error.to_string())
}

/// Sets the one condition, where it says something else.
async fn tell(hub: &Link, target: &TargetRef, why: &str) {
    let Ok(Read::Found(object)) = target.read(hub).await else { return };
    let Some(patch) = patch(&object, why, Timestamp::now()) else { return };
    let path = format!("{}/status?fieldManager={}", target.path(), contract::AGENT);
    let body = patch.to_string().into_bytes();
    let ask = Ask::with(Method::PATCH, &path, "application/json-patch+json", body);
    match hub.ask(ask).await {
        Ok(told) => debug!(status = told.status.as_u16(), "told that the cluster is silent"),
        Err(error) => debug!(%error, "the hub is silent, too"),
    }
}

/// The change of the status: of this condition alone, so that all others stay as they were told.
fn patch(object: &Value, why: &str, now: Timestamp) -> Option<Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let at = conditions.iter().position(|condition| condition["type"] == CONDITION)?;
    if conditions.get(at)?["status"] == "False" {
        return None;
    }
    let condition = json!({
        "type": CONDITION,
        "status": "False",
        "reason": "NoAnswer",
        "message": why,
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
    let path = format!("/status/conditions/{at}");
    Some(json!([
        {"op": "test", "path": format!("{path}/type"), "value": CONDITION},
        {"op": "replace", "path": path, "value": condition},
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_condition_is_changed_and_only_once() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let object = |status: &str| {
            json!({"status": {"conditions": [
                {"type": "Ready", "status": "True"}, {"type": CONDITION, "status": status},
            ]}})
        };
        let made = patch(&object("True"), "no route to host", now).unwrap();
        assert_eq!(made[0]["path"], "/status/conditions/1/type");
        assert_eq!(made[1]["value"]["message"], "no route to host");
        assert_eq!(patch(&object("False"), "x", now), None);
        assert_eq!(patch(&json!({"status": {"conditions": 1}}), "x", now), None);
        assert_eq!(patch(&json!({}), "x", now), None);
    }
}
