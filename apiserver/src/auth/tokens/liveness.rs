//! A token whose signature is good, and whether it is still good here and now.

use std::sync::Arc;

use jiff::Timestamp;
use machinery::ClusterName;
use machinery::meta::get_str;
use serde_json::Value;
use store::cache::Object;

use super::claims::{BoundKind, Claims, Private, Reference};
use super::{account_groups, account_name, legacy};
use crate::auth::objects::{Objects, secret_entry};
use crate::auth::recent::{TokenDigest, same};
use crate::auth::{AUTHENTICATED, Refusal, UserInfo};

/// Seconds by which clocks may differ, and for which what is being deleted still counts, as
/// upstream.
const LEEWAY: i64 = 60;

/// What a token says that one of our keys has signed.
#[derive(Debug)]
pub(super) struct Verified {
    pub(super) cluster: ClusterName,
    pub(super) issuer: String,
    pub(super) audiences: Vec<String>,
    pub(super) user: Arc<UserInfo>,
    namespace: String,
    account: Reference,
    bound: Option<(BoundKind, Reference)>,
    /// The Secret that holds it, if it is of that form.
    held_in: Option<String>,
    expires: Option<i64>,
    not_before: Option<i64>,
    issued: Option<i64>,
}

// === impl Verified ===

impl Verified {
    /// Reads claims that were signed.
    ///
    /// # Errors
    /// When they lack what every token has.
    pub(super) fn read(mut claims: Claims) -> Result<Self, Refusal> {
        let (private, id, held_in) = match claims.private.take() {
            Some(private) if claims.issuer != legacy::ISSUER => (private, &*claims.id, None),
            _ => (claims.legacy()?, "", Some(claims.legacy_secret.clone())),
        };
        let cluster = ClusterName::parse(&private.cluster_name)
            .map_err(|_| Refusal::wrong("the token names no logical cluster"))?;
        let user = user(&cluster, &private, id);
        if claims.subject != user.name {
            return Err(Refusal::wrong("sub claim is invalid"));
        }
        let Private { namespace, account, secret, pod, node, .. } = private;
        let bound = match (secret, pod, node) {
            (Some(secret), _, _) => Some((BoundKind::Secret, secret)),
            (None, Some(pod), _) => Some((BoundKind::Pod, pod)),
            (None, None, Some(node)) => Some((BoundKind::Node, node)),
            (None, None, None) => None,
        };
        Ok(Self {
            cluster,
            issuer: claims.issuer,
            audiences: claims.audiences.0,
            user: Arc::new(user),
            namespace,
            account,
            bound,
            held_in,
            expires: claims.expires.map(|time| time.0),
            not_before: claims.not_before.map(|time| time.0),
            issued: claims.issued.map(|time| time.0),
        })
    }

    /// Whether it is of the form that Secrets hold.
    pub(super) fn is_legacy(&self) -> bool {
        self.held_in.is_some()
    }

    pub(super) fn check_times(&self, now: Timestamp) -> Result<(), Refusal> {
        let now = now.as_second();
        // Only a Secret can hold a token for ever.
        let expired = match self.expires {
            Some(expires) => now.saturating_sub(LEEWAY) > expires,
            None => !self.is_legacy(),
        };
        if expired {
            return Err(Refusal::wrong("service account token has expired"));
        }
        let early = |time: Option<i64>| time.is_some_and(|time| now.saturating_add(LEEWAY) < time);
        if early(self.not_before) {
            return Err(Refusal::wrong("service account token is not valid yet"));
        }
        if early(self.issued) {
            return Err(Refusal::wrong("service account token is issued in the future"));
        }
        Ok(())
    }

