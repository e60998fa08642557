//! From a decision to the store and back.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use store::cache::{Object, Origin};
use store::{CommitError, Expect, Key, Op, Revision, Txn};

use super::guard::Guard;
use crate::clusters::record;
use crate::registry::{Error, PATIENCE, Reason, Registry};

/// How often a decision is made anew because what it was based on has changed meanwhile.
pub(super) const TRIES: usize = 10;

/// One object's write.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) key: Key,
    pub(super) expect: Expect,
    /// The new bytes, empty for a tombstone, `None` to remove the key.
    pub(super) value: Option<Bytes>,
}

/// Why a write was not made.
#[derive(Debug)]
pub(super) enum Lost {
    /// Somebody else has written the object: the decision is to be made anew.
    Race,
    /// Something that the decision rests on, the namespace or the logical cluster, has changed.
    GuardRace,
    /// It can't be made at all.
    Refused(Error),
}

impl Registry {
    /// Writes one object along with its guard.
    ///
    /// After a race the cache has caught up with what was in the way.
    pub(super) async fn write(&self, write: Write, guard: Guard) -> Result<Revision, Lost> {
        let Guard { compares, ops, urgency } = guard;
        let mut txn = Txn { compares, ops, urgency };
        let Write { key, expect, value } = write;
        txn.compares.push(store::Compare { key: key.clone(), expect });
        txn.ops.push(match value {
            Some(value) => Op::Put { key: key.clone(), value },
            None => Op::Delete { key: key.clone() },
        });
        // Who is let in follows from these: an acknowledged change of them is in force.
        let decides = !txn.ops.iter().all(|op| match op {
            Op::Put { key, .. } | Op::Delete { key } => !decides_access(key),
        });
        match self.store.commit(txn).await {
            Ok(revision) if decides => self.in_force(revision).await.map_err(Lost::Refused),
            Ok(revision) => Ok(revision),
            Err(CommitError::Conflict { key: other, .. }) => {
                self.consistent().await.map_err(Lost::Refused)?;
                Err(if other == key { Lost::Race } else { Lost::GuardRace })
            }
            Err(CommitError::TooLarge { size, limit }) => Err(Lost::Refused(Error::new(
                Reason::RequestEntityTooLarge,
                format!("Request entity too large: {size} bytes, limit is {limit}"),
            ))),
            Err(error) => Err(Lost::Refused(Error::internal(error))),
        }
    }

    /// Waits until the cache has a revision that this server wrote.
    async fn in_force(&self, revision: Revision) -> Result<Revision, Error> {
        let seen = self.cache.wait_for(revision, PATIENCE).await;
        seen.map(|()| revision).map_err(|reached| {
            let text = format!(
                "the change was written, but this server has seen changes up to {reached} only, \
                 not yet {revision}"
            );
            Error::new(Reason::Timeout, text)
        })
    }

    /// An object as it is after a write of its canonical bytes.
    pub(super) fn object(
        &self,
        key: Key,
        value: &[u8],
        revision: Revision,
    ) -> Result<Arc<Object>, Error> {
        let object = Object::new(key, value, revision, self.versions.base, Origin::Stored);
        Ok(Arc::new(object.map_err(Error::internal)?))
    }

    /// An object that was not written: it has the version of the one that it would replace, or
    /// none.
    pub(super) fn unwritten(
        &self,
        key: Key,
        value: &Bytes,
        current: Option<&Object>,
    ) -> Result<Arc<Object>, Error> {
        match current {
            Some(current) => self.object(key, value, current.revision),
            None => {
                let object = Object::new(key, value, Revision(0), 0, Origin::Stored)
                    .map_err(Error::internal)?;
                Ok(Arc::new(object.with_json(value.clone())))
            }
        }
    }
}

/// Whether an authorizer's decisions depend on a record.
fn decides_access(key: &Key) -> bool {
    let part = key.resource_part();
    record::is_key(key)
        || part == "workload.kcp.io/synctargets"
        || part.starts_with("rbac.authorization.k8s.io/")
}

/// The stored bytes of an object without their version, for comparing with new ones.
pub(super) fn parse(object: &Object) -> Result<Value, Error> {
    serde_json::from_slice(&object.json()).map_err(Error::internal)
}
