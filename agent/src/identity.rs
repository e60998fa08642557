//! Who an agent is to the hub: a certificate, got with a bootstrap token and renewed in time.
//!
//! # Flow
//! 1. What is kept is read. A certificate of this SyncTarget is tried, even one that this clock
//!    takes for expired: the hub knows better.
//! 2. If there is none, or the hub refuses it, a new one is asked for with the bootstrap token,
//!    whose file is read each time: the operator may have put a fresh one there.
//! 3. At a point between 75 and 80 % of its life, which differs from certificate to certificate, the
//!    next one is asked for with the present one.
//! 4. An answer 401 makes it look again; where that shows that the certificate is refused, it begins
//!    with 2, with growing pauses, and goes on trying what it has.
//!
//! # Guarantees
//! - The key of a certificate is made here and leaves the place where it is kept for nobody. It is
//!   kept before the certificate is asked for, so that after a restart the same request is found
//!   again: at most one is pending.
//! - Whatever is kept for another SyncTarget, one of the same name included, is not used.
//!
//! # Assumptions
//! - One at a time runs for one place where identities are kept (the leader); a write of another in
//!   between is noticed, and what is kept is read again.

mod keep;
mod pair;
mod request;

use std::sync::Arc;
use std::time::Duration;

use client::{Credentials, Error, Link, SettingsError};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::target::{Read, TargetRef};
pub use keep::{Keep, KeepError, Kept};
pub use pair::{Pair, PairError};
use request::{Progress, RequestError};

/// The first pause after something failed, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Gets and renews the identity of an agent.
#[derive(Debug)]
pub struct Identity {
    /// Whose.
    pub target: TargetRef,
    /// Asks as the agent; it is given each new certificate.
    pub hub: Link,
    /// Asks with the bootstrap token; `None` where there is none.
    pub bootstrap: Option<Link>,
    /// Where key and certificate are kept.
    pub keep: Arc<Keep>,
}

/// How an agent stands with the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has not been seen yet.
    Unknown,
    /// The hub takes its certificate, which ends then.
    Certified {
        /// When the certificate ends.
        not_after: Timestamp,
    },
    /// It has no certificate that the hub takes.
    Without {
        /// Why, in one word in CamelCase.
        reason: &'static str,
        /// Why, for people.
        message: String,
    },
}

