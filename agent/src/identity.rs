//! Who an agent is to the hub: a certificate, got with a bootstrap token and renewed in time.
//!
//! # Flow
//! 1. What is kept is read. A certificate of this SyncTarget is tried, even one that this clock
//!    takes for expired: the hub knows better.
//! 2. If there is none, or the hub refuses it, a new one is asked for with the bootstrap token,
//!    whose file is read each time: the operator may have put a fresh one there.
//! 3. At a point between 75 and 80 % of its life, which differs from certificate to certificate, the
//!    next one is asked for with the present one.
//! 4. Where a hub does not take the certificate of a connection, since a proxy on the way ends TLS, the
//!    agent shows the same certificate in a token that it signs with its key, an hour at a time.
//! 5. An answer 401 makes it look again; where that shows that the certificate is refused, it begins
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
mod token;

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
use token::TokenError;

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
    #[error("sign a token")]
    Sign(#[source] TokenError),
    #[error("the hub answers {0}")]
    Answer(u16),
    #[error("the hub does not take the new certificate")]
    Refused,
}

/// What the hub makes of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Taken(Shown),
    Refused,
}

/// How a certificate is shown to the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As that of the connections.
    Connection,
    /// In a token.
    Token,
}

/// A certificate as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shown {
    way: Way,
    /// When it has to be shown anew.
    until: Option<Instant>,
}

// === impl Identity ===

impl Identity {
    /// Keeps the agent certified for ever; tells how it stands. Dropping it ends it.
    pub async fn run(&self, standing: &watch::Sender<Standing>) {
        let mut pause = PAUSES.0;
        let mut way = Way::Connection;
        loop {
            match self.certify(way).await {
                Ok((pair, shown)) => {
                    pause = PAUSES.0;
                    way = shown.way;
                    info!(until = %pair.not_after(), ?way, "certified");
                    let not_after = pair.not_after();
                    standing.send_replace(Standing::Certified { not_after });
                    self.stay(pair, shown, standing).await;
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

    /// Comes to a certificate that the hub takes, shown in the way that it was taken last if it can be.
    async fn certify(&self, way: Way) -> Result<(Pair, Shown), Attempt> {
        let kept = self.keep.load().await.map_err(Attempt::Keep)?;
        if let Some(pair) = kept.current.clone().filter(|pair| pair.is_of(&self.target)) {
            match self.judge(&pair, way).await? {
                Verdict::Taken(shown) => return Ok((pair, shown)),
                Verdict::Refused => info!("the hub refuses the certificate that is kept"),
            }
        }
        let bootstrap = self.bootstrap.as_ref().ok_or(Attempt::NoToken)?;
        self.obtain_and_show(bootstrap, kept, way).await
    }

    /// Stays certified until the hub refuses the certificate.
    async fn stay(&self, mut pair: Pair, mut shown: Shown, standing: &watch::Sender<Standing>) {
        let mut refusals = self.hub.unauthorized();
        refusals.mark_unchanged();
        let mut pause = PAUSES.0;
        let mut due = Instant::now() + pair.until_renewal(Timestamp::now());
        loop {
            let again = async {
                match shown.until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = refusals.changed() => {
                    match self.judge_again(&pair, shown).await {
                        Some(anew) if changed.is_ok() => shown = anew,
                        _ => return,
                    }
                }
                () = again => shown = self.show_again(&pair, shown),
                () = tokio::time::sleep_until(due) => match self.renew(shown.way).await {
                    Ok((next, anew)) => {
                        info!(until = %next.not_after(), "certified anew");
                        pause = PAUSES.0;
                        standing.send_replace(Standing::Certified { not_after: next.not_after() });
                        due = Instant::now() + next.until_renewal(Timestamp::now());
                        (pair, shown) = (next, anew);
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

    /// After a refusal: how the certificate is shown, unless it is the certificate that is refused.
    async fn judge_again(&self, pair: &Pair, shown: Shown) -> Option<Shown> {
        let anew = match self.judge(pair, shown.way).await {
            Ok(Verdict::Refused) => return None,
            Ok(Verdict::Taken(anew)) => anew,
            Err(error) => {
                debug!(error = %chain(&error), "not judged");
                shown
            }
        };
        // Who is refused again and again looks now and then, not each time.
        tokio::time::sleep(PAUSES.0).await;
        Some(anew)
    }

    /// What is shown nears its end.
    fn show_again(&self, pair: &Pair, shown: Shown) -> Shown {
        self.show(pair, shown.way).unwrap_or_else(|error| {
            warn!(error = %chain(&error), "the certificate is not shown anew");
            Shown { until: Some(Instant::now() + PAUSES.1), ..shown }
        })
    }

    /// The next certificate, asked for with the present one.
    async fn renew(&self, way: Way) -> Result<(Pair, Shown), Attempt> {
        let kept = self.keep.load().await.map_err(Attempt::Keep)?;
        self.obtain_and_show(&self.hub, kept, way).await
    }

    async fn obtain_and_show(
        &self,
        link: &Link,
        kept: Kept,
        way: Way,
    ) -> Result<(Pair, Shown), Attempt> {
        let pair = self.obtain(link, kept).await?;
        match self.judge(&pair, way).await? {
            Verdict::Taken(shown) => Ok((pair, shown)),
            Verdict::Refused => Err(Attempt::Refused),
        }
    }

    /// Shows a certificate, and asks the hub what it makes of it: first in one way, and if that comes
    /// to nothing, in the other. If neither does, it is shown as at first.
    async fn judge(&self, pair: &Pair, first: Way) -> Result<Verdict, Attempt> {
        let mut outcome = Ok(Verdict::Refused);
        for way in [first, first.other()] {
            let shown = self.show(pair, way)?;
            match self.target.read(&self.hub).await {
                Ok(Read::Found(_)) => return Ok(Verdict::Taken(shown)),
                // An agent of another target, or of one that is gone, is as good as none.
                Ok(Read::Unauthorized | Read::Forbidden | Read::Gone | Read::Other) => {}
                Ok(Read::Failed(status)) => {
                    outcome = Err(Attempt::Answer(status));
                    // A proxy may think little of a certificate that it did not ask for.
                    if !(400..500).contains(&status) || status == 429 {
                        break;
                    }
                }
                Err(error) => {
                    outcome = Err(Attempt::Hub(error));
                    break;
                }
            }
        }
        self.show(pair, first)?;
        outcome
    }

    /// Shows a certificate with every request from now on.
    fn show(&self, pair: &Pair, way: Way) -> Result<Shown, Attempt> {
        let (credentials, until) = match way {
            Way::Connection => (pair.credentials(), None),
            Way::Token => {
                let token = token::sign(pair, &self.target, Timestamp::now());
                let token = token.map_err(Attempt::Sign)?;
                (Credentials::Token(token), Some(Instant::now() + token::RENEWAL))
            }
        };
        self.hub.replace_credentials(&credentials).map_err(Attempt::Use)?;
        Ok(Shown { way, until })
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

// === impl Way ===

impl Way {
    fn other(self) -> Self {
        match self {
            Self::Connection => Self::Token,
            Self::Token => Self::Connection,
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
