//! Agents of SyncTargets: each of their rights, and what is next to it.

use http::Method;
use serde_json::{Value, json};

use crate::authority::{Pair, params};
use crate::client::Ask;
use crate::deeds::eventually;
use crate::types::{CRDS, is};
use crate::yard::{REQUESTS, TARGETS, Target, Yard, request};

/// A type with status and scale, in one logical cluster.
async fn define_things(yard: &Yard, cluster: &str) {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": open, "status": open}});
    let path = format!("/clusters/{cluster}/{CRDS}");
    let body = json!({
        "metadata": {"name": "things.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "Things"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                }},
            }],
        },
    });
    yard.admin(Method::POST, &path, &body).await;
    let path = format!("{path}/things.x.io");
    eventually(&yard.hub, &path, |status, value| status == 200 && is("Established")(status, value))
        .await;
}

fn things(cluster: &str) -> String {
    format!("/clusters/{cluster}/apis/x.io/v1/namespaces/default/things")
}

pub(crate) fn secrets(cluster: &str) -> String {
    format!("/clusters/{cluster}/api/v1/namespaces/default/secrets")
}

/// An object that is assigned to `infra.east`.
fn assigned(name: &str) -> Value {
    json!({
        "apiVersion": "x.io/v1",
        "kind": "Thing",
        "metadata": {
            "name": name,
            "labels": {"sync.workloads.kcp.io/infra.east": "Sync"},
            "finalizers": ["workloads.kcp.io/infra.east"],
        },
        "spec": {"replicas": 1},
    })
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap_or_else(|| panic!("{list}"));
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

/// A server with `infra`, whose SyncTarget `east` serves `app` too, and with `other`, which it does
/// not serve.
pub(crate) async fn yard() -> (Yard, Target, Pair) {
    let yard = Yard::new().await;
    for cluster in ["infra", "app", "other"] {
        yard.begin(cluster).await;
        define_things(&yard, cluster).await;
        let mut secret = json!({"metadata": {"name": "plain"}, "stringData": {"a": "b"}});
        yard.admin(Method::POST, &secrets(cluster), &secret).await;
        let label = json!({"sync.workloads.kcp.io/infra.east": "Sync"});
        secret["metadata"] = json!({"name": "given", "labels": label});
        yard.admin(Method::POST, &secrets(cluster), &secret).await;
    }
    let spec = json!({
        "kubeconfig": "secret", "allowedClusters": {"names": ["app"]}, "namespaceMapping": "Hashed",
    });
    let east = yard.target("infra", "east", &spec, "aaaaaa").await;
    let agent = yard.agent(&east).await;
    (yard, east, agent)
}

#[tokio::test]
async fn an_agent_sees_what_is_assigned_to_it_and_nothing_else() {
    let (yard, east, agent) = yard().await;
    let query = east.query();
    for cluster in ["infra", "app"] {
        let list = yard.get(&agent, &format!("{}?{query}", secrets(cluster))).await;
        assert_eq!(names(&list.json()), ["given"], "{cluster}");
        let over_all = format!("/clusters/{cluster}/api/v1/secrets?{query}");
        assert_eq!(names(&yard.get(&agent, &over_all).await.json()), ["given"]);
        let one = yard.get(&agent, &format!("{}/given", secrets(cluster))).await;
        assert_eq!(one.json()["data"]["a"], "Yg==");
        // What is not assigned, and what is not there, are refused alike.
        let of = |name: &str| format!("{}/{name}", secrets(cluster));
        let plain = yard.get(&agent, &of("plain")).await.fails(403, "Forbidden");
        let missing = yard.get(&agent, &of("missing")).await.fails(403, "Forbidden");
        assert_eq!(plain.replace("plain", "missing"), missing);
        for path in ["version", "api", "apis", "apis/x.io/v1", "openapi/v3", "openapi/v2"] {
            let answer = yard.get(&agent, &format!("/clusters/{cluster}/{path}")).await;
            assert_eq!(answer.status, 200, "{cluster} {path}");
        }
    }
    let wild = format!("/clusters/*/api/v1/secrets?{query}");
    let list = yard.get(&agent, &wild).await.json();
    let clusters: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["annotations"]["kcp.io/cluster"].as_str().unwrap())
        .collect();
    assert_eq!(clusters, ["app", "infra"]);

    for selector in [
        "",
        "?labelSelector=a%3Db",
        "?labelSelector=sync.workloads.kcp.io/infra.west",
        "?labelSelector=!sync.workloads.kcp.io/infra.east",
        "?labelSelector=sync.workloads.kcp.io/infra.east!%3DSync",
        "?labelSelector=sync.workloads.kcp.io/infra.east+notin+(a)",
        "?fieldSelector=metadata.name%3Dgiven",
    ] {
        for path in [secrets("infra"), secrets("app"), "/clusters/*/api/v1/secrets".into()] {
            yard.get(&agent, &format!("{path}{selector}")).await.fails(403, "Forbidden");
            let watch = if selector.is_empty() { "?watch=1" } else { "&watch=1" };
            let watch = format!("{path}{selector}{watch}");
            yard.get(&agent, &watch).await.fails(403, "Forbidden");
        }
    }
    let foreign = format!("{}?{query}", secrets("other"));
    let (other, root) = (secrets("other"), "/clusters/root/api/v1/namespaces?".to_owned() + &query);
    for path in [
        &foreign,
        &format!("{other}/given"),
        &root,
        "/clusters/other/api",
        "/clusters/other/apis/x.io/v1",
        "/clusters/other/openapi/v3",
        "/clusters/nowhere/api",
        "/clusters/*/apis",
        "/clusters/*/openapi/v3",
        "/clusters/infra/metrics",
        "/clusters/root/metrics",
    ] {
        yard.get(&agent, path).await.fails(403, "Forbidden");
    }
    yard.hub.shutdown().await;
}

