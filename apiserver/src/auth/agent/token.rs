//! Tokens that agents sign themselves, with the key of their certificate.
//!
//! Where a proxy ends TLS, the certificate of a connection is not the agent's. Such an agent shows its
//! certificate in a token instead (`x5c`, RFC 7515 section 4.1.6), which it signs: it proves that it
//! has the key, and the key stays where it is.
//!
//! # Invariants
//! - A token gives what its certificate gives, and no more: the certificate is checked as one that a
//!   connection shows, and whoever it is of rests on the SyncTarget likewise, at each request.
//! - It is for this purpose alone (its audience is the agents' signer), and no token is good for
//!   longer than [`AGENT_TOKEN_SECONDS`], whatever it says.

use std::sync::Arc;
use std::time::Duration;

use contract::{AGENT_SIGNER, AGENT_TOKEN_SECONDS};
use jiff::Timestamp;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::{CertificateDer, UnixTime};
use serde::Deserialize;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{Agent, Credential};
use crate::auth::authn::certificate::{Subject, subject};
use crate::auth::jwt::{NumericDate, PublicKey, Texts, Token};
use crate::auth::objects::Objects;
use crate::auth::recent::{Recent, TokenDigest};
use crate::auth::{Refusal, UserInfo};

/// Seconds by which clocks may differ.
const LEEWAY: i64 = 60;

/// Certificates in a chain that are looked at: the agent's, and those between it and the authority.
const LONGEST_CHAIN: usize = 4;

/// Checks tokens of agents.
#[derive(Debug)]
pub(crate) struct AgentTokens {
    own: Arc<dyn ClientCertVerifier>,
    objects: Arc<dyn Objects>,
    /// Of tokens that aren't agents', too: every bearer token comes by here, at each request.
    recent: Recent<Option<Arc<Signed>>>,
}

/// A token whose signature is good.
#[derive(Debug)]
struct Signed {
    user: Arc<UserInfo>,
    agent: Arc<Agent>,
    /// When it was made and when it ends, in seconds since 1970.
    issued: i64,
    expires: i64,
}

#[derive(Debug, Deserialize)]
struct Claims {
    #[serde(default, rename = "sub")]
    subject: String,
    #[serde(default, rename = "aud")]
    audiences: Texts,
    #[serde(rename = "iat")]
    issued: NumericDate,
    #[serde(rename = "exp")]
    expires: NumericDate,
}

// === impl AgentTokens ===

impl AgentTokens {
    /// Tokens of agents whose certificates `own` vouches for: the server's own authority alone.
    pub(crate) fn new(own: Arc<dyn ClientCertVerifier>, objects: Arc<dyn Objects>) -> Self {
        Self { own, objects, recent: Recent::default() }
    }

    /// Whose token it is; `None` for what doesn't say that it is an agent's.
    ///
    /// # Errors
    /// When it says so, and isn't good.
    pub(crate) fn identify(
        &self,
        token: &str,
        digest: &TokenDigest,
        now: Timestamp,
    ) -> Result<Option<Arc<UserInfo>>, Refusal> {
        let signed = match self.recent.get(digest) {
            Some(known) => known,
            None => {
                let signed = self.read(token, now)?.map(Arc::new);
                self.recent.put(*digest, signed.clone());
                signed
            }
        };
        let Some(signed) = signed else { return Ok(None) };
        signed.check_times(now)?;
        if signed.agent.target(&*self.objects).is_none() {
            return Err(Refusal::wrong("the SyncTarget is gone, or has revoked the certificate"));
        }
        Ok(Some(signed.user.clone()))
    }

    fn read(&self, token: &str, now: Timestamp) -> Result<Option<Signed>, Refusal> {
        let Some(parsed) = Token::parse(token) else { return Ok(None) };
        let Some(claims) = parsed.claims::<Claims>() else { return Ok(None) };
        if claims.audiences.0 != [AGENT_SIGNER] {
            return Ok(None);
        }
        let chain = parsed.chain().filter(|chain| chain.len() <= LONGEST_CHAIN);
        let chain = chain.ok_or_else(|| Refusal::wrong("it shows no certificate"))?;
        let user = self.certified(&chain, now)?;
        if !chain.first().and_then(key).is_some_and(|key| {
            // The algorithm follows from the key, whatever the token says.
            parsed.is_signed_by(&key, key.algorithm())
        }) {
            return Err(Refusal::wrong("invalid signature"));
        }
        if claims.subject != user.name {
            return Err(Refusal::wrong("sub claim is invalid"));
        }
        Signed::new(&user, claims.issued.0, claims.expires.0).map(Some)
    }

    /// The agent that a certificate is of.
    fn certified(
        &self,
        chain: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> Result<Arc<UserInfo>, Refusal> {
        let (leaf, others) = chain.split_first().ok_or_else(of_nobody)?;
        let since = u64::try_from(now.as_second()).unwrap_or_default();
        let time = UnixTime::since_unix_epoch(Duration::from_secs(since));
        self.own.verify_client_cert(leaf, others, time).map_err(|_| of_nobody())?;
        let subject = subject(leaf).filter(Subject::is_agent).ok_or_else(of_nobody)?;
        subject.agent().ok_or_else(of_nobody)
    }
}

// === impl Signed ===

impl Signed {
    /// A token of an agent, by whose certificate it is good until the earlier of both ends.
    fn new(user: &UserInfo, issued: i64, expires: i64) -> Result<Self, Refusal> {
        let Some(agent) = &user.agent else { return Err(of_nobody()) };
        let Credential::Certificate { not_before, expires: end } = agent.credential else {
            return Err(of_nobody());
        };
        if expires.saturating_sub(issued) > AGENT_TOKEN_SECONDS {
            let why = format!("it is for longer than {AGENT_TOKEN_SECONDS} seconds");
            return Err(Refusal::wrong(why));
        }
        let expires = expires.min(end);
        let credential = Credential::Certificate { not_before, expires };
        let agent = Arc::new(Agent { credential, ..(**agent).clone() });
        let user = UserInfo { agent: Some(agent.clone()), ..user.clone() };
        Ok(Self { user: Arc::new(user), agent, issued, expires })
    }

    fn check_times(&self, now: Timestamp) -> Result<(), Refusal> {
        let now = now.as_second();
        if now >= self.expires {
            return Err(Refusal::wrong("the token of the agent has expired"));
        }
        if now.saturating_add(LEEWAY) < self.issued {
            return Err(Refusal::wrong("the token of the agent is issued in the future"));
        }
        Ok(())
    }
}

fn of_nobody() -> Refusal {
    Refusal::wrong("the certificate is not one of an agent of this server")
}

/// The public key of a certificate, if signatures of its kind are known.
fn key(leaf: &CertificateDer<'_>) -> Option<PublicKey> {
    let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
    PublicKey::from_spki(certificate.public_key().raw).ok()
}
