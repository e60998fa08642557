//! Secrets of the type `kubernetes.io/service-account-token`: what they must hold, and how they are
//! given it.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use machinery::meta::{get, get_str, set};
use serde::Deserialize;
use serde_json::{Value, json};
use store::cache::Object;

use super::commit::parse;
use super::managed::{Tracking, manager};
use crate::auth::secret_entry;
use crate::auth::tokens::LegacyGrant;
use crate::registry::{Context, Error, Registry, Target, WriteOptions};

/// The type of these Secrets.
const TYPE: &str = "kubernetes.io/service-account-token";

/// Names the ServiceAccount.
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

/// Says which one of that name.
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// The ServiceAccount that a Secret of a token is for, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenSecret {
    /// Its name in the Secret's own namespace.
    pub(crate) account: String,
    /// Its UID; empty for whichever bears that name.
    pub(crate) uid: String,
}

/// The type alone.
#[derive(Deserialize)]
struct Typed<'s> {
    #[serde(default, borrow, rename = "type")]
    kind: Cow<'s, str>,
}

// === impl TokenSecret ===

impl TokenSecret {
    /// Reads a Secret; `None` for one of another type, or of no account.
    pub(crate) fn of(secret: &Object) -> Option<Self> {
        // Most Secrets are of other types: of them nothing else is kept.
        let json = secret.json();
        let typed = serde_json::from_slice::<Typed<'_>>(&json).ok()?;
        (typed.kind == TYPE).then(|| Self::read(&parse(secret).ok()?)).flatten()
    }

    fn read(secret: &Value) -> Option<Self> {
        let annotation =
            |name| get_str(secret, &["metadata", "annotations", name]).unwrap_or_default();
        let account = annotation(ACCOUNT_NAME);
        let is_token = get_str(secret, &["type"]) == Some(TYPE) && !account.is_empty();
        let uid = annotation(ACCOUNT_UID);
        is_token.then(|| Self { account: account.to_owned(), uid: uid.to_owned() })
    }

    /// Whether an account of the name that this Secret gives is meant.
    pub(crate) fn is_of(&self, uid: &str) -> bool {
        self.uid.is_empty() || self.uid == uid
    }
}

impl Registry {
    /// Gives a Secret what it lacks of the token, the CA and the namespace of a ServiceAccount. One
    /// that has all, or isn't the Secret that was judged any more, stays as it is.
    ///
    /// # Errors
    /// Those of an update, as when the Secret is immutable or a webhook refuses.
    pub(crate) async fn fill_token(
        &self,
        ctx: &Context,
        target: &Target,
        secret: &Object,
        account: &Object,
    ) -> Result<(), Error> {
        let place = account.key.object();
        let grant = LegacyGrant {
            cluster: &place.cluster,
            namespace: &place.namespace,
            account: account.header.name(),
            account_uid: account.header.uid(),
            secret: secret.header.name(),
        };
        let ca = self.virtuals.ca.as_bytes();
        if !lacks(&parse(secret)?, ca) {
            return Ok(());
        }
        let uid = secret.header.uid();
        let change = |old: &Value| {
            let same = get_str(old, &["metadata", "uid"]) == Some(uid);
            let meant = TokenSecret::read(old).is_some_and(|token| {
                token.account == *grant.account && token.is_of(grant.account_uid)
            });
            let mut new = old.clone();
            if !same || !meant || !lacks(old, ca) {
                return Ok(new);
            }
            let mut put = |name: &str, value: &[u8]| {
                set(&mut new, &["data", name], json!(STANDARD.encode(value)));
            };
            if !ca.is_empty() {
                put("ca.crt", ca);
            }
            if is_empty(old, "namespace") {
                put("namespace", grant.namespace.as_bytes());
            }
            if is_empty(old, "token") {
                let token = self.bearers.accounts().mint_legacy(&grant);
                put("token", token.map_err(Error::internal)?.as_bytes());
            }
            set(&mut new, &["metadata", "annotations", ACCOUNT_UID], json!(grant.account_uid));
            Ok(new)
        };
        let manager = manager(ctx, &WriteOptions::default());
        let tracking = Tracking::By(&manager);
        self.transform(ctx, target, false, false, tracking, change).await.map(|_| ())
    }

