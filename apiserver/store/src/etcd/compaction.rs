//! Forgetting old revisions, once for all replicas.
//!
//! Each replica wants to compact to where etcd stood one interval ago. Which one does is decided by
//! a key: it is written on the condition that nobody has since the replica last looked. The others
//! then learn of it, as all do of the revision in it, through their watch.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tracing::{debug, info, warn};

use super::error::Error;
use super::layout::Span;
use super::proto::{
    Compare, CompareOperand, CompareResult, RangeRequest, RequestOp, Response, TxnRequest,
};
use super::{Inner, answered_at};
use crate::Revision;

/// What a replica saw when it last looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Look {
    /// How often the key had been written.
    version: i64,
    /// Where etcd stood.
    revision: Revision,
}

/// Compacts every `every`, until the store is closed.
pub(super) async fn keep_compacting(inner: Arc<Inner>, every: Duration) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut look = Look::default();
    let cancelled = inner.tasks.cancellation().clone();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = cancelled.cancelled() => return,
        }
        match step(&inner, look).await {
            Ok(next) => look = next,
            Err(error) => warn!(%error, "history is not compacted"),
        }
    }
}

/// Compacts to where etcd stood at the last look, if no other replica has compacted since.
async fn step(inner: &Inner, last: Look) -> Result<Look, Error> {
    let answer = inner.client.txn(&claim(inner, last)).await;
    let answer = match answer {
        // Only what is compacted gives space back, and it has room for no key.
        Err(Error::NoSpace) if last.revision > Revision(0) => {
            forget(inner, last.revision).await?;
            return Err(Error::NoSpace);
        }
        answer => answer?,
    };
    let revision = answered_at(answer.header)?;
    if !answer.succeeded {
        let found = answer.responses.into_iter().find_map(|op| match op.response {
            Some(Response::Range(range)) => range.kvs.into_iter().next(),
            _ => None,
        });
        debug!(%revision, "another replica compacts");
        return Ok(Look { version: found.map_or(0, |kv| kv.version), revision });
    }
    if last.revision > Revision(0) {
        forget(inner, last.revision).await?;
        info!(revision = %last.revision, "history is compacted");
    }
    Ok(Look { version: last.version + 1, revision })
}

fn claim(inner: &Inner, last: Look) -> TxnRequest {
    let key = inner.layout.compacted();
    let version = CompareOperand::Version(last.version);
    let unchanged = Compare::new(Span::one(key.clone()), CompareResult::Equal, version);
    let read = RangeRequest { key, ..RangeRequest::default() };
    TxnRequest {
        compare: vec![unchanged],
        success: vec![note(inner, last.revision)],
        failure: vec![RequestOp::range(read)],
    }
}

/// Tells the replicas, those that start later included, what was compacted to.
fn note(inner: &Inner, revision: Revision) -> RequestOp {
    RequestOp::put(inner.layout.compacted(), revision.to_string().into())
}

/// Compacts to `revision`, and tells the other replicas.
pub(super) async fn compact(inner: &Inner, revision: Revision) -> Result<(), Error> {
    forget(inner, revision).await?;
    let success = vec![note(inner, revision)];
    let request = TxnRequest { success, ..TxnRequest::default() };
    inner.client.txn(&request).await.map(|_| ())
}

/// Compacts to `revision`, unless somebody else has compacted further.
async fn forget(inner: &Inner, revision: Revision) -> Result<(), Error> {
    match inner.client.compact(revision).await {
        Err(error) if !error.is_compacted() => return Err(error),
        _ => {}
    }
    inner.position.forgotten(revision);
    Ok(())
}
