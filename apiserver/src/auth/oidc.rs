//! Callers by ID tokens of an issuer that the operator trusts (OpenID Connect).
//!
//! # Invariants
//! - The issuer is the operator's choice, never a tenant's; so its address is not checked, as
//!   addresses that tenants name are. Everything else that bounds outbound calls holds.
//! - No token gives a name or group that begins with `system:`: those are Kubernetes' own.
//! - A caller by such a token is known in every logical cluster, as one by a certificate is; what it
//!   may do there is for each to say.

mod claims;
mod keys;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::auth::jwt::{Algorithm, JwkSet, NumericDate, Texts, Token};
use crate::auth::recent::{Recent, TokenDigest};
use crate::auth::{Refusal, UserInfo};
use claims::required;
use keys::IssuerKeys;

pub(crate) use keys::{Documents, IssuerDocuments};

/// Seconds by which an issuer's clock may be ahead, as upstream.
const AHEAD: i64 = 300;

/// An issuer, and what is made of its tokens. Flags of upstream have the same names.
#[derive(Clone, Debug, Default)]
pub struct OidcOptions {
    /// `https://…`, exactly as tokens name it.
    pub issuer: String,
    /// Whom tokens are for.
    pub client_id: String,
    /// The claim that is the name; `sub` if empty.
    pub username_claim: String,
    /// What stands before the name; if empty, the issuer and `#` before all but `email`; `-` for
    /// nothing.
    pub username_prefix: String,
    /// The claim that is the groups; none if empty.
    pub groups_claim: String,
    /// What stands before each group.
    pub groups_prefix: String,
    /// Claims that tokens must have, with their values.
    pub required_claims: Vec<(String, String)>,
    /// Certificate authorities of the issuer, as PEM; the system's if there is no file.
    pub authorities: Option<std::path::PathBuf>,
    /// Algorithms that tokens may be signed by; RS256 if empty.
    pub algorithms: Vec<String>,
}

/// Options that make no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OidcOptionError(String);

/// Knows callers by an issuer's tokens.
#[derive(Debug)]
pub(crate) struct Oidc {
    rules: Rules,
    keys: IssuerKeys,
    recent: Recent<Arc<Seen>>,
}

/// What is made of the claims of a token.
#[derive(Debug)]
struct Rules {
    issuer: String,
    client_id: String,
    username_claim: String,
    username_prefix: String,
    groups_claim: String,
    groups_prefix: String,
    required_claims: Vec<(String, String)>,
    algorithms: Vec<Algorithm>,
}

/// A token whose signature is good.
#[derive(Debug)]
struct Seen {
    user: Arc<UserInfo>,
    expires: i64,
    not_before: Option<i64>,
}

// === impl Oidc ===

impl Oidc {
    /// Knows callers by tokens of an issuer whose documents are fetched by `documents`.
    ///
    /// # Errors
    /// For options that make no sense.
    pub(crate) fn new(
        options: &OidcOptions,
        documents: Arc<dyn Documents>,
    ) -> Result<Self, OidcOptionError> {
        let rules = Rules::new(options)?;
        let keys = IssuerKeys::new(&rules.issuer, documents);
        Ok(Self { rules, keys, recent: Recent::default() })
    }

    /// Who a token is; `None` if it is of another issuer.
    ///
    /// # Errors
    /// When it is of this issuer, and not good.
    pub(crate) async fn identify(
        &self,
        token: &str,
        digest: &TokenDigest,
        now: Timestamp,
    ) -> Result<Option<Arc<UserInfo>>, Refusal> {
        let seen = match self.recent.get(digest) {
            Some(seen) => seen,
            None => {
                let Some(parsed) = Token::parse(token) else { return Ok(None) };
                let Some(claims) = parsed.claims::<Map<String, Value>>() else { return Ok(None) };
                if claims.get("iss").and_then(Value::as_str) != Some(&*self.rules.issuer) {
                    return Ok(None);
                }
                // What can be told without keys is told first: nothing is fetched for it.
                let seen = self.rules.read(&claims)?;
                seen.check_times(now)?;
                self.check_signature(&parsed).await?;
                let seen = Arc::new(seen);
                self.recent.put(*digest, seen.clone());
                seen
            }
        };
        seen.check_times(now)?;
        Ok(Some(seen.user.clone()))
    }

