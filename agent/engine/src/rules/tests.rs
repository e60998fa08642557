//! What goes down of each kind, row by row.

#![allow(clippy::needless_pass_by_value, reason = "objects are written where they are used")]

use serde_json::{Value, json};

use super::*;

fn rule(resource: &str) -> (Rules, Arc<Rule>) {
    let rules = Rules::new();
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let rule = rules.of(&GroupResource::new(group, resource));
    (rules, rule)
}

/// Checks what goes down of an object, without `apiVersion` and `kind`.
fn check(resource: &str, object: Value, expect: Value) {
    let (rules, rule) = rule(resource);
    let mut desired = rules.desired(&rule, &object, &|name| format!("kcp-{name}"));
    let metadata = desired.pointer_mut("/metadata").unwrap().as_object_mut().unwrap();
    if metadata.is_empty() {
        desired.as_object_mut().unwrap().remove("metadata");
    }
    assert_eq!(desired, expect, "{resource}");
}

/// An object whose fields in `owned` somebody has set.
fn owned(mut object: Value, owned: Value) -> Value {
    let entry = json!([{"manager": "kubectl", "operation": "Update", "fieldsV1": owned}]);
    object["metadata"]["managedFields"] = entry;
    object
}

#[test]
fn every_object() {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "a", "namespace": "shop", "generateName": "a-", "uid": "1", "selfLink": "/",
            "resourceVersion": "1", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 1,
            "ownerReferences": [{"uid": "2"}], "finalizers": ["workloads.kcp.io/infra.east"],
            "managedFields": [],
            "labels": {
                "app": "a", "workloads.kcp.io/cluster": "east",
                "sync.workloads.kcp.io/infra.east": "Sync",
            },
            "annotations": {
                "note": "b", "kcp.io/cluster": "infra", "workloads.kcp.io/orphan": "true",
                "workloads.kcp.io/upstream": "{}", "workloads.kcp.io/yield": "replicas",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
            },
        },
        "data": {"a": "1", "gone": null},
        "template": {"metadata": {"creationTimestamp": null}, "list": [null, {"x": null}]},
        "status": {"x": 1},
    });
    check(
        "configmaps",
        object,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"labels": {"app": "a"}, "annotations": {"note": "b"}},
            "data": {"a": "1"},
            "template": {"metadata": {}, "list": [null, {}]},
        }),
    );
}

#[test]
fn karmada_150_services_with_what_people_have_set() {
    let spec = json!({"spec": {
        "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack", "healthCheckNodePort": 30001, "type": "LoadBalancer",
        "ports": [
            {"port": 80, "protocol": "TCP", "nodePort": 30080},
            {"port": 81, "protocol": "TCP", "nodePort": 30081},
        ],
    }, "metadata": {}});
    check(
        "services",
        spec.clone(),
        json!({"spec": {"type": "LoadBalancer", "ports": [
            {"port": 80, "protocol": "TCP"}, {"port": 81, "protocol": "TCP"},
        ]}}),
    );
    // What people have set stays: one port, and the families.
    let set = owned(
        spec,
        json!({"f:spec": {
            "f:healthCheckNodePort": {}, "f:ipFamilies": {}, "f:ipFamilyPolicy": {}, "f:clusterIP": {},
            "f:ports": {
                "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:nodePort": {}},
                "k:{\"port\":81,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
            },
        }}),
    );
    check(
        "services",
        set,
        json!({"spec": {
            "type": "LoadBalancer", "healthCheckNodePort": 30001,
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "ports": [
                {"port": 80, "protocol": "TCP", "nodePort": 30080}, {"port": 81, "protocol": "TCP"},
            ],
        }}),
    );
    let headless = json!({"spec": {"clusterIP": "None", "clusterIPs": ["None"]}, "metadata": {
        "annotations": {
            "service.beta.kubernetes.io/aws-load-balancer-type": "nlb",
            "cloud.google.com/neg-status": "x",
        },
    }});
    check(
        "services",
        headless,
        json!({
            "spec": {"clusterIP": "None", "clusterIPs": ["None"]},
            "metadata": {"annotations": {"service.beta.kubernetes.io/aws-load-balancer-type": "nlb"}},
        }),
    );
}

