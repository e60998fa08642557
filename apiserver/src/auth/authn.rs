//! Who a caller is: by client certificate, by a front proxy, by token, or not at all.
//!
//! Invariants: bad credentials are never taken for none, so they are 401 where anonymous callers
//! would pass; a certificate is checked in full once for each connection, and its expiry at each
//! request; what a client says of itself in `X-Remote-` headers counts only on a connection with a
//! front proxy's certificate; nobody is a ServiceAccount but by a token of its logical cluster.

pub(super) mod certificate;
mod front_proxy;

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use jiff::Timestamp;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::{CertificateDer, UnixTime};
use tracing::debug;

use crate::auth::bearer::Bearers;
use crate::auth::objects::Objects;
use crate::auth::tokens::ACCOUNT_PREFIX;
use crate::auth::{Agent, Place, UserInfo};
use crate::pki::Trusted;
use crate::registry::{Error, Reason};

pub(crate) use front_proxy::{FrontProxy, unescape};

/// Knows callers.
#[derive(Debug)]
pub(crate) struct Authenticator {
    certificates: Authorities,
    proxy: Option<FrontProxy>,
    bearers: Arc<Bearers>,
    /// Who gives no credentials, if that is allowed.
    anonymous: Option<Arc<UserInfo>>,
}

/// By whose authority clients are known.
#[derive(Clone, Debug)]
pub(crate) struct Authorities {
    /// Any that is trusted.
    pub(crate) all: Arc<Trusted>,
    /// The server's own alone, by which agents are known.
    pub(crate) own: Arc<dyn ClientCertVerifier>,
    /// Where the SyncTargets of agents are looked up.
    pub(crate) objects: Arc<dyn Objects>,
}

/// What a connection's TLS handshake says of the caller.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// No certificate.
    Unknown,
    /// A certificate of an authority that is trusted for something.
    Certified {
        /// Its subject, if it is a client's.
        user: Option<Arc<UserInfo>>,
        /// Whether it is a front proxy's.
        proxy: bool,
        /// The end of its validity, in seconds since 1970.
        expires: i64,
    },
    /// A certificate that is not ours, or not valid.
    Rejected,
}

// === impl Authenticator ===

impl Authenticator {
    /// Certificates of clients are checked by `certificates`, tokens by `bearers`.
    pub(crate) fn new(
        certificates: Authorities,
        proxy: Option<FrontProxy>,
        bearers: Arc<Bearers>,
        anonymous: bool,
    ) -> Self {
        let anonymous = anonymous.then(|| Arc::new(UserInfo::anonymous()));
        Self { certificates, proxy, bearers, anonymous }
    }

    /// Judges the certificates that a client showed.
    pub(crate) fn peer(&self, chain: Option<&[CertificateDer<'_>]>) -> Peer {
        let Some((leaf, others)) = chain.and_then(<[_]>::split_first) else {
            return Peer::Unknown;
        };
        let Some(subject) = certificate::subject(leaf) else { return Peer::Rejected };
        let now = UnixTime::now();
        let Authorities { all, own, .. } = &self.certificates;
        let authority = if subject.is_agent() { own.clone() } else { all.verifier() };
        let client = authority.verify_client_cert(leaf, others, now).is_ok();
        let proxy =
            self.proxy.as_ref().is_some_and(|proxy| proxy.trusts(&subject, leaf, others, now));
        // The name is what a client is known by.
        let user = match (client, subject.is_agent()) {
            (false, _) => None,
            (true, false) => subject.user(),
            (true, true) => subject.agent(),
        };
        if user.is_none() && !proxy {
            return Peer::Rejected;
        }
        Peer::Certified { user, proxy, expires: subject.expires }
    }

    /// The caller of one request.
    ///
    /// # Errors
    /// [`Reason::Unauthorized`] when there are credentials and they are wrong, or none where some
    /// are needed.
    pub(crate) async fn authenticate(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        place: Place<'_>,
        now: Timestamp,
    ) -> Result<Arc<UserInfo>, Error> {
        let user = self.identify(peer, headers, place, now).await?;
        if is_homeless_account(&user) {
            debug!(user = user.name, "a ServiceAccount of no logical cluster was refused");
            return Err(unauthorized());
        }
        Ok(user)
    }

    async fn identify(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        place: Place<'_>,
        now: Timestamp,
    ) -> Result<Arc<UserInfo>, Error> {
        let mut rejected = false;
        match peer {
            Peer::Unknown => {}
            Peer::Rejected => rejected = true,
            Peer::Certified { expires, .. } if *expires <= now.as_second() => rejected = true,
            Peer::Certified { user, proxy, .. } => {
                if *proxy && let Some(user) = front_proxy::user(headers) {
                    return Ok(Arc::new(user));
                }
                if let Some(user) = user.as_ref().filter(|user| self.is_current(user)) {
                    return Ok(user.clone());
                }
                rejected = true;
            }
        }
        if let Some(token) = bearer_token(headers) {
            let known = self.bearers.identify(&token, place, None, now).await;
            return known.map(|known| known.user).map_err(|refusal| {
                debug!(%refusal, "a token was refused");
                unauthorized()
            });
        }
        let anonymous = self.anonymous.clone().filter(|_| !rejected);
        anonymous.ok_or_else(unauthorized)
    }

    /// Whether an agent's SyncTarget is there still and takes the certificate; of others it is only
    /// the certificate that counts.
    fn is_current(&self, user: &UserInfo) -> bool {
        let target = |agent: &Arc<Agent>| agent.target(&*self.certificates.objects);
        user.agent.as_ref().is_none_or(|agent| target(agent).is_some())
    }
}

/// The token of an `Authorization` header. Other schemes are no credentials of ours; upstream looks
/// past them, too. Bytes that are no text are a token of nobody, which is not the same as none.
fn bearer_token(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(value.iter().position(|byte| *byte == b' ')?)?;
    scheme.eq_ignore_ascii_case(b"bearer").then(|| String::from_utf8_lossy(token.trim_ascii()))
}

/// Whether a caller is named as a ServiceAccount without being one of a logical cluster: names of
/// ServiceAccounts are given in each logical cluster anew, so it may be anybody's.
fn is_homeless_account(user: &UserInfo) -> bool {
    user.home.is_none() && user.name.starts_with(ACCOUNT_PREFIX)
}

/// The one answer to credentials that are wrong.
fn unauthorized() -> Error {
    Error::new(Reason::Unauthorized, "Unauthorized")
}
