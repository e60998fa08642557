//! What is looked at again and again: the SyncTarget in the hub, and whether the physical cluster
//! answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use client::{Ask, Link};
use engine::Identity;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;
use tracing::debug;

use super::side::{Shape, Upstream};
use crate::target::{Read, TargetRef};

/// How often the SyncTarget is read: how soon a change of its spec, an approval or a hub that was
/// put in another's place is noticed, unless a connection breaks before.
const PERIOD: Duration = Duration::from_secs(10);

/// How soon it is read again when that failed.
const AGAIN: Duration = Duration::from_secs(1);

/// The shortest time between two reads: connections may come one after the other.
const APART: Duration = Duration::from_millis(250);

/// How often the physical cluster is asked for its version.
const PROBE: Duration = Duration::from_secs(15);

/// How often it is asked while it does not answer.
const PROBE_AGAIN: Duration = Duration::from_secs(3);

/// Who is upstream, as just read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Followed {
    /// The hub, and the SyncTarget; null for a plain API server. Last, how many connections had been
    /// opened before it was read: of who answers over later ones it says nothing.
    Known(Identity, Arc<Value>, u64),
    /// Nobody can tell.
    Unknown,
}

/// Whether the physical cluster answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// `None` before the first answer.
    pub(super) answers: Option<bool>,
    /// Why not.
    pub(super) why: String,
    /// Its version, as `v1.36.2`.
    pub(super) version: Option<String>,
    /// Major and minor, if they can be read.
    pub(super) numbers: Option<(u32, u32)>,
}

/// Has the SyncTarget read sooner.
#[derive(Debug, Default)]
pub(super) struct Poke {
    now: Notify,
    often: AtomicBool,
}

// === impl Poke ===

impl Poke {
    /// It is read at once.
    pub(super) fn now(&self) {
        self.now.notify_one();
    }

    /// Whether it is read every second.
    pub(super) fn often(&self, often: bool) {
        if !self.often.swap(often, Ordering::Relaxed) && often {
            self.now();
        }
    }
}

/// Reads who is upstream for ever, at once when `poke` says so.
pub(super) async fn upstream(
    upstream: &Upstream,
    target: &TargetRef,
    poke: &Poke,
    told: &mpsc::Sender<Followed>,
) {
    let opened = upstream.link.opened();
    loop {
        let before = *opened.borrow();
        let read = match upstream.shape {
            Shape::Hub => of_hub(&upstream.link, target).await,
            Shape::Plain => of_plain(&upstream.link, target).await,
        };
        let read_at = Instant::now();
        let known = read.is_some();
        let read = read.map(|(identity, object)| Followed::Known(identity, object, before));
        if told.send(read.unwrap_or(Followed::Unknown)).await.is_err() {
            return;
        }
        let pause = if known && !poke.often.load(Ordering::Relaxed) { PERIOD } else { AGAIN };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = poke.now.notified() => {
                if known {
                    tokio::time::sleep_until(read_at + APART).await;
                }
            }
        }
    }
}

async fn of_hub(hub: &Link, target: &TargetRef) -> Option<(Identity, Arc<Value>)> {
    let object = match target.read_any(hub).await {
        Ok(Read::Found(object)) => object,
        Ok(other) => {
            debug!(read = ?other, "the SyncTarget is not read");
            return None;
        }
        Err(error) => {
            debug!(%error, "the SyncTarget is not read");
            return None;
        }
    };
    let annotation = |name: &str| {
        let annotations = object.pointer("/metadata/annotations")?;
        annotations.get(name)?.as_str().map(Arc::<str>::from)
    };
    let uid: Arc<str> = object.pointer("/metadata/uid")?.as_str()?.into();
    let told = annotation(contract::HUB_UID).zip(annotation(contract::LOGICAL_CLUSTER_UID));
    let (hub_uid, cluster_uid) = match told {
        Some(told) => told,
        // Somebody who syncs by hand and isn't told: this namespace is as old as the logical
        // cluster, which is in no other hub.
        None => {
            let uid = kube_system(hub, &target.base()).await?;
            (uid.clone(), uid)
        }
    };
    let incarnation = annotation(contract::HUB_INCARNATION).and_then(|text| text.parse().ok());
    let identity = Identity {
        hub: hub_uid,
        logical_cluster: cluster_uid,
        target: uid,
        incarnation: incarnation.unwrap_or_default(),
    };
    Some((identity, Arc::new(object)))
}

/// Of a plain API server, the namespace `kube-system` is as old as the cluster.
async fn of_plain(link: &Link, target: &TargetRef) -> Option<(Identity, Arc<Value>)> {
    let uid = kube_system(link, "").await?;
    let identity = Identity {
        hub: uid.clone(),
        logical_cluster: uid,
        target: target.uid.clone(),
        incarnation: 0,
    };
    Some((identity, Arc::new(Value::Null)))
}

/// The UID of the namespace `kube-system`.
async fn kube_system(link: &Link, base: &str) -> Option<Arc<str>> {
    let path = format!("{base}/api/v1/namespaces/kube-system");
    let told = link.ask(Ask::get(&path)).await.ok()?;
    let namespace: Value = serde_json::from_slice(&told.body).ok()?;
    Some(namespace.pointer("/metadata/uid")?.as_str()?.into())
}

/// Asks the physical cluster for its version for ever.
pub(super) async fn downstream(link: &Link, told: &watch::Sender<Reach>) {
    loop {
        let reach = probe(link).await;
        let pause = if reach.answers == Some(true) { PROBE } else { PROBE_AGAIN };
        told.send_if_modified(|present| {
            let reach = Reach {
                // What was known of it stays true while it does not answer.
                version: reach.version.clone().or_else(|| present.version.clone()),
                numbers: reach.numbers.or(present.numbers),
                ..reach
            };
            let changed = *present != reach;
            *present = reach;
            changed
        });
        tokio::time::sleep(pause).await;
    }
}

async fn probe(link: &Link) -> Reach {
    let down = |why: String| Reach { answers: Some(false), why, ..Reach::default() };
    let told = match link.ask(Ask::get("/version")).await {
        Ok(told) => told,
        Err(error) => return down(error.to_string()),
    };
    if !told.status.is_success() {
        return down(format!("it answers {} to /version", told.status.as_u16()));
    }
    let version: Value = serde_json::from_slice(&told.body).unwrap_or_default();
    let text = |field: &str| version.get(field).and_then(Value::as_str);
    let number = |field: &str| {
        let text = text(field)?;
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        text.get(..digits)?.parse().ok()
    };
    Reach {
        answers: Some(true),
        why: String::new(),
        version: text("gitVersion").map(|text| text.chars().take(128).collect()),
        numbers: number("major").zip(number("minor")),
    }
}