#[test]
fn karmada_527_jobs_without_generated_labels() {
    let labels = json!({
        "app": "a", "controller-uid": "1", "batch.kubernetes.io/controller-uid": "1",
        "job-name": "a", "batch.kubernetes.io/job-name": "a",
    });
    let job = json!({
        "metadata": {
            "labels": {"controller-uid": "1", "batch.kubernetes.io/controller-uid": "1"},
            "annotations": {"batch.kubernetes.io/job-tracking": ""},
        },
        "spec": {
            "selector": {"matchLabels": {"controller-uid": "1"}}, "ttlSecondsAfterFinished": 5,
            "managedBy": "x", "parallelism": 2,
            "template": {"metadata": {"labels": labels}, "spec": {}},
        },
    });
    check(
        "jobs.batch",
        job.clone(),
        json!({
            "metadata": {"labels": {}, "annotations": {}},
            "spec": {"parallelism": 2, "template": {"metadata": {"labels": {"app": "a"}}, "spec": {}}},
        }),
    );
    let mut manual = job;
    manual["spec"]["manualSelector"] = json!(true);
    let mut expect = manual.clone();
    expect["metadata"]["annotations"] = json!({});
    for key in ["ttlSecondsAfterFinished", "managedBy"] {
        expect["spec"].as_object_mut().unwrap().remove(key);
    }
    check("jobs.batch", manual, expect);
}

