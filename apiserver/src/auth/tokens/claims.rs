//! What tokens of ServiceAccounts claim.

use jiff::Timestamp;
use machinery::ClusterName;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::account_name;
use crate::auth::jwt::{NumericDate, Texts};

/// What a new token is made of.
#[derive(Clone, Debug)]
pub(crate) struct Grant<'g> {
    /// The logical cluster of the ServiceAccount.
    pub(crate) cluster: &'g ClusterName,
    /// Its namespace.
    pub(crate) namespace: &'g str,
    /// Its name.
    pub(crate) name: &'g str,
    /// Its UID.
    pub(crate) uid: &'g str,
    /// What the token dies with, beside the ServiceAccount.
    pub(crate) bound: Option<Bound>,
    /// Whom it is for.
    pub(crate) audiences: &'g [String],
    /// How long it lives, in seconds.
    pub(crate) seconds: i64,
    /// When it is made.
    pub(crate) now: Timestamp,
}

/// An object that a token is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// What it is.
    pub(crate) kind: BoundKind,
    /// Which one.
    pub(crate) object: Reference,
    /// The node of a pod. It is told to whom it may concern, and not checked.
    pub(crate) node: Option<Reference>,
}

/// The kinds that a token can be bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoundKind {
    Secret,
    Pod,
    Node,
}

/// An object by name and UID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Reference {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) uid: String,
}

/// The claims of a token of any form. Names are upstream's and, for the logical cluster, kcp's.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    #[serde(rename = "iss")]
    pub(super) issuer: String,
    #[serde(default, rename = "sub")]
    pub(super) subject: String,
    #[serde(default, rename = "aud")]
    pub(super) audiences: Texts,
    #[serde(default, rename = "exp")]
    pub(super) expires: Option<NumericDate>,
    #[serde(default, rename = "nbf")]
    pub(super) not_before: Option<NumericDate>,
    #[serde(default, rename = "iat")]
    pub(super) issued: Option<NumericDate>,
    #[serde(default, rename = "jti")]
    pub(super) id: String,
    #[serde(default, rename = "kubernetes.io")]
    pub(super) private: Option<Private>,
    #[serde(default, rename = "kubernetes.io/serviceaccount/namespace")]
    pub(super) legacy_namespace: String,
    #[serde(default, rename = "kubernetes.io/serviceaccount/service-account.name")]
    pub(super) legacy_name: String,
    #[serde(default, rename = "kubernetes.io/serviceaccount/service-account.uid")]
    pub(super) legacy_uid: String,
    #[serde(default, rename = "kubernetes.io/serviceaccount/secret.name")]
    pub(super) legacy_secret: String,
    #[serde(default, rename = "kubernetes.io/serviceaccount/clusterName")]
    pub(super) legacy_cluster: String,
}

/// The claim `kubernetes.io`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Private {
    #[serde(default)]
    pub(super) cluster_name: String,
    #[serde(default)]
    pub(super) namespace: String,
    #[serde(default, rename = "serviceaccount")]
    pub(super) account: Reference,
    #[serde(default)]
    pub(super) secret: Option<Reference>,
    #[serde(default)]
    pub(super) pod: Option<Reference>,
    #[serde(default)]
    pub(super) node: Option<Reference>,
}

// === impl Grant ===

impl Grant<'_> {
    pub(super) fn claims(&self, issuer: &str) -> Value {
        let now = self.now.as_second();
        let mut private = json!({
            "clusterName": self.cluster.as_str(),
            "namespace": self.namespace,
            "serviceaccount": {"name": self.name, "uid": self.uid},
        });
        if let Some(bound) = &self.bound {
            let name = bound.kind.claim();
            private[name] = bound.object.claim();
            if let Some(node) = &bound.node {
                private[BoundKind::Node.claim()] = node.claim();
            }
        }
        json!({
            "aud": self.audiences,
            "exp": now.saturating_add(self.seconds),
            "iat": now,
            "iss": issuer,
            "jti": uuid::Uuid::new_v4().to_string(),
            "kubernetes.io": private,
            "nbf": now,
            "sub": account_name(self.namespace, self.name),
        })
    }
}

// === impl BoundKind ===

impl BoundKind {
    /// The name of the claim.
    pub(super) fn claim(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Pod => "pod",
            Self::Node => "node",
        }
    }

    /// The resource, of the core group.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Secret => "secrets",
            Self::Pod => "pods",
            Self::Node => "nodes",
        }
    }
}

// === impl Reference ===

impl Reference {
    fn claim(&self) -> Value {
        let parts = [("name", &self.name), ("uid", &self.uid)];
        let given = parts.into_iter().filter(|(_, text)| !text.is_empty());
        let claim: Map<String, Value> =
            given.map(|(name, text)| (name.to_owned(), json!(text))).collect();
        Value::Object(claim)
    }
}
