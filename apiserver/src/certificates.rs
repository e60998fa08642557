//! Requests for certificates: what is in one, what signers make of it, and when it is old.
//!
//! Everything here is pure. Invariants: a certificate is made from scratch, of what a signer has
//! checked; nothing of a request but its key goes into it unseen; none is an authority's.

mod agent;
mod client;
mod old;
mod request;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use machinery::meta::{get, get_i64, get_str};
use serde_json::Value;

pub(crate) use agent::judge as judge_agent;
pub(crate) use client::{CLIENT_SIGNER, judge as judge_client};
pub(crate) use old::is_old;
pub(crate) use request::Request;

/// The group of requests.
pub(crate) const GROUP: &str = "certificates.k8s.io";

/// The resource of requests.
pub(crate) const REQUESTS: &str = "certificatesigningrequests";

/// The condition of a request that was allowed.
pub(crate) const APPROVED: &str = "Approved";

/// The condition of a request that was refused.
pub(crate) const DENIED: &str = "Denied";

/// The condition of a request that its signer could not fulfil.
pub(crate) const FAILED: &str = "Failed";

/// How far a certificate reaches back, as clocks differ; less than the shortest life.
const BACK: SignedDuration = SignedDuration::from_mins(5);

/// The shortest life of a certificate.
const SHORTEST: SignedDuration = SignedDuration::from_mins(10);

/// A certificate to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// CN.
    pub(crate) name: String,
    /// O, if it has one.
    pub(crate) group: Option<String>,
    /// The one alternative name, if it has one.
    pub(crate) uri: Option<String>,
    /// The public key (SubjectPublicKeyInfo).
    pub(crate) key: Vec<u8>,
    /// Whether the key may be used to encrypt keys, too.
    pub(crate) encipherment: bool,
    /// When it begins to be valid.
    pub(crate) not_before: Timestamp,
    /// When it ends.
    pub(crate) not_after: Timestamp,
}

/// The PEM text of a request.
///
/// # Errors
/// When it is no base64.
pub(crate) fn request_of(object: &Value) -> Result<Vec<u8>, String> {
    let text = get_str(object, &["spec", "request"]).unwrap_or_default();
    STANDARD.decode(text).map_err(|error| error.to_string())
}

/// The signer that is asked.
pub(crate) fn signer_of(object: &Value) -> &str {
    get_str(object, &["spec", "signerName"]).unwrap_or_default()
}

/// Whether a request has a condition.
pub(crate) fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = get(object, &["status", "conditions"]).and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| get_str(condition, &["type"]) == Some(kind))
}

/// From when and until when a certificate is valid: as long as is asked for and at most as long as
/// the signer says, from a little before now. In whole seconds.
fn validity(object: &Value, now: Timestamp, longest: Lives) -> (Timestamp, Timestamp) {
    let asked = get_i64(object, &["spec", "expirationSeconds"]).map(SignedDuration::from_secs);
    let life = asked.unwrap_or(longest.usual).clamp(SHORTEST, longest.most);
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let begin = now.checked_sub(BACK).unwrap_or(now);
    (begin, now.checked_add(life).unwrap_or(now))
}

/// How long a signer's certificates live.
#[derive(Clone, Copy, Debug)]
struct Lives {
    usual: SignedDuration,
    most: SignedDuration,
}

/// That a key is for clients to show who they are, and for nothing else. Whether it is for
/// encryption, too, which RSA's are.
fn client_usages(object: &Value) -> Result<bool, String> {
    let usages = get(object, &["spec", "usages"]).and_then(Value::as_array);
    let usages: Vec<&str> = usages.into_iter().flatten().filter_map(Value::as_str).collect();
    let known = ["client auth", "digital signature", "key encipherment"];
    if let Some(other) = usages.iter().find(|usage| !known.contains(usage)) {
        return Err(format!("invalid usage for client certificate: {other}"));
    }
    if !usages.contains(&"client auth") {
        return Err("missing required usage for client certificate: client auth".to_owned());
    }
    Ok(usages.contains(&"key encipherment"))
}

#[cfg(test)]
pub(crate) mod tests;
