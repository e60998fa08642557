//! Whatever servers send, nothing panics.

use std::time::Duration;

use engine::{Engine, Event, Failure, Now, Outcome};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::objects::{FINALIZER, STATE, TARGET, kinds, target};

const WORDS: [&str; 35] = [
    "metadata",
    "name",
    "namespace",
    "labels",
    "annotations",
    "finalizers",
    "uid",
    "spec",
    "status",
    "replicas",
    "resourceVersion",
    "managedFields",
    "deletionTimestamp",
    "generation",
    "conditions",
    "observedGeneration",
    "items",
    "details",
    "causes",
    STATE,
    "Sync",
    "Remove",
    FINALIZER,
    TARGET,
    "workloads.kcp.io/upstream",
    "workloads.kcp.io/synctarget",
    "kcp.io/cluster",
    "fieldsV1",
    "f:spec",
    "k:{}",
    "v:1",
    "i:0",
    "web",
    "1",
    "",
];

/// Anything, with words that mean something to the engine.
fn values() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(WORDS.to_vec());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..6).prop_map(|members| {
                let members = members.into_iter().map(|(key, value)| (key.to_owned(), value));
                Value::Object(members.collect())
            }),
        ]
    })
}

/// An object that is nearly right: something in it is replaced.
fn objects() -> impl Strategy<Value = Value> {
    let locator = json!({"hub": "hub-1", "cluster": "infra", "namespace": "shop", "name": "web",
        "uid": "u1", "copy": "shop/web", "generation": 1, "resourceVersion": "1"});
    let object = json!({
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "7",
            "generation": 1, "finalizers": [FINALIZER],
            "labels": {STATE: "Sync", "workloads.kcp.io/synctarget": TARGET},
            "annotations": {"kcp.io/cluster": "infra",
                "workloads.kcp.io/upstream": locator.to_string()},
            "managedFields": [{"manager": "kcp-syncer", "operation": "Apply", "fieldsV1":
                {"f:spec": {"f:replicas": {}}}}],
        },
        "spec": {"replicas": 1}, "status": {"replicas": 1, "observedGeneration": 1},
    });
    let places = prop::sample::select(vec![
        "/metadata",
        "/metadata/labels",
        "/metadata/annotations",
        "/metadata/finalizers",
        "/metadata/resourceVersion",
        "/metadata/uid",
        "/metadata/managedFields",
        "/metadata/managedFields/0/fieldsV1",
        "/metadata/labels/sync.workloads.kcp.io~1infra.east",
        "/metadata/annotations/workloads.kcp.io~1upstream",
        "/spec",
        "/status",
        "/metadata/name",
    ]);
    (places, values()).prop_map(move |(place, value)| {
        let mut object = object.clone();
        *object.pointer_mut(place).unwrap() = value;
        object
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_panics(
        steps in prop::collection::vec((0..9_u8, objects(), values(), 0..6_usize), 1..40),
    ) {
        let mut engine = Engine::new(target());
        let mut clock = 0;
        let mut now = |more: u64| {
            clock += more;
            Now { clock: Duration::from_millis(clock), wall: jiff::Timestamp::UNIX_EPOCH }
        };
        engine.types(kinds(), now(1));
        engine.identity(Some(target().identity), now(1));
        let all: Vec<_> = kinds().into_iter().map(|kind| kind.resource).collect();
        for resource in &all {
            for event in [
                Event::InitStart, Event::InitDone { resource_version: "1".to_owned() },
            ] {
                engine.upstream(resource, event.clone(), now(1));
                engine.downstream(resource, event, now(1));
            }
        }
        for (what, object, value, kind) in steps {
            let resource = &all[kind];
            match what {
                0 | 1 => engine.upstream(resource, Event::Applied(object), now(10)),
                2 => engine.downstream(resource, Event::Applied(object), now(10)),
                3 => engine.upstream(resource, Event::Deleted(object), now(10)),
                4 => engine.downstream(resource, Event::Deleted(value), now(10)),
                5 => engine.records(Event::Applied(value), now(10)),
                6 => engine.namespaces(Event::Applied(object), now(10)),
                7 => engine.event(&value, now(10)),
                _ => engine.upstream(resource, Event::Applied(value), now(100_000)),
            }
            for (index, action) in engine.plan(now(1), 4).into_iter().enumerate() {
                prop_assert!(!action.request.path().is_empty());
                let outcome = match index {
                    0 => Outcome::answer(200, json!({"metadata": {"uid": "u1"}})),
                    1 => Outcome::answer(404, json!({"details": {"name": "web"}})),
                    2 => Outcome::answer(422, Value::Null),
                    _ => Outcome::Failed(Failure::Timeout),
                };
                engine.outcome(action.id, outcome, now(10));
            }
            engine.summary();
            engine.next_due();
        }
    }
}