    /// Takes a Secret off the list of those that a ServiceAccount names, if it is on it.
    ///
    /// # Errors
    /// Those of an update.
    pub(crate) async fn forget_token(
        &self,
        ctx: &Context,
        target: &Target,
        account: &Object,
        secret: &str,
    ) -> Result<(), Error> {
        let names = |reference: &Value| get_str(reference, &["name"]) == Some(secret);
        let listed = |account: &Value| {
            let secrets = get(account, &["secrets"]).and_then(Value::as_array);
            secrets.is_some_and(|secrets| secrets.iter().any(names))
        };
        if !listed(&parse(account)?) {
            return Ok(());
        }
        let uid = account.header.uid();
        let change = |old: &Value| {
            let mut new = old.clone();
            if get_str(old, &["metadata", "uid"]) == Some(uid)
                && let Some(secrets) = new.get_mut("secrets").and_then(Value::as_array_mut)
            {
                secrets.retain(|reference| !names(reference));
            }
            Ok(new)
        };
        let manager = manager(ctx, &WriteOptions::default());
        let tracking = Tracking::By(&manager);
        self.transform(ctx, target, false, false, tracking, change).await.map(|_| ())
    }
}

/// Whether a Secret lacks anything of what it is for. Another CA is replaced; a token or a
/// namespace that is there stays, whatever it is.
fn lacks(secret: &Value, ca: &[u8]) -> bool {
    let other_ca = !ca.is_empty() && secret_entry(secret, "ca.crt") != ca;
    other_ca || is_empty(secret, "namespace") || is_empty(secret, "token")
}

fn is_empty(secret: &Value, entry: &str) -> bool {
    get_str(secret, &["data", entry]).is_none_or(str::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_says_whose_it_is() {
        let check = |kind: &str, name: Value, uid: Value, expect: Option<(&str, &str)>| {
            let secret = json!({"type": kind, "metadata": {"annotations": {
                ACCOUNT_NAME: name, ACCOUNT_UID: uid,
            }}});
            let read = TokenSecret::read(&secret);
            let read = read.as_ref().map(|token| (token.account.as_str(), token.uid.as_str()));
            assert_eq!(read, expect, "{secret}");
        };
        check(TYPE, json!("one"), json!(null), Some(("one", "")));
        check(TYPE, json!("one"), json!("u"), Some(("one", "u")));
        check(TYPE, json!(""), json!("u"), None);
        check(TYPE, json!(null), json!(null), None);
        check("Opaque", json!("one"), json!("u"), None);
        let any = TokenSecret { account: "one".into(), uid: String::new() };
        let one = TokenSecret { uid: "u".into(), ..any.clone() };
        assert_eq!([any.is_of("v"), one.is_of("u"), one.is_of("v")], [true, true, false]);
    }

    #[test]
    fn what_is_missing_or_of_another_server_is_lacking() {
        let check = |data: Value, expect: bool| {
            assert_eq!(lacks(&json!({"data": data}), b"ca"), expect, "{data}");
        };
        let (ca, text) = (STANDARD.encode("ca"), STANDARD.encode("x"));
        check(json!({"ca.crt": ca, "namespace": text, "token": text}), false);
        check(json!({"ca.crt": text, "namespace": text, "token": text}), true);
        check(json!({"ca.crt": ca, "namespace": "", "token": text}), true);
        check(json!({"ca.crt": ca, "namespace": text}), true);
        check(json!(null), true);
        assert!(!lacks(&json!({"data": {"namespace": text, "token": text}}), b""));
    }
}
