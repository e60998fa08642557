//! SyncTargets as records, and agents that rest on them.

use serde_json::json;

use super::*;
use crate::auth::objects::tests::Fixed;
use crate::auth::{Agent, Credential};

fn cluster(name: &str) -> ClusterName {
    ClusterName::parse(name).unwrap()
}

/// Puts an object at a key, named as that says.
fn put(records: &mut Fixed, key: Key, mut value: Value) {
    value["metadata"]["name"] = json!(key.object().name.to_string());
    records.put_at(key, &value);
}

/// With the SyncTarget `east` in `infra`.
fn with(spec: &Value, status: &Value) -> Fixed {
    let mut records = Fixed::default();
    let target = json!({"metadata": {"uid": "u1"}, "spec": spec, "status": status});
    put(&mut records, key(&cluster("infra"), "east"), target);
    records
}

fn agent(uid: &str, not_before: &str) -> Agent {
    let not_before = not_before.parse::<Timestamp>().unwrap().as_second();
    let credential = Credential::Certificate { not_before, expires: i64::MAX };
    Agent::new(cluster("infra"), "east", uid, credential)
}

#[test]
fn agents_rest_on_their_target() {
    let check = |status: Value, uid: &str, not_before: &str, expect: bool| {
        let records = with(&json!({}), &status);
        let found = agent(uid, not_before).target(&records).is_some();
        assert_eq!(found, expect, "{status} {uid} {not_before}");
    };
    let revoked = |time: &str| json!({"credentialsNotBefore": time});
    check(json!({}), "u1", "2026-01-01T00:00:00Z", true);
    check(json!({}), "u2", "2026-01-01T00:00:00Z", false);
    check(json!({"credentialsNotBefore": null}), "u1", "2026-01-01T00:00:00Z", true);
    check(revoked("2026-01-01T00:00:00Z"), "u1", "2026-01-01T00:00:00Z", true);
    check(revoked("2026-01-01T00:00:00.5Z"), "u1", "2026-01-01T00:00:00Z", false);
    check(revoked("2026-01-01T00:00:01Z"), "u1", "2026-01-01T00:00:00Z", false);
    check(revoked("2026-01-01T01:00:00+01:00"), "u1", "2026-01-01T00:00:00Z", true);
    // What can't be understood lets nobody in.
    check(revoked("tomorrow"), "u1", "2026-01-01T00:00:00Z", false);
    let nobody = Fixed::default();
    assert!(agent("u1", "2026-01-01T00:00:00Z").target(&nobody).is_none());
}

#[test]
fn a_type_of_a_logical_cluster_s_own_makes_no_agents() {
    let mut records = with(&json!({}), &json!({}));
    let own = ObjectKey::new(cluster("infra"), "", "synctargets.workload.kcp.io");
    put(&mut records, Key::new(&definitions(), &own), json!({"metadata": {"uid": "u2"}}));
    assert!(agent("u1", "2026-01-01T00:00:00Z").target(&records).is_none());
}

#[test]
fn whom_it_serves() {
    let check = |spec: Value, expect: &[&str]| {
        let mut records = with(&spec, &json!({}));
        for (name, stage) in [("a", "prod"), ("b", "test")] {
            let labels = json!({"metadata": {"labels": {"stage": stage}}});
            put(&mut records, record::key(&cluster(name)), labels);
        }
        let target = find(&records, &cluster("infra"), "east").unwrap();
        let served = |name: &&str| target.serves(&records, &cluster(name));
        let served: Vec<&str> = ["a", "b", "c"].into_iter().filter(served).collect();
        assert_eq!(served, expect, "{spec}");
    };
    check(json!({}), &[]);
    check(json!({"allowedClusters": {}}), &[]);
    check(json!({"allowedClusters": {"names": ["b", "c"]}}), &["b", "c"]);
    check(json!({"allowedClusters": {"selector": {}}}), &["a", "b"]);
    check(json!({"allowedClusters": {"selector": null}}), &[]);
    let prod = json!({"matchLabels": {"stage": "prod"}});
    check(json!({"allowedClusters": {"selector": prod, "names": ["c"]}}), &["a", "c"]);
}
