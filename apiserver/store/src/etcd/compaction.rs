//! Forgetting old revisions, once for all replicas.
//!
//! Each replica wants to compact to where etcd stood one interval ago. Which one does is decided by
//! a key: it is written on the condition that nobody has since the replica last looked. The others
//! then learn of it, as all do of the revision in it, through their watch.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tracing::{debug, info, warn};

use super::Inner;
use super::error::Error;
use super::proto::{
    Compare, CompareOperand, CompareResult, CompareTarget, PutRequest, RangeRequest, Request,
    RequestOp, Response, TxnRequest,
};
use crate::Revision;

/// What a replica saw when it last looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Look {
    /// How often the key had been written.
    version: i64,
    /// Where etcd stood.
    revision: i64,
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
        Err(Error::NoSpace) if last.revision > 0 => {
            inner.client.compact(last.revision).await.or_else(done_already)?;
            return Err(Error::NoSpace);
        }
        answer => answer?,
    };
    let revision = inner.client.check(answer.header)?;
    if !answer.succeeded {
        let found = answer.responses.into_iter().find_map(|op| match op.response {
            Some(Response::Range(range)) => range.kvs.into_iter().next(),
            _ => None,
        });
        debug!(revision, "another replica compacts");
        return Ok(Look { version: found.map_or(0, |kv| kv.version), revision });
    }
    if last.revision > 0 {
        inner.client.compact(last.revision).await.or_else(done_already)?;
        inner.position.forgotten(Revision(last.revision.unsigned_abs()));
        info!(revision = last.revision, "history is compacted");
    }
    Ok(Look { version: last.version + 1, revision })
}

fn claim(inner: &Inner, last: Look) -> TxnRequest {
    let key = inner.layout.compacted();
    let unchanged = Compare {
        result: CompareResult::Equal.into(),
        target: CompareTarget::Version.into(),
        key: key.clone(),
        operand: Some(CompareOperand::Version(last.version)),
        ..Compare::default()
    };
    let read = RangeRequest { key: key.clone(), ..RangeRequest::default() };
    let put = PutRequest { key, value: last.revision.to_string().into() };
    TxnRequest {
        compare: vec![unchanged],
        success: vec![RequestOp { request: Some(Request::Put(put)) }],
        failure: vec![RequestOp { request: Some(Request::Range(read)) }],
    }
}

/// Compacts to `revision`, and tells the other replicas.
pub(super) async fn compact(inner: &Inner, revision: Revision) -> Result<(), Error> {
    let wire = i64::try_from(revision.0).unwrap_or(i64::MAX);
    inner.client.compact(wire).await.or_else(done_already)?;
    inner.position.forgotten(revision);
    let put = PutRequest { key: inner.layout.compacted(), value: wire.to_string().into() };
    let success = vec![RequestOp { request: Some(Request::Put(put)) }];
    let request = TxnRequest { success, ..TxnRequest::default() };
    inner.client.txn(&request).await.map(|_| ())
}

/// Somebody else may have compacted further.
fn done_already(error: Error) -> Result<(), Error> {
    if error.is_compacted() { Ok(()) } else { Err(error) }
}
