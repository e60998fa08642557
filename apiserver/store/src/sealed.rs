//! Encryption at rest: a store over any other, whose values are ciphertext there and plain here.
//!
//! # Form
//! `k8s:enc:aesgcm:v1:<name of the key>:`, a random nonce of 12 bytes, the ciphertext, and a tag of
//! 16 bytes (AES-GCM, NIST SP 800-38D). The store's key of the record is authenticated with it.
//!
//! # Guarantees
//! - A value is opened only at the key that it was written to: one that was moved to another
//!   object, namespace or logical cluster is as unreadable as one that was changed.
//! - What can't be opened is handed on as it is, which is no object: the cache shows it to nobody
//!   and lets nothing overwrite it.
//! - The empty value, which hides a virtual object, stays empty.
//!
//! # Assumptions
//! - Nonces are random, so a key should be replaced before it has written 2³² values.

mod config;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use aws_lc_rs::aead::{Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;

use crate::{
    Change, CommitError, Figures, Identity, Key, Op, Page, Range, ReadError, Record, Revision,
    Store, Txn, WatchMessage,
};

pub use config::{ConfigError, read_config};

/// What every ciphertext begins with.
const SEALED: &[u8] = b"k8s:enc:";

/// Stands for a plain value where only ciphertext is believed. It is no object.
const NOT_SEALED: &[u8] = b"k8s:enc:identity:not-allowed";

/// A store that seals what it writes to another one.
#[derive(Debug)]
pub struct SealedStore {
    inner: Arc<dyn Store>,
    keys: Arc<Keyring>,
}

/// Which resources are sealed, and by what.
#[derive(Debug)]
pub struct Keyring {
    /// The first that names a resource counts.
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    resources: Vec<Pattern>,
    /// The first writes; all read.
    providers: Vec<Provider>,
}

/// Resources, by their parts of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    /// `None` for every group.
    group: Option<String>,
    /// `None` for every resource.
    resource: Option<String>,
}

#[derive(Debug)]
enum Provider {
    /// Plain values.
    Identity,
    /// A key, with what stands before what it has sealed.
    AesGcm(SealingKey),
}

struct SealingKey {
    prefix: Bytes,
    key: RandomizedNonceKey,
}

// === impl SealedStore ===

impl SealedStore {
    /// Seals what is written to `inner`.
    pub fn new(inner: Arc<dyn Store>, keys: Keyring) -> Arc<Self> {
        Arc::new(Self { inner, keys: Arc::new(keys) })
    }
}

#[async_trait]
impl Store for SealedStore {
    async fn commit(&self, mut txn: Txn) -> Result<Revision, CommitError> {
        for op in &mut txn.ops {
            if let Op::Put { key, value } = op {
                *value = self.keys.seal(key, value)?;
            }
        }
        self.inner.commit(txn).await.map_err(|error| match error {
            CommitError::Conflict { key, current } => {
                let current = current.map(|record| Box::new(self.keys.opened(*record)));
                CommitError::Conflict { key, current }
            }
            error => error,
        })
    }

    async fn get(&self, key: &Key) -> Result<Option<Record>, ReadError> {
        let found = self.inner.get(key).await?;
        Ok(found.map(|record| self.keys.opened(record)))
    }

    async fn range(&self, range: Range, at: Option<Revision>) -> Result<Page, ReadError> {
        let mut page = self.inner.range(range, at).await?;
        for record in &mut page.records {
            record.value = self.keys.open(&record.key, &record.value);
        }
        Ok(page)
    }