#[tokio::test]
async fn an_agent_changes_its_marks_and_the_status() {
    let (yard, _, agent) = yard().await;
    for cluster in ["infra", "app"] {
        let path = things(cluster);
        yard.admin(Method::POST, &path, &assigned("web")).await;
        let plain = json!({"metadata": {"name": "plain"}, "spec": {"replicas": 1}});
        yard.admin(Method::POST, &path, &plain).await;
        let web = format!("{path}/web");
        let ready = json!({"status": {"replicas": 1}, "spec": {"replicas": 9}});
        let answer = yard.patch(&agent, &format!("{web}/status"), &ready).await.json();
        assert_eq!(
            (&answer["status"], &answer["spec"]),
            (&json!({"replicas": 1}), &json!({"replicas": 1}))
        );
        for (patch, part) in [
            (json!({"spec": {"replicas": 2}}), ""),
            (json!({"metadata": {"annotations": {"a": "b"}}}), ""),
            (json!({"metadata": {"labels": {"a": "b"}}}), ""),
            (json!({"metadata": {"labels": {"workloads.kcp.io/cluster": "east"}}}), ""),
            (json!({"metadata": {"labels": {"sync.workloads.kcp.io/infra.west": "Sync"}}}), ""),
            (json!({"metadata": {"finalizers": ["workloads.kcp.io/infra.west"]}}), ""),
            (json!({"metadata": {"finalizers": ["a.io/b"]}}), ""),
            (
                json!({"metadata": {"ownerReferences": [
                {"apiVersion": "v1", "kind": "Secret", "name": "plain", "uid": "u"}]}}),
                "",
            ),
            (json!({"spec": {"replicas": 2}}), "/scale"),
        ] {
            let answer = yard.patch(&agent, &format!("{web}{part}"), &patch).await;
            answer.fails(403, "Forbidden");
        }
        // What it may not touch, it is not told about, whatever it tries.
        let test = json!([{"op": "test", "path": "/spec/replicas", "value": 1}]).to_string();
        let probe = |name: &str| {
            let ask = Ask::new(Method::PATCH, &format!("{path}/{name}"));
            ask.header("content-type", "application/json-patch+json").body(test.clone())
        };
        let there = yard.ask(&agent, probe("plain")).await.fails(403, "Forbidden");
        let missing = yard.ask(&agent, probe("missing")).await.fails(403, "Forbidden");
        assert_eq!(there.replace("plain", "missing"), missing);
        let body = json!({"metadata": {"labels": {"sync.workloads.kcp.io/infra.east": "Sync"}}});
        yard.patch(&agent, &format!("{path}/plain"), &body).await.fails(403, "Forbidden");
        let status = json!({"status": {"replicas": 1}});
        yard.patch(&agent, &format!("{path}/plain/status"), &status).await.fails(403, "Forbidden");
        yard.send(&agent, Method::PUT, &web, &assigned("web")).await.fails(403, "Forbidden");
        yard.send(&agent, Method::DELETE, &web, &json!({})).await.fails(403, "Forbidden");
        yard.send(&agent, Method::POST, &path, &assigned("new")).await.fails(403, "Forbidden");
        let apply = Ask::new(Method::PATCH, &format!("{path}/new?fieldManager=a&force=true"));
        let apply = apply.header("content-type", "application/apply-patch+yaml");
        let applied = yard.ask(&agent, apply.body(assigned("new").to_string())).await;
        applied.fails(403, "Forbidden");

        let yields = json!({"metadata": {"annotations": {"workloads.kcp.io/yield": "replicas"}}});
        yard.change(&web, &yields).await;
        let scaled = json!({"spec": {"replicas": 5}});
        let answer = yard.patch(&agent, &format!("{web}/scale"), &scaled).await;
        assert_eq!(answer.json()["spec"]["replicas"], 5, "{answer:?}");
        let gone = yard.hub.admin(Ask::new(Method::DELETE, &web)).await;
        assert_eq!(gone.status, 200);
        let release = json!({"metadata": {
            "labels": {"sync.workloads.kcp.io/infra.east": null}, "finalizers": null}});
        assert_eq!(yard.patch(&agent, &web, &release).await.status, 200);
        assert_eq!(yard.hub.get(&web).await.status, 404);
    }
    yard.hub.shutdown().await;
}