#[test]
fn pods() {
    let pod = json!({"metadata": {}, "spec": {
        "nodeName": "n1", "priority": 0, "ephemeralContainers": [],
        "volumes": [{"name": "kube-api-access-x7"}, {"name": "data"}],
        "tolerations": [
            {"key": "node.kubernetes.io/not-ready"}, {"key": "node.kubernetes.io/unreachable"},
            {"key": "gpu"},
        ],
        "containers": [{"name": "a", "volumeMounts": [
            {"name": "kube-api-access-x7", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
            {"name": "data", "mountPath": "/data"},
        ]}],
        "initContainers": [{"name": "b", "volumeMounts": [{"name": "kube-api-access-x7"}]}],
    }});
    check(
        "pods",
        pod.clone(),
        json!({"spec": {
            "volumes": [{"name": "data"}], "tolerations": [{"key": "gpu"}],
            "containers": [{"name": "a", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            "initContainers": [{"name": "b", "volumeMounts": []}],
        }}),
    );
    let set = owned(pod, json!({"f:spec": {"f:nodeName": {}, "f:tolerations": {}}}));
    let (rules, rule) = rule("pods");
    let desired = rules.desired(&rule, &set, &|name| name.to_owned());
    assert_eq!(desired["spec"]["nodeName"], "n1");
    assert_eq!(desired["spec"]["tolerations"].as_array().unwrap().len(), 3);
}

/// Single fields that do not go down: (type, object, what goes down).
#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn fields_of_kinds() {
    let annotations = |keys: &[&str]| {
        let all: Map<String, Value> =
            keys.iter().map(|key| ((*key).to_owned(), json!("x"))).collect();
        json!({"metadata": {"annotations": all}})
    };
    let none = || annotations(&[]);
    let cases = [
        (
            "deployments.apps",
            annotations(&[
                "deployment.kubernetes.io/revision",
                "deployment.kubernetes.io/revision-history",
            ]),
            none(),
        ),
        ("daemonsets.apps", annotations(&["deprecated.daemonset.template.generation"]), none()),
        (
            "persistentvolumeclaims",
            annotations(&[
                "pv.kubernetes.io/bind-completed",
                "pv.kubernetes.io/bound-by-controller",
                "volume.kubernetes.io/selected-node",
                "volume.kubernetes.io/storage-provisioner",
                "volume.beta.kubernetes.io/storage-provisioner",
                "mine",
            ]),
            annotations(&["mine"]),
        ),
        (
            "persistentvolumeclaims",
            json!({"spec": {"volumeName": "pv1", "storageClassName": "fast"}, "metadata": {}}),
            json!({"spec": {"storageClassName": "fast"}}),
        ),
        (
            "persistentvolumeclaims",
            owned(json!({"spec": {"volumeName": "pv1"}}), json!({"f:spec": {"f:volumeName": {}}})),
            json!({"spec": {"volumeName": "pv1"}}),
        ),
        (
            "persistentvolumes",
            json!({"metadata": {"annotations": {"pv.kubernetes.io/provisioned-by": "x"}}, "spec":
                {"claimRef": {"uid": "1", "resourceVersion": "2", "name": "a", "namespace": "shop"}}}),
            json!({"metadata": {"annotations": {}}, "spec":
                {"claimRef": {"name": "a", "namespace": "kcp-shop"}}}),
        ),
        (
            "serviceaccounts",
            json!({"secrets": [{"name": "a-token-x1"}, {"name": "a-dockercfg-2"}, {"name": "b"}],
                "imagePullSecrets": [{"name": "a-dockercfg-2"}, {"name": "pull"}]}),
            json!({"secrets": [{"name": "b"}], "imagePullSecrets": [{"name": "pull"}]}),
        ),
        (
            "cronjobs.batch",
            json!({"spec": {"jobTemplate": {"spec": {"managedBy": "x", "template": {"metadata":
                {"labels": {"controller-uid": "1", "a": "b"}}}}}}}),
            json!({"spec": {"jobTemplate": {"spec": {"template": {"metadata":
                {"labels": {"a": "b"}}}}}}}),
        ),
        (
            "statefulsets.apps",
            json!({"spec": {"volumeClaimTemplates": [{"spec": {}, "status": {"phase": "Pending"}}]}}),
            json!({"spec": {"volumeClaimTemplates": [{"spec": {}}]}}),
        ),
        (
            "customresourcedefinitions.apiextensions.k8s.io",
            json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": "x",
                "service": {"name": "a"}}}}}, "status": {"storedVersions": ["v1"]}}),
            json!({"spec": {"conversion": {"webhook": {"clientConfig": {
                "service": {"name": "a"}}}}}}),
        ),
        (
            "networkpolicies.networking.k8s.io",
            json!({"spec": {"ingress": [{"from": [
                {"namespaceSelector": {"matchLabels":
                    {"kubernetes.io/metadata.name": "shop", "a": "b"}}},
                {"podSelector": {}},
            ]}], "egress": [{"to": [{"namespaceSelector": {"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["x", "y"]},
                {"key": "team", "operator": "In", "values": ["x"]},
            ]}}]}]}}),
            json!({"spec": {"ingress": [{"from": [
                {"namespaceSelector": {"matchLabels":
                    {"kubernetes.io/metadata.name": "kcp-shop", "a": "b"}}},
                {"podSelector": {}},
            ]}], "egress": [{"to": [{"namespaceSelector": {"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "In",
                    "values": ["kcp-x", "kcp-y"]},
                {"key": "team", "operator": "In", "values": ["x"]},
            ]}}]}]}}),
        ),
        (
            "rolebindings.rbac.authorization.k8s.io",
            json!({"subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "shop"},
                {"kind": "User", "name": "b"}]}),
            json!({"subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "kcp-shop"},
                {"kind": "User", "name": "b"}]}),
        ),
        (
            "clusterroles.rbac.authorization.k8s.io",
            json!({"aggregationRule": {"x": []}, "rules": [{}]}),
            json!({"aggregationRule": {"x": []}}),
        ),
        ("clusterroles.rbac.authorization.k8s.io", json!({"rules": [{}]}), json!({"rules": [{}]})),
        // Custom resources go down whole.
        (
            "workflows.argoproj.io",
            json!({"spec": {"clusterIP": "x"}, "status": {"phase": "y"}, "extra": 1}),
            json!({"spec": {"clusterIP": "x"}, "extra": 1}),
        ),
    ];
    for (resource, object, expect) in cases {
        check(resource, object, expect);
    }
}

/// Objects that are never synced: (type, object, whether it is skipped).
#[test]
fn objects_that_stay_here() {
    let secret = |kind: &str| json!({"type": kind, "metadata": {"name": "a"}});
    let named = |name: &str| json!({"metadata": {"name": name}});
    let cases = [
        ("secrets", secret("Opaque"), false),
        ("secrets", secret("kubernetes.io/tls"), false),
        ("secrets", secret("kubernetes.io/service-account-token"), true),
        ("secrets", secret("bootstrap.kubernetes.io/token"), true),
        ("secrets", secret("helm.sh/release.v1"), true),
        ("secrets", named("a"), false),
        ("configmaps", named("kube-root-ca.crt"), true),
        ("configmaps", named("kube-root-ca"), false),
        ("events", named("a"), true),
        ("endpointslices.discovery.k8s.io", named("a"), true),
        ("mutatingwebhookconfigurations.admissionregistration.k8s.io", named("a"), true),
        ("leases.coordination.k8s.io", named("a"), true),
        ("nodes", named("a"), true),
        ("deployments.apps", named("a"), false),
        ("widgets.example.org", named("a"), false),
    ];
    for (resource, object, expect) in cases {
        assert_eq!(rule(resource).1.skips(&object), expect, "{resource} {object}");
    }
}

