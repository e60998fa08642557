//! The signer `kubernetes.io/kube-apiserver-client`: certificates of people, for requests in `root`
//! that somebody has approved.

use jiff::{SignedDuration, Timestamp};
use machinery::ClusterName;
use serde_json::Value;

use super::{Leaf, Lives, Request, client_usages, request_of, validity};

/// Its name.
pub(crate) const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// What its certificates live, as upstream's.
const LIVES: Lives = Lives {
    usual: SignedDuration::from_hours(365 * 24),
    most: SignedDuration::from_hours(365 * 24),
};

/// The certificate that an approved request comes to.
///
/// # Errors
/// Why there is none.
pub(crate) fn judge(object: &Value, cluster: &ClusterName, now: Timestamp) -> Result<Leaf, String> {
    if !cluster.is_root() {
        return Err(format!(
            "{CLIENT_SIGNER} issues certificates in the logical cluster root alone"
        ));
    }
    let request = Request::parse(&request_of(object)?)?;
    let encipherment = client_usages(object)?;
    let reserved = |name: &str| name.starts_with("system:");
    let [name] = request.names.as_slice() else {
        return Err("the subject must have exactly one common name".to_owned());
    };
    if name.is_empty() || reserved(name) {
        return Err("the common name must not be empty or begin with system:".to_owned());
    }
    if request.groups.iter().any(|group| reserved(group)) {
        return Err("no organization may begin with system:".to_owned());
    }
    let group = match request.groups.as_slice() {
        [] => None,
        [group] => Some(group.clone()),
        _ => return Err("the subject may have one organization at most".to_owned()),
    };
    if request.other_subject {
        return Err("the subject may have a common name and an organization only".to_owned());
    }
    if !request.uris.is_empty() || request.other_names {
        return Err("alternative names are not allowed".to_owned());
    }
    request.sound()?;
    let (not_before, not_after) = validity(object, now, LIVES);
    let (name, key) = (name.clone(), request.key);
    Ok(Leaf { name, group, uri: None, key, encipherment, not_before, not_after })
}