/// What an agent remembers of a hub counts only there: it is told which hub and logical cluster its
/// SyncTarget is of, and nobody can make it believe another.
#[tokio::test]
async fn an_agent_and_the_operator_are_told_which_hub_it_is() {
    let (yard, east, agent) = yard().await;
    let forged = json!({"metadata": {"annotations": {"core.kcp.io/hub-uid": "forged", "a": "b"}}});
    yard.change(&east.path(), &forged).await;
    let cluster = yard.hub.get("/apis/core.kcp.io/v1alpha1/logicalclusters/infra").await.json();
    let operator = yard.person(contract::OPERATOR, &[contract::OPERATORS]);
    let mut hubs = Vec::new();
    let status = format!("{}/status", east.path());
    let patch = json!({"status": {"agentVersion": "1"}});
    for answer in [
        yard.get(&agent, &east.path()).await,
        yard.get(&operator, &east.path()).await,
        yard.hub.get(&east.path()).await,
        yard.patch(&agent, &status, &patch).await,
    ] {
        let annotations = &answer.json()["metadata"]["annotations"];
        assert_eq!(
            annotations[contract::LOGICAL_CLUSTER_UID],
            cluster["metadata"]["uid"],
            "{answer:?}"
        );
        assert_eq!(annotations["a"], "b");
        assert_eq!(annotations[contract::HUB_INCARNATION], "0", "it was never restored");
        hubs.push(annotations[contract::HUB_UID].as_str().unwrap().to_owned());
    }
    hubs.dedup();
    assert_eq!(hubs.len(), 1, "{hubs:?}");
    assert_ne!(hubs[0], "forged");
    // It is shown, and not stored: lists show what is.
    let list = yard.hub.get(&format!("/clusters/infra/{TARGETS}")).await.json();
    let stored = &list["items"][0]["metadata"]["annotations"];
    assert_eq!(stored, &json!({"core.kcp.io/hub-uid": "forged", "a": "b"}));
    yard.hub.shutdown().await;
}

