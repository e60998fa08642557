//! Tokens of ServiceAccounts: how they are made and what is believed of them.
//!
//! # Invariants
//! - A token names its logical cluster and is one of nobody in any other.
//! - Each logical cluster has an issuer of its own, so that whoever trusts one by its name alone, as
//!   programs elsewhere do, never takes a ServiceAccount of another for it. The keys are the
//!   server's.
//! - The algorithm follows from the key. A signature is checked once and then remembered for a
//!   while; what can change (the times, the ServiceAccount, what the token is bound to) is looked at
//!   each time.
//! - A token dies with its ServiceAccount, by UID. The UID of one that is virtual follows from its
//!   logical cluster's, so a logical cluster that is made again knows no token of the one before.

mod claims;
mod keys;
mod legacy;
mod liveness;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use machinery::ClusterName;

use crate::auth::jwt::{SignError, Token};
use crate::auth::objects::Objects;
use crate::auth::rbac::quoted;
use crate::auth::recent::{Recent, TokenDigest};
use crate::auth::{Known, Place, Refusal};
use claims::Claims;
use liveness::Verified;

pub(crate) use claims::{Bound, BoundKind, Grant, Reference};
pub(crate) use keys::{KeyFiles, Keys};
pub(crate) use legacy::LegacyGrant;

/// The issuer of tokens unless another is named. It does not change when the server moves.
pub(crate) const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc";

/// The name that every ServiceAccount's begins with.
pub(crate) const ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// The group of all ServiceAccounts of a logical cluster.
pub(crate) const ACCOUNTS: &str = "system:serviceaccounts";

/// How tokens are made.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenSettings {
    /// Issuers that are believed, the first is that of new tokens; the default one if empty.
    pub(crate) issuers: Vec<String>,
    /// Audiences of the API, if they aren't the issuer.
    pub(crate) audiences: Vec<String>,
    /// The longest life of a token in seconds, if there is a limit.
    pub(crate) max_seconds: Option<i64>,
}

/// Makes and checks tokens of ServiceAccounts.
#[derive(Debug)]
pub(crate) struct AccountTokens {
    keys: Keys,
    settings: TokenSettings,
    objects: Arc<dyn Objects>,
    recent: Recent<Arc<Verified>>,
}

// === impl AccountTokens ===

impl AccountTokens {
    /// Tokens that are signed with `keys`, of ServiceAccounts in `objects`.
    pub(crate) fn new(keys: Keys, mut settings: TokenSettings, objects: Arc<dyn Objects>) -> Self {
        if settings.issuers.is_empty() {
            settings.issuers.push(DEFAULT_ISSUER.to_owned());
        }
        Self { keys, settings, objects, recent: Recent::default() }
    }

    /// Tokens whose signatures are remembered.
    pub(crate) fn remembered(&self) -> usize {
        self.recent.len()
    }

    /// The issuer of new tokens of a logical cluster: that of the server for `root`, and a place
    /// below it for each other one.
    pub(crate) fn issuer(&self, cluster: &ClusterName) -> String {
        let base = self.settings.issuers.first().map_or(DEFAULT_ISSUER, String::as_str);
        issuer_of(base, cluster)
    }

    /// The audiences of the API in a logical cluster.
    pub(crate) fn audiences(&self, cluster: &ClusterName) -> Vec<String> {
        if self.settings.audiences.is_empty() {
            let issuers = &self.settings.issuers;
            return issuers.iter().map(|base| issuer_of(base, cluster)).collect();
        }
        self.settings.audiences.clone()
    }

    /// The longest life of a token in seconds, if there is a limit.
    pub(crate) fn max_seconds(&self) -> Option<i64> {
        self.settings.max_seconds
    }

    /// The keys that tokens are signed and checked with.
    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Makes a token.
    ///
    /// # Errors
    /// When the key can't sign.
    pub(crate) fn mint(&self, grant: &Grant<'_>) -> Result<String, SignError> {
        self.keys.signing().sign(&grant.claims(&self.issuer(grant.cluster)))
    }

