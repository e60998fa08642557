//! Services: what each cluster allocates is its own.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::row::{Row, config, is};

fn service(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

/// Addresses and ports that the cluster has allocated outlive updates, and never go up as wishes.
pub(super) fn keeps_what_was_allocated(row: &Row<'_>) -> Result<()> {
    let ports = json!([{"name": "http", "port": 80}, {"name": "https", "port": 443}]);
    let spec = json!({"type": "NodePort", "selector": {"app": "web"}, "ports": ports});
    row.apply(service("web", &spec))?;
    let first = row.copied("service/web", |_| Ok(()))?;
    let allocated =
        ["/spec/clusterIP", "/spec/clusterIPs", "/spec/ports/0/nodePort", "/spec/ipFamilies"];
    for path in allocated {
        ensure!(first.pointer(path).is_some(), "{path} is not allocated: {first}");
    }
    let port = |port: u32, target: u32| json!({"name": "http", "port": port, "targetPort": target});
    row.patch("service/web", &json!({"spec": {"ports": [port(80, 8080)]}}))?;
    let then = row.copied("service/web", |copy| {
        is(copy, "/spec/ports/0/targetPort", &json!(8080))?;
        is(copy, "/spec/ports/1", &Value::Null)
    })?;
    for path in allocated {
        is(&then, path, first.pointer(path).unwrap_or(&Value::Null))?;
    }
    let object = row.object("service/web")?;
    for path in allocated {
        ensure!(object.pointer(path).is_none(), "{path} went up: {object}");
    }
    Ok(())
}

/// A port that a person asks for is the one that is there, and is followed.
pub(super) fn node_port_of_the_user(row: &Row<'_>) -> Result<()> {
    let spec = |port: u32| json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]});
    row.apply(service("web", &spec(31_080)))?;
    row.copied("service/web", |copy| is(copy, "/spec/ports/0/nodePort", &json!(31_080)))?;
    row.apply(service("web", &spec(31_081)))?;
    row.copied("service/web", |copy| is(copy, "/spec/ports/0/nodePort", &json!(31_081)))?;
    Ok(())
}

/// The port of health checks is allocated once, and kept with the policy that needs it.
pub(super) fn health_check_node_port(row: &Row<'_>) -> Result<()> {
    let spec = json!({
        "type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}],
    });
    row.apply(service("web", &spec))?;
    let path = "/spec/healthCheckNodePort";
    let first = row.copied("service/web", |copy| {
        ensure!(copy.pointer(path).is_some_and(|port| *port != json!(0)), "{copy}");
        Ok(())
    })?;
    row.patch("service/web", &json!({"spec": {"ports": [{"port": 81}]}}))?;
    let then = row.copied("service/web", |copy| is(copy, "/spec/ports/0/port", &json!(81)))?;
    is(&then, path, first.pointer(path).unwrap_or(&Value::Null))?;
    // What the cloud has made of it is told at the hub.
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}});
    let status = status.to_string();
    row.down.ok(&[
        "patch",
        "service/web",
        "--subresource=status",
        "--type=merge",
        "--patch",
        &status,
    ])?;
    let told = "/status/loadBalancer/ingress/0/ip";
    row.told("service/web", |object| is(object, told, &json!("192.0.2.7"))).map(drop)
}

/// A Service becomes a name of another place, and an address again.
pub(super) fn external_name_and_back(row: &Row<'_>) -> Result<()> {
    let address = json!({"type": "ClusterIP", "ports": [{"port": 80}]});
    row.apply(service("web", &address))?;
    row.copied("service/web", |copy| {
        ensure!(copy.pointer("/spec/clusterIP").is_some(), "{copy}");
        Ok(())
    })?;
    let name = json!({"type": "ExternalName", "externalName": "example.com"});
    row.apply(service("web", &name))?;
    row.copied("service/web", |copy| {
        is(copy, "/spec/externalName", &json!("example.com"))?;
        is(copy, "/spec/clusterIP", &Value::Null)
    })?;
    row.apply(service("web", &address))?;
    row.copied("service/web", |copy| {
        is(copy, "/spec/externalName", &Value::Null)?;
        ensure!(copy.pointer("/spec/clusterIP").is_some(), "{copy}");
        Ok(())
    })?;
    row.is_well("Service", "web")
}

/// A port that another Service has is an error of one object in one cluster.
pub(super) fn node_port_collision(row: &Row<'_>) -> Result<()> {
    let spec = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 31_090}]});
    row.apply(service("first", &spec))?;
    row.copied("service/first", |_| Ok(()))?;
    row.apply(service("second", &spec))?;
    row.apply(config("beside", &json!({"is": "well"})))?;
    let told = row.is_refused("Service", "second", "ApplyInvalid")?;
    ensure!(told.contains("already allocated"), "{told}");
    row.copied("configmap/beside", |_| Ok(()))?;
    // Given up by the first it is taken by the second, without help.
    let other = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 31_091}]});
    row.apply(service("first", &other))?;
    row.copied("service/second", |copy| is(copy, "/spec/ports/0/nodePort", &json!(31_090)))?;
    row.is_well("Service", "second")
}