#[tokio::test]
async fn what_an_agent_writes_of_its_own() {
    let (yard, east, agent) = yard().await;
    yard.target("infra", "west", &json!({}), "bbbbbb").await;
    // Its SyncTarget, without what leads to the physical cluster.
    let shown = yard.get(&agent, &east.path()).await;
    assert_eq!(shown.json()["spec"]["mode"], "Pull");
    assert!(!shown.text().contains("\"kubeconfig\""), "{shown:?}");
    let status = json!({"status": {"agentVersion": "1"}});
    let written = yard.patch(&agent, &format!("{}/status", east.path()), &status).await;
    assert_eq!(written.json()["status"]["agentVersion"], "1");
    assert!(!written.text().contains("\"kubeconfig\""), "{written:?}");
    // Not which agents are let in.
    let path = format!("{}/status", east.path());
    for own in [json!({"credentialsNotBefore": "2020-01-01T00:00:00Z"}), json!({"clusterUID": "u"})]
    {
        yard.patch(&agent, &path, &json!({"status": own})).await.fails(403, "Forbidden");
    }
    yard.patch(&agent, &east.path(), &json!({"spec": {"mode": "None"}}))
        .await
        .fails(403, "Forbidden");
    let west = format!("/clusters/infra/{TARGETS}/west");
    yard.get(&agent, &west).await.fails(403, "Forbidden");
    yard.patch(&agent, &format!("{west}/status"), &status).await.fails(403, "Forbidden");
    yard.get(&agent, &format!("/clusters/infra/{TARGETS}?{}", east.query()))
        .await
        .fails(403, "Forbidden");

    // Its Lease.
    let leases = "/clusters/infra/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let lease =
        |name: &str| json!({"metadata": {"name": name}, "spec": {"leaseDurationSeconds": 40}});
    let own = format!("synctarget-{}", east.uid);
    let made = yard.send(&agent, Method::POST, leases, &lease(&own)).await;
    assert_eq!(made.status, 201, "{made:?}");
    let renew = json!({"spec": {"holderIdentity": "me"}});
    assert_eq!(yard.patch(&agent, &format!("{leases}/{own}"), &renew).await.status, 200);
    yard.send(&agent, Method::POST, leases, &lease("synctarget-x")).await.fails(403, "Forbidden");
    yard.admin(Method::POST, leases, &lease("synctarget-y")).await;
    yard.patch(&agent, &format!("{leases}/synctarget-y"), &renew).await.fails(403, "Forbidden");
    yard.get(&agent, &format!("{leases}/synctarget-y")).await.fails(403, "Forbidden");

    // Events, in the logical clusters that it serves.
    let event = json!({
        "metadata": {"generateName": "e"},
        "involvedObject": {"kind": "Secret", "namespace": "default", "name": "given"},
        "reason": "Synced", "type": "Normal",
    });
    for (cluster, code) in [("infra", 201), ("app", 201), ("other", 403)] {
        let path = format!("/clusters/{cluster}/api/v1/namespaces/default/events");
        let answer = yard.send(&agent, Method::POST, &path, &event).await;
        assert_eq!(answer.status, code, "{answer:?}");
    }

    // Anything else that everybody may.
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "secrets"}}});
    let path = "/clusters/infra/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    yard.send(&agent, Method::POST, path, &review).await.fails(403, "Forbidden");
    let impersonate =
        Ask::get(&format!("{}/plain", secrets("infra"))).header("impersonate-user", "a");
    yard.ask(&agent, impersonate).await.fails(403, "Forbidden");

    // The next certificate, by the present one.
    let requests = format!("/clusters/infra/{REQUESTS}");
    let (body, key) = request(&east.params(), "kcp.io/syncer");
    let made = yard.send(&agent, Method::POST, &requests, &body).await.json();
    assert_eq!(made["spec"]["username"], format!("system:syncer:{}", east.uid));
    let name = made["metadata"]["name"].as_str().unwrap();
    let path = format!("{requests}/{name}");
    let next = (yard.issued(async || yard.get(&agent, &path).await).await, key);
    assert_eq!(yard.get(&next, &east.path()).await.status, 200);
    let (foreign, _) = request(&params("ann", &["dev"]), "kubernetes.io/kube-apiserver-client");
    yard.send(&agent, Method::POST, &requests, &foreign).await.fails(403, "Forbidden");
    let (theirs, _) = request(&params("ann", &["dev"]), "example.com/x");
    let theirs = yard.admin(Method::POST, &requests, &theirs).await;
    let path = format!("{requests}/{}", theirs["metadata"]["name"].as_str().unwrap());
    yard.get(&agent, &path).await.fails(403, "Forbidden");
    yard.hub.shutdown().await;
}
