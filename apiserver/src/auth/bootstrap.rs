//! Bootstrap tokens: Secrets in `kube-system` of a logical cluster that let something new introduce
//! itself, as agents do (upstream: cluster-bootstrap).
//!
//! Invariants: such a token is known in its own logical cluster alone; its name and groups can only
//! be those of bootstrappers. A token that names a SyncTarget of its logical cluster, by name and
//! UID, and that expires, lets its bearer ask for the certificate of that SyncTarget's agent.

use std::sync::Arc;

use contract::{BOOTSTRAP_TARGET_NAME, BOOTSTRAP_TARGET_UID};
use jiff::Timestamp;
use machinery::ClusterName;
use machinery::meta::get_str;
use serde_json::Value;

use crate::auth::objects::{Objects, secret_entry};
use crate::auth::recent::{digest, same};
use crate::auth::{Agent, Credential, UserInfo};

/// The group of all of them.
const GROUP: &str = "system:bootstrappers";

/// The type of their Secrets.
const TYPE: &str = "bootstrap.kubernetes.io/token";

/// Who a token is in a logical cluster, if it is a bootstrap token there.
pub(super) fn identify(
    objects: &dyn Objects,
    cluster: &ClusterName,
    token: &str,
    now: Timestamp,
) -> Option<UserInfo> {
    let (id, key) = split(token)?;
    let secret =
        objects.core(cluster, "secrets", "kube-system", &format!("bootstrap-token-{id}"))?;
    if secret.header.is_deleting() {
        return None;
    }
    let secret: Value = serde_json::from_slice(&secret.json()).ok()?;
    if get_str(&secret, &["type"]) != Some(TYPE) {
        return None;
    }
    let entry = |name: &str| String::from_utf8(secret_entry(&secret, name)).unwrap_or_default();
    let good = same(&digest(&entry("token-secret")), &digest(key))
        && entry("token-id") == id
        && !is_expired(&entry("expiration"), now)
        && entry("usage-bootstrap-authentication") == "true";
    if !good {
        return None;
    }
    let groups = groups(&entry("auth-extra-groups"))?;
    let target = (entry(BOOTSTRAP_TARGET_NAME), entry(BOOTSTRAP_TARGET_UID));
    let agent = Agent::new(cluster.clone(), &target.0, &target.1, Credential::Bootstrap);
    let bound = !entry("expiration").is_empty() && agent.target(objects).is_some();
    let user = UserInfo {
        name: format!("system:bootstrap:{id}"),
        groups,
        home: Some(cluster.clone()),
        agent: bound.then(|| Arc::new(agent)),
        ..UserInfo::default()
    };
    Some(user.authenticated())
}

/// The id and the secret part of `abcdef.0123456789abcdef`.
fn split(token: &str) -> Option<(&str, &str)> {
    let (id, key) = token.split_once('.')?;
    let plain = |part: &str| part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9'));
    (id.len() == 6 && key.len() == 16 && plain(id) && plain(key)).then_some((id, key))
}

/// A time that can't be read is past.
fn is_expired(expiration: &str, now: Timestamp) -> bool {
    !expiration.is_empty() && expiration.parse::<Timestamp>().map_or(true, |end| end <= now)
}

/// The groups, sorted; `None` if one of them is no group of bootstrappers.
fn groups(extra: &str) -> Option<Vec<String>> {
    let mut groups = vec![GROUP.to_owned()];
    for group in extra.split(',').filter(|_| !extra.is_empty()) {
        let rest = group.strip_prefix(GROUP)?.strip_prefix(':')?;
        let usual = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9');
        let ends = rest.bytes().last().is_some_and(usual);
        let whole = rest.bytes().all(|byte| usual(byte) || matches!(byte, b':' | b'-'));
        if rest.len() > 256 || !ends || !whole {
            return None;
        }
        groups.push(group.to_owned());
    }
    groups.sort_unstable();
    groups.dedup();
    Some(groups)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;
    use crate::auth::objects::tests::Fixed;

    const TOKEN: &str = "abcdef.0123456789abcdef";

    fn cluster(name: &str) -> ClusterName {
        ClusterName::parse(name).unwrap()
    }

    /// Who the token is, with the Secret changed by (entry, value) pairs.
    fn found(changes: &[(&str, &str)], token: &str) -> Option<UserInfo> {
        let mut secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system", "uid": "u"},
            "type": TYPE,
        });
        let entries = [
            ("token-id", "abcdef"),
            ("token-secret", "0123456789abcdef"),
            ("usage-bootstrap-authentication", "true"),
        ];
        for (name, value) in entries.iter().chain(changes) {
            match *name {
                "type" => secret["type"] = json!(value),
                "deletionTimestamp" => secret["metadata"][name] = json!(value),
                _ => secret["data"][name] = json!(STANDARD.encode(value)),
            }
        }
        let mut objects = Fixed::default();
        objects.put(&cluster("a"), "secrets", &secret);
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(identify(&objects, &cluster("b"), token, now), None, "known in a alone");
        identify(&objects, &cluster("a"), token, now)
    }

    #[test]
    fn who_it_is() {
        let user = found(&[], TOKEN).unwrap();
        assert_eq!(user.name, "system:bootstrap:abcdef");
        assert_eq!(user.groups, [GROUP, "system:authenticated"]);
        assert_eq!(user.home, Some(cluster("a")));
        let groups = "system:bootstrappers:z:1,system:bootstrappers:a";
        let user = found(&[("auth-extra-groups", groups)], TOKEN).unwrap();
        let expect =
            [GROUP, "system:bootstrappers:a", "system:bootstrappers:z:1", "system:authenticated"];
        assert_eq!(user.groups, expect);
        assert!(found(&[("expiration", "2026-01-01T00:00:01Z")], TOKEN).is_some());
        assert!(found(&[("expiration", "2026-01-01T02:00:01+02:00")], TOKEN).is_some());
    }

    #[test]
    fn who_it_is_not() {
        let check = |changes: &[(&str, &str)], token: &str| {
            assert_eq!(found(changes, token), None, "{changes:?} {token}");
        };
        for token in [
            "abcdef.0123456789abcdee",
            "abcdee.0123456789abcdef",
            "abcdef.0123456789abcde",
            "abcdef.0123456789abcdef0",
            "ABCDEF.0123456789abcdef",
            "abcdef",
            "",
        ] {
            check(&[], token);
        }
        for change in [
            ("type", "Opaque"),
            ("deletionTimestamp", "2026-01-01T00:00:00Z"),
            ("token-id", "abcdeg"),
            ("token-secret", ""),
            ("usage-bootstrap-authentication", "false"),
            ("expiration", "2026-01-01T00:00:00Z"),
            ("expiration", "tomorrow"),
            ("auth-extra-groups", "system:masters"),
            ("auth-extra-groups", "system:bootstrappers"),
            ("auth-extra-groups", "system:bootstrappers:"),
            ("auth-extra-groups", "system:bootstrappers:a,"),
            ("auth-extra-groups", "system:bootstrappers:A"),
            ("auth-extra-groups", "system:bootstrappers:a-"),
            ("auth-extra-groups", "system:bootstrappers:a,system:masters"),
        ] {
            check(&[change], TOKEN);
        }
    }
}
