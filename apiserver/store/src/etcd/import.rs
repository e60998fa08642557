//! Reading an export into etcd.
//!
//! # Flow
//! A key that only this import writes is put where nothing of a store is; the records follow, in
//! transactions that compare it; at the end the same transaction removes it and puts the identity.
//! So a store is there whole or not at all, and no server uses one that is half there.

use std::io::Read;

use bytes::Bytes;
use runtime::Tasks;
use tracing::warn;
use uuid::Uuid;

use super::client::Client;
use super::identity::{encode, nothing};
use super::layout::{Layout, Span};
use super::proto::{Compare, CompareOperand, CompareResult, RequestOp, TxnRequest};
use super::{Error, EtcdOptions, OpenError, answered_at};
use crate::transfer::stream::Stream;
use crate::transfer::{StreamError, Summary, now};
use crate::{MAX_COMMIT_BYTES, Record, Revision};

/// Records of one transaction, within etcd's default of 128 operations.
const RECORDS: usize = 100;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// There is something under the prefix already.
    #[error("etcd holds something under the prefix already")]
    Exists,
    /// Somebody has removed what the import had begun with.
    #[error("somebody else has written under the prefix")]
    Disturbed,
    /// The stream is not a whole export.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A record is larger than etcd takes.
    #[error("{key} has {size} bytes, more than etcd takes")]
    TooLarge {
        /// Its key.
        key: String,
        /// Its size.
        size: usize,
    },
    /// etcd cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// etcd did not take a part.
    #[error("write to etcd")]
    Write(#[source] crate::Cause),
}

/// The import that is under way.
struct Import<'a> {
    client: &'a Client,
    layout: Layout,
    token: Bytes,
}

/// Reads a stream into the prefix of an etcd where nothing is yet, whole or not at all.
///
/// The store keeps the hub's UID. Revisions are etcd's own, so all records are new ones; the
/// resourceVersions begin above anything that the source can have served.
///
/// # Errors
/// As [`ImportError`] says; what was written until then is removed, if etcd can be reached.
pub async fn import(options: &EtcdOptions, input: impl Read) -> Result<Summary, ImportError> {
    let mut stream = Stream::open(input)?;
    let tasks = Tasks::new();
    let (client, layout) = options.connect(&tasks).await?;
    let token = Uuid::new_v4().to_string().into();
    let import = Import { client: &client, layout, token };
    let done = match import.begin().await {
        Ok(()) => {
            let filled = import.fill(&mut stream).await;
            if filled.is_err() {
                import.undo().await;
            }
            filled
        }
        Err(error) => Err(error),
    };
    tasks.cancel();
    done.map(|()| stream.summary())
}

// === impl Import ===

impl Import<'_> {
    async fn begin(&self) -> Result<(), ImportError> {
        let request = TxnRequest {
            compare: nothing(&self.layout),
            success: vec![RequestOp::put(self.layout.import(), self.token.clone())],
            failure: Vec::new(),
        };
        let answer = self.client.txn(&request).await.map_err(write)?;
        if answer.succeeded { Ok(()) } else { Err(ImportError::Exists) }
    }

    async fn fill(&self, stream: &mut Stream<impl Read>) -> Result<(), ImportError> {
        let mut ops = Vec::with_capacity(RECORDS);
        let mut bytes = 0;
        let mut reached = Revision::default();
        while let Some(Record { key, value, .. }) = stream.next_record()? {
            let size = key.as_bytes().len() + value.len();
            if size > MAX_COMMIT_BYTES {
                return Err(ImportError::TooLarge { key: key.to_string(), size });
            }
            if ops.len() == RECORDS || bytes + size > MAX_COMMIT_BYTES {
                reached = self.write(std::mem::take(&mut ops)).await?;
                bytes = 0;
            }
            bytes += size;
            // A tombstone is created anew, as all records are.
            ops.push(if value.is_empty() {
                RequestOp::put(self.layout.tombstone(&key), Bytes::new())
            } else {
                RequestOp::put(self.layout.object(&key), value)
            });
        }
        if !ops.is_empty() {
            reached = self.write(ops).await?;
        }
        // Nobody is to see how the store came about.
        let identity = encode(&stream.identity(now()))?;
        self.write(vec![
            RequestOp::delete(Span::one(self.layout.import())),
            RequestOp::put(self.layout.compacted(), reached.to_string().into()),
            RequestOp::put(self.layout.identity(), identity),
        ])
        .await
        .map(|_| ())
    }

    /// Writes, as long as the store is this import's, and gives the revision.
    async fn write(&self, ops: Vec<RequestOp>) -> Result<Revision, ImportError> {
        let token = CompareOperand::Value(self.token.clone());
        let ours = Compare::new(Span::one(self.layout.import()), CompareResult::Equal, token);
        let request = TxnRequest { compare: vec![ours], success: ops, failure: Vec::new() };
        let answer = self.client.txn(&request).await.map_err(write)?;
        if !answer.succeeded {
            return Err(ImportError::Disturbed);
        }
        answered_at(answer.header).map_err(write)
    }

    async fn undo(&self) {
        let begun = [self.layout.registry(), Span::one(self.layout.import())];
        if let Err(error) = self.write(begun.map(RequestOp::delete).into()).await {
            warn!(%error, "what was imported cannot be removed");
        }
    }
}

fn write(error: Error) -> ImportError {
    ImportError::Write(Box::new(error))
}
