//! Tokens in Secrets of the type `kubernetes.io/service-account-token`, which do not expire.
//!
//! Such a token is good while the Secret that it names holds it, by every byte, and while the
//! ServiceAccount that it names is there. Whoever fills those Secrets asks for one here.

use machinery::ClusterName;
use serde_json::json;

use super::{AccountTokens, account_name};
use crate::auth::jwt::SignError;

/// The issuer of these tokens, as upstream.
pub(super) const ISSUER: &str = "kubernetes/serviceaccount";

/// The label of Secrets whose tokens aren't taken any more, as upstream.
pub(super) const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// What a token in a Secret is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LegacyGrant<'g> {
    /// The logical cluster of both.
    pub(crate) cluster: &'g ClusterName,
    /// The namespace of both.
    pub(crate) namespace: &'g str,
    /// The ServiceAccount's name.
    pub(crate) account: &'g str,
    /// Its UID.
    pub(crate) account_uid: &'g str,
    /// The Secret's name.
    pub(crate) secret: &'g str,
}

// === impl AccountTokens ===

impl AccountTokens {
    /// Makes the token of a Secret: the value of its entry `token`.
    ///
    /// # Errors
    /// When the key can't sign.
    pub(crate) fn mint_legacy(&self, grant: &LegacyGrant<'_>) -> Result<String, SignError> {
        self.keys.signing().sign(&json!({
            "iss": ISSUER,
            "kubernetes.io/serviceaccount/clusterName": grant.cluster.as_str(),
            "kubernetes.io/serviceaccount/namespace": grant.namespace,
            "kubernetes.io/serviceaccount/secret.name": grant.secret,
            "kubernetes.io/serviceaccount/service-account.name": grant.account,
            "kubernetes.io/serviceaccount/service-account.uid": grant.account_uid,
            "sub": account_name(grant.namespace, grant.account),
        }))
    }
}
