//! What an engine costs, in a process of its own.

#![allow(clippy::unwrap_used, reason = "this is a test")]

use std::time::Duration;

use engine::{
    Adoption, Engine, Event, GroupResource, Identity, Kind, Limits, Mapping, Now, Outcome, Scope,
    SyncedType, Target,
};
use serde_json::{Value, json};

const OBJECTS: usize = 2000;

/// The memory of this process that is in use, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kilobytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}

/// A Deployment of some 3 KB.
fn deployment(index: usize) -> Value {
    let env: Vec<_> = { 0..40 }
        .map(|n| json!({"name": format!("VARIABLE_{n}"), "value": format!("value-{index}-{n}")}))
        .collect();
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": format!("web-{index}"), "namespace": "shop", "uid": format!("up-{index:030}"),
            "resourceVersion": (1000 + index).to_string(), "generation": 1,
            "labels": {"app": "web", "sync.workloads.kcp.io/infra.east": "Sync"},
            "finalizers": ["workloads.kcp.io/infra.east"],
            "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsV1": {
                "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {}}}},
            }}],
        },
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1", "env": env}]},
        }},
        "status": {"observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "conditions": [
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
                "message": "Deployment has minimum availability.",
                "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable",
                "message": "ReplicaSet has successfully progressed.",
                "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]},
    })
}

#[test]
fn two_thousand_objects_on_both_sides() {
    let deployments = GroupResource::new("apps", "deployments");
    let now = Now { clock: Duration::from_secs(1), wall: jiff::Timestamp::UNIX_EPOCH };
    let identity = Identity {
        hub: "hub".into(),
        logical_cluster: "lc".into(),
        target: "target".into(),
        incarnation: 0,
    };
    let mut engine = Engine::new(Target {
        identity: identity.clone(),
        cluster: "infra".into(),
        name: "east".into(),
        wildcard: false,
        mapping: Mapping::Same,
        upsync: std::sync::Arc::default(),
        status_down: std::sync::Arc::default(),
        adoption: Adoption::Never,
        reserved_namespaces: Default::default(),
        limits: Limits::default(),
    });
    engine.identity(Some(identity), now);
    let kind = SyncedType {
        resource: deployments.clone(),
        version: "v1".into(),
        kind: "Deployment".into(),
        scope: Scope::Namespaced,
        upstream_status: true,
        downstream_status: true,
        upstream_scale: true,
    };
    engine.types(vec![kind], now);
    let done = || Event::InitDone { resource_version: "5000".to_owned() };
    let size = deployment(1).to_string().len();
    assert!((2500..4500).contains(&size), "{size}");

    let before = resident();
    engine.upstream(&deployments, Event::InitStart, now);
    for index in 0..OBJECTS {
        engine.upstream(&deployments, Event::Applied(deployment(index)), now);
    }
    engine.upstream(&deployments, done(), now);
    engine.downstream(&deployments, Event::InitStart, now);
    engine.downstream(&deployments, done(), now);
    let mut revision = 1;
    loop {
        let actions = engine.plan(now, 64);
        if actions.is_empty() {
            break;
        }
        for action in actions {
            revision += 1;
            let sent: Value = serde_json::from_slice(&action.request.body).unwrap_or_default();
            let missing = json!({"details": {"name": &*action.request.name}});
            let outcome = match action.kind {
                Kind::GetNamespace => {
                    Outcome::answer(200, json!({"metadata": {"name": "shop", "uid": "n"}}))
                }
                Kind::GetDownstream => Outcome::answer(404, missing),
                Kind::Apply => {
                    let mut copy = sent;
                    copy["metadata"]["uid"] = format!("down-{revision:030}").into();
                    copy["metadata"]["resourceVersion"] = revision.to_string().into();
                    copy["metadata"]["generation"] = 1.into();
                    copy["status"] = deployment(0)["status"].clone();
                    Outcome::answer(201, copy)
                }
                Kind::Event => Outcome::answer(201, Value::Null),
                other => panic!("{other:?}"),
            };
            engine.outcome(action.id, outcome, now);
        }
    }
    assert_eq!(engine.summary().synced, OBJECTS as u64);
    let used = resident().saturating_sub(before);
    assert!(used < 10 << 20, "{} KB", used >> 10);
}
