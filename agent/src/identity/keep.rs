//! Where an identity is kept.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::{Ask, Error, Link};
use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::Pair;

/// Entries of the Secret: the first two as TLS Secrets have them.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
/// The key that the next certificate was asked for with.
const NEXT_KEY: &str = "next.key";

/// Where an identity is kept.
#[derive(Debug)]
pub enum Keep {
    /// In a Secret of the physical cluster, which is there already.
    Secret {
        /// The physical cluster.
        link: Link,
        /// The Secret's namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// In this process alone, as the operator does for targets that it syncs itself.
    Memory(Mutex<Kept>),
}

/// What is kept.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// Certificate and key.
    pub current: Option<Pair>,
    /// The key that the next certificate was asked for with, as PEM.
    pub(super) next: Option<Vec<u8>>,
    /// Of what was read, so that nobody's change in between is overwritten.
    resource_version: String,
}

/// Why it can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The physical cluster gives no answer.
    #[error("reach the physical cluster")]
    Cluster(#[source] Error),
    /// It gives another one than hoped for.
    #[error("the physical cluster answers {code} for the Secret {name}")]
    Answer {
        /// The status code.
        code: u16,
        /// The Secret.
        name: String,
    },
    /// What came is no Secret.
    #[error("the Secret {0} can't be read")]
    Unreadable(String),
}

// === impl Keep ===

impl Keep {
    /// Nothing yet, in this process.
    pub fn memory() -> Self {
        Self::Memory(Mutex::default())
    }

    /// What is kept. A certificate that can't be read is as good as none.
    ///
    /// # Errors
    /// When the Secret can't be read.
    pub async fn load(&self) -> Result<Kept, KeepError> {
        match self {
            Self::Memory(kept) => Ok(kept.lock().clone()),
            Self::Secret { link, name, .. } => {
                let path = self.path();
                let told = link.ask(Ask::get(&path)).await.map_err(KeepError::Cluster)?;
                let code = told.status.as_u16();
                if code != 200 {
                    return Err(KeepError::Answer { code, name: name.clone() });
                }
                read(&told.body).ok_or_else(|| KeepError::Unreadable(name.clone()))
            }
        }
    }

    /// Keeps something else; gives it back with what the next write needs.
    ///
    /// # Errors
    /// When the Secret can't be written, or was written by another since it was read.
    pub async fn store(&self, kept: Kept) -> Result<Kept, KeepError> {
        match self {
            Self::Memory(held) => {
                *held.lock() = kept.clone();
                Ok(kept)
            }
            Self::Secret { link, name, .. } => {
                let body = write(&kept).to_string().into_bytes();
                let path = format!("{}?fieldManager={}", self.path(), contract::AGENT);
                let merge = "application/merge-patch+json";
                let ask = Ask::with(Method::PATCH, &path, merge, body);
                let told = link.ask(ask).await.map_err(KeepError::Cluster)?;
                let code = told.status.as_u16();
                if code != 200 {
                    return Err(KeepError::Answer { code, name: name.clone() });
                }
                read(&told.body).ok_or_else(|| KeepError::Unreadable(name.clone()))
            }
        }
    }

    fn path(&self) -> String {
        match self {
            Self::Memory(_) => String::new(),
            Self::Secret { namespace, name, .. } => {
                format!("/api/v1/namespaces/{namespace}/secrets/{name}")
            }
        }
    }
}

/// What a Secret holds.
fn read(body: &[u8]) -> Option<Kept> {
    let secret: Value = serde_json::from_slice(body).ok()?;
    let entry = |name: &str| {
        let text = secret.get("data")?.get(name)?.as_str()?;
        STANDARD.decode(text).ok().filter(|bytes| !bytes.is_empty())
    };
    let pair = match (entry(CERTIFICATE), entry(KEY)) {
        (Some(chain), Some(key)) => Pair::new(&chain, &key).ok(),
        _ => None,
    };
    let resource_version = secret.pointer("/metadata/resourceVersion")?.as_str()?.to_owned();
    Some(Kept { current: pair, next: entry(NEXT_KEY), resource_version })
}

/// The patch that makes a Secret hold it. An entry that is absent is removed: of a Secret of type
/// `kubernetes.io/tls` the first two are always there, and empty at first.
fn write(kept: &Kept) -> Value {
    let mut data = json!({NEXT_KEY: kept.next.as_ref().map(|key| STANDARD.encode(key))});
    if let Some(pair) = &kept.current {
        data[CERTIFICATE] = STANDARD.encode(pair.chain()).into();
        data[KEY] = STANDARD.encode(pair.key()).into();
    }
    json!({"metadata": {"resourceVersion": kept.resource_version}, "data": data})
}
