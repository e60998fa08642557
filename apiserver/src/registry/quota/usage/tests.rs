use serde_json::json;

use super::super::bounds::shown;
use super::*;

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "cases are written where they are used")]
fn check(plural: &str, object: Value, expect: Value) {
    let now = "2026-01-01T12:00:00Z".parse().unwrap();
    let mut used = usage(&GroupResource::new("", plural), &object, now);
    assert!(used.remove(&format!("count/{plural}")).is_some());
    assert_eq!(shown(&used), expect, "{object}");
}

#[test]
fn objects_are_counted() {
    check("configmaps", json!({}), json!({"configmaps": "1"}));
    check("serviceaccounts", json!({}), json!({}));
    let widgets = GroupResource::new("example.com", "widgets");
    let used = usage(&widgets, &json!({}), Timestamp::UNIX_EPOCH);
    assert_eq!(shown(&used), json!({"count/widgets.example.com": "1"}));
    for (name, expect) in [
        ("count/widgets.example.com", Some(widgets)),
        ("count/pods", Some(GroupResource::new("", "pods"))),
        ("secrets", Some(GroupResource::new("", "secrets"))),
        ("pods", None),
        ("requests.cpu", None),
    ] {
        assert_eq!(counted(name), expect, "{name}");
    }
}

#[test]
fn pods_use_what_their_containers_ask_for() {
    let container = |cpu: &str, limit: &str| json!({"name": "c", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": limit}}});
    let pod = json!({"spec": {"containers": [container("100m", "1"), container("200m", "1")]}});
    let two = json!({"cpu": "300m", "requests.cpu": "300m", "limits.cpu": "2", "pods": "1"});
    check("pods", pod.clone(), two);
    // One that runs before the others counts if it asks for more; one that stays beside them adds.
    let mut with = pod.clone();
    let mut side = container("50m", "1");
    side["restartPolicy"] = json!("Always");
    with["spec"]["initContainers"] = json!([side, container("1", "1")]);
    let more = json!({"cpu": "1050m", "requests.cpu": "1050m", "limits.cpu": "3", "pods": "1"});
    check("pods", with, more);
    let mut with = pod.clone();
    with["spec"]["overhead"] = json!({"cpu": "10m", "memory": "1Mi"});
    let more = json!({
        "cpu": "310m", "requests.cpu": "310m", "limits.cpu": "2010m", "pods": "1",
        "memory": "1Mi", "requests.memory": "1Mi",
    });
    check("pods", with, more);
    let mut own = pod.clone();
    own["spec"]["resources"] = json!({"requests": {"cpu": "5"}});
    let more = json!({"cpu": "5", "requests.cpu": "5", "limits.cpu": "2", "pods": "1"});
    check("pods", own, more);
    let vendor = json!({"requests": {"example.com/gpu": "2", "hugepages-2Mi": "4Mi"}});
    check(
        "pods",
        json!({"spec": {"containers": [{"resources": vendor}]}}),
        json!({"requests.example.com/gpu": "2", "hugepages-2Mi": "4Mi",
               "requests.hugepages-2Mi": "4Mi", "pods": "1"}),
    );
    // What has ended uses nothing.
    for (part, field, value) in [
        ("status", "phase", json!("Succeeded")),
        ("metadata", "deletionTimestamp", json!("2026-01-01T11:59:00Z")),
    ] {
        let mut ended = pod.clone();
        ended[part][field] = value;
        ended["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        check("pods", ended, json!({}));
    }
}

#[test]
fn containers_must_ask_for_what_is_bounded() {
    let names = BTreeSet::from(["cpu", "limits.memory", "pods"]);
    let of = |containers: Value| missing(&json!({"spec": {"containers": containers}}), &names);
    let full = json!({"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}});
    assert_eq!(of(json!([{"name": "a", "resources": full}])), None);
    let told = of(json!([{"name": "b"}, {"name": "a", "resources": {"requests": {"cpu": "1"}}}]));
    assert_eq!(told.as_deref(), Some("must specify cpu for: b; limits.memory for: a,b"));
    let own = json!({"spec": {
        "containers": [{"name": "b"}], "resources": {"requests": {"cpu": "1"}},
    }});
    assert_eq!(missing(&own, &names), None);
}

#[test]
fn claims_count_by_class() {
    let asked = |storage: &str| json!({"requests": {"storage": storage}});
    check(
        "persistentvolumeclaims",
        json!({"spec": {"resources": asked("1Gi"), "storageClassName": "fast"}}),
        json!({
            "persistentvolumeclaims": "1", "requests.storage": "1Gi",
            "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
            "fast.storageclass.storage.k8s.io/requests.storage": "1Gi",
        }),
    );
    check(
        "persistentvolumeclaims",
        json!({"spec": {"resources": asked("1Gi")},
               "status": {"allocatedResources": {"storage": "2Gi"}}}),
        json!({"persistentvolumeclaims": "1", "requests.storage": "2Gi"}),
    );
    check(
        "persistentvolumeclaims",
        json!({"spec": {"resources": asked("1500m")}}),
        json!({"persistentvolumeclaims": "1", "requests.storage": "2"}),
    );
    let claims = GroupResource::new("", "persistentvolumeclaims");
    assert!(concerns(&claims, "fast.storageclass.storage.k8s.io/requests.storage"));
    assert!(!concerns(&claims, "requests.cpu"));
}

#[test]
fn services_count_their_ports() {
    let of = |kind: &str| json!({"spec": {"type": kind, "ports": [{"port": 1}, {"port": 2}]}});
    let used = |ports: &str, balancers: &str| json!({"services": "1", "services.nodeports": ports, "services.loadbalancers": balancers});
    check("services", of("ClusterIP"), used("0", "0"));
    check("services", of("NodePort"), used("2", "0"));
    check("services", of("LoadBalancer"), used("2", "1"));
    let mut few = of("LoadBalancer");
    few["spec"]["allocateLoadBalancerNodePorts"] = json!(false);
    few["spec"]["ports"][0]["nodePort"] = json!(30000);
    check("services", few, used("1", "1"));
}