    async fn check_signature(&self, token: &Token<'_>) -> Result<(), Refusal> {
        let algorithm = token.algorithm().filter(|own| self.rules.algorithms.contains(own));
        let Some(algorithm) = algorithm else {
            return Err(Refusal::wrong("oidc: the token is signed by an algorithm not allowed"));
        };
        let good = |keys: &JwkSet| {
            keys.candidates(token.key_id(), algorithm).any(|key| token.is_signed_by(key, algorithm))
        };
        let keys = self.keys.current(token.key_id()).await;
        match keys {
            Some(keys) if good(&keys) => Ok(()),
            Some(_) => Err(Refusal::wrong("oidc: failed to verify signature")),
            None => Err(Refusal::wrong("oidc: authenticator not initialized")),
        }
    }
}

// === impl Rules ===

impl Rules {
    fn new(options: &OidcOptions) -> Result<Self, OidcOptionError> {
        let wrong = |why: String| Err(OidcOptionError(why));
        let url = options.issuer.parse::<http::Uri>().ok();
        if url.is_none_or(|url| url.scheme_str() != Some("https") || url.query().is_some()) {
            return wrong(format!("the issuer {:?} is no plain URL of https", options.issuer));
        }
        if options.client_id.is_empty() {
            return wrong("an issuer needs a client id".into());
        }
        let username_claim = match &*options.username_claim {
            "" => "sub",
            claim => claim,
        };
        let username_prefix = match (&*options.username_prefix, username_claim) {
            ("-", _) | ("", "email") => String::new(),
            ("", _) => format!("{}#", options.issuer),
            (prefix, _) => prefix.to_owned(),
        };
        for prefix in [&username_prefix, &options.groups_prefix] {
            if prefix.starts_with(claims::SYSTEM) {
                return wrong(format!("the prefix {prefix:?} is one of Kubernetes' own"));
            }
        }
        let mut algorithms = Vec::new();
        for name in &options.algorithms {
            match Algorithm::parse(name) {
                Some(algorithm) => algorithms.push(algorithm),
                None => {
                    return wrong(format!("{name:?} is no algorithm that tokens are signed by"));
                }
            }
        }
        if algorithms.is_empty() {
            algorithms.push(Algorithm::Rs256);
        }
        Ok(Self {
            issuer: options.issuer.clone(),
            client_id: options.client_id.clone(),
            username_claim: username_claim.to_owned(),
            username_prefix,
            groups_claim: options.groups_claim.clone(),
            groups_prefix: options.groups_prefix.clone(),
            required_claims: options.required_claims.clone(),
            algorithms,
        })
    }

    /// What a token says, whoever signed it.
    fn read(&self, claims: &Map<String, Value>) -> Result<Seen, Refusal> {
        let audiences: Texts = required(claims, "aud")?;
        if !audiences.0.contains(&self.client_id) {
            let (wanted, given) = (&self.client_id, audiences.0);
            return Err(Refusal::wrong(format!(
                "oidc: expected audience {wanted:?} got {given:?}"
            )));
        }
        let expires: NumericDate = required(claims, "exp")?;
        let not_before = match claims.contains_key("nbf") {
            true => Some(required::<NumericDate>(claims, "nbf")?.0),
            false => None,
        };
        let user = Arc::new(self.user(claims)?);
        Ok(Seen { user, expires: expires.0, not_before })
    }
}

// === impl Seen ===

impl Seen {
    fn check_times(&self, now: Timestamp) -> Result<(), Refusal> {
        if self.expires <= now.as_second() {
            return Err(Refusal::wrong("oidc: token is expired"));
        }
        if self.not_before.is_some_and(|time| now.as_second().saturating_add(AHEAD) < time) {
            return Err(Refusal::wrong("oidc: current time before the nbf (not before) time"));
        }
        Ok(())
    }
}