/// Why an attempt came to nothing.
#[derive(Debug, thiserror::Error)]
enum Attempt {
    #[error("read or write the identity")]
    Keep(#[source] KeepError),
    #[error("reach the hub")]
    Hub(#[source] Error),
    #[error("the hub does not take the agent's certificate, and there is no bootstrap token")]
    NoToken,
    #[error("ask for a certificate")]
    Request(#[source] RequestError),
    #[error("use the certificate")]
    Use(#[source] SettingsError),
    #[error("the hub answers {0}")]
    Answer(u16),
    #[error("the hub does not take the new certificate")]
    Refused,
}

/// What the hub makes of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Taken,
    Refused,
}

// === impl Identity ===

impl Identity {
    /// Keeps the agent certified for ever; tells how it stands. Dropping it ends it.
    pub async fn run(&self, standing: &watch::Sender<Standing>) {
        let mut pause = PAUSES.0;
        loop {
            match self.certify().await {
                Ok(pair) => {
                    pause = PAUSES.0;
                    info!(until = %pair.not_after(), "certified");
                    let not_after = pair.not_after();
                    standing.send_replace(Standing::Certified { not_after });
                    self.stay(pair, standing).await;
                }
                Err(error) => {
                    let error = chain(&error);
                    warn!(%error, pause_seconds = pause.as_secs(), "not certified");
                    let reason = "NotCertified";
                    standing.send_replace(Standing::Without { reason, message: error });
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    /// Comes to a certificate that the hub takes.
    async fn certify(&self) -> Result<Pair, Attempt> {
        let kept = self.keep.load().await.map_err(Attempt::Keep)?;
        if let Some(pair) = kept.current.clone().filter(|pair| pair.is_of(&self.target)) {
            match self.judge(&pair).await? {
                Verdict::Taken => return Ok(pair),
                Verdict::Refused => info!("the hub refuses the certificate that is kept"),
            }
        }
        let bootstrap = self.bootstrap.as_ref().ok_or(Attempt::NoToken)?;
        let pair = self.obtain(bootstrap, kept).await?;
        match self.judge(&pair).await? {
            Verdict::Taken => Ok(pair),
            Verdict::Refused => Err(Attempt::Refused),
        }
    }

    /// Stays certified until the hub refuses the certificate.
    async fn stay(&self, mut pair: Pair, standing: &watch::Sender<Standing>) {
        let mut refusals = self.hub.unauthorized();
        refusals.mark_unchanged();
        let mut pause = PAUSES.0;
        let mut due = Instant::now() + pair.until_renewal(Timestamp::now());
        loop {
            tokio::select! {
                changed = refusals.changed() => {
                    if changed.is_err() || self.is_refused(&pair).await {
                        return;
                    }
                }
                () = tokio::time::sleep_until(due) => match self.renew().await {
                    Ok(next) => {
                        info!(until = %next.not_after(), "certified anew");
                        pause = PAUSES.0;
                        standing.send_replace(Standing::Certified { not_after: next.not_after() });
                        due = Instant::now() + next.until_renewal(Timestamp::now());
                        pair = next;
                    }
                    Err(error) => {
                        warn!(error = %chain(&error), "the certificate is not renewed yet");
                        due = Instant::now() + pause;
                        pause = (pause * 2).min(PAUSES.1);
                    }
                },
            }
        }
    }

    /// After a refusal: whether it is the certificate that is refused.
    async fn is_refused(&self, pair: &Pair) -> bool {
        match self.judge(pair).await {
            Ok(Verdict::Refused) => return true,
            Ok(Verdict::Taken) => {}
            Err(error) => debug!(error = %chain(&error), "not judged"),
        }
        // Who is refused again and again looks now and then, not each time.
        tokio::time::sleep(PAUSES.0).await;
        false
    }

    /// The next certificate, asked for with the present one.
    async fn renew(&self) -> Result<Pair, Attempt> {
        let kept = self.keep.load().await.map_err(Attempt::Keep)?;
        let pair = self.obtain(&self.hub, kept).await?;
        match self.judge(&pair).await? {
            Verdict::Taken => Ok(pair),
            Verdict::Refused => Err(Attempt::Refused),
        }
    }

    /// Uses a certificate, and asks the hub what it makes of it.
    async fn judge(&self, pair: &Pair) -> Result<Verdict, Attempt> {
        self.hub.replace_credentials(&pair.credentials()).map_err(Attempt::Use)?;
        match self.target.read(&self.hub).await.map_err(Attempt::Hub)? {
            Read::Found(_) => Ok(Verdict::Taken),
            // An agent of another target, or of one that is gone, is as good as none.
            Read::Unauthorized | Read::Forbidden | Read::Gone | Read::Other => Ok(Verdict::Refused),
            Read::Failed(status) => Err(Attempt::Answer(status)),
        }
    }

    /// Asks for a certificate by a link, going on with what was begun before, and keeps it.
    async fn obtain(&self, link: &Link, mut kept: Kept) -> Result<Pair, Attempt> {
        let mut pause = Duration::from_millis(100);
        loop {
            let key = match kept.next.clone() {
                Some(key) => key,
                None => {
                    let key = request::new_key().map_err(Attempt::Request)?;
                    kept.next = Some(key.clone());
                    kept = self.keep.store(kept).await.map_err(Attempt::Keep)?;
                    key
                }
            };
            match request::step(link, &self.target, &key).await {
                Ok(Progress::Issued(chain)) => {
                    let pair = Pair::new(&chain, &key)
                        .map_err(|error| Attempt::Request(RequestError::Certificate(error)))?;
                    if !pair.is_of(&self.target) {
                        return Err(Attempt::Request(RequestError::Foreign));
                    }
                    kept.current = Some(pair.clone());
                    kept.next = None;
                    self.keep.store(kept).await.map_err(Attempt::Keep)?;
                    return Ok(pair);
                }
                Ok(Progress::Pending) => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(10));
                }
                Err(error) => {
                    // What was refused for good, or is another's to see, is not asked for again.
                    if error.is_final() {
                        kept.next = None;
                        self.keep.store(kept).await.map_err(Attempt::Keep)?;
                    }
                    return Err(Attempt::Request(error));
                }
            }
        }
    }
}

// === impl Pair ===

impl Pair {
    /// As what a link takes.
    fn credentials(&self) -> Credentials {
        Credentials::Certificate { chain: self.chain().to_vec(), key: self.key().to_vec() }
    }
}

/// An error with its causes, as text.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
