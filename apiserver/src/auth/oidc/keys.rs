//! The keys of an issuer: fetched when they are needed, kept when the issuer is down.
//!
//! # Guarantees
//! - At most one fetch is under way, and one begins at most every ten seconds, whatever is asked.
//! - Keys that were found once stay until others are found, so an issuer that is down keeps nobody
//!   out whom it has let in before.
//! - Keys that an issuer has taken back are forgotten within about an hour of use.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use bytes::Bytes;
use machinery::ClusterName;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::auth::jwt::JwkSet;
use crate::dialer::{Call, CallError, Dialer};

/// The shortest time between two fetches.
const PAUSE: Duration = Duration::from_secs(10);

/// After how long keys are fetched again although they do.
const OLD: Duration = Duration::from_secs(3600);

/// How long one document may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The largest document. Key sets have some KB.
const MAX_DOCUMENT: usize = 1024 * 1024;

/// Where an issuer's documents come from.
#[async_trait]
pub(crate) trait Documents: std::fmt::Debug + Send + Sync {
    /// The document at a URL.
    async fn document(&self, url: &str) -> Result<Bytes, CallError>;
}

/// Documents of an issuer by HTTPS.
#[derive(Debug)]
pub(crate) struct IssuerDocuments {
    /// What calls are made with; it reaches every address.
    pub(crate) dialer: Dialer,
    /// Certificate authorities as PEM in base64; the system's if empty.
    pub(crate) ca_bundle: String,
}

/// The keys of an issuer.
#[derive(Debug)]
pub(super) struct IssuerKeys {
    issuer: String,
    documents: Arc<dyn Documents>,
    current: ArcSwapOption<Held>,
    /// When the last fetch began.
    tried: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct Held {
    keys: Arc<JwkSet>,
    since: Instant,
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("fetch {what}")]
    Call {
        what: &'static str,
        #[source]
        source: CallError,
    },
    #[error("{what} is not what it should be")]
    Document { what: &'static str },
}

// === impl IssuerDocuments ===

#[async_trait]
impl Documents for IssuerDocuments {
    async fn document(&self, url: &str) -> Result<Bytes, CallError> {
        let call = Call {
            cluster: &ClusterName::root(),
            url,
            ca_bundle: &self.ca_bundle,
            timeout: PATIENCE,
            body: Bytes::new(),
            max_answer: MAX_DOCUMENT,
        };
        self.dialer.get(call).await
    }
}

// === impl IssuerKeys ===

impl IssuerKeys {
    /// No keys yet: they are fetched with the first token.
    pub(super) fn new(issuer: &str, documents: Arc<dyn Documents>) -> Self {
        Self {
            issuer: issuer.to_owned(),
            documents,
            current: ArcSwapOption::empty(),
            tried: Mutex::new(None),
        }
    }

    /// The keys, fetched anew if the one of this id is not among them or they are old.
    pub(super) async fn current(&self, id: Option<&str>) -> Option<Arc<JwkSet>> {
        let held = self.current.load_full();
        let known = held.as_ref().is_some_and(|held| held.keys.knows(id));
        let fresh = held.as_ref().is_some_and(|held| held.since.elapsed() < OLD);
        if !(known && fresh) {
            // Who has a key that will do waits for nobody.
            let tried =
                if known { self.tried.try_lock().ok() } else { Some(self.tried.lock().await) };
            if let Some(mut tried) = tried {
                let since = held.as_ref().map(|held| held.since);
                let newer = self.current.load().as_ref().map(|held| held.since) != since;
                let soon = tried.is_some_and(|tried| tried.elapsed() < PAUSE);
                if !newer && !soon {
                    *tried = Some(Instant::now());
                    self.renew().await;
                }
            }
        }
        self.current.load_full().map(|held| held.keys.clone())
    }

    async fn renew(&self) {
        match self.fetch().await {
            Ok(keys) => {
                debug!("keys of the issuer were fetched");
                let held = Held { keys: Arc::new(keys), since: Instant::now() };
                self.current.store(Some(Arc::new(held)));
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                warn!(error, "keys of the issuer can't be had, those from before stay");
            }
        }
    }

    async fn fetch(&self) -> Result<JwkSet, FetchError> {
        let what = "the issuer's configuration";
        let wrong = || FetchError::Document { what };
        let url = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let answer = self.documents.document(&url).await;
        let answer = answer.map_err(|source| FetchError::Call { what, source })?;
        let configuration: Value = serde_json::from_slice(&answer).map_err(|_| wrong())?;
        let text = |field: &str| configuration.get(field).and_then(Value::as_str);
        if text("issuer") != Some(&*self.issuer) {
            return Err(wrong());
        }
        let url = text("jwks_uri").ok_or_else(wrong)?;
        let what = "the issuer's keys";
        let answer = self.documents.document(url).await;
        let answer = answer.map_err(|source| FetchError::Call { what, source })?;
        JwkSet::parse(&answer).ok_or(FetchError::Document { what })
    }
}