    /// Who a token is, for the API itself or for `audiences`; `None` if it is of another issuer.
    ///
    /// # Errors
    /// When it says that it is ours, and isn't good for this place or time.
    pub(crate) fn identify(
        &self,
        token: &str,
        digest: &TokenDigest,
        place: Place<'_>,
        audiences: Option<&[String]>,
        now: Timestamp,
    ) -> Result<Option<Known>, Refusal> {
        let verified = match self.recent.get(digest) {
            Some(verified) => verified,
            None => {
                let Some(parsed) = Token::parse(token) else { return Ok(None) };
                let Some(claims) = parsed.claims::<Claims>() else { return Ok(None) };
                if !self.is_ours(&claims.issuer) {
                    return Ok(None);
                }
                if !self.keys.have_signed(&parsed) {
                    return Err(Refusal::wrong("invalid signature"));
                }
                let verified = Arc::new(Verified::read(claims)?);
                self.check_issuer(&verified)?;
                self.recent.put(*digest, verified.clone());
                verified
            }
        };
        // Of one that is foreign here nothing is told.
        if !place.admits(&verified.cluster) {
            return Err(Refusal::unknown());
        }
        let audiences = self.check_audience(&verified, audiences)?;
        verified.check_times(now)?;
        verified.check_objects(&*self.objects, digest, now)?;
        Ok(Some(Known { user: verified.user.clone(), audiences }))
    }

    /// Whether an issuer is of this server, whatever the logical cluster.
    fn is_ours(&self, issuer: &str) -> bool {
        let below = |base: &String| {
            let rest = issuer.strip_prefix(base.trim_end_matches('/'));
            issuer == base || rest.is_some_and(|rest| rest.starts_with(BELOW))
        };
        issuer == legacy::ISSUER || self.settings.issuers.iter().any(below)
    }

    /// The issuer is the one of the token's own logical cluster.
    fn check_issuer(&self, verified: &Verified) -> Result<(), Refusal> {
        let own = |base: &String| issuer_of(base, &verified.cluster) == verified.issuer;
        if verified.is_legacy() || self.settings.issuers.iter().any(own) {
            return Ok(());
        }
        Err(Refusal::wrong("the issuer is not that of the token's logical cluster"))
    }

    /// The audiences that are both the token's and wanted.
    fn check_audience(
        &self,
        verified: &Verified,
        wanted: Option<&[String]>,
    ) -> Result<Vec<String>, Refusal> {
        let own = self.audiences(&verified.cluster);
        // Tokens from before audiences are for the API alone.
        let given = if verified.audiences.is_empty() { &own } else { &verified.audiences };
        let wanted = wanted.unwrap_or(&own);
        let both: Vec<String> =
            given.iter().filter(|audience| wanted.contains(audience)).cloned().collect();
        if both.is_empty() {
            let (given, wanted) = (quoted(given.iter()), quoted(wanted.iter()));
            let why =
                format!("token audiences {given} is invalid for the target audiences {wanted}");
            return Err(Refusal::wrong(why));
        }
        Ok(both)
    }
}

/// The name of a ServiceAccount as a user.
pub(crate) fn account_name(namespace: &str, name: &str) -> String {
    format!("{ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The groups that a ServiceAccount is in: that of all, and that of its namespace.
pub(crate) fn account_groups(namespace: &str) -> [String; 2] {
    [ACCOUNTS.to_owned(), format!("{ACCOUNTS}:{namespace}")]
}

/// What stands between the server's issuer and a logical cluster's name.
const BELOW: &str = "/clusters/";

fn issuer_of(base: &str, cluster: &ClusterName) -> String {
    if cluster.is_root() {
        return base.to_owned();
    }
    format!("{}{BELOW}{cluster}", base.trim_end_matches('/'))
}