    async fn watch(
        &self,
        after: Revision,
    ) -> Result<BoxStream<'static, Result<WatchMessage, ReadError>>, ReadError> {
        let keys = self.keys.clone();
        let messages = self.inner.watch(after).await?;
        let opened = messages.map(move |message| {
            message.map(|message| match message {
                WatchMessage::Changes(changes) => {
                    let changes = changes.into_iter().map(|change| keys.opened_change(change));
                    WatchMessage::Changes(changes.collect())
                }
                WatchMessage::Progress(revision) => WatchMessage::Progress(revision),
            })
        });
        Ok(opened.boxed())
    }

    async fn revision(&self) -> Result<Revision, ReadError> {
        self.inner.revision().await
    }

    async fn oldest(&self) -> Result<Revision, ReadError> {
        self.inner.oldest().await
    }

    async fn compact(&self, before: Revision) -> Result<(), CommitError> {
        self.inner.compact(before).await
    }

    fn forget_recent(&self, until: Revision) {
        self.inner.forget_recent(until);
    }

    fn identity(&self) -> &Identity {
        self.inner.identity()
    }

    fn figures(&self) -> Figures {
        self.inner.figures()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

// === impl Keyring ===

impl Keyring {
    fn providers(&self, key: &Key) -> Option<&[Provider]> {
        let (group, resource) = key.resource_part().split_once('/')?;
        let names = |rule: &&Rule| rule.resources.iter().any(|own| own.names(group, resource));
        self.rules.iter().find(names).map(|rule| rule.providers.as_slice())
    }

    /// The value as it is stored.
    fn seal(&self, key: &Key, value: &Bytes) -> Result<Bytes, CommitError> {
        if value.is_empty() {
            return Ok(value.clone());
        }
        match self.providers(key).and_then(<[_]>::first) {
            None | Some(Provider::Identity) => Ok(value.clone()),
            Some(Provider::AesGcm(with)) => with.seal(key, value),
        }
    }

    /// The value as it was written; as it is stored where it can't be opened.
    fn open(&self, key: &Key, value: &Bytes) -> Bytes {
        let Some(providers) = self.providers(key).filter(|_| !value.is_empty()) else {
            return value.clone();
        };
        if !value.starts_with(SEALED) {
            let plain = providers.iter().any(|one| matches!(one, Provider::Identity));
            return if plain { value.clone() } else { Bytes::from_static(NOT_SEALED) };
        }
        let opened = providers.iter().find_map(|one| match one {
            Provider::Identity => None,
            Provider::AesGcm(with) => with.open(key, value),
        });
        opened.unwrap_or_else(|| {
            tracing::debug!(%key, "a value can't be decrypted");
            value.clone()
        })
    }

    fn opened(&self, record: Record) -> Record {
        let value = self.open(&record.key, &record.value);
        Record { value, ..record }
    }

    fn opened_change(&self, change: Change) -> Change {
        Change {
            value: change.value.map(|value| self.open(&change.key, &value)),
            previous: change.previous.map(|record| self.opened(record)),
            ..change
        }
    }
}

// === impl Pattern ===

impl Pattern {
    fn names(&self, group: &str, resource: &str) -> bool {
        let is = |own: &Option<String>, other: &str| own.as_ref().is_none_or(|own| own == other);
        is(&self.group, group) && is(&self.resource, resource)
    }
}

// === impl SealingKey ===

impl SealingKey {
    fn seal(&self, key: &Key, value: &[u8]) -> Result<Bytes, CommitError> {
        let mut text = value.to_vec();
        let aad = Aad::from(key.as_bytes());
        let nonce = self.key.seal_in_place_append_tag(aad, &mut text);
        let nonce = nonce.map_err(|error| CommitError::Unavailable(Box::new(error)))?;
        Ok([&self.prefix, nonce.as_ref().as_slice(), &text].concat().into())
    }

    fn open(&self, key: &Key, value: &[u8]) -> Option<Bytes> {
        let rest = value.strip_prefix(self.prefix.as_ref())?;
        let (nonce, text) = rest.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = text.to_vec();
        let length =
            self.key.open_in_place(nonce, Aad::from(key.as_bytes()), &mut text).ok()?.len();
        text.truncate(length);
        Some(text.into())
    }
}

/// Never shows the key.
impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealingKey").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}
