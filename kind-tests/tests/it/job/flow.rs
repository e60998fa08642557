//! Objects go down, their status comes up.

use anyhow::{Result, ensure};
use kind_tests::eventually;
use serde_json::json;

use super::steady::greets;
use super::world::{READY, World, absent, application, apply, for_east, prints};

const STATE: &str = "--output=jsonpath={.metadata.labels.sync\\.workloads\\.kcp\\.io/shop\\.east}/{.metadata.finalizers[0]}";

/// A Deployment, a ConfigMap and a Service run in `east`, and nowhere else.
pub(super) fn objects_by_label(world: &mut World) -> Result<()> {
    world.apply(&application("web", "default", &for_east()))?;
    for kind in ["deployment", "configmap", "service"] {
        let what = format!("{kind}/web");
        prints(&world.hub, &["get", &what, STATE], "Sync/workloads.kcp.io/shop.east")?;
    }
    world.hub.ok(&["wait", "deployment/web", "--for=condition=Available", "--timeout=110s"])?;
    prints(&world.hub, &["get", "deployment/web", READY], "2")?;
    let observed = "--output=jsonpath={.metadata.generation}={.status.observedGeneration}";
    eventually("the generation to be observed", || {
        let said = world.hub.ok(&["get", "deployment/web", observed])?;
        let pair = said.split_once('=');
        ensure!(pair.is_some_and(|(is, seen)| is == seen), "{said}");
        Ok(())
    })?;
    greets(&world.east, "web")?;
    absent(&world.west, &["deployment/web", "configmap/web", "service/web"])
}

/// Scale, configuration and template are followed; what is changed downstream is put back.
pub(super) fn changes(world: &mut World) -> Result<()> {
    world.hub.ok(&["scale", "deployment/web", "--replicas=3"])?;
    prints(&world.hub, &["get", "deployment/web", READY], "3")?;
    world.hub.ok(&["set", "env", "deployment/web", "EXTRA=1"])?;
    world.hub.ok(&["rollout", "status", "deployment/web", "--timeout=110s"])?;
    let variables = "--output=jsonpath={.spec.template.spec.containers[0].env[*].name}";
    prints(&world.east, &["get", "deployment/web", variables], "GREETING EXTRA")?;
    world.hub.ok(&["patch", "configmap/web", "--patch", "{\"data\":{\"more\":\"1\"}}"])?;
    let more = "--output=jsonpath={.data.more}";
    prints(&world.east, &["get", "configmap/web", more], "1")?;
    world.east.ok(&["scale", "deployment/web", "--replicas=1"])?;
    prints(&world.east, &["get", "deployment/web", "--output=jsonpath={.spec.replicas}"], "3")
}

/// A label on a namespace assigns what is in it.
pub(super) fn a_namespace_by_label(world: &mut World) -> Result<()> {
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "team", "labels": for_east()},
    });
    let config = application("settings", "team", &json!({}))[0].clone();
    world.apply(&[namespace, config])?;
    let data = "--output=jsonpath={.data.greeting}";
    eventually("the copy", || {
        world.east.ok(&["get", "configmap/settings", "--namespace=team", data])
    })?;
    world.hub.ok(&["delete", "namespace", "team", "--timeout=60s"])?;
    absent(&world.east, &["configmap/settings", "--namespace=team"])
}

/// Without its label an object goes from the cluster and stays at the hub.
pub(super) fn unassigned(world: &mut World) -> Result<()> {
    world.hub.ok(&["label", "configmap/web", "workloads.kcp.io/cluster-"])?;
    absent(&world.east, &["configmap/web"])?;
    prints(&world.hub, &["get", "configmap/web", STATE], "/")?;
    world.hub.ok(&["label", "configmap/web", "workloads.kcp.io/cluster=east"])?;
    eventually("the copy again", || world.east.ok(&["get", "configmap/web"])).map(|_| ())
}

/// What cannot be applied is reported and holds up nobody.
pub(super) fn invalid_beside_valid(world: &mut World) -> Result<()> {
    let service = |name: &str, spec| {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": "default", "labels": for_east()},
            "spec": spec,
        })
    };
    let ports = json!([{"port": 80}]);
    // The range of node ports is each cluster's own, so the hub does not judge it.
    let bad = service("bad", json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}));
    world.apply(&[bad, service("good", json!({"ports": ports}))])?;
    eventually("the good one", || world.east.ok(&["get", "service/good"]))?;
    eventually("a report on the bad one", || {
        let applied =
            "--output=jsonpath={.items[*].status.conditions[?(@.type==\"Applied\")].status}";
        let said = world.hub.ok(&["get", "objectsyncs", applied])?;
        ensure!(said.contains("False"), "{said}");
        Ok(())
    })?;
    world.hub.ok(&["delete", "service", "bad", "good", "--timeout=60s"])?;
    absent(&world.east, &["service/good"])
}

/// An autoscaler of the cluster has the replicas where the hub leaves them to it: its number goes up,
/// and other changes at the hub leave it alone.
pub(super) fn an_autoscaler_decides(world: &mut World) -> Result<()> {
    let [config, mut deployment, _] = application("elastic", "default", &for_east());
    deployment["metadata"]["annotations"] = json!({contract::YIELD: contract::YIELD_REPLICAS});
    deployment["spec"]["replicas"] = 1.into();
    world.apply(&[config, deployment])?;
    eventually("the copy", || world.east.ok(&["get", "deployment/elastic"]))?;
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "elastic"});
    // Nobody measures anything here; fewer than the least is what its controller needs no measure for.
    let autoscaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "elastic"},
        "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 3},
    });
    apply(&world.east, &[autoscaler])?;
    let replicas = "--output=jsonpath={.spec.replicas}";
    prints(&world.hub, &["get", "deployment/elastic", replicas], "2")?;
    prints(&world.hub, &["get", "deployment/elastic", READY], "2")?;
    world.hub.ok(&["set", "env", "deployment/elastic", "EXTRA=1"])?;
    let variables = "--output=jsonpath={.spec.template.spec.containers[0].env[*].name}";
    prints(&world.east, &["get", "deployment/elastic", variables], "GREETING EXTRA")?;
    for side in [&world.hub, &world.east] {
        prints(side, &["get", "deployment/elastic", replicas], "2")?;
    }
    world.east.ok(&["delete", "horizontalpodautoscaler/elastic"])?;
    world.hub.ok(&["delete", "deployment/elastic", "configmap/elastic", "--timeout=60s"])?;
    absent(&world.east, &["deployment/elastic", "configmap/elastic"])
}