    /// That what the token stands for is there: the ServiceAccount, and what the token is bound to.
    pub(super) fn check_objects(
        &self,
        objects: &dyn Objects,
        digest: &TokenDigest,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let Self { cluster, namespace, account, .. } = self;
        if let Some(secret) = &self.held_in {
            let secret = objects.core(cluster, "secrets", namespace, secret);
            check_holder(secret, digest, namespace, &account.name)?;
        }
        let found = objects.core(cluster, "serviceaccounts", namespace, &account.name);
        let found = found.ok_or_else(|| {
            Refusal::absent(format!("serviceaccounts \"{}\" not found", account.name))
        })?;
        if *found.header.uid() != *account.uid {
            let uid = found.header.uid();
            return Err(Refusal::wrong(format!(
                "service account UID ({uid}) does not match claim ({})",
                account.uid
            )));
        }
        if is_gone(&found, now) || (self.is_legacy() && found.header.is_deleting()) {
            let name = &account.name;
            return Err(Refusal::wrong(format!(
                "service account {namespace}/{name} has been deleted"
            )));
        }
        let Some((kind, bound)) = &self.bound else { return Ok(()) };
        let place = if *kind == BoundKind::Node { "" } else { namespace };
        let found = objects.core(cluster, kind.plural(), place, &bound.name);
        let found = found.ok_or_else(|| Refusal::absent(INVALIDATED))?;
        if *found.header.uid() != *bound.uid {
            let (what, uid) = (kind.claim(), found.header.uid());
            let whose = match kind {
                BoundKind::Secret => "service account secret",
                BoundKind::Pod => "service account pod",
                BoundKind::Node => "service account node",
            };
            return Err(Refusal::wrong(format!(
                "{what} UID ({uid}) does not match {whose} ref claim ({})",
                bound.uid
            )));
        }
        if is_gone(&found, now) {
            return Err(Refusal::wrong(INVALIDATED));
        }
        Ok(())
    }
}

// === impl Claims ===

impl Claims {
    /// What a token that a Secret holds says of its ServiceAccount.
    ///
    /// # Errors
    /// When it lacks what each of them has.
    fn legacy(&self) -> Result<Private, Refusal> {
        let missing = [
            (&self.subject, "sub claim is missing"),
            (&self.legacy_namespace, "namespace claim is missing"),
            (&self.legacy_secret, "secretName claim is missing"),
            (&self.legacy_name, "serviceAccountName claim is missing"),
            (&self.legacy_uid, "serviceAccountUID claim is missing"),
        ];
        if let Some((_, why)) = missing.iter().find(|(claim, _)| claim.is_empty()) {
            return Err(Refusal::wrong(*why));
        }
        Ok(Private {
            cluster_name: self.legacy_cluster.clone(),
            namespace: self.legacy_namespace.clone(),
            account: Reference { name: self.legacy_name.clone(), uid: self.legacy_uid.clone() },
            secret: None,
            pod: None,
            node: None,
        })
    }
}

const INVALIDATED: &str = "service account token has been invalidated";

/// Whether an object is on its way out for longer than clocks differ.
fn is_gone(object: &Object, now: Timestamp) -> bool {
    let Some(deleted) = object.header.deletion_timestamp() else { return false };
    // A time that can't be read is long ago.
    let deleted = deleted.parse::<Timestamp>().map_or(0, Timestamp::as_second);
    deleted < now.as_second().saturating_sub(LEEWAY)
}

/// That the Secret is there and holds this very token.
fn check_holder(
    secret: Option<Arc<Object>>,
    digest: &TokenDigest,
    namespace: &str,
    account: &str,
) -> Result<(), Refusal> {
    let invalidated = "Token has been invalidated";
    let secret = secret.ok_or_else(|| Refusal::absent(invalidated))?;
    if secret.header.is_deleting() {
        return Err(Refusal::wrong(invalidated));
    }
    let value: Value = serde_json::from_slice(&secret.json()).unwrap_or_default();
    let held = String::from_utf8(secret_entry(&value, "token")).unwrap_or_default();
    if !same(&crate::auth::recent::digest(&held), digest) {
        return Err(Refusal::wrong("Token does not match server's copy"));
    }
    let label = get_str(&value, &["metadata", "labels", legacy::INVALID_SINCE]);
    if label.is_some_and(|since| !since.is_empty()) {
        let name = secret.header.name();
        return Err(Refusal::wrong(format!(
            "the token in secret {namespace}/{name} for service account {namespace}/{account} \
             has been marked invalid"
        )));
    }
    Ok(())
}

/// The ServiceAccount as a caller.
fn user(cluster: &ClusterName, private: &Private, id: &str) -> UserInfo {
    let Private { namespace, account, pod, node, .. } = private;
    let [all, own] = account_groups(namespace);
    let mut user = UserInfo {
        name: account_name(namespace, &account.name),
        uid: account.uid.clone(),
        groups: vec![all, own, AUTHENTICATED.to_owned()],
        home: Some(cluster.clone()),
        ..UserInfo::default()
    };
    let mut say = |key: &str, value: String| {
        if !value.is_empty() {
            user.extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value]);
        }
    };
    if !id.is_empty() {
        say("credential-id", format!("JTI={id}"));
    }
    for (what, object) in [("pod", pod), ("node", node)] {
        let Some(object) = object else { continue };
        say(&format!("{what}-name"), object.name.clone());
        say(&format!("{what}-uid"), object.uid.clone());
    }
    user
}