#[test]
fn objects_that_have_ended() {
    let job = |kind: &str, status: &str| {
        json!({"status": {"conditions": [{"type": "Suspended", "status": "True"},
            {"type": kind, "status": status}]}})
    };
    let cases = [
        ("jobs.batch", job("Complete", "True"), true),
        ("jobs.batch", job("Failed", "True"), true),
        ("jobs.batch", job("Failed", "False"), false),
        ("jobs.batch", job("SuccessCriteriaMet", "True"), false),
        ("jobs.batch", json!({}), false),
        ("pods", json!({"status": {"phase": "Succeeded"}}), true),
        ("pods", json!({"status": {"phase": "Running"}}), false),
        ("deployments.apps", job("Complete", "True"), false),
    ];
    for (resource, object, expect) in cases {
        assert_eq!(rule(resource).1.has_ended(&object), expect, "{resource} {object}");
    }
}

#[test]
fn statuses_going_up() {
    let cases = [
        ("cronjobs.batch", json!({"active": [1], "last": "x"}), Some(json!({"last": "x"}))),
        ("deployments.apps", json!({"replicas": 1}), Some(json!({"replicas": 1}))),
        ("customresourcedefinitions.apiextensions.k8s.io", json!({"a": 1}), None),
        ("widgets.example.org", json!(1), None),
    ];
    for (resource, status, expect) in cases {
        assert_eq!(rule(resource).1.status_up(&json!({"status": status})), expect, "{resource}");
    }
}

#[test]
fn what_scales() {
    let hpa = json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}}});
    let (_, rule) = rule("horizontalpodautoscalers.autoscaling");
    assert_eq!(rule.scaled(&hpa), Some(("Deployment".to_owned(), "web".to_owned())));
    assert_eq!(rule.scaled(&json!({"spec": {}})), None);
}

/// The order in which an application goes down.
#[test]
fn order() {
    let types = [
        "customresourcedefinitions.apiextensions.k8s.io",
        "serviceaccounts",
        "secrets",
        "persistentvolumeclaims",
        "services",
        "deployments.apps",
        "poddisruptionbudgets.policy",
        "ingresses.networking.k8s.io",
    ];
    let classes: Vec<_> = types.iter().map(|resource| rule(resource).1.class).collect();
    assert!(classes.windows(2).all(|pair| pair[0] < pair[1]), "{classes:?}");
    assert_eq!(rule("configmaps").1.class, rule("secrets").1.class);
    assert_eq!(rule("widgets.example.org").1.class, rule("deployments.apps").1.class);
}

#[test]
fn patterns() {
    let like = |pattern: &str, text: &str| is_like(&[pattern.to_owned()], text);
    for (pattern, text, expect) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a*", "ab", true),
        ("*b", "ab", true),
        ("*-token-*", "x-token-y", true),
        ("*-token-*", "x-token", false),
        ("*", "", true),
        ("a*a", "a", false),
        ("a*b*c", "a-b-c", true),
        ("a*b*c", "a-c-b", false),
    ] {
        assert_eq!(like(pattern, text), expect, "{pattern} {text}");
    }
}

#[test]
fn shared_names() {
    assert!(rule("serviceaccounts").1.is_shared("default"));
    assert!(!rule("serviceaccounts").1.is_shared("builder"));
    assert!(!rule("secrets").1.is_shared("default"));
}

/// Lists that are sets, and one value to server-side apply. `secrets` of ServiceAccounts are told apart
/// by their names there, and need nothing.
#[test]
fn merged_lists() {
    let merged = |resource: &str| -> Vec<String> {
        rule(resource).1.merge.iter().map(|way| way.pointer().to_owned()).collect()
    };
    assert_eq!(merged("serviceaccounts"), ["/imagePullSecrets"]);
    assert_eq!(merged("pods"), ["/spec/tolerations"]);
    assert_eq!(merged("deployments.apps"), [""; 0]);
}
