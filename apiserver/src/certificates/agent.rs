//! The signer `kcp.io/syncer`: certificates of the agents of SyncTargets, in each logical cluster
//! for its own.

use contract::{AGENTS, AgentUri, agent_name};
use jiff::{SignedDuration, Timestamp};
use machinery::ClusterName;
use machinery::meta::get_str;
use serde_json::Value;

use super::{Leaf, Lives, Request, client_usages, request_of, validity};
use crate::auth::targets::SyncTarget;

/// What its certificates live: a day, and a week at most.
const LIVES: Lives =
    Lives { usual: SignedDuration::from_hours(24), most: SignedDuration::from_hours(7 * 24) };

/// The certificate that a request comes to, given the SyncTargets of its logical cluster by UID.
/// The subject must be exactly that of an agent of one of them.
///
/// A certificate is never older than the SyncTarget lets it be, so one that is issued after a
/// revocation is good at once; a request from before one is void.
///
/// # Errors
/// Why there is none.
pub(crate) fn judge(
    object: &Value,
    cluster: &ClusterName,
    now: Timestamp,
    target: impl Fn(&str) -> Option<SyncTarget>,
) -> Result<Leaf, String> {
    let request = Request::parse(&request_of(object)?)?;
    let encipherment = client_usages(object)?;
    let ([name], [group]) = (request.names.as_slice(), request.groups.as_slice()) else {
        return Err("the subject must have one common name and one organization".to_owned());
    };
    let uid = name.strip_prefix(contract::AGENT_PREFIX).unwrap_or_default();
    if group != AGENTS || uid.is_empty() || request.other_subject {
        return Err(format!(
            "the subject must be CN={}, O={AGENTS} and nothing else",
            agent_name("<UID of the SyncTarget>")
        ));
    }
    let Some(target) = target(uid) else {
        return Err(format!("no SyncTarget of this logical cluster has the UID {uid}"));
    };
    let uri = AgentUri { cluster: cluster.as_str(), name: &target.name }.to_string();
    if request.other_names || request.uris.iter().any(|given| *given != uri) {
        return Err(format!("the only alternative name may be the URI {uri}"));
    }
    request.sound()?;
    let (mut not_before, not_after) = validity(object, now, LIVES);
    if let Some(revoked) = target.credentials_not_before {
        let asked = get_str(object, &["metadata", "creationTimestamp"]).unwrap_or_default();
        if asked.parse::<Timestamp>().map_or(true, |asked| asked <= revoked) {
            return Err(format!("credentials from before {revoked} are revoked"));
        }
        // In whole seconds, as certificates have them, and not before the revocation.
        let second = revoked.as_second() + i64::from(revoked.subsec_nanosecond() > 0);
        let whole = Timestamp::from_second(second).unwrap_or(revoked);
        not_before = not_before.max(whole);
    }
    if not_before >= not_after {
        return Err("credentials would be revoked before they are valid".to_owned());
    }
    let (name, key) = (name.clone(), request.key);
    let (group, uri) = (Some(AGENTS.to_owned()), Some(uri));
    Ok(Leaf { name, group, uri, key, encipherment, not_before, not_after })
}
